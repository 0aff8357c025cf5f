"""firewall.p4 with firewall.entries, and with rules of the test's own."""

import pytest
from network import PROGRAMS, host
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import ARP, Ether

import millrace

OUTSIDE, INSIDE = 0, 1
CLIENT, SERVER, NAMES, BANNED = "198.51.100.7", "10.0.1.2", "10.0.1.53", "192.0.2.9"


def frame(packet):
    return Ether(src=host(8), dst=host(9)) / packet


@pytest.fixture
def sw(switch):
    return switch("firewall")


@pytest.mark.parametrize(
    ("port", "packet"),
    [
        (OUTSIDE, IP(src=CLIENT, dst=SERVER) / TCP(sport=50000, dport=443)),
        (OUTSIDE, IP(src=CLIENT, dst=SERVER) / TCP(sport=1024, dport=80)),
        (OUTSIDE, IP(src=CLIENT, dst=NAMES) / UDP(sport=53, dport=53)),
        (INSIDE, IP(src=SERVER, dst=CLIENT) / TCP(sport=443, dport=50000)),
        (INSIDE, IP(src=SERVER, dst=CLIENT) / ICMP()),
        (OUTSIDE, ARP(pdst=SERVER)),
    ],
    ids=lambda value: value.summary() if hasattr(value, "summary") else None,
)
def test_what_is_permitted_passes_unchanged(sw, port, packet):
    assert sw.send(port, frame(packet)) == [(1 - port, frame(packet))]


@pytest.mark.parametrize(
    "packet",
    [
        IP(src=CLIENT, dst=SERVER) / TCP(sport=50000, dport=22),
        IP(src=CLIENT, dst=SERVER) / TCP(sport=1023, dport=80),
        IP(src=CLIENT, dst=SERVER) / UDP(sport=50000, dport=443),
        IP(src=CLIENT, dst="10.0.2.2") / TCP(sport=50000, dport=443),
        IP(src=CLIENT, dst=SERVER, frag=7) / TCP(sport=50000, dport=443),
        IP(src=BANNED, dst=SERVER) / TCP(sport=50000, dport=443),
        IP(src=BANNED, dst=SERVER) / ICMP(),
        IPv6(dst="2001:db8::1") / TCP(dport=443),
    ],
    ids=lambda packet: packet.summary(),
)
def test_what_is_not_permitted_is_dropped(sw, packet):
    assert sw.send(OUTSIDE, frame(packet)) == []
    assert sw.drops == {"ingress_drop": 1}


def test_rules_decide_by_their_priorities():
    sw = millrace.Switch(PROGRAMS / "firewall.p4")
    sw.table("forward").add(OUTSIDE, "set_port", [INSIDE])
    acl = sw.table("acl")
    ssh = frame(IP(src=CLIENT, dst=SERVER) / TCP(sport=50000, dport=22))
    assert sw.send(OUTSIDE, ssh) == []
    # Here the largest wins. What a rule does not name matches anything.
    acl.add({"ipv4.dst": "10.0.1.0/24", "ipv4.protocol": 6}, "permit", priority=10)
    assert sw.send(OUTSIDE, ssh) == [(INSIDE, ssh)]
    low = acl.add({"dst_port": (0, 1023)}, "deny", priority=5)
    assert sw.send(OUTSIDE, ssh) == [(INSIDE, ssh)]
    acl.delete(low)
    acl.add({"dst_port": (0, 1023)}, "deny", priority=20)
    assert sw.send(OUTSIDE, ssh) == []
