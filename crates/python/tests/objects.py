"""Packets for objects.p4, and where programs are."""

from pathlib import Path

HERE = Path(__file__).resolve().parent
PROGRAMS = HERE.parents[2] / "programs"


def probe(op: int, a: int = 0, b: int = 0, c: int = 0, d: int = 0, src: int = 0x02_00_00_00_00_99) -> bytes:
    """A frame that objects.p4 looks at."""
    ethernet = bytes.fromhex("060000000001") + src.to_bytes(6, "big") + b"\x88\xb5"
    header = bytes([op, a]) + b.to_bytes(2, "big") + c.to_bytes(4, "big") + d.to_bytes(16, "big")
    return ethernet + header + b"payload"
