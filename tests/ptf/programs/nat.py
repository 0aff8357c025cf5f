"""nat.p4 and nat_14.p4: inside are ports 0 and 1, outside is port 2. The public address is 203.0.113.1; 10.0.0.10 has one of its
own, 203.0.113.10. Checksums of what leaves are scapy's."""

import p4runtime_sh.shell as sh
from program import ProgramTest, arrives, leaves
from scapy.layers.inet import ICMP, IP, TCP, UDP

INSIDE, INTERNET = 0, 2
SERVER = "198.51.100.80"


class Bindings(ProgramTest):
    """RFC 3022, 4.1: address, port and checksums of both, there and back."""

    program = "nat"

    def runTest(self):
        for payload in b"", b"x", b"two words":
            out = IP(src="10.0.0.2", dst=SERVER, ttl=64) / TCP(sport=40000, dport=443) / payload
            seen = IP(src="203.0.113.1", dst=SERVER, ttl=63) / TCP(sport=1024, dport=443) / payload
            self.goes(INSIDE, arrives(INSIDE, out), leaves(INTERNET, seen))
            answer = IP(src=SERVER, dst="203.0.113.1", ttl=50) / TCP(sport=443, dport=1024) / payload
            back = IP(src=SERVER, dst="10.0.0.2", ttl=49) / TCP(sport=443, dport=40000) / payload
            self.goes(INTERNET, arrives(INTERNET, answer), leaves(INSIDE, back))
        ping = IP(src="10.0.1.2", dst=SERVER, ttl=64) / ICMP(id=7, seq=3) / b"ping"
        seen = IP(src="203.0.113.1", dst=SERVER, ttl=63) / ICMP(id=1026, seq=3) / b"ping"
        self.goes(1, arrives(1, ping), leaves(INTERNET, seen))
        # RFC 768: 0 is no checksum, and stays.
        packet = IP(src="10.0.0.10", dst=SERVER, ttl=9) / UDP(sport=5, dport=6, chksum=0) / b"x"
        seen = IP(src="203.0.113.10", dst=SERVER, ttl=8) / UDP(sport=5, dport=6, chksum=0) / b"x"
        self.goes(INSIDE, arrives(INSIDE, packet), leaves(INTERNET, seen))


class Neighbours(ProgramTest):
    """RFC 4787, REQ-9: inside hosts reach each other by their public addresses."""

    program = "nat"

    def runTest(self):
        packet = IP(src="10.0.0.2", dst="203.0.113.10", ttl=64) / TCP(sport=40000, dport=80)
        seen = IP(src="203.0.113.1", dst="10.0.0.10", ttl=63) / TCP(sport=1024, dport=80)
        self.goes(INSIDE, arrives(INSIDE, packet), leaves(INSIDE, seen))


class NewConnections(ProgramTest):
    """The controller gets a packet without a binding as it came, and makes the binding."""

    program = "nat"

    def runTest(self):
        packet = arrives(INSIDE, IP(src="10.0.0.3", dst=SERVER, ttl=64) / UDP(sport=4000, dport=53) / b"?")
        self.goes_to_controller(INSIDE, packet)
        entry = sh.TableEntry("binding_out")(action="set_source_and_id")
        fields = [field.name for field in sh.context.get_table("binding_out").match_fields]
        for field, value in zip(fields, ("10.0.0.3", "17", "4000"), strict=True):
            entry.match[field] = value
        entry.action["address"], entry.action["id"] = "203.0.113.1", "2000"
        entry.insert()
        seen = IP(src="203.0.113.1", dst=SERVER, ttl=63) / UDP(sport=2000, dport=53) / b"?"
        self.goes(INSIDE, packet, leaves(INTERNET, seen))


class Strangers(ProgramTest):
    program = "nat"

    def runTest(self):
        self.is_dropped(INTERNET, arrives(INTERNET, IP(src=SERVER, dst="203.0.113.1") / TCP(sport=443, dport=9999)))
        self.is_dropped(INTERNET, arrives(INTERNET, IP(src=SERVER, dst="10.0.0.2") / TCP(sport=443, dport=40000)))
        self.is_dropped(INSIDE, arrives(INSIDE, IP(src="10.0.0.2", dst=SERVER, ttl=1) / TCP(sport=40000, dport=443)))


class Bindings14(Bindings):
    program = "nat_14"


class NewConnections14(NewConnections):
    program = "nat_14"


class Strangers14(Strangers):
    program = "nat_14"
