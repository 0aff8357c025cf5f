"""The STF test of programs/ip_router.p4, whose entries are those of ip_router.entries."""
import struct
import zlib
from pathlib import Path

from frames import checksum, eth, ip, ip6, ipv4, ipv6, mac, tcp, udp
from stf import Stf

PROGRAMS = Path(__file__).resolve().parents[3] / "programs"
DATA = bytes(range(0x30, 0x3a))
CPU = 510
ALL = "ff:ff:ff:ff:ff:ff"

# The reasons of the program, which are also the cells of its counter.
FORWARDED, FROM_HOST, ARP, DISCOVERY, OWN, EXPIRED, OPTIONS, NEIGHBOUR, TOO_BIG, TO_HOST = range(10)
(NO_INTERFACE, NOT_FOR_ROUTER, BAD_SENDER, BROADCAST, OTHER, BAD_HEADER, BAD_CHECKSUM, MARTIAN_SOURCE, MARTIAN_DESTINATION,
 NO_ROUTE, DISCARD, NO_PATH, NO_LINK) = range(16, 29)


def host(n):
    return f"06:00:00:00:00:{n:02x}"


def own(n):
    return f"02:00:00:00:00:{n:02x}"


class Router(Stf):
    """Counts what it expects, by cause."""

    def __init__(self, about):
        super().__init__(about)
        lines = (PROGRAMS / "ip_router.entries").read_text().splitlines()
        self.do(*[line for line in lines if line and not line.startswith("#")])
        self.counts = {}

    def count(self, cause, frame):
        packets, total = self.counts.get(cause, (0, 0))
        self.counts[cause] = packets + 1, total + len(frame)

    def passes(self, text, port, frame, to, sent):
        self.count(FORWARDED, frame)
        self.forward(text, port, frame, (to, sent))

    def drops(self, text, cause, port, frame):
        self.count(cause, frame)
        self.forward(text, port, frame)

    def to_host(self, text, cause, port, frame):
        """As it came, with the port and the reason in front: 9 and 7 bits."""
        self.count(cause, frame)
        self.say(text)
        self.packet(port, frame)
        header = struct.pack(">H", port << 7 | cause)
        self.lines.append(f"expect {CPU} {header.hex()} {self.hex(frame)} $")

    def from_host(self, text, port, frame):
        header = struct.pack(">H", port << 7)
        self.count(FROM_HOST, header + frame)
        self.say(text)
        self.lines.append(f"packet {CPU} {header.hex()} {self.hex(frame)}")
        self.expect(port, frame)


def ip_router():
    t = Router("Three subnets and two ways to the rest of the world. The path of a group is the CRC-32 of the flow modulo 2,\n"
               "computed by the script. The commands are those of ip_router.entries.")

    def v4(dst, payload=DATA, src="10.0.0.2", at=0, to=None, frm=None, **fields):
        return eth(to or own(at), frm or host(at), 0x0800, ipv4(src, dst, payload, **fields))

    def routed4(text, dst, out, neighbour=None, payload=DATA, src="10.0.0.2", ttl=64, extra=b"", **fields):
        sent = eth(host(out if neighbour is None else neighbour), own(out), 0x0800, ipv4(src, dst, payload, ttl=ttl - 1, **fields))
        t.passes(text, 0, v4(dst, payload, src, ttl=ttl, **fields) + extra, out, sent + extra)

    t.drops("a port that is no interface", NO_INTERFACE, 3, v4("10.0.1.2", to=own(0)))
    t.drops("a frame for another station", NOT_FOR_ROUTER, 0, v4("10.0.1.2", to=host(9)))
    t.drops("the router's address on another port is not that of this one", NOT_FOR_ROUTER, 0, v4("10.0.1.2", to=own(1)))
    t.drops("no station sends from a group address", BAD_SENDER, 0, v4("10.0.1.2", frm="01:00:5e:00:00:01"))
    t.drops("nor from none", BAD_SENDER, 0, v4("10.0.1.2", frm="00:00:00:00:00:00"))
    t.drops("cut off in the Ethernet header", BAD_HEADER, 0, v4("10.0.1.2")[:13])
    t.drops("another protocol", OTHER, 0, eth(own(0), host(0), 0x88cc, DATA))

    # ARP
    ask = struct.pack(">HHBBH", 1, 0x0800, 6, 4, 1) + mac(host(0)) + ip("10.0.0.2") + bytes(6) + ip("10.0.0.1")
    t.to_host("ARP for all", ARP, 0, eth(ALL, host(0), 0x0806, ask))
    t.to_host("ARP for the router alone", ARP, 1, eth(own(1), host(1), 0x0806, ask))
    t.drops("ARP for another station", NOT_FOR_ROUTER, 0, eth(host(9), host(0), 0x0806, ask))

    # IPv4
    routed4("to the next subnet", "10.0.1.2", 1)
    routed4("all fields but TTL and checksum stay; Ethernet padding too", "10.0.1.2", 1, tos=0xb8, ident=0xbeef, flags=2,
            payload=b"ab", extra=bytes(24))
    routed4("a later fragment", "10.0.1.2", 1, flags=1, offset=185)
    routed4("UDP without a header for it", "10.0.1.2", 1, proto=17, payload=b"\x00\x35")
    routed4("back out of the port it came in by", "10.0.0.2", 0, src="10.0.0.9")
    routed4("the last hop left", "10.0.1.2", 1, ttl=2)
    t.to_host("TTL 1 ends here", EXPIRED, 0, v4("10.0.1.2", ttl=1))
    t.to_host("TTL 0 should not have come", EXPIRED, 0, v4("10.0.1.2", ttl=0))
    t.to_host("options", OPTIONS, 0, v4("10.0.1.2", options=bytes([1, 1, 1, 0])))
    t.to_host("forty bytes of options", OPTIONS, 0, v4("10.0.1.2", options=bytes([1] * 39 + [0])))
    t.to_host("the router's own address", OWN, 0, v4("10.0.0.1"))
    t.to_host("also that of another port", OWN, 0, v4("10.0.2.1", ttl=1))
    t.to_host("a group that the host is a member of", OWN, 0, v4("224.0.0.5", to="01:00:5e:00:00:05", ttl=1, proto=89))
    t.to_host("a neighbour whose address nobody knows", NEIGHBOUR, 0, v4("10.0.1.3"))
    t.to_host("longer than the link takes, though its neighbour is unknown", TOO_BIG, 0, v4("10.0.2.99", bytes(1381)))
    routed4("as long as the link takes", "10.0.2.2", 2, payload=bytes(1380))
    t.drops("a private address without a subnet", DISCARD, 0, v4("10.9.0.1"))
    t.drops("for all by Ethernet, for one by IP", BROADCAST, 0, v4("10.0.1.2", to=ALL))
    t.drops("a group that nobody here is in", BROADCAST, 0, v4("224.0.0.6", to="01:00:5e:00:00:06"))
    for src in ("0.0.0.0", "0.1.2.3", "127.0.0.1", "169.254.1.1", "192.0.0.8", "224.0.0.1", "239.255.255.255", "240.0.0.1",
                "255.255.255.255"):
        t.drops(f"from {src}", MARTIAN_SOURCE, 0, v4("10.0.1.2", src=src))
    for dst in ("0.0.0.0", "127.1.2.3", "169.254.9.9", "192.0.0.1", "224.0.0.5"[:-1] + "7", "240.0.0.1", "255.255.255.255"):
        t.drops(f"to {dst}", MARTIAN_DESTINATION, 0, v4(dst))
    for name, fields in [("version 5", {"version": 5}), ("header length 4 words", {"ihl": 4}),
                         ("shorter than its header", {"total": 19}), ("longer than the frame", {"total": 31}),
                         ("options that are not there", {"ihl": 15, "payload": b""})]:
        t.drops(name, BAD_HEADER, 0, v4("10.0.1.2", **fields))
    t.drops("cut off in the IPv4 header", BAD_HEADER, 0, v4("10.0.1.2")[:33])
    t.drops("wrong checksum", BAD_CHECKSUM, 0, v4("10.0.1.2", bad_checksum=True))
    t.drops("wrong checksum, with options", BAD_CHECKSUM, 0, v4("10.0.1.2", options=bytes([1, 1, 1, 0]), bad_checksum=True))
    t.drops("the checksum decides before the address", BAD_CHECKSUM, 0, v4("10.0.0.1", bad_checksum=True))

    # The rest of the world: two ways
    ways = set()
    for sport in range(40000, 40006):
        dst, src = "198.51.100.7", "10.0.0.2"
        key = ip(src) + ip(dst) + struct.pack(">BHH", 6, sport, 443)
        way = 2 + zlib.crc32(key) % 2
        ways.add(way)
        routed4(f"a connection from port {sport}", dst, 2, way, tcp(src, dst, sport, 443, DATA), proto=6)
    assert ways == {2, 3}, "both ways are taken"
    way = 2 + zlib.crc32(ip("10.0.0.2") + ip("198.51.100.7") + struct.pack(">BHH", 6, 0, 0)) % 2
    routed4("a later fragment of one has no ports", "198.51.100.7", 2, way, proto=6, offset=10)
    t.say("a way without an entry")
    t.do("wait", "table_add ipv4_routes ecmp_ipv4 203.0.113.0/24 => 7 1",
         "table_add ipv4_routes connected_ipv4 203.0.112.0/24 => 4")
    t.drops("a group without paths", NO_PATH, 0, v4("203.0.113.1"))
    t.drops("a port without an address of its own", NO_LINK, 0, v4("203.0.112.1"))

    # IPv6
    def v6(dst, payload=DATA, src="2001:db8::2", at=0, to=None, cut=None, **fields):
        return eth(to or own(at), host(at), 0x86dd, ipv6(src, dst, payload, **fields))[:cut]

    def routed6(text, dst, out, neighbour=None, payload=DATA, src="2001:db8::2", hops=64, **fields):
        sent = eth(host(out if neighbour is None else neighbour), own(out), 0x86dd, ipv6(src, dst, payload, hops=hops - 1, **fields))
        t.passes(text, 0, v6(dst, payload, src, hops=hops, **fields), out, sent)

    def discovery(kind, src, dst):
        body = struct.pack(">BBHI", kind, 0, 0, 0) + ip6("2001:db8::1")
        pseudo = ip6(src) + ip6(dst) + struct.pack(">II", len(body), 58)
        return body[:2] + struct.pack(">H", checksum(pseudo + body)) + body[4:]

    routed6("IPv6 to the next subnet", "2001:db8:0:1::2", 1)
    routed6("IPv6, the last hop left", "2001:db8:0:1::2", 1, hops=2)
    t.to_host("IPv6, hop limit 1", EXPIRED, 0, v6("2001:db8:0:1::2", hops=1))
    group, link_local = "ff02::1:ff00:1", "fe80::99"
    solicit = discovery(135, link_local, group)
    t.to_host("a neighbour is looked for", DISCOVERY, 0, v6(group, solicit, link_local, to="33:33:ff:00:00:01", proto=58, hops=255))
    t.drops("a solicitation that was forwarded", BROADCAST, 0, v6(group, solicit, link_local, to="33:33:ff:00:00:01", proto=58, hops=254))
    t.to_host("routers are looked for", DISCOVERY, 0, v6("ff02::2", discovery(133, link_local, "ff02::2"), link_local,
                                                        to="33:33:00:00:00:02", proto=58, hops=255))
    routed6("ping is no discovery", "2001:db8:0:1::2", 1, payload=discovery(128, "2001:db8::2", "2001:db8:0:1::2"), proto=58, hops=255)
    t.to_host("the router's own address, IPv6", OWN, 0, v6("2001:db8:0:1::1"))
    t.to_host("its link-local one", OWN, 0, v6("fe80::1", src=link_local))
    t.to_host("a neighbour whose address nobody knows, IPv6", NEIGHBOUR, 0, v6("2001:db8:0:1::3"))
    t.to_host("longer than the link takes, IPv6", TOO_BIG, 0, v6("2001:db8:0:2::2", bytes(1361)))
    t.to_host("a route to the host", TO_HOST, 0, v6("2001:db8:9::1"))
    t.drops("for a group, IPv6", BROADCAST, 0, v6("ff02::5", src=link_local, to="33:33:00:00:00:05"))
    for src in ("::", "::1", "::ffff:10.0.0.2", "fe80::2", "ff02::1"):
        t.drops(f"from {src}", MARTIAN_SOURCE, 0, v6("2001:db8:0:1::2", src=src))
    for dst in ("::", "::1", "::ffff:10.0.1.2", "fe80::2", "ff0e::1"):
        t.drops(f"to {dst}", MARTIAN_DESTINATION, 0, v6(dst))
    t.drops("version 4 in a frame of type IPv6", BAD_HEADER, 0, v6("2001:db8:0:1::2", version=4))
    t.drops("cut off in the IPv6 header", BAD_HEADER, 0, v6("2001:db8:0:1::2", cut=53))
    t.drops("cut off behind it", BAD_HEADER, 0, v6("2001:db8:0:1::2", cut=-1))
    ways = set()
    for sport in range(40000, 40004):
        dst, src = "2001:4860::8", "2001:db8::2"
        key = ip6(src) + ip6(dst) + struct.pack(">IHH", 17, sport, 53)
        way = 2 + zlib.crc32(key) % 2
        ways.add(way)
        routed6(f"IPv6, a flow from port {sport}", dst, 2, way, udp("0.0.0.0", "0.0.0.0", sport, 53, DATA, check=False), proto=17)
    assert ways == {2, 3}, "both ways are taken"

    # The host
    reply = struct.pack(">HHBBH", 1, 0x0800, 6, 4, 2) + mac(own(0)) + ip("10.0.0.1") + mac(host(0)) + ip("10.0.0.2")
    t.from_host("the host answers ARP", 0, eth(host(0), own(0), 0x0806, reply))
    expired = v4("198.51.100.7", src="127.0.0.1", ttl=1, bad_checksum=True)
    t.from_host("what it sends is not looked at", 1, expired)
    t.say("the host sends nothing to itself")
    t.count(BAD_HEADER, bytes(2) + DATA)
    t.lines.append(f"packet {CPU} {struct.pack('>H', CPU << 7).hex()} {DATA.hex()}")

    t.say("each packet counts for one cause")
    t.do("wait")
    for cause in range(32):
        packets, total = t.counts.get(cause, (0, 0))
        t.do(f"check_counter causes({cause}) packets == {packets}", f"check_counter causes({cause}) bytes == {total}")
    return t
