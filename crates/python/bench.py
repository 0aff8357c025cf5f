#!/usr/bin/env python3
"""Packets a second through the Python package: one call a packet, and many packets a call.

    python crates/python/bench.py [--seconds 2] [--rounds 5] [--at-least 20000]

programs/router.p4 with 1000 routes of 24 bits, 64-byte frames to random hosts of them. Of the rounds the median counts; the time
of the processor, which other work on the machine changes less, stands behind it. Exits 1 when one call a packet is slower than
`--at-least`.
"""

import argparse
import random
import statistics
import struct
import sys
import time
from pathlib import Path

import millrace

ROUTER = Path(__file__).resolve().parents[2] / "programs" / "router.p4"
ROUTES = 1000
FRAMES = 4096
BATCH = 256


def checksum(header: bytes) -> int:
    total = sum(struct.unpack("!10H", header))
    total = (total & 0xFFFF) + (total >> 16)
    return ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF


def frame(destination: int) -> bytes:
    header = struct.pack("!BBHHHBBHII", 0x45, 0, 50, 0, 0, 64, 17, 0, 0x0A000002, destination)
    header = header[:10] + checksum(header).to_bytes(2, "big") + header[12:]
    udp = struct.pack("!HHHH", 1000, 2000, 30, 0)
    return bytes.fromhex("020000000000 060000000000 0800") + header + udp + bytes(22)


def routes() -> list:
    rng = random.Random(1)
    return sorted(rng.sample(range(1 << 16), ROUTES))


def switch(engine: str) -> millrace.Switch:
    sw = millrace.Switch(ROUTER, engine=engine)
    for port in range(4):
        sw.table("send_frame").add(port, "rewrite_smac", [0x020000000000 + port])
    table = sw.table("ipv4_lpm")
    for number, net in enumerate(routes()):
        table.add((0x14000000 | net << 8, 24), "set_nhop", [0x060000000000 + number, number % 4])
    return sw


def frames() -> list:
    rng = random.Random(2)
    nets = routes()
    return [frame(0x14000000 | rng.choice(nets) << 8 | rng.randrange(256)) for _ in range(FRAMES)]


def one_by_one(sw, packets):
    send = sw.send
    for packet in packets:
        send(0, packet)


def in_batches(sw, packets):
    for at in range(0, FRAMES, BATCH):
        sw.send_many([(0, packet) for packet in packets[at : at + BATCH]])


def measure(run, sw, packets, seconds):
    """Packets a second, and seconds of the processor a packet."""
    sent = 0
    start, worked = time.perf_counter(), time.process_time()
    while (elapsed := time.perf_counter() - start) < seconds:
        run(sw, packets)
        sent += len(packets)
    return sent / elapsed, (time.process_time() - worked) / sent


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--seconds", type=float, default=2, help="of each round")
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--at-least", type=float, default=20_000, help="packets a second, one call a packet")
    options = arguments.parse_args()
    packets = frames()
    slowest = float("inf")
    for engine in ("jit", "interp"):
        for name, run in (("one call a packet", one_by_one), (f"{BATCH} packets a call", in_batches)):
            sw = switch(engine)
            rounds = [measure(run, sw, packets, options.seconds) for _ in range(options.rounds)]
            rates, work = zip(*rounds)
            forwarded = sum(counters.tx_packets for counters in sw.ports.values())
            if sw.drops or forwarded != sw.ports[0].rx_packets:
                print(f"{engine}, {name}: not all packets were forwarded: {sw.drops}")
                return 1
            median = statistics.median(rates)
            spread = f"({min(rates):.0f} to {max(rates):.0f})"
            print(f"{engine:6}  {name:18}  {median:9.0f} packets/s  {spread:20}  {statistics.median(work) * 1e6:.2f} us")
            if (engine, run) == ("jit", one_by_one):
                slowest = median
    return int(slowest < options.at_least)


if __name__ == "__main__":
    sys.exit(main())
