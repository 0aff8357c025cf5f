"""The three gateways, each also in P4_14. Tunnels are scapy's; what their RFCs leave to the sender (outer TTL 64, identification 0,
not to be fragmented, no checksum of UDP) is as the programs document it."""

from program import ProgramTest, arrives, leaves, own
from ptf.mask import Mask
from scapy.contrib.gtp import GTP_U_Header, GTPPDUSessionContainer
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import ARP, Dot1AD, Dot1Q, Ether
from scapy.layers.ppp import PPP, PPPoE, PPPoED
from scapy.layers.vxlan import VXLAN

USER = b"payload of a user"


def inner(source, destination, ttl=64, **fields):
    return IP(src=source, dst=destination, ttl=ttl, **fields) / UDP(sport=1000, dport=2000) / USER


def dropped(test, reason):
    test.counted("drops", reason, 1)


# ---- GTP-U (3GPP TS 29.281): base stations 172.16.P.1 behind ports 0 and 1, the Internet behind port 2 ----

GATEWAY, INTERNET = "172.16.255.1", "198.51.100.7"


def gtp(source, destination, teid, packet, ttl=64, **outer):
    tunnel = GTP_U_Header(teid=teid, gtp_type=255, E=0, S=0, PN=0)
    return IP(src=source, dst=destination, ttl=ttl, **outer) / UDP(sport=2152, dport=2152, chksum=0) / tunnel / packet


def to_station(port, teid, packet, tos=0):
    return leaves(port, gtp(GATEWAY, f"172.16.{port}.1", teid, packet, id=0, flags="DF", tos=tos))


class GtpUplink(ProgramTest):
    program = "l3_gateway_gtp"

    def runTest(self):
        out = leaves(2, inner("10.45.0.1", INTERNET, 63))
        self.goes(0, arrives(0, gtp("172.16.0.1", GATEWAY, 0x1001, inner("10.45.0.1", INTERNET))), out)
        # The outer TTL ends here (RFC 2003, 3.1).
        self.goes(0, arrives(0, gtp("172.16.0.1", GATEWAY, 0x1001, inner("10.45.0.1", INTERNET), ttl=1)), out)
        # A sequence number, and the extension of 5G.
        for options in GTP_U_Header(teid=0x1001, gtp_type=255, S=1, seq=9), GTP_U_Header(
            teid=0x1001, gtp_type=255, E=1, next_ex=0x85
        ) / GTPPDUSessionContainer(type=1, QFI=9):
            packet = IP(src="172.16.0.1", dst=GATEWAY) / UDP(sport=2152, dport=2152) / options / inner("10.45.0.1", INTERNET)
            self.goes(0, arrives(0, packet), out)


class GtpDownlink(ProgramTest):
    program = "l3_gateway_gtp"

    def runTest(self):
        came = inner(INTERNET, "10.45.0.1", 64, tos=0xB8)
        self.goes(2, arrives(2, came), to_station(0, 0x2001, inner(INTERNET, "10.45.0.1", 63, tos=0xB8), tos=0xB8))
        # From one user to another: out of one tunnel, into another.
        came = gtp("172.16.0.1", GATEWAY, 0x1001, inner("10.45.0.1", "10.45.0.3"))
        self.goes(0, arrives(0, came), to_station(1, 0x2003, inner("10.45.0.1", "10.45.0.3", 63)))


class GtpControl(ProgramTest):
    program = "l3_gateway_gtp"

    def runTest(self):
        self.goes_to_controller(2, arrives(2, inner(INTERNET, "10.45.0.8")))
        unknown = arrives(0, gtp("172.16.0.1", GATEWAY, 0x9999, inner("10.45.0.1", INTERNET)))
        self.goes_to_controller(0, unknown)
        echo = IP(src="172.16.0.1", dst=GATEWAY) / UDP(sport=2152, dport=2152) / GTP_U_Header(gtp_type=1, S=1, seq=1, E=0, PN=0)
        self.goes_to_controller(0, arrives(0, echo))
        # Not the address of this user: reason 10.
        self.is_dropped(0, arrives(0, gtp("172.16.0.1", GATEWAY, 0x1001, inner("10.45.0.3", INTERNET))))
        dropped(self, 10)
        # Nobody is attached there: reason 13.
        self.is_dropped(2, arrives(2, inner(INTERNET, "10.45.0.77")))
        dropped(self, 13)


# ---- PPPoE (RFC 2516) in two tags: subscribers behind ports 0 and 1, the core behind port 2 ----

SUBSCRIBERS = {1: (0, 100, 11, 0x101), 3: (1, 200, 11, 0x103)}


def session(subscriber, packet, downstream=False, priority=0, **changes):
    """A packet on the line of a subscriber: its port, and the frame."""
    port, outer, tag, number = SUBSCRIBERS[subscriber]
    number = changes.get("session", number)
    ends = {"dst": own(port), "src": f"0a:00:00:00:00:{subscriber:02x}"}
    if downstream:
        ends = {"dst": ends["src"], "src": ends["dst"]}
    tags = Dot1AD(vlan=outer, prio=priority, type=0x8100) / Dot1Q(vlan=tag, prio=priority, type=0x8864)
    return port, Ether(**ends, type=0x88A8) / tags / PPPoE(sessionid=number) / PPP(proto=0x21) / packet


class PppoeSessions(ProgramTest):
    program = "l3_gateway_pppoe"

    def runTest(self):
        for subscriber, source in (1, "100.64.0.1"), (1, "192.0.2.7"), (3, "100.64.0.3"):
            port, frame = session(subscriber, inner(source, INTERNET))
            self.goes(port, frame, leaves(2, inner(source, INTERNET, 63)))
            port, frame = session(subscriber, inner(INTERNET, source, 63), downstream=True)
            self.goes(2, arrives(2, inner(INTERNET, source)), {port: frame})
        # IEEE 802.1Q: the class of service, 101 of 10111000.
        port, frame = session(3, inner(INTERNET, "100.64.0.3", 9, tos=0xB8), downstream=True, priority=5)
        self.goes(2, arrives(2, inner(INTERNET, "100.64.0.3", 10, tos=0xB8)), {port: frame})


class PppoeStrangers(ProgramTest):
    program = "l3_gateway_pppoe"

    def runTest(self):
        # Another's address, another's session, and one's own on the wrong port.
        port, frame = session(1, inner("100.64.0.3", INTERNET))
        self.is_dropped(port, frame)
        port, frame = session(1, inner("100.64.0.1", INTERNET), session=0x103)
        self.is_dropped(port, frame)
        _, frame = session(1, inner("100.64.0.1", INTERNET))
        self.is_dropped(1, frame)
        # Nobody's address: reason 12.
        self.is_dropped(2, arrives(2, inner(INTERNET, "100.64.0.77")))
        dropped(self, 12)


class PppoeDiscovery(ProgramTest):
    program = "l3_gateway_pppoe"

    def runTest(self):
        tags = Dot1AD(vlan=100, type=0x8100) / Dot1Q(vlan=11, type=0x8863)
        initiation = Ether(dst="ff:ff:ff:ff:ff:ff", src="0a:00:00:00:00:01", type=0x88A8) / tags / PPPoED(code=9)
        self.goes_to_controller(0, initiation / (b"\x01\x01\x00\x00" + bytes(36)))


# ---- VXLAN (RFC 7348): VTEP 192.168.255.2 behind port 4 and .3 behind port 5; domain 10 is VNI 10010 ----


def station(letter):
    return f"0a:00:00:00:00:{letter:02x}"


def vxlan(peer, port, vni, frame, inbound=False):
    """A frame in its tunnel. The source port is a hash of the flow (RFC 7348, 5): from 49152 on, and else not looked at."""
    ends = {"src": "192.168.255.1", "dst": f"192.168.255.{peer}"}
    macs = {"src": f"02:00:00:00:01:{port:02x}", "dst": f"06:00:00:00:01:{port:02x}"}
    if inbound:
        ends, macs = ({"src": of["dst"], "dst": of["src"]} for of in (ends, macs))
    outer = IP(**ends, id=0, flags="DF", ttl=64) / UDP(sport=49152, dport=4789, chksum=0)
    packet = Ether(**macs) / outer / VXLAN(vni=vni, flags=8) / frame
    if inbound:
        return packet
    masked = Mask(packet)
    # 14 bits of the port, behind the addresses and the two bits that are 11.
    masked.set_do_not_care((14 + 20) * 8 + 2, 14)
    return masked


class VxlanBridging(ProgramTest):
    program = "l3_gateway_vxlan"

    def runTest(self):
        def frame(destination, source):
            return Ether(dst=station(destination), src=station(source)) / inner("10.1.0.10", "10.1.0.12")

        self.goes(0, frame(0x0B, 0x0A), {1: frame(0x0B, 0x0A)})
        self.goes(0, frame(0x0C, 0x0A), {4: vxlan(2, 4, 10010, frame(0x0C, 0x0A))})
        self.goes(4, vxlan(2, 4, 10010, frame(0x0A, 0x0C), inbound=True), {0: frame(0x0A, 0x0C)})
        # Unknown: to the ports and VTEPs of the domain, not back, and never from one VTEP to another.
        flooded = frame(0x77, 0x0A)
        copies = {1: flooded, 4: vxlan(2, 4, 10010, flooded), 5: vxlan(3, 5, 10010, flooded)}
        self.goes(0, flooded, copies)
        self.goes(4, vxlan(2, 4, 10010, flooded, inbound=True), {0: flooded, 1: flooded})


class VxlanRouting(ProgramTest):
    program = "l3_gateway_vxlan"

    def runTest(self):
        def frame(destination, source, to, ttl):
            return Ether(dst=destination, src=source) / inner("10.1.0.10", to, ttl)

        router = "02:00:00:00:00:0a"
        # To the other domain, to the router behind the other VTEP, to the outside.
        came = frame(router, station(0x0A), "10.2.0.13", 64)
        self.goes(0, came, {2: frame(station(0x0D), "02:00:00:00:00:14", "10.2.0.13", 63)})
        came = frame(router, station(0x0A), "10.2.1.9", 64)
        routed = frame("02:00:00:00:03:64", "02:00:00:00:00:64", "10.2.1.9", 63)
        self.goes(0, came, {5: vxlan(3, 5, 50001, routed)})
        came = frame(router, station(0x0A), INTERNET, 64)
        self.goes(0, came, {3: frame("06:00:00:00:00:03", "02:00:00:00:00:63", INTERNET, 63)})
        # Tenants have the same addresses, and not the same routes.
        self.is_dropped(6, frame("02:00:00:00:00:1e", station(0x10), "10.2.0.13", 64))
        # Nobody's private address: reason 15.
        self.is_dropped(0, frame(router, station(0x0A), "10.99.0.1", 64))


class VxlanControl(ProgramTest):
    program = "l3_gateway_vxlan"

    def runTest(self):
        request = Ether(dst="02:00:00:00:00:0a", src=station(0x0A)) / ARP(psrc="10.1.0.10", pdst="10.1.0.1")
        self.goes_to_controller(0, request / bytes(18))
        # From nobody that is a peer, and for an identifier that nobody has.
        stray = Ether(dst=station(0x0A), src=station(0x0C)) / inner("10.1.0.12", "10.1.0.10")
        self.is_dropped(4, vxlan(9, 4, 10010, stray, inbound=True))
        self.is_dropped(4, vxlan(2, 4, 4711, stray, inbound=True))


class GtpUplink14(GtpUplink):
    program = "l3_gateway_gtp_14"


class GtpDownlink14(GtpDownlink):
    program = "l3_gateway_gtp_14"


class PppoeSessions14(PppoeSessions):
    program = "l3_gateway_pppoe_14"


class PppoeStrangers14(PppoeStrangers):
    program = "l3_gateway_pppoe_14"


class VxlanBridging14(VxlanBridging):
    program = "l3_gateway_vxlan_14"


class VxlanRouting14(VxlanRouting):
    program = "l3_gateway_vxlan_14"
