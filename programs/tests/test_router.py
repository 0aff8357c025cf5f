"""router.p4 with router.entries: three subnets on three ports, and a default route by port 2."""

import pytest
from network import PROGRAMS, host, own
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import ICMPv6EchoRequest, IPv6
from scapy.layers.l2 import ARP, Ether

import millrace


@pytest.fixture
def sw(switch):
    return switch("router", ports=[0, 1, 2])


def to_router(packet):
    return Ether(dst=own(0), src=host(0)) / packet


@pytest.mark.parametrize("above", [ICMP(), TCP(dport=80), UDP(dport=53) / b"question"])
@pytest.mark.parametrize(("dst", "port"), [("10.0.1.2", 1), ("10.0.2.7", 2), ("10.0.0.9", 0), ("192.0.2.1", 2)])
def test_ipv4_takes_the_longest_prefix(sw, dst, port, above):
    sent = sw.send(0, to_router(IP(src="10.0.0.2", dst=dst, ttl=64) / above))
    # scapy computes the checksum of the header with a hop less by itself.
    assert sent == [(port, Ether(dst=host(port), src=own(port)) / IP(src="10.0.0.2", dst=dst, ttl=63) / above)]


def test_ipv6_takes_the_longest_prefix(sw):
    ping = ICMPv6EchoRequest()
    sent = sw.send(0, to_router(IPv6(src="2001:db8::2", dst="2001:db8:0:1::2", hlim=9) / ping))
    expected = IPv6(src="2001:db8::2", dst="2001:db8:0:1::2", hlim=8) / ping
    assert sent == [(1, Ether(dst=host(1), src=own(1)) / expected)]


@pytest.mark.parametrize(
    "packet",
    [
        IP(dst="10.200.0.1") / ICMP(),
        IP(dst="10.0.1.2", ttl=1) / ICMP(),
        IP(dst="10.0.1.2", ttl=0) / ICMP(),
        IP(dst="10.0.1.2", chksum=0x1234) / ICMP(),
        IP(dst="10.0.1.2", options=[b"\x94\x04\x00\x00"]) / ICMP(),
        IPv6(dst="2001:db8:9::1") / ICMPv6EchoRequest(),
        IPv6(dst="2001:db8:0:1::2", hlim=1) / ICMPv6EchoRequest(),
        ARP(pdst="10.0.0.1"),
    ],
    ids=lambda packet: packet.summary(),
)
def test_what_a_router_must_not_forward_is_dropped(sw, packet):
    outcome = sw.inject(0, to_router(packet))
    assert outcome.packets == []
    assert [drop.reason for drop in outcome.drops] == ["ingress_drop"]


def test_routes_come_and_go(sw):
    routes = sw.table("ipv4_lpm")
    packet = to_router(IP(src="10.0.0.2", dst="10.0.1.77") / ICMP())
    handle = routes.add("10.0.1.64/26", "set_nhop", {"dmac": "06:00:00:00:00:77", "port": 2})
    assert sw.send(0, packet)[0].port == 2
    routes.delete(handle)
    assert sw.send(0, packet)[0].port == 1


def test_a_trace_shows_the_route(sw):
    trace = sw.trace(0, to_router(IP(src="10.0.0.2", dst="10.0.1.2") / ICMP()))
    assert "RouterIngress.ipv4_lpm" in str(trace)
    assert "0x0a000100/24" in str(trace)


def test_a_full_subnet_of_hosts():
    """Many packets at once: one to each host of a subnet."""
    sw = millrace.Switch(PROGRAMS / "router.p4")
    sw.table("send_frame").add(1, "rewrite_smac", {"smac": own(1)})
    routes = sw.table("ipv4_lpm")
    for last in range(256):
        routes.add((0x0A000100 + last, 32), "set_nhop", {"dmac": 0x060000000000 + last, "port": 1})
    frame = bytes(to_router(IP(src="10.0.0.2", dst="10.0.1.0") / UDP()))
    packets = [(0, to_router(IP(src="10.0.0.2", dst=f"10.0.1.{last}") / UDP())) for last in range(256)]
    sent = sw.send_many(packets)
    assert [packet[0].bytes[5] for packet in sent] == list(range(256))
    assert sw.ports[1].tx_packets == 256 and sw.ports[1].tx_bytes == 256 * len(frame)
