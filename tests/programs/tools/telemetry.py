"""The STF test of programs/int.p4. Packets are built from the fields of "In-band Network Telemetry (INT) Dataplane" 2.1
(sections on the shim for TCP/UDP and on the INT-MD header) and of "Telemetry Report Format" 2.0."""
import struct
from pathlib import Path

from architectures import crc16_arc
from frames import checksum, eth, ip, ipv4, tcp, udp
from stf import Stf

PROGRAMS = Path(__file__).resolve().parents[3] / "programs"
INT_PORT = 28672
NODE, CLIENT, SERVER = 7, "10.0.0.2", "10.0.1.2"
ALL, SHORT = 0xfc00, 0xd000             # the instructions of the two entries of the watchlist
DATA = bytes(range(0x30, 0x3a))


def host(n):
    return f"06:00:00:00:00:{n:02x}"


def own(n):
    return f"02:00:00:00:00:{n:02x}"


def int_md(instructions, hop_words, remaining, d=0, e=0, m=0, version=2, domain=(0, 0, 0)):
    first = version << 28 | d << 27 | e << 26 | m << 25 | hop_words << 8 | remaining
    return struct.pack(">IHHHH", first, instructions, *domain)


def shim(npt, following, original, kind=1):
    return struct.pack(">BBH", kind << 4 | npt << 2, len(following) // 4, original)


def over_udp(header, stack, data=DATA, port=5001, check=True, kind=1):
    """A datagram of the client to `port` with telemetry in it."""
    telemetry = shim(1, header + stack, port, kind) + header + stack
    return ipv4(CLIENT, SERVER, udp(CLIENT, SERVER, 4000, INT_PORT, telemetry + data, check=check), proto=17)


def over_tcp(header, stack, segment):
    source = 49152 + crc16_arc(ip(CLIENT) + ip(SERVER) + b"\x06" + segment[:4]) % 16384
    telemetry = shim(2, header + stack, 6) + header + stack
    return ipv4(CLIENT, SERVER, udp(CLIENT, SERVER, source, INT_PORT, telemetry + segment, check=False), proto=17)


def hop(ingress, egress, at, waited=0, found=0, queue=0, node=NODE):
    """What the six instructions of ALL make: node, ports, latency, queue, time in, time out."""
    return struct.pack(">IHHIIQQ", node, ingress, egress, waited, queue << 24 | found, at, at + waited)


class Telemetry(Stf):
    """Knows what time it is in microseconds: one millisecond passes before each packet, one second at `wait`."""
    def __init__(self, about):
        super().__init__(about)
        self.now, self.reports = 1000, 0

    def packet(self, port, frame):
        super().packet(port, frame)
        self.now += 1000

    def wait(self, *commands):
        self.do("wait", *commands)
        self.now += 1000000

    def report(self, ingress, egress, frame, at):
        """What the collector gets of `frame`: whole words, at most 250."""
        frame = frame[:min(len(frame), 1000) // 4 * 4]
        group = struct.pack(">II", 2 << 28 | self.reports, NODE)
        individual = struct.pack(">BBBBHHHH", 1 << 4 | 3, 5 + len(frame) // 4, 3, 1 << 5, 0x4800, 0, 0, 0)
        metadata = struct.pack(">HHQ", ingress, egress, at)
        self.reports += 1
        datagram = udp("192.0.2.7", "192.0.2.100", 32766, 32766, group + individual + metadata + frame, check=False)
        return eth(host(4), own(4), 0x0800, ipv4("192.0.2.7", "192.0.2.100", datagram, proto=17, flags=2))


def plain(data=DATA, port=5001, check=True, src=CLIENT):
    return ipv4(src, SERVER, udp(src, SERVER, 4000, port, data, check=check), proto=17)


def to(n, packet):
    return eth(host(n), host(0), 0x0800, packet)


def telemetry():
    t = Telemetry("The node of int.entries: hosts on ports 0 and 1, other nodes on 2 and 3, the collector on 4.\n"
                  "Nothing waits but where a queue is slow: so latency and occupancy are 0, and what comes in leaves at that time.\n"
                  "The commands are those of int.entries.")
    t.do(*[line for line in (PROGRAMS / "int.entries").read_text().splitlines() if line and not line.startswith("#")])
    source(t)
    transit(t)
    sink(t)
    queues(t)
    t.say("a link that has room for nothing")
    t.wait("set_queue_rate 0 2", "table_add links set_mtu 2 => 20")
    t.forward("M", 3, to(2, over_udp(int_md(ALL, 8, 3), b"")), (2, to(2, over_udp(int_md(ALL, 8, 3, m=1), b""))))
    t.say("without a number it is no node: nothing starts, what others have begun passes")
    t.wait("table_set_default node NoAction")
    t.forward("a flow of the watchlist", 0, to(2, plain()), (2, to(2, plain())))
    f = to(3, over_udp(int_md(ALL, 8, 3), hop(0, 2, 5, node=1)))
    t.forward("telemetry on its way", 2, f, (3, f))
    return t


def source(t):
    def starts(text, out, before, after):
        t.forward(text, 0, to(out, before), (out, to(out, after)))

    starts("source, UDP: shim, INT header and the first hop; the UDP checksum is that of the new contents", 2, plain(),
           over_udp(int_md(ALL, 8, 3), hop(0, 2, t.now)))
    starts("source, UDP without a checksum", 2, plain(check=False),
           over_udp(int_md(ALL, 8, 3), hop(0, 2, t.now), check=False))
    segment = tcp(CLIENT, SERVER, 40000, 80, DATA)
    starts("source, TCP: a UDP header before it, TCP as it was", 2, ipv4(CLIENT, SERVER, segment, proto=6),
           over_tcp(int_md(SHORT, 3, 3), struct.pack(">IHHI", NODE, 0, 2, 0), segment))
    starts("not on the watchlist", 2, plain(port=5002), plain(port=5002))
    starts("to a host of this node: its port is a sink's", 1, plain(), plain())
    starts("another sender", 2, plain(src="10.0.0.3"), plain(src="10.0.0.3"))
    fragment = ipv4(CLIENT, SERVER, udp(CLIENT, SERVER, 4000, 5001, DATA), proto=17, flags=1)
    starts("a fragment stays as it is", 2, fragment, fragment)
    options = ipv4(CLIENT, SERVER, udp(CLIENT, SERVER, 4000, 5001, DATA), proto=17, options=b"\x01\x01\x01\x00")
    starts("so does a packet with options", 2, options, options)
    # Port 3 has an MTU of 200: 28 bytes of IPv4 and UDP, 16 of telemetry's headers, 32 of a hop leave 124.
    starts("124 bytes have room for all", 3, plain(bytes(124)), over_udp(int_md(ALL, 8, 3), hop(0, 3, t.now), bytes(124)))
    starts("one more: the headers only, with M", 3, plain(bytes(125)), over_udp(int_md(ALL, 8, 4, m=1), b"", bytes(125)))
    starts("156 have room for the headers", 3, plain(bytes(156)), over_udp(int_md(ALL, 8, 4, m=1), b"", bytes(156)))
    starts("one more: nothing starts", 3, plain(bytes(157)), plain(bytes(157)))
    for size, header, more in ((136, int_md(SHORT, 3, 4, m=1), "room for 24 bytes of headers"), (137, None, "a byte more: nothing starts")):
        segment = tcp(CLIENT, SERVER, 40000, 80, bytes(size))
        before = ipv4(CLIENT, SERVER, segment, proto=6)
        starts(f"TCP, {more}", 3, before, over_tcp(header, b"", segment) if header else before)
    t.forward("a wrong IPv4 checksum", 0, to(2, ipv4(CLIENT, SERVER, udp(CLIENT, SERVER, 4000, 5001, DATA), proto=17, bad_checksum=True)))
    t.forward("longer than its frame", 0, to(2, plain())[:-1])
    starts("padding is no payload", 2, plain() + bytes(6), over_udp(int_md(ALL, 8, 3), hop(0, 2, t.now)) + bytes(6))
    datagram = bytearray(udp(CLIENT, SERVER, 4000, 5001, DATA))
    datagram[5] -= 1
    shorter = ipv4(CLIENT, SERVER, bytes(datagram), proto=17)
    starts("UDP that ends before IPv4 does stays as it is", 2, shorter, shorter)
    f = eth(host(2), host(0), 0x0806, bytes(28))
    t.forward("what is not IPv4 passes", 0, f, (2, f))
    t.forward("an unknown station", 0, eth(host(9), host(0), 0x0806, bytes(28)))


def transit(t):
    first = hop(0, 2, 5, node=1)

    def passes(text, before, after):
        t.forward(text, 2, to(3, before), (3, to(3, after)))

    passes("transit: its metadata before that of the earlier node", over_udp(int_md(ALL, 8, 3), first),
           over_udp(int_md(ALL, 8, 2), hop(2, 3, t.now) + first))
    passes("the UDP checksum stays none", over_udp(int_md(ALL, 8, 3), first, check=False),
           over_udp(int_md(ALL, 8, 2), hop(2, 3, t.now) + first, check=False))
    damaged = bytearray(over_udp(int_md(ALL, 8, 3), first))
    damaged[-1] ^= 0x40
    expected = bytearray(over_udp(int_md(ALL, 8, 2), hop(2, 3, t.now) + first))
    expected[-1] ^= 0x40
    passes("a damaged packet has a wrong UDP checksum before and after", bytes(damaged), bytes(expected))
    passes("the last hop that may add", over_udp(int_md(SHORT, 3, 1), b""),
           over_udp(int_md(SHORT, 3, 0), struct.pack(">IHHI", NODE, 2, 3, 0)))
    passes("no hop left: E", over_udp(int_md(ALL, 8, 0), first), over_udp(int_md(ALL, 8, 0, e=1), first))
    passes("no room on the link: M", over_udp(int_md(ALL, 8, 3), first, bytes(100)),
           over_udp(int_md(ALL, 8, 3, m=1), first, bytes(100)))
    ones = b"\xff" * 4
    passes("level 2 interfaces, utilisation, buffer, checksum complement: five words of ones after the node",
           over_udp(int_md(0x8381, 6, 3), b""), over_udp(int_md(0x8381, 6, 2), struct.pack(">I", NODE) + 5 * ones))
    passes("reserved instructions: a word of ones for each", over_udp(int_md(0x007e, 6, 3), b""),
           over_udp(int_md(0x007e, 6, 2), 6 * ones))
    passes("what another domain asks for, up to 31 words", over_udp(int_md(0x8000, 31, 3, domain=(9, 0x8000, 1)), b""),
           over_udp(int_md(0x8000, 31, 2, domain=(9, 0x8000, 1)), struct.pack(">I", NODE) + 30 * ones))
    same = over_udp(int_md(ALL, 7, 3), b"")
    passes("fewer words a hop than the instructions make: nothing is added", same, same)
    same = over_udp(int_md(ALL, 8, 3), first, kind=2)
    passes("a header for the destination (type 2) is not for a node", same, same)
    whole = over_tcp(int_md(SHORT, 3, 3), b"", tcp(CLIENT, SERVER, 40000, 80, DATA))
    after = over_tcp(int_md(SHORT, 3, 2), struct.pack(">IHHI", NODE, 2, 3, 0), tcp(CLIENT, SERVER, 40000, 80, DATA))
    passes("before TCP", whole, after)
    t.forward("telemetry from a host", 0, to(3, over_udp(int_md(ALL, 8, 3), first)))
    short = over_udp(int_md(ALL, 8, 3), first, b"")
    t.forward("the stack is shorter than the shim says", 2, to(3, short[:-4]))

    beyond = bytearray(over_udp(int_md(ALL, 8, 3), first, b""))
    beyond[2:4], beyond[24:26] = struct.pack(">H", len(beyond) - 4), struct.pack(">H", len(beyond) - 24)
    beyond[10:12] = bytes(2)
    beyond[10:12] = struct.pack(">H", checksum(beyond[:20]))
    t.forward("the stack reaches beyond the end of UDP, into the padding", 2, to(3, bytes(beyond)))

    # The shim counts 255 words, though port 2 would carry more.
    full = int_md(SHORT, 3, 9), bytes(4 * 250)
    stack = bytes(4 * 249)
    t.forward("249 words of hops before: three more make 255 with the header's", 3, to(2, over_udp(int_md(SHORT, 3, 9), stack)),
              (2, to(2, over_udp(int_md(SHORT, 3, 8), struct.pack(">IHHI", NODE, 3, 2, 0) + stack))))
    frame = to(2, over_udp(*full))
    t.forward("250 words of hops before: three more would be 256 with the header's", 3, frame, (2, frame))


def sink(t):
    hops = hop(2, 3, 7, node=2) + hop(0, 2, 5, node=1)

    def ends(text, before, after=None):
        frame = to(1, before)
        report = t.report(2, 1, frame, t.now)
        t.forward(text, 2, frame, *([(1, to(1, after))] if after else []), (4, report))

    ends("sink, UDP: the host gets the packet as it was sent, the collector what came in", over_udp(int_md(ALL, 8, 2), hops), plain())
    ends("UDP without a checksum", over_udp(int_md(ALL, 8, 2), hops, check=False), plain(check=False))
    # Two bytes that make the UDP checksum 0, which is sent as all ones.
    data = next(d for d in (DATA + struct.pack(">H", n) for n in range(65536)) if plain(d)[26:28] == b"\xff\xff")
    ends("a UDP checksum that comes out as 0", over_udp(int_md(ALL, 8, 2), hops, data), plain(data))
    ends("an odd number of bytes", over_udp(int_md(ALL, 8, 2), hops, b"abc"), plain(b"abc"))
    segment = tcp(CLIENT, SERVER, 40000, 80, DATA)
    ends("sink, TCP", over_tcp(int_md(SHORT, 3, 2), bytes(24), segment), ipv4(CLIENT, SERVER, segment, proto=6))
    ends("no hop had room", over_udp(int_md(ALL, 8, 4, m=1), b""), plain())
    ends("D: the packet itself ends here", over_udp(int_md(ALL, 8, 2, d=1), hops))
    ends("a report has room for 1000 bytes", over_udp(int_md(ALL, 8, 2), hops, bytes(1200)), plain(bytes(1200)))
    f = to(1, plain(port=53))
    t.forward("a packet without telemetry", 2, f, (1, f))


def queues(t):
    """The link takes one packet every 10 ms, they come every 1 ms: the second waits 9 ms, the third 18, the fourth 27. The
    second finds nobody and leaves two, the third finds one and leaves one, the fourth finds two and leaves nobody."""
    t.say("the link of port 2 is slow: it takes 100 packets a second, four come 1 ms apart")
    t.wait("set_queue_rate 100 2")
    hops = []
    for waited, found in ((0, 0), (9000, 2), (18000, 1), (27000, 2)):
        hops.append(hop(0, 2, t.now, waited, found))
        t.packet(0, to(2, plain()))
    for added in hops:
        t.expect(2, to(2, over_udp(int_md(ALL, 8, 3), added)))
