"""l2_switch.p4: the test plays the control plane, which learns stations from digests."""

import pytest
from network import PROGRAMS, host
from scapy.layers.l2 import Ether

import millrace

PORTS = [0, 1, 2, 3]


@pytest.fixture
def sw():
    sw = millrace.Switch(PROGRAMS / "l2_switch.p4", ports=PORTS)
    sw.set_multicast_group(1, PORTS)
    return sw


def learn(sw):
    """What a controller does with the digests: one entry in each table for a new station."""
    for digest in sw.digests():
        address, port = digest.fields["address"], digest.fields["port"]
        sw.table("smac").add(address, "NoAction")
        sw.table("dmac").add(address, "forward", {"port": port})


def frame(src: int, dst: int) -> bytes:
    return bytes(Ether(src=host(src), dst=host(dst), type=0x88B5) / b"hello")


def test_an_unknown_station_is_flooded_to_everyone_else(sw):
    assert sw.send(0, frame(0, 1)) == [(1, frame(0, 1)), (2, frame(0, 1)), (3, frame(0, 1))]


def test_an_unknown_sender_is_told_to_the_control_plane(sw):
    sw.send(2, frame(2, 1))
    [digest] = sw.digests()
    assert digest.name == "mac_learn_t"
    assert digest.fields == {"address": 0x060000000002, "port": 2}


def test_stations_are_learned_and_reached(sw):
    sw.send(0, frame(0, 1))
    learn(sw)
    assert sw.send(1, frame(1, 0)) == [(0, frame(1, 0))]
    learn(sw)
    assert sw.send(0, frame(0, 1)) == [(1, frame(0, 1))]
    assert sw.digests() == [], "who is known is not told again"


def test_nobody_gets_back_what_they_sent(sw):
    sw.send(0, frame(0, 1))
    learn(sw)
    assert sw.send(0, frame(7, 0)) == []
    assert sw.drops["egress_drop"] >= 1


def test_the_example_network(switch):
    sw = switch("l2_switch")
    assert [packet.port for packet in sw.send(0, frame(0, 1))] == [1]
    assert sorted(packet.port for packet in sw.send(0, frame(0, 2))) == [1, 2]


def test_a_frame_without_a_header_is_dropped(sw):
    assert sw.send(0, b"short") == []
    assert sum(sw.drops.values()) == 1
