"""firewall.p4: outside is port 0, servers in 10.0.1.0/24 are behind port 1; the other cable is ports 2 and 3."""

from program import ProgramTest, host
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import ARP, Ether

OUTSIDE, INSIDE = 0, 1


def frame(packet):
    return Ether(dst=host(1), src=host(0)) / packet


class Firewall(ProgramTest):
    program = "firewall"

    def passes(self, port, packet):
        """A bump in the wire changes nothing."""
        self.goes(port, frame(packet), {port ^ 1: frame(packet)})


class Services(Firewall):
    def runTest(self):
        client, server = "198.51.100.7", "10.0.1.80"
        for port in 80, 443:
            self.passes(OUTSIDE, IP(src=client, dst=server) / TCP(sport=50000, dport=port, flags="S"))
            self.passes(INSIDE, IP(src=server, dst=client) / TCP(sport=port, dport=50000, flags="SA") / b"hello")
        for port in 22, 79, 81, 442, 444, 8080:
            self.is_dropped(OUTSIDE, frame(IP(src=client, dst=server) / TCP(sport=50000, dport=port)))
        # From a port of the system, and to another network.
        self.is_dropped(OUTSIDE, frame(IP(src=client, dst=server) / TCP(sport=1023, dport=80)))
        self.is_dropped(OUTSIDE, frame(IP(src=client, dst="10.0.2.80") / TCP(sport=50000, dport=80)))
        self.passes(OUTSIDE, IP(src=client, dst="10.0.1.53") / UDP(sport=53, dport=53) / b"?")
        self.passes(INSIDE, IP(src="10.0.1.53", dst=client) / UDP(sport=53, dport=999) / b"!")
        self.is_dropped(OUTSIDE, frame(IP(src=client, dst="10.0.1.54") / UDP(sport=53, dport=53)))


class TheFirstRuleDecides(Firewall):
    def runTest(self):
        for source, passes in ("192.0.1.255", True), ("192.0.2.0", False), ("192.0.2.255", False), ("192.0.3.0", True):
            packet = IP(src=source, dst="10.0.1.80") / TCP(sport=50000, dport=80)
            (self.passes if passes else lambda port, kept: self.is_dropped(port, frame(kept)))(OUTSIDE, packet)


class OtherProtocols(Firewall):
    def runTest(self):
        self.passes(OUTSIDE, IP(src="198.51.100.7", dst="10.0.1.9") / ICMP(id=1))
        self.passes(2, IP(src="198.51.100.7", dst="10.0.1.9") / ICMP(id=1))
        self.passes(OUTSIDE, ARP(psrc="198.51.100.7", pdst="10.0.1.9"))
        self.is_dropped(OUTSIDE, frame(IPv6(dst="2001:db8::1") / UDP()))
        # A later fragment has no ports, so it is no web traffic (RFC 1858).
        self.is_dropped(OUTSIDE, frame(IP(src="198.51.100.7", dst="10.0.1.80", frag=8, proto=6) / bytes(TCP(sport=50000, dport=80))))
