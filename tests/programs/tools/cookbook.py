"""The STF tests of programs/cookbook/, whose entries are those of the example networks there."""
import struct
import zlib
from pathlib import Path

from frames import eth, ip, ipv4, ipv6, mac, tcp, udp
from stf import Stf

COOKBOOK = Path(__file__).resolve().parents[3] / "programs/cookbook"
DATA = bytes(range(0x30, 0x3a))


def host(n):
    return f"06:00:00:00:00:{n:02x}"


def own(n):
    return f"02:00:00:00:00:{n:02x}"


def with_entries(name, about):
    """A test that begins with the commands of the example network."""
    t = Stf(f"{about}\nThe commands are those of {name}.entries.")
    lines = (COOKBOOK / f"{name}.entries").read_text().splitlines()
    t.do(*[line for line in lines if line and not line.startswith("#")])
    return t


def tagged(dst, src, vid, kind, payload, priority=0):
    return mac(dst) + mac(src) + struct.pack(">HHH", 0x8100, priority << 13 | vid, kind) + payload


def vlan():
    t = with_entries("vlan", "Ports 0 and 1 are in VLAN 10, port 2 is in VLAN 20, port 3 is a trunk of both.")
    unknown = "06:00:00:00:00:99"
    plain = lambda dst, src: eth(dst, src, 0x0800, DATA)  # noqa: E731

    t.forward("a known station behind the trunk: a tag is added", 0, plain(host(3), host(0)),
              (3, tagged(host(3), host(0), 10, 0x0800, DATA)))
    t.forward("a known station on an access port: the tag is removed", 3, tagged(host(0), host(3), 10, 0x0800, DATA, priority=5),
              (0, plain(host(0), host(3))))
    t.forward("an unknown station is flooded in its VLAN, not to the port that it came by", 0, plain(unknown, host(0)),
              (1, plain(unknown, host(0))), (3, tagged(unknown, host(0), 10, 0x0800, DATA)))
    t.forward("broadcast in the other VLAN", 2, plain("ff:ff:ff:ff:ff:ff", host(2)),
              (3, tagged("ff:ff:ff:ff:ff:ff", host(2), 20, 0x0800, DATA)))
    t.forward("a station of VLAN 10 is unknown in VLAN 20", 3, tagged(host(0), host(3), 20, 0x0800, DATA), (2, plain(host(0), host(3))))
    t.forward("a VLAN that the trunk does not carry", 3, tagged(host(0), host(3), 30, 0x0800, DATA))
    t.forward("no tag on the trunk", 3, plain(host(0), host(3)))
    t.forward("a tag on an access port", 0, tagged(host(3), host(0), 10, 0x0800, DATA))
    t.forward("a tag with a priority only counts as none; the priority stays", 0, tagged(host(3), host(0), 0, 0x0800, DATA, priority=6),
              (3, tagged(host(3), host(0), 10, 0x0800, DATA, priority=6)))
    t.forward("the station is on the port that the frame came by", 0, plain(host(0), host(1)))
    t.forward("shorter than its tag says", 3, mac(host(0)) + mac(host(3)) + b"\x81\x00\x00")
    return t


def mirror():
    t = with_entries("mirror", "Ports 0 and 1 are cabled, port 2 gets what the rules name.")

    def frame(src, dst, data=DATA, dport=80):
        return eth(host(1), host(0), 0x0800, ipv4(src, dst, udp(src, dst, 4000, dport, data), proto=17))

    f = frame("10.0.0.2", "10.0.1.2")
    t.forward("no rule names it", 0, f, (1, f))
    f = frame("10.0.0.2", "10.0.1.80")
    t.forward("to the server: the analyser gets it too", 0, f, (1, f), (2, f))
    f = frame("10.0.1.80", "10.0.0.2")
    t.forward("from the server", 1, f, (0, f), (2, f))
    f = frame("10.0.0.2", "10.0.1.80", bytes(range(200)))
    t.forward("only the first 128 bytes are mirrored", 0, f, (1, f), (2, f[:128]))
    f = frame("10.0.9.9", "10.0.1.80")
    t.forward("the rule with the smaller priority number decides", 0, f, (1, f))
    f = eth(host(1), host(0), 0x0806, bytes(28))
    t.forward("what is not IPv4 passes", 0, f, (1, f))
    t.forward("a port without a cable", 5, f)
    return t


def load_balancer():
    t = with_entries("load_balancer", "The service 192.0.2.80 has three servers. The member of the group is the CRC-32 of source\n"
                     "address and port modulo 3, computed here.")
    service, client = "192.0.2.80", "198.51.100.7"

    def request(sport, dport=80, ttl=64, src=client, dst=service, **fields):
        return eth(own(0), host(0), 0x0800, ipv4(src, dst, tcp(src, dst, sport, dport, DATA, **fields), proto=6, ttl=ttl))

    def to_server(sport, src=client):
        n = zlib.crc32(ip(src) + struct.pack(">H", sport)) % 3 + 1
        server = f"10.0.0.{n}"
        return n, eth(host(n), own(n), 0x0800, ipv4(src, server, tcp(src, server, sport, 80, DATA), proto=6, ttl=63))

    used = set()
    for sport in range(40000, 40006):
        used.add(to_server(sport)[0])
        t.forward(f"a connection from port {sport}", 0, request(sport), to_server(sport))
    assert used == {1, 2, 3}, "the connections of the test reach every server"
    t.forward("the same connection again", 0, request(40000), to_server(40000))
    for n in (1, 2, 3):
        server = f"10.0.0.{n}"
        answer = ipv4(server, client, tcp(server, client, 80, 40000, DATA), proto=6)
        sent = ipv4(service, client, tcp(service, client, 80, 40000, DATA), proto=6, ttl=63)
        t.forward(f"the answer of server {n} comes from the service", n, eth(own(n), host(n), 0x0800, answer),
                  (0, eth(host(0), own(0), 0x0800, sent)))
    t.forward("another port is no service", 0, request(40000, dport=81))
    t.forward("the last hop", 0, request(40000, ttl=1))
    t.forward("a damaged segment", 0, request(40000, wrong=0x0100))
    t.forward("no TCP", 0, eth(own(0), host(0), 0x0800, ipv4(client, service, udp(client, service, 40000, 80, DATA), proto=17)))
    t.forward("with options", 0, eth(own(0), host(0), 0x0800,
                                     ipv4(client, service, tcp(client, service, 40000, 80, DATA), proto=6, options=b"\x01\x01\x01\x00")))
    t.say("a server leaves the group: the others share its connections")
    t.do("wait", "act_prof_remove_member_from_group pool 1 0")
    for sport in range(40000, 40004):
        n = (1, 3)[zlib.crc32(ip(client) + struct.pack(">H", sport)) % 2]
        server = f"10.0.0.{n}"
        t.forward(f"the connection from port {sport}", 0, request(sport),
                  (n, eth(host(n), own(n), 0x0800, ipv4(client, server, tcp(client, server, sport, 80, DATA), proto=6, ttl=63))))
    return t


def aqm():
    t = with_entries("aqm", "The link of port 1 takes one packet every 10 ms, and they come 1 ms apart: so the first of those that come after a pause\n"
                     "waits 0 ms, the second 9, the third 18, and so on. Class 0 may wait 15 ms, class 5 may wait 5, class 7 any time.\n"
                     "Cells are 8 for each port and one for each class: 8 is class 0 of port 1, 13 class 5.")
    now = 1000      # microseconds: when the next packet comes

    def frame(ecn, dscp=0):
        return eth(host(1), host(0), 0x0800, ipv4("10.0.0.2", "10.0.1.2", DATA, tos=dscp << 2 | ecn))

    def frame6(ecn, dscp=0):
        packet = bytearray(ipv6("2001:db8::2", "2001:db8:0:1::2", DATA))
        packet[0:2] = struct.pack(">H", 6 << 12 | dscp << 6 | ecn << 4)
        return eth(host(1), host(0), 0x86dd, bytes(packet))

    def burst(text, *packets):
        """Packets that come together, each with what becomes of it: None is dropped. Then the queue empties."""
        nonlocal now
        t.say(text)
        for before, _ in packets:
            t.packet(0, before)
        for _, after in packets:
            if after is not None:
                t.expect(1, after)
        t.do("wait")
        now += 1000 * len(packets) + 1000000

    def same(packet):
        return packet, packet

    burst("ECN: who waited 18 ms or more gets CE (3), from ECT(0) (2) and ECT(1) (1); CE stays",
          same(frame(2)), same(frame(2)), (frame(2), frame(3)), (frame(1), frame(3)), same(frame(3)), (frame6(2), frame6(3)))
    t.do("check_counter marked(8) packets == 4")
    burst("classes: 9 ms are too much for voice, nothing is for control; both wait in the queue of the others",
          same(frame(2, 46)), (frame(2, 46), frame(3, 46)), (frame6(1, 34), frame6(3, 34)), same(frame(2, 48)), same(frame6(1, 48)))
    t.do("check_counter marked(13) packets == 2", "check_counter marked(8) packets == 4")
    t.do("table_add classes set_class 26 => 3", "table_add targets set_target 3 => 9000")
    burst("a wait as long as the target is not too long", same(frame(2, 26)), same(frame(2, 26)), (frame(2, 26), frame(3, 26)))
    t.do("register_write probability 8 0", "register_write delay_before 8 0")
    burst("no ECN, and a probability that has begun to grow from 0: none is dropped yet", *[same(frame(0))] * 6)
    t.do("check_counter dropped(8) packets == 0")
    # No update before the third packet, 20 ms later: it waited longer than the target and than the one before, so
    # the probability stays at its largest.
    t.do("register_write probability 8 0xffffffff", "register_write delay_before 8 0", f"register_write updated 8 {now}")
    burst("no ECN at the largest probability: the third and fourth are dropped, one or none after the others is no congestion",
          same(frame(0)), same(frame(0)), (frame(0), None), (frame(0), None), same(frame(0)), same(frame(0)))
    t.do("check_counter dropped(8) packets == 2")
    arp = eth(host(1), host(0), 0x0806, bytes(28))
    t.do("register_write probability 8 0xffffffff", f"register_write updated 8 {now}")
    burst("what is not IP is left alone", *[same(arp)] * 6)
    # The second packet comes 10 ms after the update and meets the probability as it was. Then comes the update: a
    # delay that fell from 1 s to 18 ms takes 1.25 * 0.982 off, which is more than all.
    t.do("register_write probability 13 0xffffffff", "register_write delay_before 13 1000000", f"register_write updated 13 {now}")
    burst("the probability changes every 15 ms only, and falls with the delay",
          same(frame(0, 46)), (frame(0, 46), None), *[same(frame(0, 46))] * 3)
    t.do("register_write probability 8 0xffffffff", f"register_write updated 8 {now}")
    burst("who has ECN is marked, not dropped", *[same(frame(2))] * 2, *[(frame(2), frame(3))] * 4)
    t.do("check_counter dropped(8) packets == 2", "check_counter marked(8) packets == 8")
    t.say("after five seconds without packets the probability is forgotten")
    t.do("register_write probability 8 0xffffffff", *["wait"] * 5)
    now += 5000000
    burst("none is dropped", *[same(frame(0))] * 6)
    t.do("check_counter dropped(8) packets == 2")
    f = eth(host(0), host(1), 0x0800, ipv4("10.0.1.2", "10.0.0.2", DATA))
    t.forward("nothing waits for port 0", 1, f, (0, f))
    t.forward("a port without a cable", 5, f)
    return t


TESTS = (vlan, mirror, load_balancer, aqm)
