#!/usr/bin/env python3
"""Writes the STF tests of programs/, programs/cookbook/ and tests/programs/, and the inputs of the demo.

    make_stf.py            writes them
    make_stf.py --check    says which are not as this script would write them, and exits 1 if any

What a frame must look like when it leaves is built here from its fields, by the same few functions as what goes in and
by none of the switch's own code.
"""
import struct
import sys
import zlib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from frames import *  # noqa: E402,F403
from stf import Stf  # noqa: E402
import afdx  # noqa: E402
import architectures  # noqa: E402
import blocks  # noqa: E402
import cookbook  # noqa: E402
import end_system  # noqa: E402
from ip_router import ip_router  # noqa: E402
from telemetry import telemetry  # noqa: E402

ROOT = Path(__file__).resolve().parents[3]
PROGRAMS, TESTS, DEMO = ROOT / "programs", ROOT / "tests/programs", ROOT / "programs/demo"


def host(n):
    return f"06:00:00:00:00:{n:02x}"


def own(n):
    return f"02:00:00:00:00:{n:02x}"


DATA = bytes(range(0x30, 0x3a))


# ---- programs/ ----

def router():
    t = Stf("The router of router.entries: three subnets, a default route, hosts 06:...:0P and own addresses 02:...:0P.")
    for p in range(3):
        t.do(f"add send_frame standard_metadata.egress_port:{p} rewrite_smac(smac:0x{mac(own(p)).hex()})")
        t.do(f"add ipv4_lpm hdr.ipv4.dst:0x0a00{p:02x}00/24 set_nhop(dmac:0x{mac(host(p)).hex()}, port:{p})")
        t.do(f"add ipv6_lpm hdr.ipv6.dst:0x20010db80000{p:04x}0000000000000000/64 set_nhop(dmac:0x{mac(host(p)).hex()}, port:{p})")
    t.do(f"add ipv4_lpm hdr.ipv4.dst:0x00000000/0 set_nhop(dmac:0x{mac(host(2)).hex()}, port:2)",
         "add ipv4_lpm hdr.ipv4.dst:0x0a000000/8 RouterIngress.drop()",
         "# a host route, and one to a port that has no address",
         "add ipv4_lpm hdr.ipv4.dst:0x0a000164/32 set_nhop(dmac:0x0600000000ff, port:0)",
         "add ipv4_lpm hdr.ipv4.dst:0x0a000300/24 set_nhop(dmac:0x060000000003, port:3)")

    def v4(text, dst, out=None, *, to=None, extra=b"", mangle=lambda f: f, ttl=64, payload=DATA, **fields):
        frame = mangle(eth(own(0), host(0), 0x0800, ipv4("10.0.0.2", dst, payload, ttl=ttl, **fields)) + extra)
        sent = [] if out is None else [(out, eth(to or host(out), own(out), 0x0800,
                                                 ipv4("10.0.0.2", dst, payload, ttl=ttl - 1, **fields)) + extra)]
        t.forward(text, 0, frame, *sent)

    v4("to the next subnet", "10.0.1.2", 1)
    v4("back out of the port it came in by", "10.0.0.9", 0)
    v4("a host route is longer than the subnet's", "10.0.1.100", 0, to="06:00:00:00:00:ff")
    v4("its neighbours are not on it", "10.0.1.101", 1)
    v4("the default route", "192.0.2.1", 2)
    v4("private, and no subnet: the /8 drops it", "10.200.0.1")
    v4("a port without an address of its own", "10.0.3.1")
    v4("all fields but TTL and checksum stay; Ethernet padding too", "10.0.1.2", 1, tos=0xb8, ident=0xbeef, flags=2,
       proto=17, payload=b"\x00\x35\x00\x35\x00\x0a\x00\x00ab", extra=bytes(6))
    v4("a later fragment", "10.0.1.2", 1, flags=1, offset=185)
    # the identification that makes the checksum of the header as sent 0, which is -0 in one's complement
    ident = next(i for i in range(65536) if ipv4("10.0.0.2", "10.0.1.2", DATA, ttl=63, ident=i)[10:12] == b"\0\0")
    v4("the checksum becomes 0", "10.0.1.2", 1, ident=ident)
    v4("no payload", "10.0.1.2", 1, payload=b"")
    v4("the last hop left", "10.0.1.2", 1, ttl=2)
    v4("TTL 1 ends here", "10.0.1.2", ttl=1)
    v4("TTL 0 should not have come", "10.0.1.2", ttl=0)
    v4("wrong checksum", "10.0.1.2", bad_checksum=True)
    v4("options", "10.0.1.2", options=bytes([1, 1, 1, 0]))
    v4("header length 4 words", "10.0.1.2", ihl=4)
    v4("version 5", "10.0.1.2", version=5)
    v4("truncated in the IPv4 header", "10.0.1.2", mangle=lambda f: f[:33])
    v4("truncated in the Ethernet header", "10.0.1.2", mangle=lambda f: f[:13])
    t.forward("another protocol", 0, eth("ff:ff:ff:ff:ff:ff", host(0), 0x0806, bytes(28)))

    def v6(text, dst, out=None, *, mangle=lambda f: f, hops=64, **fields):
        frame = mangle(eth(own(1), host(1), 0x86dd, ipv6("2001:db8:0:1::2", dst, DATA, hops=hops, **fields)))
        sent = [] if out is None else [(out, eth(host(out), own(out), 0x86dd,
                                                 ipv6("2001:db8:0:1::2", dst, DATA, hops=hops - 1, **fields)))]
        t.forward(text, 1, frame, *sent)

    v6("IPv6 to the next subnet", "2001:db8:0:2::2", 2)
    v6("IPv6, the last hop left", "2001:db8::1", 0, hops=2)
    v6("IPv6, hop limit 1", "2001:db8::1", hops=1)
    v6("IPv6 without a route", "2001:db8:0:3::2")
    v6("version 4 in a frame of type IPv6", "2001:db8::1", version=4)
    v6("IPv6, truncated", "2001:db8::1", mangle=lambda f: f[:53])
    return t


def l2_switch():
    t = Stf("The switch of l2_switch.entries: three ports, the stations of ports 0 and 1 are known.")
    t.do("mc_mgrp_create 1", "mc_node_create 0 0 1 2", "mc_node_associate 1 0")
    for p in (0, 1):
        t.do(f"add smac hdr.ethernet.src:0x{mac(host(p)).hex()} NoAction()",
             f"add dmac hdr.ethernet.dst:0x{mac(host(p)).hex()} forward(port:{p})")

    def frame(dst, src, payload=DATA):
        return eth(dst, src, 0x88b5, payload)

    f = frame(host(1), host(0))
    t.forward("known to known", 0, f, (1, f))
    f = frame(host(0), host(1), b"")
    t.forward("and back, with nothing in it", 1, f, (0, f))
    f = frame(host(2), host(0))
    t.forward("unknown destination: everywhere but back", 0, f, (1, f), (2, f))
    f = frame("ff:ff:ff:ff:ff:ff", host(1))
    t.forward("broadcast", 1, f, (0, f), (2, f))
    f = frame("33:33:00:00:00:01", host(2))
    t.forward("multicast from an unknown source", 2, f, (0, f), (1, f))
    f = frame(host(0), host(2))
    t.forward("an unknown source is forwarded all the same", 2, f, (0, f))
    t.forward("who shares the port has it already", 0, frame(host(0), "06:00:00:00:00:0f"))
    t.forward("too short for an address", 0, frame(host(1), host(0))[:12])

    t.say("port 2's station is learnt")
    t.do("wait", f"add smac hdr.ethernet.src:0x{mac(host(2)).hex()} NoAction()",
         f"add dmac hdr.ethernet.dst:0x{mac(host(2)).hex()} forward(port:2)")
    f = frame(host(2), host(0))
    t.forward("no longer flooded", 0, f, (2, f))
    return t


def firewall():
    t = Stf("The firewall with the rules of firewall.entries, which are bmv2 runtime commands: the smallest priority decides.")
    t.lines += [""] + [line for line in (PROGRAMS / "firewall.entries").read_text().splitlines()
                       if line and not line.startswith("#")]
    out, server, dns = "198.51.100.7", "10.0.1.2", "10.0.1.53"

    def pass_(text, src, dst, proto, payload, frm=0, to=1, permitted=True, mangle=lambda f: f, **fields):
        frame = mangle(eth(own(0), host(0), 0x0800, ipv4(src, dst, payload, proto=proto, **fields)))
        t.forward(text, frm, frame, *([(to, frame)] if permitted else []))

    web = tcp(out, server, 50000, 443, DATA)
    pass_("HTTPS in", out, server, 6, web)
    pass_("and its answer out", server, out, 6, tcp(server, out, 443, 50000, DATA), frm=1, to=0)
    pass_("by the other cable", out, server, 6, web, frm=2, to=3)
    pass_("and back", server, out, 6, tcp(server, out, 443, 50000, DATA), frm=3, to=2)
    pass_("the ends of a range belong to it: 1024", out, server, 6, tcp(out, server, 1024, 80))
    pass_("65535", out, server, 6, tcp(out, server, 65535, 80))
    pass_("1023 is outside", out, server, 6, tcp(out, server, 1023, 80), permitted=False)
    pass_("81 is not 80", out, server, 6, tcp(out, server, 50000, 81), permitted=False)
    pass_("the banned network: priority 10 beats 20", "192.0.2.77", server, 6, tcp("192.0.2.77", server, 50000, 443), permitted=False)
    pass_("its neighbour is not banned", "192.0.3.77", server, 6, tcp("192.0.3.77", server, 50000, 443))
    pass_("DNS", out, dns, 17, udp(out, dns, 5353, 53, DATA))
    pass_("and its answer", dns, out, 17, udp(dns, out, 53, 5353, DATA), frm=1, to=0)
    pass_("DNS to another server", out, server, 17, udp(out, server, 5353, 53, DATA), permitted=False)
    pass_("DNS over TCP has no rule", out, dns, 6, tcp(out, dns, 5353, 53), permitted=False)
    pass_("ping; ICMP has no ports", out, server, 1, b"\x08\x00\xf7\xff\x00\x00\x00\x00")
    pass_("banned ping", "192.0.2.77", server, 1, b"\x08\x00\xf7\xff\x00\x00\x00\x00", permitted=False)
    pass_("a protocol without a rule", out, server, 47, bytes(8), permitted=False)
    pass_("a later fragment has no ports, whatever its payload pretends", out, server, 6, web[:16], offset=185, permitted=False)
    pass_("a first fragment has", out, server, 6, web, flags=1)
    pass_("options", out, server, 1, bytes(8), options=bytes([1, 1, 1, 0]), permitted=False)
    pass_("version 5", out, server, 1, bytes(8), version=5, permitted=False)
    pass_("cut off before the ports", out, server, 6, web[:3], permitted=False)
    pass_("cut off after the ports", out, server, 6, web[:4])
    pass_("an uncabled port", out, server, 6, web, frm=4, permitted=False)
    f = eth("ff:ff:ff:ff:ff:ff", host(0), 0x0806, bytes(28))
    t.forward("ARP passes", 1, f, (0, f))
    t.forward("IPv6 does not", 0, eth(own(0), host(0), 0x86dd, ipv6("2001:db8::1", "2001:db8::2")))
    return t


def demo():
    """What two hosts send to the router of router.entries: three frames that pass each way, and three that do not."""
    a, b = "10.0.0.2", "10.0.1.2"
    ping = b"\x08\x00" + struct.pack(">H", checksum(b"\x08\x00\0\0\0\x01\0\x01" + DATA)) + b"\0\x01\0\x01" + DATA
    pong = b"\0\0" + struct.pack(">H", checksum(b"\0\0\0\0\0\x01\0\x01" + DATA)) + b"\0\x01\0\x01" + DATA

    def frame(n, payload):
        return eth(own(n), host(n), 0x0800, payload).ljust(60, b"\0")
    in0 = [frame(0, ipv4(a, b, ping, proto=1)),
           frame(0, ipv4(a, b, udp(a, b, 40000, 53, DATA), proto=17)),
           frame(0, ipv4(a, b, DATA, ttl=1)),
           frame(0, ipv4(a, b, DATA, bad_checksum=True)),
           eth("ff:ff:ff:ff:ff:ff", host(0), 0x0806, bytes(46)),
           eth(own(0), host(0), 0x86dd, ipv6("2001:db8::2", "2001:db8:0:1::2", DATA))]
    in1 = [frame(1, ipv4(b, a, pong, proto=1)),
           frame(1, ipv4(b, a, udp(b, a, 53, 40000, DATA), proto=17)),
           eth(own(1), host(1), 0x86dd, ipv6("2001:db8:0:1::2", "2001:db8::2", DATA))]
    return {"in0.pcap": in0, "in1.pcap": in1}


# ---- tests/programs/ ----

def mpls():
    t = Stf("Labels put on, swapped and taken off. Entries: labels 100 to 199 swap, 200 pop, 300 swap and push.")
    t.do("add fec hdr.ip.v4.dst:0x0a010000/16 impose(label:100, port:1)",
         "add fec hdr.ip.v4.dst:0x0a020000/16 impose2(outer:16, inner:1048575, port:2)",
         "add lfib label:100 swap(label:101, port:3)",
         "add lfib label:200 pop(port:4)",
         "add lfib label:300 swap_and_push(label:301, outer:400, port:5)")

    def label(value, bottom, ttl, tc=0):
        return struct.pack(">I", value << 12 | tc << 9 | bottom << 8 | ttl)

    def frame(kind, payload):
        return eth(own(0), host(0), kind, payload)

    def v4(dst="10.1.0.1", ttl=64):
        return ipv4("10.0.0.1", dst, DATA, ttl=ttl)
    v6 = ipv6("2001:db8::1", "2001:db8::2", DATA, hops=9)
    v6out = ipv6("2001:db8::1", "2001:db8::2", DATA, hops=40)

    t.forward("one label on; it takes over the TTL", 0, frame(0x0800, v4()),
              (1, frame(0x8847, label(100, 1, 63) + v4(ttl=63))))
    t.forward("two labels on, the largest and one of the smallest", 0, frame(0x0800, v4("10.2.3.4")),
              (2, frame(0x8847, label(16, 0, 63) + label(1048575, 1, 63) + v4("10.2.3.4", ttl=63))))
    t.forward("no label for it", 0, frame(0x0800, v4("10.3.0.1")))
    t.forward("IPv6 without a label", 0, frame(0x86dd, v6))
    t.forward("swap; the traffic class stays", 0, frame(0x8847, label(100, 1, 20, tc=5) + v4()),
              (3, frame(0x8847, label(101, 1, 19, tc=5) + v4())))
    t.forward("swap the outer of two", 0, frame(0x8847, label(100, 0, 20) + label(7, 1, 3) + v4()),
              (3, frame(0x8847, label(101, 0, 19) + label(7, 1, 3) + v4())))
    t.forward("pop the last label before IPv4", 0, frame(0x8847, label(200, 1, 41) + v4()),
              (4, frame(0x0800, v4(ttl=40))))
    t.forward("pop the last label before IPv6", 0, frame(0x8847, label(200, 1, 41) + v6), (4, frame(0x86dd, v6out)))
    t.forward("pop the outer of three", 0, frame(0x8847, label(200, 0, 41) + label(8, 0, 5, tc=2) + label(9, 1, 6) + v4()),
              (4, frame(0x8847, label(8, 0, 40, tc=2) + label(9, 1, 6) + v4())))
    t.forward("swap and push", 0, frame(0x8847, label(300, 1, 10) + v4()),
              (5, frame(0x8847, label(400, 0, 9) + label(301, 1, 9) + v4())))
    t.forward("pushing on a full stack loses the lowest label", 0,
              frame(0x8847, label(300, 0, 10) + label(8, 0, 5) + label(9, 1, 6) + v4()),
              (5, frame(0x8847, label(400, 0, 9) + label(301, 0, 9) + label(8, 0, 5) + v4())))
    t.forward("four labels are one too many", 0,
              frame(0x8847, label(100, 0, 9) + label(1, 0, 9) + label(2, 0, 9) + label(3, 1, 9) + v4()))
    t.forward("label without an entry", 0, frame(0x8847, label(555, 1, 9) + v4()))
    t.forward("TTL 1", 0, frame(0x8847, label(100, 1, 1) + v4()))
    t.forward("neither IPv4 nor IPv6 below", 0, frame(0x8847, label(100, 1, 9) + b"\x50" + DATA))
    t.forward("nothing below", 0, frame(0x8847, label(100, 1, 9)))
    return t


def mirror():
    t = Stf("Operation, passes, port and mark are the four bytes behind the Ethernet header.")
    t.do("mirroring_add 7 5", "mirroring_add 8 6", "mc_mgrp_create 3", "mc_node_create 5 1 2", "mc_node_create 9 3",
         "mc_node_associate 3 0", "mc_node_associate 3 1")

    def frame(op, passes, port, mark, payload=DATA):
        return eth(host(1), host(0), 0x88b5, bytes([op, passes, port, mark]) + payload)
    t.forward("ingress clone: the packet as it came, the listed field as ingress left it, 0 for the other; cut to 20 bytes",
              0, frame(1, 0x50, 4, 0x51), (4, frame(1, 0x50, 4, 0x11)), (5, frame(1, 0, 4, 0xaa)[:20]))
    t.forward("egress clone: the packet as egress left it", 0, frame(2, 0x50, 4, 0x51),
              (4, frame(2, 0x50, 4, 0x22)), (6, frame(2, 0x55, 4, 0x22)))
    t.forward("resubmit: the packet as it came, only the field of list 2", 0, frame(3, 0x50, 4, 0x51), (4, frame(3, 1, 4, 0x51)))
    t.forward("recirculate three times: the packet as it left", 0, frame(4, 0x50, 4, 0x51), (4, frame(4, 0x53, 4, 3)))
    t.forward("multicast: two copies with replication id 5, one with 9", 0, frame(5, 0x50, 3, 0x51),
              (1, frame(5, 0x50, 3, 5)), (2, frame(5, 0x50, 3, 5)), (3, frame(5, 0x50, 3, 9)))
    t.forward("a group that nobody made", 0, frame(5, 0x50, 4, 0x51))
    t.forward("an unknown operation", 0, frame(6, 0x50, 4, 0x51))
    t.forward("no operation", 0, eth(host(1), host(0), 0x88b5, b"\x01\x02\x03"))
    return t


def nat():
    t = Stf("10.0.0.2 inside is 203.0.113.1 outside.")
    t.do("add NatIngress.source.rules address:0x0a000002 port:40000 to(new_address:0xcb007101, new_port:61000)",
         "add NatIngress.source.rules address:0x0a000002 port:53 to(new_address:0xcb007101, new_port:53)",
         "add NatIngress.destination.rules address:0xcb007101 port:61000 to(new_address:0x0a000002, new_port:40000)",
         "add NatIngress.destination.rules address:0xcb007101 port:53 to(new_address:0x0a000002, new_port:53)")
    a, pub, peer = "10.0.0.2", "203.0.113.1", "198.51.100.9"

    def frame(src, dst, proto, segment, ttl=64, **fields):
        return eth(host(1), host(0), 0x0800, ipv4(src, dst, segment, proto=proto, ttl=ttl, **fields))
    t.forward("TCP out, payload of odd length", 0, frame(a, peer, 6, tcp(a, peer, 40000, 80, b"hello")),
              (1, frame(pub, peer, 6, tcp(pub, peer, 61000, 80, b"hello"), ttl=63)))
    t.forward("TCP back in, with options", 1, frame(peer, pub, 6, tcp(peer, pub, 80, 61000, b"hi", options=b"\x02\x04\x05\xb4")),
              (0, frame(peer, a, 6, tcp(peer, a, 80, 40000, b"hi", options=b"\x02\x04\x05\xb4"), ttl=63)))
    t.forward("TCP without payload", 0, frame(a, peer, 6, tcp(a, peer, 40000, 80, flags=2)),
              (1, frame(pub, peer, 6, tcp(pub, peer, 61000, 80, flags=2), ttl=63)))
    t.forward("UDP out", 0, frame(a, peer, 17, udp(a, peer, 53, 53, DATA)), (1, frame(pub, peer, 17, udp(pub, peer, 53, 53, DATA), ttl=63)))
    t.forward("UDP in", 1, frame(peer, pub, 17, udp(peer, pub, 53, 53, DATA)), (0, frame(peer, a, 17, udp(peer, a, 53, 53, DATA), ttl=63)))
    t.forward("UDP without a checksum gets none", 0, frame(a, peer, 17, udp(a, peer, 53, 53, DATA, check=False)),
              (1, frame(pub, peer, 17, udp(pub, peer, 53, 53, DATA, check=False), ttl=63)))
    big = bytes(i * 7 & 0xff for i in range(1400))
    t.forward("a long one", 0, frame(a, peer, 6, tcp(a, peer, 40000, 80, big)), (1, frame(pub, peer, 6, tcp(pub, peer, 61000, 80, big), ttl=63)))
    t.forward("no rule for this port", 0, frame(a, peer, 6, tcp(a, peer, 40001, 80, b"hello")))
    t.forward("no rule for this address", 0, frame("10.0.0.3", peer, 6, tcp("10.0.0.3", peer, 40000, 80, b"hello")))
    t.forward("the rules of one direction are not those of the other", 1, frame(peer, a, 6, tcp(peer, a, 80, 40000, b"hello")))
    t.forward("wrong TCP checksum", 0, frame(a, peer, 6, tcp(a, peer, 40000, 80, b"hello", wrong=1)))
    t.forward("wrong UDP checksum", 0, frame(a, peer, 17, udp(a, peer, 53, 53, DATA, wrong=0x100)))
    t.forward("wrong IPv4 checksum", 0, frame(a, peer, 17, udp(a, peer, 53, 53, DATA), bad_checksum=True))
    t.forward("neither TCP nor UDP", 0, frame(a, peer, 1, DATA))
    t.forward("a fragment", 0, frame(a, peer, 17, udp(a, peer, 53, 53, DATA), flags=1))
    t.forward("TTL 1", 0, frame(a, peer, 17, udp(a, peer, 53, 53, DATA), ttl=1))
    return t


def ip_options():
    t = Stf("Options: router alert (20) is forwarded, record route (7) stripped, source route (9, 3) dropped.")
    t.do("add policy has_options:0 first_option:0 forward(port:1)",
         "add policy has_options:1 first_option:20 forward(port:2)",
         "add policy has_options:1 first_option:7 strip(port:3)",
         "add policy has_options:1 first_option:1 strip(port:3)")

    def frame(options=b"", src=host(0), **fields):
        return eth(host(1), src, 0x0800, ipv4("10.0.0.1", "10.0.0.2", DATA, options=options, **fields))

    def reason(n, f):
        return 7, f[:6] + bytes([0, 0, 0, 0, 0, n]) + f[12:]
    alert, record = b"\x94\x04\x00\x00", b"\x07\x07\x04" + bytes(4) + b"\x00"
    f = frame()
    t.forward("no options", 0, f, (1, f))
    f = frame(alert)
    t.forward("router alert", 0, f, (2, f))
    t.forward("record route, 8 bytes", 0, frame(record), (3, frame()))
    t.forward("as many options as fit: 40 bytes", 0, frame(b"\x07\x27\x04" + bytes(36) + b"\x00"), (3, frame()))
    t.forward("begins with no-operation", 0, frame(b"\x01" * 3 + b"\x00"), (3, frame()))
    t.forward("loose source route", 0, frame(b"\x83\x07\x04" + bytes(5)))
    f = frame(version=6)
    t.forward("version 6", 0, f, reason(1, f))
    f = frame(ihl=4)
    t.forward("header length 4 words", 0, f, reason(2, f))
    f = frame(alert, total=20)
    t.forward("total length less than the header's", 0, f, reason(3, f))
    f = frame(record)[:40]
    t.forward("cut off in the options", 0, f, reason(4, f))
    f = frame()[:30]
    t.forward("cut off in the header", 0, f, reason(4, f))
    f = frame(ihl=15, total=60)[:34]
    t.forward("options promised, nothing there", 0, f, reason(4, f))
    f = frame(bad_checksum=True)
    t.forward("wrong checksum", 0, f, reason(5, f))
    f = frame(alert, bad_checksum=True)
    t.forward("wrong checksum over options", 0, f, reason(5, f))
    t.forward("not IPv4", 0, eth(host(1), host(0), 0x86dd, DATA))
    return t


def crc16_arc(data):
    """Polynomial 0x8005 reflected, initial value 0, nothing inverted."""
    crc = 0
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0xa001 if crc & 1 else 0)
    return crc


def ecmp():
    t = Stf("Four next hops with two links each. A flow's member is its CRC-32 modulo the members of the group, its link its\n"
            "CRC-16 modulo 2; both are computed by the script.")
    members = [10, 20, 30]
    for hop in members + [40]:
        t.do(f"act_prof_create_member ways set_next_hop {hop}")
    t.do("act_prof_create_group ways", *[f"act_prof_add_member_to_group ways {m} 0" for m in range(3)],
         "act_prof_create_group ways", "act_prof_add_member_to_group ways 3 1")
    t.do("table_indirect_add_with_group routes 10.1.0.0/16 => 0", "table_indirect_add_with_group routes 10.2.0.0/16 => 1",
         "table_indirect_add routes 10.3.0.0/16 => 1")
    for hop in members + [40]:
        for link in (0, 1):
            t.do(f"table_add links set_link {hop} {link} => {hop + link} 06:00:00:00:{hop:02x}:{link:02x}")
    t.do("act_prof_create_member accounts mark 184", "table_indirect_add customers 10.0.0.7 => 0",
         "table_indirect_add customers 10.0.0.8 => 0")

    def one(text, src, dst, sport, dport, hops, proto=17, tos=0, payload=None):
        segment = udp(src, dst, sport, dport, DATA) if payload is None else payload
        ports = struct.pack(">HH", sport, dport) if proto in (6, 17) else bytes(4)
        hop = hops[zlib.crc32(ip(src) + ip(dst) + bytes([proto]) + ports) % len(hops)]
        link = crc16_arc(ip(src) + ip(dst) + ports) % 2
        t.forward(text, 0, eth(own(0), host(0), 0x0800, ipv4(src, dst, segment, proto=proto)),
                  (hop + link, eth(f"06:00:00:00:{hop:02x}:{link:02x}", host(0), 0x0800,
                                   ipv4(src, dst, segment, proto=proto, ttl=63, tos=tos))))
    for n in range(12):
        one(f"flow {n} over three", "10.0.0.1", f"10.1.0.{n}", 1000 + n, 53, members)
    one("the same flow again", "10.0.0.1", "10.1.0.0", 1000, 53, members)
    one("no ports", "10.0.0.1", "10.1.0.1", 0, 0, members, proto=1, payload=DATA)
    one("a group of one", "10.0.0.1", "10.2.0.1", 5, 6, [40])
    one("a member without a group", "10.0.0.1", "10.3.0.1", 5, 6, [20])
    one("a customer's mark", "10.0.0.7", "10.2.0.1", 5, 6, [40], tos=184)
    one("another's, from the same member", "10.0.0.8", "10.2.0.1", 5, 6, [40], tos=184)
    t.forward("no route", 0, eth(own(0), host(0), 0x0800, ipv4("10.0.0.1", "10.4.0.1", udp("10.0.0.1", "10.4.0.1", 1, 2), proto=17)))

    t.say("with one member gone, the rest share its flows")
    t.do("wait", "act_prof_remove_member_from_group ways 1 0")
    for n in range(4):
        one(f"flow {n} over two", "10.0.0.1", f"10.1.0.{n}", 1000 + n, 53, [10, 30])
    return t


def sketch():
    t = Stf("Estimates are exact here: each pair below has a cell that no other shares (checked by the script).")
    pairs = [("10.0.0.1", "10.0.0.2"), ("10.0.0.2", "10.0.0.1"), ("192.168.7.9", "224.0.0.251")]
    rows = [[zlib.crc32(struct.pack(">I", row) + ip(a) + ip(b)) % 1024 for row in range(3)] for a, b in pairs]
    assert all(any(all(rows[j][row] != rows[i][row] for j in range(3) if j != i) for row in range(3)) for i in range(3))
    counts = {}

    def one(text, n, colour=0, dropped=False):
        a, b = pairs[n]
        counts[n] = counts.get(n, 0) + 1
        c = counts[n]
        folded = 0
        for byte in ip(a):
            folded ^= byte
        frame = eth(host(1), host(0), 0x88b5, ip(a) + ip(b))
        report = struct.pack(">IBBBB", c, c.bit_length(), bin(c >> 1).count("1"), colour, folded)
        t.forward(text, 0, frame + DATA, *([] if dropped else [(1, frame + report + DATA)]))
    for k in range(4):
        one(f"first pair, packet {k + 1}", 0)
    one("the other way round is another pair", 1)
    one("third pair", 2)
    one("first pair again", 0)
    t.say("a limit of 6 packets")
    t.do("wait", "register_write limit 0 6")
    one("the sixth passes", 0)
    one("the seventh does not", 0, dropped=True)
    one("the others are not held up", 2)
    t.say("the limit is lifted, the count has gone on")
    t.do("wait", "register_write limit 0 0")
    one("the eighth", 0)
    t.say("a count set from outside saturates")
    t.do("wait", *[f"register_write counts {row * 1024 + column} 4294967294" for row, column in enumerate(rows[2])])
    counts[2] = 0xfffffffe
    one("one below the largest becomes the largest", 2)
    counts[2] = 0xfffffffe
    one("and stays", 2)
    t.say("a meter for sources that end in 1, green for one packet, yellow for one more, and then next to nothing")
    t.do("wait", "meter_set_rates rates 1 0.000000001:1 0.000000001:2")
    one("green", 0)
    one("yellow", 0, colour=1)
    one("red", 0, colour=2)
    one("red still", 0, colour=2)
    one("another meter", 1)
    t.forward("too short", 0, eth(host(1), host(0), 0x88b5, bytes(7)))
    return t


def classifier():
    t = Stf("Port 1 is the ordinary link, 2 the fast one, 3 the slow one.")
    t.do("pvs_add tunnel_ports 4789", "pvs_add tunnel_ports 8472")
    a, b = "10.0.0.1", "10.0.0.2"

    def packet(dscp, proto=17, dport=1, ecn=0, **fields):
        payload = udp(a, b, 7777, dport, DATA) if proto == 17 else DATA
        return ipv4(a, b, payload, proto=proto, tos=dscp << 2 | ecn, **fields)

    def frame(payload, kind=0x0800, vlan=()):
        tags = b"".join(struct.pack(">HH", tpid, tci) for tpid, tci in vlan)
        return eth(host(1), host(0), kind, payload) if not vlan else mac(host(1)) + mac(host(0)) + tags + struct.pack(">H", kind) + payload

    def one(text, port, dscp, **fields):
        before = fields.pop("before")
        t.forward(text, 0, frame(packet(before, **fields)), (port, frame(packet(dscp, **fields))))
    one("nothing said: normal", 1, 0, before=0, dport=9)
    one("the ECN bits are not the DSCP's", 1, 0, before=10, dport=9, ecn=3)
    one("voice", 2, 46, before=0, dport=16384)
    one("the end of the range", 2, 46, before=0, dport=32767)
    one("beyond it", 1, 0, before=0, dport=32768)
    one("video is within voice but comes first: 30 before 40", 1, 34, before=0, dport=20500)
    one("bulk", 3, 8, before=8, dport=9)
    one("bulk that is voice: 40 before 50", 2, 46, before=8, dport=30000)
    one("network control by its DSCP: 10 before 30", 2, 48, before=0b110111, dport=20500)
    one("OSPF", 2, 48, before=0, proto=89)
    one("not UDP, so no port", 1, 0, before=0, proto=6)
    one("a later fragment has no port", 1, 0, before=0, dport=20500, offset=100)

    t.forward("the outer tag gets the queue as its priority", 0, frame(packet(0, dport=20500), vlan=[(0x8100, 0x0064)]),
              (1, frame(packet(34, dport=20500), vlan=[(0x8100, 0x8064)])))
    t.forward("two tags", 0, frame(packet(48, dport=1), vlan=[(0x88a8, 0x1001), (0x8100, 0x2002)]),
              (2, frame(packet(48, dport=1), vlan=[(0x88a8, 0xf001), (0x8100, 0x2002)])))
    t.forward("three tags are one too many", 0, frame(packet(0), vlan=[(0x88a8, 1), (0x8100, 2), (0x8100, 3)]))
    t.forward("not IPv4", 0, frame(DATA, kind=0x0806))

    def tunnel(network, inner, dport=4789):
        vxlan = struct.pack(">II", 0x08000000, network << 8)
        return frame(ipv4("172.16.0.1", "172.16.0.2", udp("172.16.0.1", "172.16.0.2", 5555, dport, vxlan + inner), proto=17))
    inner = mac(own(9)) + mac(own(8)) + b"\x08\x00"
    t.forward("a tunnel is taken apart, and what was in it classified", 0, tunnel(5000, inner + packet(0, dport=20500)),
              (1, inner + packet(34, dport=20500)))
    t.forward("the other tunnel port", 0, tunnel(5000, inner + packet(8, proto=6), 8472), (3, inner + packet(8, proto=6)))
    t.forward("a network unknown here is reported and dropped", 0, tunnel(5001, inner + packet(0)))
    t.forward("no IPv4 inside", 0, tunnel(5000, mac(own(9)) + mac(own(8)) + b"\x08\x06" + DATA))
    t.forward("not a tunnel port", 0, tunnel(5000, inner + packet(0), 4790),
              (1, tunnel(5000, inner + packet(0), 4790)))
    t.say("a port is taken off the list")
    t.do("wait", "pvs_remove tunnel_ports 8472")
    t.forward("what was a tunnel is a packet like any other", 0, tunnel(5000, inner + packet(8), 8472),
              (1, tunnel(5000, inner + packet(8), 8472)))
    return t


def main():
    out = {PROGRAMS / f"{f.__name__}.stf": f().text().encode() for f in (router, ip_router, l2_switch, firewall)}
    out |= {PROGRAMS / f"{f.__name__}.stf": f().text().encode() for f in afdx.TESTS}
    out |= {PROGRAMS / f"{f.__name__}.stf": f().text().encode() for f in blocks.TESTS}
    out |= {PROGRAMS / "int.stf": telemetry().text().encode()}
    out |= {TESTS / f"{f.__name__}.stf": f().text().encode() for f in (mpls, mirror, nat, ip_options, ecmp, sketch, classifier)}
    out |= {TESTS / f"{f.__name__}.stf": f().text().encode() for f in architectures.TESTS}
    out |= {PROGRAMS / f"{f.__name__}.stf": f().text().encode() for f in end_system.TESTS}
    out |= {cookbook.COOKBOOK / f"{f.__name__}.stf": f().text().encode() for f in cookbook.TESTS}
    out |= {DEMO / name: pcap(frames) for name, frames in demo().items()}
    if "--check" not in sys.argv:
        for path, content in out.items():
            path.write_bytes(content)
        return
    stale = [path for path, content in out.items() if not path.exists() or path.read_bytes() != content]
    for path in stale:
        print(f"{path.relative_to(ROOT)} is not what make_stf.py writes")
    sys.exit(bool(stale))


if __name__ == "__main__":
    main()
