"""Packets in, packets out, and what is counted of them."""

import signal
import threading
from ipaddress import ip_address

import pytest
from objects import PROGRAMS, probe
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw

import millrace


def ipv4(dst="10.0.1.2", ttl=64):
    return Ether(dst="02:00:00:00:00:00", src="06:00:00:00:00:00") / IP(src="10.0.0.2", dst=dst, ttl=ttl) / UDP() / b"hello"


def routed(packet, port):
    """The packet as the router of router.entries has to send it by a port, made by scapy."""
    sent = packet.copy()
    sent.src, sent.dst = f"02:00:00:00:00:0{port}", f"06:00:00:00:00:0{port}"
    sent[IP].ttl -= 1
    return bytes(sent)


@pytest.mark.parametrize("form", [bytes, lambda p: bytearray(bytes(p)), lambda p: memoryview(bytes(p)), lambda p: p])
def test_a_packet_is_anything_that_has_bytes(router, form):
    assert router.send(0, form(ipv4())) == [(1, routed(ipv4(), 1))]


@pytest.mark.parametrize("wrong", [5, "abc", [1, 2], None])
def test_what_has_no_bytes_is_refused(router, wrong):
    with pytest.raises(TypeError, match="a packet is bytes"):
        router.send(0, wrong)
    with pytest.raises(TypeError, match="packet 1: a packet is bytes"):
        router.send_many([(0, ipv4()), (0, wrong)])
    assert router.ports == {}, "no packet was taken in"


def test_a_sent_packet_tells_all(router):
    [packet] = router.send(0, ipv4())
    expected = routed(ipv4(), 1)
    assert (packet.port, packet.bytes, packet.time_ns) == (1, expected, 0)
    assert bytes(packet) == expected and len(packet) == len(expected)
    port, data = packet
    assert (port, data) == (1, expected)
    assert packet.scapy()[IP].ttl == 63
    assert packet.scapy(Raw).load == expected
    assert packet == (1, Ether(expected)) and packet != (0, expected) and packet != (1, b"") and packet != 1
    assert repr(packet) == f"Packet(port=1, bytes=bytes.fromhex('{expected.hex()}'))"


def test_many_packets_come_back_in_their_order(router):
    packets = [(0, ipv4(f"10.0.{net}.9")) for net in (1, 2, 7)] * 1000
    expected = [[(1, routed(ipv4("10.0.1.9"), 1))], [(2, routed(ipv4("10.0.2.9"), 2))], []] * 1000
    assert router.send_many(iter(packets)) == expected
    assert router.ports[0].rx_packets == 3000
    assert router.drops == {"ingress_drop": 1000}


def test_an_outcome_has_the_reasons_of_drops(router):
    outcome = router.inject(0, ipv4(ttl=1))
    assert outcome.packets == []
    assert outcome.drops == [millrace.Drop("ingress_drop", 0, None)]
    assert router.drops == {"ingress_drop": 1}


def test_ports_that_do_not_exist_drop():
    sw = millrace.Switch(PROGRAMS / "router.p4", entries=PROGRAMS / "router.entries", ports=[0, 1])
    assert sw.send(7, ipv4()) == []
    assert sw.send(0, ipv4("10.0.2.2")) == []
    assert sw.drops == {"unknown_port": 2}
    # What is for a port that there is not counts as dropped where it came from.
    assert sw.ports == {0: (1, len(ipv4()), 0, 0, 1, 0), 1: (0, 0, 0, 0, 0, 0)}
    for port in (-1, 1 << 32):
        with pytest.raises(OverflowError):
            sw.send(port, ipv4())


def test_an_oversize_frame_is_dropped(router):
    outcome = router.inject(0, bytes(1 << 16))
    assert [drop.reason for drop in outcome.drops] == ["oversize"]


def test_a_trace_tells_the_story(router):
    trace = router.trace(0, ipv4())
    assert trace.packets == [(1, routed(ipv4(), 1))]
    assert "RouterIngress.ipv4_lpm" in str(trace) and "set_nhop" in str(trace)
    tables = [step for journey in trace.story["journeys"] for step in journey["steps"] if step["step"] == "table"]
    assert [(step["table"], step["hit"]) for step in tables] == [
        ("RouterIngress.ipv4_lpm", True),
        ("RouterEgress.send_frame", True),
    ]


def test_time_stands_still_unless_it_is_moved(sw):
    sw.table("acts").add(1, "send", [4])
    assert sw.now_ns == 0
    assert sw.advance(1_000) == [] and sw.now_ns == 1_000
    assert sw.send(0, probe(1))[0].time_ns == 1_000
    sw.advance((1 << 64) - 1)
    assert sw.now_ns == (1 << 64) - 1, "the clock stays at its end"


def test_queues_hold_packets_back(sw):
    sw.table("acts").add(1, "send", [4])
    sw.set_queue_rate(1000, port=4)
    sw.set_queue_depth(2, port=4)
    first, rest = sw.send(0, probe(1, a=1)), [sw.send(0, probe(1, a=a)) for a in (2, 3, 4)]
    assert first == [(4, probe(1, a=1))] and rest == [[], [], []]
    assert sw.drops == {"queue_full": 1}
    assert sw.advance(1_000_000) == [(4, probe(1, a=2))]
    [last] = sw.drain()
    assert last == (4, probe(1, a=3)) and last.time_ns == 2_000_000
    with pytest.raises(millrace.WriteError, match="a queue holds 1 to"):
        sw.set_queue_depth(0)
    with pytest.raises(millrace.WriteError, match="class"):
        sw.set_queue_rate(1, port=4, priority=3)


def test_programs_in_p4_14():
    sw = millrace.Switch(PROGRAMS / "nat_14.p4", std="p4-14", entries=PROGRAMS / "nat.entries")
    [packet] = sw.send(0, Ether(src="06:00:00:00:00:00", dst="02:00:00:00:00:00") / IP(src="10.0.0.10", dst="198.51.100.7") / UDP() / b"x")
    assert packet.port == 2 and packet.scapy()[IP].src == "203.0.113.10"
    assert sw.table("static_out").find(ip_address("10.0.0.10")) == 0


def test_several_threads_use_one_switch(sw):
    """Each thread adds an entry, sends and deletes it, over and over; every packet meets the entry of its own thread."""
    table, counter = sw.table("acts"), sw.counter("seen")
    wrong = []

    def work(number: int) -> None:
        for _ in range(200):
            handle = table.add(number, "send", [number])
            if sw.send(0, probe(number)) != [(number, probe(number))]:
                wrong.append(number)
            if sw.send_many([(0, probe(number))] * 3) != [[(number, probe(number))]] * 3:
                wrong.append(number)
            counter[0] = (number, number)
            table.delete(handle)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == [] and len(table) == 0
    assert sw.ports[0].rx_packets == 8 * 200 * 4


def test_a_long_call_lets_other_threads_run_and_can_be_interrupted(sw):
    ran = threading.Event()

    def other() -> None:
        ran.set()
        signal.raise_signal(signal.SIGINT)

    # A shell may have started the tests with the signal ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.05, other)
    try:
        with pytest.raises(KeyboardInterrupt):
            timer.start()
            for _ in range(100):
                sw.send_many([(0, probe(200))] * 50_000)
        timer.join()
    finally:
        signal.signal(signal.SIGINT, before)
    assert ran.is_set()
