"""The STF tests of the AFDX switches in programs/: what passes is decided by fractions, from the definition of an account."""
import struct
from fractions import Fraction
from pathlib import Path

from frames import eth, ipv4, udp
from stf import Stf

PROGRAMS = Path(__file__).resolve().parents[3] / "programs"
OPERATIONAL, MAINTENANCE, QUIET = 1, 2, 4
LENGTH, PREFIX, UNKNOWN_VL, TOO_SHORT, TOO_LONG, POLICED, MODE, AGE = range(8)
REASONS = 8


def frame(vl, length, prefix="03:00:00:00"):
    """A frame of so many bytes on the wire. The last 4 are its check sequence, which a port has taken off."""
    high, low = vl >> 8, vl & 255
    source = "02:00:00:00:01:20"
    data = bytes(i & 255 for i in range(length - 4 - 42)) if length >= 46 else b""
    whole = eth(f"{prefix}:{high:02x}:{low:02x}", source, 0x0800,
                ipv4("10.0.0.1", f"224.224.{high}.{low}", udp("10.0.0.1", f"224.224.{high}.{low}", 7, 9, data), proto=17))
    return whole[:length - 4]


class Account:
    """Smax (1 + J / BAG) bytes at most, Smax / BAG more in each millisecond."""

    def __init__(self, bag, jitter, smax, tests):
        self.smax, self.tests = Fraction(smax), tests
        self.rate = Fraction(smax) / Fraction(bag)
        self.full = smax * (1 + Fraction(jitter) / Fraction(bag))
        self.credit, self.last = {test: self.full for test in tests}, Fraction(0)

    def admit(self, now, length):
        self.credit = {test: min(self.full, held + self.rate * (now - self.last)) for test, held in self.credit.items()}
        self.last = now
        cost = {test: Fraction(length) if test == "bytes" else self.smax for test in self.tests}
        if any(cost[test] > self.credit[test] for test in self.tests):
            return False
        self.credit = {test: held - cost[test] for test, held in self.credit.items()}
        return True


class Network:
    """The VLs of afdx.entries: number, Smin, Smax, modes, ports, account."""

    def __init__(self, test):
        self.test, self.now, self.mode, self.discards = test, Fraction(0), OPERATIONAL, {}
        half = Fraction(1, 2)
        one, shared, loads = Account(2, half, 200, ["bytes", "frames"]), Account(4, 0, 300, ["bytes"]), Account(1, half, 1518, ["frames"])
        self.vls = {(0, 1): (0, 64, 200, 2, [1, 3], one), (0, 2): (1, 64, 300, 2, [1], shared),
                    (0, 3): (2, 64, 300, 2, [2], shared), (3, 4): (3, 100, 1518, 6, [0, 1, 2], loads)}

    def verdict(self, port, vl, length, prefix):
        if not 64 <= length <= 1518:
            return LENGTH
        if prefix != "03:00:00:00":
            return PREFIX
        if (port, vl) not in self.vls:
            return UNKNOWN_VL
        _, smin, smax, modes, ports, account = self.vls[port, vl]
        if length < smin:
            return TOO_SHORT
        if length > smax:
            return TOO_LONG
        if not account.admit(self.now, length):
            return POLICED
        return ports if modes >> self.mode & 1 else MODE

    def comes(self, text, port, vl, length, expected, prefix="03:00:00:00"):
        """A frame comes. `expected` is what the author of the test says: ports, or a reason."""
        verdict = self.verdict(port, vl, length, prefix)
        assert verdict == expected, f"{text}: {verdict}"
        sent = frame(vl, length, prefix)
        out = verdict if isinstance(verdict, list) else []
        self.test.forward(text, port, sent, *[(to, sent) for to in out])
        if not out:
            self.discards[port, verdict] = self.discards.get((port, verdict), 0) + 1
            if (port, vl) in self.vls and verdict > UNKNOWN_VL:
                number = "vl", self.vls[port, vl][0], verdict
                self.discards[number] = self.discards.get(number, 0) + 1
        self.now += 1

    def wait(self):
        self.test.do("wait")
        self.now += 1000

    def set_mode(self, mode):
        self.test.do(f"table_set_default switch_mode set_mode {mode}")
        self.mode = mode

    def check(self):
        self.test.say("each reason has its counter")
        for at, count in self.discards.items():
            counter = "vl_discards" if at[0] == "vl" else "port_discards"
            unit, reason = at[-2:]
            self.test.do(f"check_counter {counter}({REASONS * unit + reason}) packets == {count}")


def of_the_switch(name, about):
    t = Stf(f"{about}\nThe commands are those of {name}.entries.")
    lines = (PROGRAMS / f"{name}.entries").read_text().splitlines()
    t.do(*[line for line in lines if line and not line.startswith("#")])
    n = Network(t)
    n.comes("VL 1 goes to two ports", 0, 1, 64, [1, 3])
    n.comes("64 bytes more would be there, but by frames 200 of 250 are taken and 100 have come back", 0, 1, 64, POLICED)
    n.comes("now 250 are there", 0, 1, 200, [1, 3])
    n.comes("150 by frames", 0, 1, 64, POLICED)
    n.wait()
    n.comes("the shortest frame", 0, 1, 64, [1, 3])
    n.comes("below 64 bytes, before all else", 0, 1, 63, LENGTH)
    n.comes("above 1518", 3, 4, 1519, LENGTH)
    n.comes("another network", 0, 1, 64, PREFIX, prefix="03:00:00:01")
    n.comes("a VL that is not configured", 0, 5, 64, UNKNOWN_VL)
    n.comes("one that is at another port", 1, 1, 64, UNKNOWN_VL)
    n.comes("longer than Smax", 0, 1, 201, TOO_LONG)
    n.comes("shorter than Smin", 3, 4, 99, TOO_SHORT)
    n.comes("Smin and to three ports", 3, 4, 100, [0, 1, 2])
    n.comes("the longest frame; the account has 1518 again, and half of it more", 3, 4, 1518, [0, 1, 2])
    n.wait()
    n.comes("VLs that share an account: 300 bytes", 0, 2, 150, [1])
    n.comes("75 have come back", 0, 3, 225, [2])
    n.comes("75 are there, not 76", 0, 3, 76, POLICED)
    n.comes("150 are there, not 151", 0, 2, 151, POLICED)
    n.comes("225 are there", 0, 2, 225, [1])
    n.wait()
    t.say("What maintenance needs passes in that mode")
    n.set_mode(MAINTENANCE)
    n.comes("VL 4 does", 3, 4, 500, [0, 1, 2])
    n.comes("VL 1 does not", 0, 1, 64, MODE)
    n.comes("and has taken from its account all the same", 0, 1, 64, POLICED)
    n.set_mode(QUIET)
    n.comes("in QUIET nothing passes", 3, 4, 500, MODE)
    n.set_mode(OPERATIONAL)
    n.wait()
    n.comes("in OPERATIONAL again", 0, 1, 64, [1, 3])
    n.wait()
    n.check()

    # Frames of VL 4 come each millisecond. Port 2 sends one each 10 ms: the n-th waits 9 (n - 1) ms.
    t.say("Frames that have been in the switch for more than 20 ms do not go to port 2: three have waited 0, 9 and 18 ms, the last 27")
    t.do("set_queue_rate 100 2")
    for number in range(4):
        sent = frame(4, 100 + number)
        t.packet(3, sent)
        for port in [0, 1] if number == 3 else [0, 1, 2]:
            t.expect(port, sent)
    t.do("wait", "check_counter port_aged(2) packets == 1", "check_counter vl_aged(3) packets == 1")
    return t


def afdx():
    return of_the_switch("afdx", "The AFDX switch with accounts.")


def afdx_registers():
    return of_the_switch("afdx_registers", "The AFDX switch with accounts in registers.")


def afdx_14():
    """Committed and peak bucket of VL 1: 250 bytes, 100 more each millisecond; of VL 2 300 and 75. A meter of P4_14 counts frames without FCS."""
    t = Stf("The published AFDX switch, in P4_14.\nThe commands are those of afdx_14.entries.")
    lines = (PROGRAMS / "afdx_14.entries").read_text().splitlines()
    t.do(*[line for line in lines if line and not line.startswith("#")])

    def comes(text, port, vl, length, *ports, prefix="03:00:00:00"):
        sent = frame(vl, length, prefix)
        t.forward(text, port, sent, *[(to, sent) for to in ports])

    comes("VL 1 goes to the ports of its bitmap: 250 - 196", 0, 1, 200, 1, 3)
    comes("154 are there, 150 of them are taken", 0, 1, 154, 1, 3)
    comes("104 are there, not 105", 0, 1, 109)
    comes("204 are there", 0, 1, 200, 1, 3)
    comes("VL 2 goes to one port", 0, 2, 300, 1)
    comes("79 are there", 0, 2, 83, 1)
    comes("75 are there", 0, 2, 80)
    comes("below 64 bytes", 0, 1, 63)
    comes("above 1518", 0, 1, 1519)
    comes("another prefix", 0, 1, 64, prefix="03:00:00:01")
    comes("another port", 1, 1, 64)
    comes("an unknown VL", 0, 3, 64)
    comes("above Smax, which the meter has counted before", 0, 1, 201)
    t.do("table_add vls forward_multicast 2 7 => 0x8000000000000000 100 1518")
    comes("below Smin", 2, 7, 99)
    comes("port 63 is the last of a bitmap", 2, 7, 100, 63)
    t.say("discards: length, prefix, unknown, policed, too short, too long")
    t.do(*[f"check_counter discards({reason}) packets == {count}" for reason, count in enumerate([2, 1, 2, 2, 1, 1])])
    return t


TESTS = [afdx, afdx_registers, afdx_14]
