"""The STF tests of responder.p4 and octet_switch.p4, whose entries are those of their example networks."""
import struct
from pathlib import Path

from frames import checksum, eth, ip, ipv4, mac, udp
from stf import Stf

PROGRAMS = Path(__file__).resolve().parents[3] / "programs"
BROADCAST = "ff:ff:ff:ff:ff:ff"
HOST, OWN = "06:00:00:00:00:01", "02:00:00:00:00:00"


def with_entries(name, about):
    t = Stf(f"{about}\nThe commands are those of {name}.entries.")
    lines = (PROGRAMS / f"{name}.entries").read_text().splitlines()
    t.do(*[line for line in lines if line and not line.startswith("#")])
    return t


def arp(operation, sender, sender_ip, target, target_ip, hardware=1):
    head = struct.pack(">HHBBH", hardware, 0x0800, 6, 4, operation)
    return head + mac(sender) + ip(sender_ip) + mac(target) + ip(target_ip)


def echo(kind, data, number=1, code=0, wrong=0):
    message = struct.pack(">BBHHH", kind, code, 0, 0x1234, number) + data
    return message[:2] + struct.pack(">H", checksum(message) ^ wrong) + message[4:]


def responder():
    t = with_entries("responder", "Port 0 asks for 10.0.0.1 and 10.0.0.2, whose host is at port 1.")
    none, asker, ours = "00:00:00:00:00:00", "10.0.0.9", "10.0.0.1"
    request = eth(BROADCAST, HOST, 0x0806, arp(1, HOST, asker, none, ours))
    reply = eth(HOST, OWN, 0x0806, arp(2, OWN, ours, HOST, asker))
    t.forward("an ARP request to all", 0, request, (0, reply))
    t.forward("padded to the shortest frame: so is the answer", 0, request + bytes(18), (0, reply + bytes(18)))
    t.forward("to its address alone", 0, eth(OWN, HOST, 0x0806, arp(1, HOST, asker, OWN, "10.0.0.2")),
              (0, eth(HOST, OWN, 0x0806, arp(2, OWN, "10.0.0.2", HOST, asker))))

    def passes(text, frame, port=0):
        t.forward(text, port, frame, (1 - port, frame))

    passes("for an address that it does not have", eth(BROADCAST, HOST, 0x0806, arp(1, HOST, asker, none, "10.0.0.3")))
    passes("an ARP reply", eth(OWN, HOST, 0x0806, arp(2, HOST, asker, OWN, ours)))
    passes("of another kind of hardware", eth(BROADCAST, HOST, 0x0806, arp(1, HOST, asker, none, ours, hardware=6)))
    passes("at a port where it does not answer", request, port=1)
    passes("an ARP request that is cut off", request[:30])

    def ping(message, dst=ours, src=asker, to=OWN, **fields):
        return eth(to, HOST, 0x0800, ipv4(src, dst, message, proto=1, **fields))

    def pong(message, **fields):
        return eth(HOST, OWN, 0x0800, ipv4(ours, asker, message, proto=1, **fields))

    for text, data in (("an echo request", b"abcdefgh"), ("of an odd length", b"abc"), ("without data", b""),
                       ("of 1400 bytes", bytes(range(200)) * 7)):
        t.forward(text, 0, ping(echo(8, data)), (0, pong(echo(0, data))))
    # The sum of the request is 0x0800 short of 0xffff, and of 0: both ends of ones' complement.
    for number in (0xffff, 0xf7ff, 0x0000, 0x0800, 0xedcb, 0xedca, 0xe5cb, 0xe5cc):
        t.forward(f"number {number:#x}", 0, ping(echo(8, b"", number)), (0, pong(echo(0, b"", number))))
    t.forward("the TTL begins again, other fields stay", 0, ping(echo(8, b"x"), ttl=1, tos=0x10, ident=7),
              (0, pong(echo(0, b"x"), ttl=64, tos=0x10, ident=7)))
    t.forward("with a wrong checksum: the answer has a wrong one, too", 0, ping(echo(8, b"x", wrong=0x10)),
              (0, pong(answer_of(echo(8, b"x", wrong=0x10)))))
    passes("to another station", ping(echo(8, b"x"), to="02:00:00:00:00:77"))
    passes("an echo reply", ping(echo(0, b"x")))
    passes("another code", ping(echo(8, b"x", code=1)))
    passes("a wrong header checksum", ping(echo(8, b"x"), bad_checksum=True))
    passes("options", ping(echo(8, b"x"), options=b"\x01" * 4))
    passes("a fragment", ping(echo(8, b"x"), flags=1))
    passes("a later fragment", ping(echo(8, b"x"), offset=3))
    passes("for an address that it does not have", ping(echo(8, b"x"), dst="10.0.0.3"))
    passes("another protocol", eth(OWN, HOST, 0x0800, ipv4(asker, ours, udp(asker, ours, 1, 2, b"x"), proto=17)))
    passes("another kind of frame", eth(OWN, HOST, 0x88b5, b"x"))
    passes("less than a header", mac(OWN))
    t.forward("at a port that leads nowhere", 2, request)
    return t


def answer_of(request):
    """The message with its kind changed, and its sum by as much: what is wrong stays wrong."""
    total = (~struct.unpack(">H", request[2:4])[0] & 0xffff) + (~0x0800 & 0xffff)
    total = (total & 0xffff) + (total >> 16)
    return b"\0" + request[1:2] + struct.pack(">H", ~total & 0xffff) + request[4:]


def octet_switch():
    t = with_entries("octet_switch", "Three ports; UDP by its destination port, ARP to all, echo requests to the manager.")

    def padded(frame):
        return frame + bytes(max(0, 60 - len(frame)))

    def of_udp(port, data=b""):
        return padded(eth(OWN, HOST, 0x0800, ipv4("10.0.0.9", "10.0.0.1", udp("10.0.0.9", "10.0.0.1", 1000, port, data), proto=17)))

    t.forward("UDP to port 53", 0, of_udp(53), (1, of_udp(53)))
    t.forward("UDP to another", 0, of_udp(54), (2, of_udp(54)))
    t.forward("and longer than the octets that are looked at", 0, of_udp(53, bytes(1400)), (1, of_udp(53, bytes(1400))))
    ask = padded(eth(BROADCAST, HOST, 0x0806, arp(1, HOST, "10.0.0.9", OWN, "10.0.0.1")))
    t.forward("ARP: to all ports but its own", 0, ask, (1, ask), (2, ask))
    t.forward("port 2 is closed", 2, ask)
    ping = padded(eth(OWN, HOST, 0x0800, ipv4("10.0.0.9", "10.0.0.1", echo(8, b"x"), proto=1)))
    t.forward("an echo request goes to the manager, with where it came from", 1, ping, (510, struct.pack(">H", 1 << 7) + ping))
    pong = padded(eth(HOST, OWN, 0x0800, ipv4("10.0.0.1", "10.0.0.9", echo(0, b"x"), proto=1)))
    t.forward("which answers it", 510, struct.pack(">H", 1 << 7 | 5 << 4) + pong, (1, pong))
    t.forward("an echo reply is nobody's", 0, pong)
    t.forward("shorter than frames are", 0, of_udp(53)[:59])
    t.say("Another selector: the last octet of the source address (11) alone.")
    t.do("table_set_default selector choose 255 255 255 255 255 255 255 11", "table_add forwarding to_queue 0&&&0 1&&&0xff => 2 0 0")
    t.forward("it is 1", 0, pong[:6] + mac(HOST) + pong[12:], (2, pong[:6] + mac(HOST) + pong[12:]))
    t.forward("it is not", 0, pong)
    t.say("The first octet and the last one that is looked at.")
    t.do("table_set_default selector choose 0 59 60 255 255 255 255 255",
         "table_add forwarding to_queue 0&&&0 0x0299000000000000&&&0xffff000000000000 => 1 0 0")
    t.forward("both are what they should be", 0, of_udp(53)[:59] + b"\x99", (1, of_udp(53)[:59] + b"\x99"))
    return t


TESTS = (responder, octet_switch)
