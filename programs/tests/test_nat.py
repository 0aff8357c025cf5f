"""nat.p4 with nat.entries: two inside networks on ports 0 and 1, the Internet on port 2; the test plays the control plane
behind port 63. The checksums that the switch corrects are compared with those that scapy computes anew."""

import pytest
from network import host, own
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.l2 import Ether

INSIDE, INTERNET, CONTROLLER = 0, 2, 63
SERVER = "198.51.100.80"


@pytest.fixture
def sw(switch):
    return switch("nat")


def arrives(port, packet):
    return Ether(dst=own(port), src=host(port)) / packet


def leaves(port, packet):
    """The frame as it leaves: all checksums made by scapy."""
    return (port, Ether(dst=host(port), src=own(port)) / packet)


@pytest.mark.parametrize("payload", [b"", b"x", b"two words"])
def test_a_bound_connection_is_translated_both_ways(sw, payload):
    out = IP(src="10.0.0.2", dst=SERVER, ttl=64) / TCP(sport=40000, dport=443) / payload
    seen = IP(src="203.0.113.1", dst=SERVER, ttl=63) / TCP(sport=1024, dport=443) / payload
    assert sw.send(INSIDE, arrives(INSIDE, out)) == [leaves(INTERNET, seen)]

    answer = IP(src=SERVER, dst="203.0.113.1", ttl=50) / TCP(sport=443, dport=1024) / payload
    back = IP(src=SERVER, dst="10.0.0.2", ttl=49) / TCP(sport=443, dport=40000) / payload
    assert sw.send(INTERNET, arrives(INTERNET, answer)) == [leaves(INSIDE, back)]

    for counter, size in (("binding_out_use", len(arrives(0, out))), ("binding_in_use", len(arrives(2, answer)))):
        assert sum(value.packets for value in sw.counter(counter).all().values()) == 1
        assert sum(value.bytes for value in sw.counter(counter).all().values()) == size


def test_pings_are_translated_by_their_identifiers(sw):
    ping = IP(src="10.0.1.2", dst=SERVER, ttl=64) / ICMP(id=7, seq=3) / b"ping"
    seen = IP(src="203.0.113.1", dst=SERVER, ttl=63) / ICMP(id=1026, seq=3) / b"ping"
    assert sw.send(1, arrives(1, ping)) == [leaves(INTERNET, seen)]


def test_a_udp_checksum_of_zero_stays(sw):
    packet = IP(src="10.0.0.10", dst=SERVER, ttl=9) / UDP(sport=5, dport=6, chksum=0) / b"x"
    seen = IP(src="203.0.113.10", dst=SERVER, ttl=8) / UDP(sport=5, dport=6, chksum=0) / b"x"
    assert sw.send(INSIDE, arrives(INSIDE, packet)) == [leaves(INTERNET, seen)]


def test_the_control_plane_binds_a_new_connection(sw):
    packet = arrives(INSIDE, IP(src="10.0.0.3", dst=SERVER, ttl=64) / UDP(sport=4000, dport=53) / b"?")
    [asked] = sw.send(INSIDE, packet)
    assert asked == (CONTROLLER, packet), "as it came"

    first = asked.scapy()
    key = [first[IP].src, first[IP].proto, first[UDP].sport]
    sw.table("binding_out").add(key, "set_source_and_id", {"address": "203.0.113.1", "id": 2000})
    seen = IP(src="203.0.113.1", dst=SERVER, ttl=63) / UDP(sport=2000, dport=53) / b"?"
    assert sw.send(INSIDE, packet) == [leaves(INTERNET, seen)]


def test_what_nobody_asked_for_is_dropped_and_counted(sw):
    before = [value.packets for value in sw.counter("drops")]
    packet = IP(src=SERVER, dst="203.0.113.1") / TCP(sport=443, dport=9999)
    assert sw.send(INTERNET, arrives(INTERNET, packet)) == []
    after = [value.packets for value in sw.counter("drops")]
    assert sum(after) - sum(before) == 1
    assert sw.drops == {"ingress_drop": 1}


def test_neighbours_reach_each_other_by_public_addresses(sw):
    """RFC 4787, hairpinning: the answer has to come from the address that was asked."""
    packet = IP(src="10.0.0.2", dst="203.0.113.10", ttl=64) / TCP(sport=40000, dport=80)
    seen = IP(src="203.0.113.1", dst="10.0.0.10", ttl=63) / TCP(sport=1024, dport=80)
    assert sw.send(INSIDE, arrives(INSIDE, packet)) == [leaves(INSIDE, seen)]
