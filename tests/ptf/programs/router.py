"""router.p4: subnets 10.0.P.0/24 and 2001:db8:0:P::/64 behind ports 0, 1 and 2, the default route through port 2."""

from program import ProgramTest, arrives, leaves
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import ARP


class Router(ProgramTest):
    program = "router"


class IPv4Routes(Router):
    """RFC 1812, 5.3.1: the TTL goes down by one, and the checksum, which scapy computes anew, follows."""

    def runTest(self):
        for payload in b"", b"x", bytes(range(256)) * 5:
            for layer in UDP(sport=1, dport=2), TCP(sport=1, dport=2, flags="S"), ICMP(id=5):
                came = IP(src="10.0.0.2", dst="10.0.1.2", ttl=64, tos=0xB8, id=77) / layer / payload
                gone = IP(src="10.0.0.2", dst="10.0.1.2", ttl=63, tos=0xB8, id=77) / layer / payload
                self.goes(0, arrives(0, came), leaves(1, gone))


class LongestPrefixWins(Router):
    def runTest(self):
        for destination, port in ("10.0.2.9", 2), ("10.0.0.255", 0), ("192.0.2.1", 2), ("11.0.0.0", 2), ("9.255.255.255", 2):
            came, gone = (IP(src="10.0.1.2", dst=destination, ttl=ttl) / UDP() for ttl in (255, 254))
            self.goes(1, arrives(1, came), leaves(port, gone))
        # Private, and nobody's.
        self.is_dropped(1, arrives(1, IP(src="10.0.1.2", dst="10.0.3.1") / UDP()))


class WrongIPv4IsDropped(Router):
    def runTest(self):
        good = {"src": "10.0.0.2", "dst": "10.0.1.2"}
        for ttl in 0, 1:
            self.is_dropped(0, arrives(0, IP(ttl=ttl, **good) / UDP()))
        self.goes(0, arrives(0, IP(ttl=2, **good) / UDP()), leaves(1, IP(ttl=1, **good) / UDP()))
        self.is_dropped(0, arrives(0, IP(chksum=0x1234, **good) / UDP()))
        self.is_dropped(0, arrives(0, IP(version=5, **good) / UDP()))
        self.is_dropped(0, arrives(0, bytes(IP(**good))[:19]))
        self.is_dropped(0, arrives(0, ARP(psrc="10.0.0.2", pdst="10.0.0.1")))


class IPv6Routes(Router):
    """RFC 8200, 3: the hop limit goes down by one; there is no checksum."""

    def runTest(self):
        for destination, port in ("2001:db8:0:1::2", 1), ("2001:db8:0:2:ffff::1", 2):
            came, gone = (
                IPv6(src="2001:db8::2", dst=destination, hlim=hops, tc=3, fl=0x12345) / UDP(sport=7, dport=8) / b"six"
                for hops in (64, 63)
            )
            self.goes(0, arrives(0, came), leaves(port, gone))
        self.is_dropped(0, arrives(0, IPv6(src="2001:db8::2", dst="2001:db8:0:1::2", hlim=1) / UDP()))
        self.is_dropped(0, arrives(0, IPv6(src="2001:db8::2", dst="2001:db8:0:3::2") / UDP()))
