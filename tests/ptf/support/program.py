"""A PTF test of one program: it is set over P4Runtime with the entries of its example network, and forgotten after the test."""

import os
import time

import p4runtime_sh.shell as sh
from ptf import testutils
from ptf.base_tests import BaseTest
from ptf.dataplane import match_exp_pkt
from scapy.layers.l2 import Ether

from entries import write_entries

# Simulated hardware takes cycle after cycle of its design to write entries, and for each frame.
PATIENCE = 120.0 if os.environ.get("MILLRACE_TEST_ENGINE") in ("rtl", "device") else 3.0


def host(port):
    """The host behind a port."""
    return f"06:00:00:00:00:{port:02x}"


def own(port):
    """The switch's own address on a port."""
    return f"02:00:00:00:00:{port:02x}"


def arrives(port, packet):
    """A packet as the host behind a port sends it to the switch."""
    return Ether(dst=own(port), src=host(port)) / packet


def leaves(port, packet):
    """A packet that was routed: the next hop is the host behind the port, the source is the port itself (RFC 1812, 5.2.1)."""
    return {port: Ether(dst=host(port), src=own(port)) / packet}


class ProgramTest(BaseTest):
    program = None

    def setUp(self):
        BaseTest.setUp(self)
        parameters = testutils.test_params_get()
        image = f"{parameters['images']}/{self.program}"
        config = sh.FwdPipeConfig(f"{image}.p4info.txtpb", f"{image}.json")
        sh.setup(1, parameters["address"], (0, 1), config=config, verbose=False)
        self.addCleanup(sh.teardown)
        write_entries(f"{parameters['entries']}/{self.program.removesuffix('_14')}.entries")
        self.dataplane = testutils.ptf.dataplane_instance
        self.dataplane.flush()

    def goes(self, port, packet, leaves):
        """A packet that comes in makes these leave, each at its port, and no others."""
        testutils.send_packet(self, port, packet)
        for port, expected in sorted(leaves.items()):
            testutils.verify_packet(self, expected, port, timeout=PATIENCE)
        testutils.verify_no_other_packets(self, timeout=0.05)

    def is_dropped(self, port, packet):
        self.goes(port, packet, {})

    def goes_to_controller(self, port, packet):
        """A packet leaves nowhere, and the controller gets it as it came."""
        self.is_dropped(port, packet)
        message = sh.client.get_stream_packet("packet", timeout=PATIENCE)
        self.assertIsNotNone(message, "no packet-in")
        self.assertTrue(match_exp_pkt(packet, message.packet.payload), message.packet.payload.hex())

    def counted(self, counter, index, wanted):
        """A cell of a counter holds so many packets, soon."""
        cell = sh.CounterEntry(counter)
        cell.index = index
        until = time.monotonic() + PATIENCE
        while True:
            found = [entry.packet_count for entry in cell.read()]
            if found == [wanted] or time.monotonic() > until:
                self.assertEqual(found, [wanted], counter)
                return
            time.sleep(0.02)
