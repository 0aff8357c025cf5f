"""The four programs of an evaluation of virtual switches, each with its traffic: what goes in by the first port, and what has to come out by
the second. What is expected is computed here from what the program is for; it does not come from a switch. Used by tests/chassis/evaluate."""
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/programs/tools")]
from frames import eth, ipv4, udp  # noqa: E402

# Bytes of the check sequence, which frames on a cable have and frames here do not.
CHECK = 4
# The stamp of a frame, after the headers of one with a tag.
STAMP_AT = 46
VLAN, IPV4 = 0x8100, 0x0800


@dataclass
class Packet:
    """A UDP packet: addresses and ports; `stale` leaves the checksum of the header as it was before the time to live became less."""
    dst: str
    src: str
    source: str = "10.0.0.2"
    target: str = "10.0.1.2"
    ports: tuple = (4321, 1234)
    ttl: int = 64
    stale: bool = False
    vlan: int = None

    def frame(self, size):
        """Without the check sequence."""
        tag = 0 if self.vlan is None else 4
        payload = bytes(n * 7 % 251 for n in range(size - CHECK - 14 - tag - 20 - 8))
        packet = bytearray(ipv4(self.source, self.target, udp(self.source, self.target, *self.ports, payload, check=False), proto=17,
                                ttl=64 if self.stale else self.ttl))
        packet[8] = self.ttl
        if self.vlan is None:
            return eth(self.dst, self.src, IPV4, bytes(packet))
        return eth(self.dst, self.src, VLAN, self.vlan.to_bytes(2, "big") + IPV4.to_bytes(2, "big") + packet)

    def to(self, **more):
        return Packet(**{**self.__dict__, **more})


@dataclass
class Part:
    """A switch: its program, its file of entries, a packet that goes in by port 0 and what has to come out of it by port 1."""
    name: str
    program: Path
    entries: Path
    sent: Packet
    wanted: Packet
    vlan: int = None


@dataclass
class Guest:
    """A program of the evaluation. Several parts are `linked` in a row, or stand next to each other, each with frames of its own."""
    name: str
    parts: list
    linked: bool = False

    def traffic(self, size, vlan=None):
        """Frames that are sent in turn, and what is to come of each; `vlan` gives them a tag that the programs do not see."""
        parts = [(self.parts[0].sent, self.parts[-1].wanted)] if self.linked else [(part.sent, part.wanted) for part in self.parts]
        pick = {} if vlan is None else {"vlan": vlan}
        return [sent.to(**pick).frame(size) for sent, _ in parts], [wanted.to(**pick).frame(size) for _, wanted in parts]


def described(folder):
    """As the paper describes them: with a table of sources, longest prefixes, an access list."""
    programs = ROOT / "programs"
    host, other, router, next_port = (f"{kind}:00:00:00:00:0{number}" for kind, number in (("06", 0), ("06", 1), ("02", 0), ("02", 1)))
    stations = folder / "stations.entries"
    stations.write_text(f"table_add smac NoAction {host} =>\ntable_add smac NoAction {router} =>\n"
                        f"table_add dmac forward {host} => 0\ntable_add dmac forward {router} => 1\n")
    switched, asked = Packet(other, host), Packet(router, host)
    routed = Packet(other, next_port, ttl=63)
    name = Packet(other, host, target="10.0.1.53", ports=(4321, 53))
    l2 = Part("l2", programs / "l2_switch.p4", programs / "l2_switch.entries", switched, switched)
    access = Part("access", programs / "l2_switch.p4", stations, asked, asked)
    core = Part("router", programs / "router.p4", programs / "router.entries", asked, routed)
    wall = Part("firewall", programs / "firewall.p4", programs / "firewall.entries", name, name)
    return [Guest("layer-2 switch", [l2]), Guest("router", [core]), Guest("firewall", [wall]),
            Guest("switch + router", [access, core], linked=True)]


def commands_of_board(path):
    """The entries of P4->NetFPGA as runtime commands: `0b` is no number there, and comments are others."""
    lines = []
    for line in path.read_text().splitlines():
        words = line.split("//")[0].split()
        if words[:1] == ["table_cam_add_entry"]:
            words = [hex(int(word, 2)) if re.fullmatch(r"0b[01]+", word) else word for word in words]
            lines.append(" ".join(["table_add", *words[1:]]))
        elif words:
            raise RuntimeError(f"{path}: `{words[0]}` is no command that is known here")
    return "\n".join(lines) + "\n"


def stored(checkout, folder):
    """As the repository of P4VBox stores them: programs for SimpleSumeSwitch, frames with tags, exact tables."""
    projects = checkout / "contrib-projects/sume-sdnet-switch/projects"
    host, other = "08:11:11:11:11:08", "08:22:22:22:22:08"
    near, far = "05:11:11:11:11:05", "05:22:22:22:22:05"
    ends = {"source": "10.1.1.1", "target": "10.2.2.2"}

    def part(project, name, vlan, sent, wanted):
        entries = folder / f"{project}-{name}.entries"
        entries.write_text(commands_of_board(projects / project / f"src/commands_{name}.txt"))
        return Part(name.replace("_", "-"), projects / project / f"src/{name}.p4", entries, sent.to(vlan=vlan), wanted.to(vlan=vlan), vlan=vlan)

    switched, asked = Packet(other, host, **ends), Packet(near, host, **ends)
    routed = Packet(other, far, ttl=63, stale=True, **ends)
    return [Guest("layer-2 switch", [part("l2", "l2", 1, switched, switched)]),
            Guest("router", [part("router", "router", 2, asked, routed)]),
            Guest("firewall", [part("firewall", "firewall", 3, switched, switched)]),
            Guest("switch, router", [part("l2_router", "l2_switch", 1, switched, switched), part("l2_router", "router", 2, asked, routed)])]


@dataclass
class Emulated:
    """A guest of the HyPer4 persona: the runtime commands that make the persona it, and its traffic from port 1 to another."""
    name: str
    commands: str
    sent: Packet
    wanted: Packet
    out: int = 2
    # Commands that are refused, with why bmv2 refuses them as well.
    refused: dict = field(default_factory=dict)

    def traffic(self, size):
        return [self.sent.frame(size)], [self.wanted.frame(size)]


# Of the stored commands of the firewall: bmv2's server adds no entry to a table without a key since 2023, and its command line takes the last word of
# a `table_add` to a table with a ternary field as the priority, which `=>` is not.
NO_KEY, NO_PRIORITY = "NO_TABLE_KEY", "no priority"
REFUSED = {"table_add t_drop_31 a_drop =>": NO_KEY, "table_add t_drop_41 a_drop =>": NO_KEY,
           "table_add t_multicast _no_op 1 0 0 =>": NO_PRIORITY}


def emulated(checkout):
    """The guests of HyPer4 that its repository has commands for. The persona gets them by the commands alone."""
    host, other = "00:04:00:00:00:00", "00:04:00:00:00:01"
    ends = {"source": "10.0.0.10", "target": "10.0.1.10"}

    def commands(name):
        return (checkout / "hp4/targets" / name).read_text()

    switched = Packet(other, host, **ends)
    routed = Packet(other, "00:aa:bb:00:00:01", ttl=63, **ends)
    found = [Emulated("layer-2 switch", commands("hp4t_l2_switch/commands.txt"), switched, switched),
             Emulated("router", commands("simple_router/commands.txt"), Packet("00:aa:bb:00:00:00", host, **ends), routed),
             Emulated("firewall", commands("firewall/commands.txt"), switched, switched, refused=REFUSED)]
    # The repository has the two next to each other; here what leaves the switch by port 3 goes on to the router, by the persona's virtual network.
    both = commands("two_progs_parallel/two_progs_commands.txt")
    before, linked = "table_add t_link _no_op 1 3 =>", "table_add t_link a_set_dest_port 1 3 => 69\ntable_add t_virt_net a_virt_net 1 69 => 2"
    if before not in both:
        raise RuntimeError(f"{checkout}: the commands of both programs have no line `{before}`")
    ends["target"] = "10.0.3.10"
    asked, routed = Packet("00:04:00:00:00:02", host, **ends), Packet("00:04:00:00:00:03", "00:aa:bb:00:00:00", ttl=63, **ends)
    return [*found, Emulated("switch + router", both.replace(before, linked), asked, routed, out=4)]
