"""The STF tests of the programs for architectures beside v1model."""
import struct
import zlib

from frames import *  # noqa: F403
from stf import Stf

A, B = "06:00:00:00:00:01", "06:00:00:00:00:02"


def crc16_arc(data, register=0):
    for byte in data:
        register ^= byte
        for _ in range(8):
            register = register >> 1 ^ (0xa001 if register & 1 else 0)
    return register


# ---- PSA ----

def psa_paths():
    t = Stf("Orders: drop 8, clone 4, resubmit 2, multicast 1; in egress clone 1, drop 2. Then session and port.\n"
            "A report: ingress port, path, error, passes, note; egress port, path, error, instance.")
    t.do("mc_mgrp_create 7", "mc_node_create 257 2 3", "mc_node_create 258 3", "mc_node_associate 7 0", "mc_node_associate 7 1",
         "mirroring_add 5 6", "mirroring_add_mc 8 7")
    recirculate = 0xfffffffa
    normal, unicast, multicast, clone_in, clone_out, resubmitted, recirculated = 0, 1, 2, 3, 4, 5, 6
    payload = bytes.fromhex("c0ffee")

    def order(what=0, egress=0, session=0, port=1, kind=0x88b5, rest=payload):
        return eth(A, B, kind, struct.pack(">BBHI", what, egress, session, port) + rest)

    def report(ingress, egress):
        port, path, error, passes, note = ingress
        return struct.pack(">IBBBB", port, path, error, passes, note) + struct.pack(">IBBH", *egress)

    def plain(frame, ingress_port, out_port, path=normal, passes=1):
        return report((ingress_port, path, 0, passes, 0xa0), (out_port, unicast, 0, 0)) + frame

    t.forward("unicast", 4, order(), (1, plain(order(), 4, 1)))
    frame = order(what=8)
    t.forward("dropped", 4, frame)
    frame = order(what=1)
    t.forward("multicast, the port in the order does not count", 4, frame,
              *[(port, report((4, normal, 0, 1, 0xa0), (port, multicast, 0, rid)) + frame)
                for port, rid in ((2, 257), (3, 257), (3, 258))])
    frame = order(what=2)
    t.forward("resubmitted once, with the report of the first pass", 4, frame,
              (1, plain(frame, 4, 1, resubmitted, 2)))
    frame = order(what=3)
    t.forward("resubmission before multicast", 4, frame,
              *[(port, report((4, resubmitted, 0, 2, 0xa0), (port, multicast, 0, rid)) + frame)
                for port, rid in ((2, 257), (3, 257), (3, 258))])
    frame = order(what=4, session=5)
    t.forward("a clone of the packet as it came", 4, frame,
              (1, plain(frame, 4, 1)),
              (6, report((4, normal, 0, 1, 0xc1), (6, clone_in, 0, 0)) + frame))
    frame = order(what=15, session=8)
    t.forward("dropped: no resubmission and no multicast, but the clones", 4, frame,
              *[(port, report((4, normal, 0, 1, 0xc1), (port, clone_in, 0, rid)) + frame)
                for port, rid in ((2, 257), (3, 257), (3, 258))])
    frame = order(egress=1, session=5)
    first = plain(frame, 4, 1)
    note = report((4, normal, 0, 1, 0xce), (6, clone_out, 0, 0))
    t.forward("a clone of the packet as it leaves", 4, frame, (1, first), (6, note + frame))
    frame = order(egress=3, session=5)
    t.forward("dropped in egress, but cloned", 4, frame, (6, note + frame))
    frame = order(egress=3, session=99)
    t.forward("a session that does not exist", 4, frame)
    frame = order(port=recirculate & ~0xf | 0xa)
    t.forward("recirculated: it comes from the port of recirculation then", 4, frame,
              (0xa, plain(frame, recirculate, 0xa, recirculated, 2)))
    frame = order(what=2, port=recirculate)
    t.forward("resubmitted, recirculated, resubmitted again, and still from the port of recirculation", 4, frame,
              (0xa, plain(frame, recirculate, 0xa, resubmitted, 4)))
    frame = eth(A, B, 0x0800, bytes(6))
    t.forward("errors of both parsers do not end the packet", 4, frame,
              (9, report((4, normal, 2, 1, 0xa0), (9, unicast, 1, 0)) + frame))
    frame = eth(A, B, 0x88b5, bytes(6))
    t.forward("a packet that is too short for both", 4, frame,
              (9, report((4, normal, 1, 1, 0xa0), (9, unicast, 1, 0)) + frame))
    return t


def psa_externs():
    t = Stf("A service on port 53 of 10.0.0.100 with three servers; other services have no meter of their own.")
    service, client = "10.0.0.100", "10.0.0.7"
    servers = ["10.0.1.1", "10.0.1.2", "10.0.1.3"]
    for number, server in enumerate(servers):
        t.do(f"act_prof_create_member ingress.servers ingress.forward 0x{ip(server).hex()} {number + 1}")
    t.do("act_prof_create_group ingress.servers")
    for number in range(len(servers)):
        t.do(f"act_prof_add_member_to_group ingress.servers {number} 0")
    t.do(f"table_indirect_add_with_group ingress.balance 0x{ip(service).hex()} => 0")
    t.do("table_add ingress.services ingress.known 53 =>")
    # One packet a second and bursts of two: the third packet in a row is yellow, the fifth red.
    t.do("meter_set_rates ingress.rate 2 0.000001:2 0.000002:4")

    sequence = {}

    def send(text, port, sport, dport, colours, drop=False, bad=False):
        data = bytes([sport & 0xff]) * 5

        def packet(to, mark=b""):
            return eth(A, B, 0x0800, ipv4(client, to, udp(client, to, sport, dport, data), proto=17, bad_checksum=bad))
        frame = packet(service)
        if drop:
            t.forward(text, port, frame)
            return
        flow = ip(client) + struct.pack(">H", sport)
        choice = crc16_arc(flow) % len(servers)
        addresses = ip(client) + ip(service)
        ports = struct.pack(">HH", sport, dport)
        number = sequence.get(port, 1000)
        sequence[port] = number + 1
        first = (ip(client) + struct.pack(">H", sport) + ip(service))[:8]
        # Identity keeps the first bits of all that was added.
        mark = struct.pack(">IIH8sHHHBB", zlib.crc32(addresses), zlib.crc32(addresses + ports), crc16_arc(ports), first,
                           100 + crc16_arc(addresses) % 10, crc16_arc(struct.pack(">H", sport & 0xfff)), number, 5, colours)
        out = packet(servers[choice])
        t.forward(text, port, frame, (choice + 1, out[:42] + mark + out[42:]))

    # The colour of the service (3: not metered) in the upper half, that of the port in the lower.
    send("a query", 1, 5000, 53, 0x11)
    send("the same flow goes to the same server", 1, 5000, 53, 0x11)
    send("another flow", 1, 0x1234, 53, 0x11)
    send("a port with a meter", 2, 5001, 53, 0x11)
    send("within the burst", 2, 5001, 53, 0x11)
    send("above the committed rate", 2, 5002, 53, 0x12)
    send("still yellow", 2, 5003, 53, 0x12)
    send("above the peak rate, at a service without an entry", 2, 5004, 80, 0x33)
    send("a wrong IPv4 checksum", 2, 5000, 53, 0, drop=True, bad=True)
    t.do("check_counter ingress.per_service(0) packets == 7", "check_counter ingress.by_port(2) packets == 5",
         "check_counter ingress.by_port(1) packets == 3", "register_read ingress.sequence 2")
    return t


def psa_police():
    """By hand. The account of link 1: 250 bytes at most, 100 more each millisecond; that of its entry also by frames of 200. The indexed meter
    has 100 and 200 bytes and gets none, so has that of the entry, to which all packets come yellow."""
    t = Stf("Packets that tell their lengths, and a policer that believes them. Link 1 is configured, link 2 is not.")
    t.do("table_add ingress.links ingress.police 1 =>", "table_add ingress.measured ingress.measure 1 =>",
         "account_set ingress.accounts 1 2ms 500us 200 bytes", "account_set ingress.own 0 2ms 500us 200 both",
         "meter_set_rates ingress.meter 1 0:100 0:200", "meter_set_rates ingress.of_entry 0 0:1000 0:100")

    def told(text, link, length, account, own, meter, of_entry):
        def packet(*verdicts):
            return eth(A, B, 0x88b5, struct.pack(">BHBBBB", link, length, *verdicts) + bytes(40))
        t.forward(text, 0, packet(0, 0, 0, 0), (1, packet(account, own, meter, of_entry)))

    told("all pass; yellow is what came yellow", 1, 100, 1, 1, 1, 2)
    told("a millisecond later both accounts hold enough by bytes, 250, but by frames 150", 1, 100, 1, 0, 2, 3)
    told("250 and 250; the meters' bytes are used up", 1, 250, 1, 1, 3, 3)
    told("100 by bytes, 150 by frames", 1, 101, 0, 0, 3, 3)
    told("200 by bytes in both, 250 by frames", 1, 200, 1, 1, 3, 3)
    told("of no length everything passes but by frames", 1, 0, 1, 0, 1, 2)
    told("no account, no entry: link 2 passes", 2, 65535, 1, 0, 1, 0)
    told("no such account", 9, 65535, 1, 0, 1, 0)
    t.do("account_array_set ingress.accounts 1ms 0us 64 frames", "account_array_set ingress.own 1ms 0us 64 frames")
    told("other parameters, and full again", 1, 9000, 1, 1, 3, 3)
    told("link 2 has an account now, too", 2, 9000, 1, 0, 1, 0)
    return t


# ---- BPF ----

SYN, ACK, SYN_ACK, FIN_ACK = 0x02, 0x10, 0x12, 0x11


def ebpf_filter():
    t = Stf("Port 80 is open, 10.9.0.0/16 may do anything, 10.9.9.0/24 nothing; else connections are followed.")
    t.do("add pipe_ports 0 key.field0:80 pipe_allow()",
         "add networks hdr.ipv4.srcAddr:0x0a090000/16 allow()",
         # The same two as the C programs of p4c's back end have them: bytes of memory, from the lowest on.
         "add pipe_networks 0 key.field0:0x09090a/24 pipe_deny()")

    def send(text, port, src, dst, sport, dport, flags, passes, bad=False):
        packet = ipv4(src, dst, tcp(src, dst, sport, dport, flags=flags), proto=6, bad_checksum=bad)
        frame = eth(A, B, 0x0800, packet)
        t.forward(text, port, frame, *([(port, frame)] if passes else []))
    client, server = "192.0.2.1", "192.0.2.2"
    send("an open port", 1, client, server, 1000, 80, ACK, True)
    send("a wrong IPv4 checksum", 1, client, server, 1000, 80, ACK, False, bad=True)
    send("an allowed network", 1, "10.9.0.5", server, 1000, 22, ACK, True)
    send("a forbidden network within it", 1, "10.9.9.5", server, 1000, 22, ACK, False)
    send("no connection", 1, client, server, 1000, 22, ACK, False)
    send("one opens", 1, client, server, 1000, 22, SYN, True)
    send("nobody opens it twice", 1, client, server, 1000, 22, SYN, False)
    send("the server does not open it", 2, server, client, 22, 1000, SYN, False)
    send("the client does not answer itself", 1, client, server, 1000, 22, SYN_ACK, False)
    send("the server answers", 2, server, client, 22, 1000, SYN_ACK, True)
    send("once", 2, server, client, 22, 1000, SYN_ACK, False)
    send("the client confirms", 1, client, server, 1000, 22, ACK, True)
    send("data to the server", 1, client, server, 1000, 22, ACK | 8, True)
    send("data to the client", 2, server, client, 22, 1000, ACK | 8, True)
    send("another connection is another", 1, client, server, 1001, 22, ACK, False)
    send("the client ends it", 1, client, server, 1000, 22, FIN_ACK, True)
    send("and it is over", 2, server, client, 22, 1000, ACK, False)
    arp = eth(A, B, 0x0806, b"\0\1")
    t.forward("ARP passes", 3, arp, (3, arp))
    t.forward("what the parser rejects does not", 3, eth(A, B, 0x86dd, bytes(40)))
    t.forward("nor what is too short", 3, eth(A, B, 0x0800, bytes(19)))
    return t


def lookup3(data):
    """Bob Jenkins' hashlittle with the initial value 0."""
    mask = 0xffffffff
    rot = lambda x, k: (x << k | x >> 32 - k) & mask
    a = b = c = 0xdeadbeef + len(data) & mask
    if not data:
        return c
    while True:
        block, data = data[:12], data[12:]
        words = struct.unpack("<3I", block + bytes(12 - len(block)))
        a, b, c = a + words[0] & mask, b + words[1] & mask, c + words[2] & mask
        if not data:
            break
        a = (a - c & mask) ^ rot(c, 4); c = c + b & mask
        b = (b - a & mask) ^ rot(a, 6); a = a + c & mask
        c = (c - b & mask) ^ rot(b, 8); b = b + a & mask
        a = (a - c & mask) ^ rot(c, 16); c = c + b & mask
        b = (b - a & mask) ^ rot(a, 19); a = a + c & mask
        c = (c - b & mask) ^ rot(b, 4); b = b + a & mask
    c = (c ^ b) - rot(b, 14) & mask
    a = (a ^ c) - rot(c, 11) & mask
    b = (b ^ a) - rot(a, 25) & mask
    c = (c ^ b) - rot(b, 16) & mask
    a = (a ^ c) - rot(c, 4) & mask
    b = (b ^ a) - rot(a, 14) & mask
    return (c ^ b) - rot(b, 24) & mask


def ubpf_switch():
    t = Stf("An order: what, port, length. Then data: checksum, 16 and 32 bits of it.")
    rest = b"payload"

    def packet(what, port=0, length=0, data=b"\0\0\x11\x11\x22\x22\x33\x33", rest=rest):
        return struct.pack(">BBH", what, port, length) + data + rest
    t.do("mirroring_add 4 6")
    frame = packet(10, port=4)
    t.forward("a clone of what came in", 3, frame, (3, frame[:6] + b"\xbe\xef" + frame[8:]), (6, frame))
    t.forward("passes, by the port that it came in on", 3, packet(0), (3, packet(0)))
    t.forward("redirected", 3, packet(1, port=7), (7, packet(1, port=7)))
    for what, name in ((2, "DROP"), (3, "ABORT"), (4, "marked to drop")):
        t.forward(name, 3, packet(what))
    t.forward("marked to pass again", 3, packet(5), (3, packet(5)))
    t.forward("rejected by the parser: it goes on as it came", 3, packet(0xff), (3, packet(0xff)))
    t.forward("too short: likewise", 3, packet(1)[:11], (3, packet(1)[:11]))

    def cut(length):
        frame = packet(6, length=length)
        written = frame[:8] + b"\xde\xad\xbe\xef" + rest
        return frame, (written if length >= 12 else frame)[:length]
    for length, text in ((15, "cut in the payload"), (12, "cut behind the headers"), (99, "longer than the packet"),
                         (10, "cut in the second header, which stays as it was"), (4, "cut behind the first header"),
                         (1, "cut in the first header")):
        frame, out = cut(length)
        t.forward(text, 3, frame, (3, out))
    t.forward("cut to nothing", 3, packet(6, length=0))

    data = bytes.fromhex("1234 5678 9abc def0 0001 ffff")
    for small, large in ((0x1111, 0x22223333), (0x1234, 0x00c0ffee), (0xffff, 0), (0, 0xffffffff)):
        body = struct.pack(">HI", small, large)
        before, after = checksum(data + body), checksum(data + struct.pack(">HI", 0x1234, 0x00c0ffee))
        t.forward("a checksum follows its data", 3, packet(7, data=struct.pack(">H", before) + body),
                  (3, packet(7, data=struct.pack(">HHI", after, 0x1234, 0x00c0ffee))))

    seen, sent = {}, sum(line.startswith("packet") for line in t.lines)
    for large in (5, 6, 5, 13, 0xfffffffd):
        data = struct.pack(">HHI", 0xaaaa, 0xbbbb, large)
        seen[large % 8] = seen.get(large % 8, 0) + 1
        sent += 1
        # A packet a millisecond.
        result = struct.pack(">II", lookup3(data), seen[large % 8]) + (sent * 1_000_000).to_bytes(6, "big")
        t.forward("hashed and counted", 3, packet(8, data=data), (3, packet(8, data=data, rest=result + rest)))
    assert lookup3(b"Four score and seven years ago") == 0x17770551
    result = struct.pack(">II", 0x17770551, 3) + len(packet(9)).to_bytes(6, "big")
    t.forward("the example that comes with lookup3; port and length", 3, packet(9), (3, packet(9, rest=result + rest)))
    return t


def xdp_redirect():
    t = Stf("Addresses 10.0.0.1: to port 5; .2: to the host; .3: back; .4: dropped; others are not decided, so aborted.")
    for last, action in ((1, "redirect(port:5)"), (2, "to_host()"), (3, "back()"), (4, "drop()")):
        t.do(f"add routes hdr.ipv4.dst:0x0a0000{last:02x} {action}")

    def packet(src, dst, **fields):
        return eth(A, B, 0x0800, ipv4(src, dst, b"data", **fields))
    me = "10.0.1.1"
    t.forward("redirected", 1, packet(me, "10.0.0.1"), (5, packet(me, "10.0.0.1", ttl=63)))
    t.forward("the time to live wraps", 1, packet(me, "10.0.0.1", ttl=0), (5, packet(me, "10.0.0.1", ttl=255)))
    t.forward("for the host: back, there is none", 1, packet(me, "10.0.0.2"), (1, packet(me, "10.0.0.2")))
    t.forward("answered", 1, packet(me, "10.0.0.3", ident=7, flags=2), (1, packet("10.0.0.3", me, ident=7, flags=2, tos=16)))
    t.forward("dropped", 1, packet(me, "10.0.0.4"))
    t.forward("aborted", 1, packet(me, "10.0.0.5"))
    t.forward("too short", 1, packet(me, "10.0.0.1")[:33])
    return t


# ---- SimpleSumeSwitch ----

def sume_switch():
    t = Stf("Ports 0 to 3 are those of the network, 4 to 7 the queues to the host. 06:...:01 is at port 1, 06:...:0f in\n"
            "the host and at port 0, 06:...:0e in all queues.")
    known, host, all_host = "06:00:00:00:00:01", "06:00:00:00:00:0f", "06:00:00:00:00:0e"
    for address, ports in ((known, 0b00000100), (host, 0b10000001), (all_host, 0b10101010)):
        t.do(f"add destinations hdr.ethernet.dst:0x{mac(address).hex()} forward(ports:{ports})")
    t.do(f"add sources hdr.ethernet.src:0x{mac(known).hex()} NoAction()")
    frame = eth(known, "06:00:00:00:00:99", 0x0800, bytes(46))
    t.forward("a known address; the source is reported", 0, frame, (1, frame))
    frame = eth("06:00:00:00:00:77", known, 0x0800, bytes(46))
    t.forward("an unknown one: everywhere but back", 1, frame, (0, frame), (2, frame), (3, frame))
    t.forward("from the host: to the whole network", 6, frame, (0, frame), (1, frame), (2, frame), (3, frame))
    frame = eth(host, known, 0x0800, bytes(46))
    told = struct.pack(">BH", 0b00000100, len(frame)) + frame
    t.forward("to the host, which is told port and length", 1, frame, (0, told), (7, told))
    frame = eth(all_host, known, 0x0800, bytes(46))
    told = struct.pack(">BH", 0b00100000, len(frame)) + frame
    t.forward("from one queue to all", 6, frame, *[(port, told) for port in (4, 5, 6, 7)])
    t.forward("dropped", 0, eth(known, known, 0x88cc, bytes(46)))
    t.forward("too short", 0, eth(known, known, 0x0800)[:13])
    return t


def sume_flows():
    t = Stf("A query: flow and value. The answer: cell, its packets, its largest value and whether this is it, the class of the\n"
            "packet twice, the value before, what is left of a budget, the checksum of a header, the time.")
    packets, largest, sizes, last, budget = {}, {}, [0, 0], 0, 0
    check = checksum(ipv4("10.0.0.1", "10.0.0.2", ident=7, flags=2, proto=17)[:10] + bytes(2) + ip("10.0.0.1") + ip("10.0.0.2"))
    for number, (flow, value) in enumerate([(0, 5), (0, 9), (0x000421, 9), (0xffffff, 100), (0, 7), (0x00041f, 3), (1, 0)]):
        # Five bits after five bits, from the low end.
        cell = 0
        for shift in range(0, 24, 5):
            cell ^= flow >> shift & 31
        packets[cell] = packets.get(cell, 0) + 1
        larger = value > largest.get(cell, 0)
        largest[cell] = max(value, largest.get(cell, 0))
        low = 2 > sizes[0]
        sizes[0 if low else 1] += 1 if low else 10
        budget = 100 if packets[cell] == 1 and cell == 0 else (budget - 7) % 0x10000
        query = flow.to_bytes(3, "big") + struct.pack(">H", value)
        answer = struct.pack(">BHHBHBHHHQ", cell, packets[cell], largest[cell], larger, sizes[0 if low else 1], low, last, budget,
                             check, (number + 1) * 1_000_000)
        last = value
        t.forward(f"cell {cell}", 2, query + b"rest", (2, query + answer + b"rest"))
    t.do("register_read packets 0", "register_read largest 0")
    return t


# ---- PNA ----

def pna_nic():
    t = Stf("The host has the ports 257 and 258 with the tags 1 and 2; the network is at port 1. Session 3 mirrors to port 9.")
    t.do("add hosts hdr.tag.number:1 deliver(port:257)", "add hosts hdr.tag.number:2 deliver(port:258)", "mirroring_add 3 9")

    def tag(number, kind):
        return struct.pack(">BBH", number, 0, kind)

    def plain(src=B, rest=b"data"):
        return eth(A, src, 0x0800, rest)

    def tagged(number, kind=0x0800, rest=b"data", src=B):
        return eth(A, src, 0x88b5, tag(number, kind) + rest)
    t.forward("from the host", 258, plain(), (1, tagged(2)))
    t.forward("to the host, with a mirrored copy as it came", 1, tagged(1), (257, plain(B[:-2] + "00")), (9, tagged(1)))
    t.forward("to nobody, but mirrored", 1, tagged(7), (9, tagged(7)))
    two = tagged(1, 0x88b5, tag(2, 0x0800) + b"data")
    t.forward("two tags take two passes", 1, two, (258, plain(B[:-2] + "01")), (9, tagged(2)))
    three = tagged(1, 0x88b5, tag(2, 0x88b5) + tag(1, 0x0800) + b"data")
    t.forward("three take three", 1, three, (257, plain(B[:-2] + "02")), (9, tagged(1)))
    t.forward("no tag, and nobody says where to", 1, plain())
    t.forward("a parser error", 1, eth(A, B, 0x88b5, b"\1\2"))
    t.do("check_counter Main.by_direction(0) packets == 1", "check_counter Main.by_direction(1) packets == 9")
    return t


def pna_learning():
    t = Stf("The host has the ports from 256 on, the network is at port 1. A packet comes a millisecond after the one before.\n"
            "Entries live 20 ms without packets, 3 ms behind the last one of their flow.")
    t.do("register_write expire_times 1 3000000", "register_write expire_times 2 20000000",
         "add flows hdr.flow.inside:0x0a000063 hdr.flow.outside:0xc0000263 known(verdict:3, port:300, number:77, odd:0)")

    def packet(host, peer, flags=0, verdict=0, number=0):
        return ip(f"10.0.0.{host}") + ip(f"192.0.2.{peer}") + struct.pack(">BBI", flags, verdict, number) + b"rest"

    def send(text, port, host, peer, out=None, flags=0, verdict=0, number=0):
        marked = flags | (0x40 if verdict == 1 else 0x80)
        frame = packet(host, peer, flags)
        t.forward(text, port, frame, *([(out, packet(host, peer, marked, verdict, number))] if out else []))

    def idle(milliseconds):
        """Time passes with packets that are too short for anybody."""
        for _ in range(milliseconds):
            t.packet(1, b"\0")
    send("nobody is let in", 1, 1, 5)
    send("the host opens a flow", 257, 1, 5, 1, verdict=1, number=0)
    send("an answer finds it", 1, 1, 5, 257, verdict=2, number=0)
    send("another from there does not", 1, 1, 6)
    send("a second flow", 258, 2, 5, 1, verdict=1, number=1)
    send("its answer", 1, 2, 5, 258, verdict=2, number=0x101)
    send("the first again, now as known", 257, 1, 5, 1, verdict=2, number=0)
    send("an entry of the control plane", 1, 99, 99, 300, verdict=3, number=77)
    idle(16)
    send("used 18 ms ago: it still lives, and its time begins again", 1, 1, 5, 257, verdict=2, number=0)
    send("used 20 ms ago: gone", 1, 2, 5)
    idle(17)
    send("used 19 ms ago; the time is not restarted", 1, 1, 5, 257, flags=2, verdict=2, number=0)
    send("20 ms ago: gone", 1, 1, 5)
    send("opened again", 257, 1, 5, 1, verdict=1, number=2)
    send("the last packet", 1, 1, 5, 257, flags=1, verdict=2, number=2)
    idle(1)
    send("2 ms later: it lives yet", 1, 1, 5, 257, flags=2, verdict=2, number=2)
    send("3 ms later: gone", 1, 1, 5)
    send("the entry of the control plane stays", 257, 99, 99, 1, verdict=3, number=77)
    return t


TESTS = [psa_paths, psa_externs, psa_police, ebpf_filter, ubpf_switch, xdp_redirect, sume_switch, sume_flows, pna_nic, pna_learning]
