"""l2_switch.p4: stations behind ports 0 and 1 are known, who is behind port 2 is not. The test is the control plane that learns."""

import p4runtime_sh.shell as sh
from program import PATIENCE, ProgramTest, host
from scapy.layers.l2 import Ether

DATA = bytes(range(46))


class L2Switch(ProgramTest):
    program = "l2_switch"

    def enable_learning(self):
        name = next(iter(sh.P4Objects(sh.P4Type.digest))).preamble.name
        digest = sh.DigestEntry(name)
        digest.max_timeout_ns, digest.max_list_size, digest.ack_timeout_ns = 0, 1, 1_000_000_000
        digest.insert()
        self.addCleanup(digest.delete)

    def learned(self):
        """The address and port of the next digest, none when nobody is new."""
        message = sh.client.get_stream_packet("digest", timeout=PATIENCE)
        [data] = message.digest.data
        address, port = (member.bitstring for member in data.struct.members)
        return address.rjust(6, b"\0"), int.from_bytes(port, "big")


class KnownStations(L2Switch):
    def runTest(self):
        frame = Ether(dst=host(1), src=host(0), type=0x1234) / DATA
        self.goes(0, frame, {1: frame})
        # The other station is on the same cable.
        self.is_dropped(1, Ether(dst=host(1), src=host(0), type=0x1234) / DATA)


class UnknownStations(L2Switch):
    """IEEE 802.1D, 7.7: to all ports but the one that it came from."""

    def runTest(self):
        for destination in host(2), "ff:ff:ff:ff:ff:ff", "01:00:5e:00:00:01":
            frame = Ether(dst=destination, src=host(0), type=0x1234) / DATA
            self.goes(0, frame, {1: frame, 2: frame})


class Learning(L2Switch):
    def runTest(self):
        self.enable_learning()
        station = "0a:00:00:00:00:42"
        frame = Ether(dst=host(0), src=station, type=0x1234) / DATA
        self.goes(2, frame, {0: frame})
        address, port = self.learned()
        self.assertEqual((address, port), (bytes.fromhex(station.replace(":", "")), 2))

        known = sh.TableEntry("smac")(action="NoAction")
        known.match["hdr.ethernet.src"] = station
        known.insert()
        there = sh.TableEntry("dmac")(action="forward")
        there.match["hdr.ethernet.dst"] = station
        there.action["port"] = str(port)
        there.insert()
        answer = Ether(dst=station, src=host(0), type=0x1234) / DATA
        self.goes(0, answer, {2: answer})
        self.goes(2, frame, {0: frame})
        self.assertIsNone(sh.client.get_stream_packet("digest", timeout=0.2), "it is known")
