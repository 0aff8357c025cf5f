"""Where the programs are, and how hosts and routers are called in the networks of their entries."""

from pathlib import Path

PROGRAMS = Path(__file__).resolve().parents[1]


def host(port: int) -> str:
    """The address of the host behind a port."""
    return f"06:00:00:00:00:{port:02x}"


def own(port: int) -> str:
    """The switch's own address on a port."""
    return f"02:00:00:00:00:{port:02x}"
