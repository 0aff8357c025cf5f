"""The STF test of programs/es_receive.p4: what each frame becomes is written by hand, from the rules of integrity checking and
redundancy management. Frames of an STF test come a millisecond apart."""
from pathlib import Path

from frames import eth, ipv4, udp
from stf import Stf

PROGRAMS = Path(__file__).resolve().parents[3] / "programs"
A, B, HOST = 0, 1, 2
(SHORT, LONG, DESTINATION, UNKNOWN_VL, NETWORK, INTERFACE, LMAX, OUT_OF_WINDOW, REDUNDANT, LATE) = range(10)
DELIVERED = None
REASONS = 16
# VL: its number in the end system.
NUMBERS = {1: 0, 2: 1, 3: 2}


def frame(vl, number, network, length=64, prefix="03:00:00:00", interface=None):
    """A frame of so many bytes on the wire. The last 4 are its check sequence, which a port has taken off; before it is the number."""
    high, low = vl >> 8, vl & 255
    interface = interface or ("20", "40")[network]
    data = bytes(i & 255 for i in range(length - 4 - 1 - 42))
    whole = eth(f"{prefix}:{high:02x}:{low:02x}", f"02:00:00:00:01:{interface}", 0x0800,
                ipv4("10.0.1.0", f"224.224.{high}.{low}", udp("10.0.1.0", f"224.224.{high}.{low}", 7, 9, data), proto=17, ttl=1))
    return whole + bytes([number])


class Site:
    def __init__(self, test):
        self.test, self.drops = test, {}

    def comes(self, text, network, vl, number, expected, **fields):
        sent = frame(vl, number, network, **fields)
        self.test.forward(text, network, sent, *([(HOST, sent)] if expected is DELIVERED else []))
        if expected is not DELIVERED:
            counters = [("network", network, expected)] + ([("vl", NUMBERS[vl], expected)] if expected > UNKNOWN_VL else [])
            for counter in counters:
                self.drops[counter] = self.drops.get(counter, 0) + 1

    def check(self):
        self.test.say("each reason has its counter")
        for (kind, unit, reason), count in self.drops.items():
            self.test.do(f"check_counter {kind}_drops({REASONS * unit + reason}) packets == {count}")


def es_receive():
    t = Stf("The receiving side of an AFDX end system.\nThe commands are those of es_receive.entries.")
    lines = (PROGRAMS / "es_receive.entries").read_text().splitlines()
    t.do(*[line for line in lines if line and not line.startswith("#")])
    s = Site(t)
    s.comes("the first frame of a network is valid whatever its number", A, 1, 7, DELIVERED)
    s.comes("its copy comes a millisecond later", B, 1, 7, REDUNDANT)
    s.comes("the next one, first by B", B, 1, 8, DELIVERED)
    s.comes("and by A", A, 1, 8, REDUNDANT)
    s.comes("the same number again by one network is not valid", A, 1, 8, OUT_OF_WINDOW)
    s.comes("9 was lost: two steps are valid", A, 1, 10, DELIVERED)
    s.comes("B has it, and brings it in time", B, 1, 9, DELIVERED)
    s.comes("three steps are not valid", A, 1, 13, OUT_OF_WINDOW)
    s.comes("but the next one is compared with them", A, 1, 14, DELIVERED)
    s.comes("a step back is not valid", A, 1, 13, OUT_OF_WINDOW)
    s.comes("0 is valid after any number", A, 1, 0, DELIVERED)
    s.comes("and its copy is redundant", B, 1, 0, REDUNDANT)
    s.comes("after 0 comes 1, or 2", B, 1, 2, DELIVERED)
    s.comes("3 does not follow 0", A, 1, 3, OUT_OF_WINDOW)
    t.do("wait")
    s.comes("the numbers around the end: 253 is the first after a number that was not valid", A, 1, 253, OUT_OF_WINDOW)
    s.comes("255 two steps later", A, 1, 255, DELIVERED)
    s.comes("after 255 comes 1", A, 1, 1, DELIVERED)
    s.comes("254", A, 1, 254, OUT_OF_WINDOW)
    s.comes("is followed by 1, too, whose other copy went to the host two milliseconds ago", A, 1, 1, REDUNDANT)
    s.comes("3", A, 1, 3, DELIVERED)
    t.do("wait")
    s.comes("3 of B comes more than SkewMax later: another frame of that number", B, 1, 3, DELIVERED)

    s.comes("VL 2 keeps the order", A, 2, 200, DELIVERED)
    s.comes("202: 201 was lost on A", A, 2, 202, DELIVERED)
    s.comes("B is later", B, 2, 200, REDUNDANT)
    s.comes("201 of B comes after 202", B, 2, 201, LATE)
    s.comes("202 of B", B, 2, 202, REDUNDANT)
    s.comes("203", B, 2, 203, DELIVERED)
    s.comes("a reset of the sender", A, 2, 0, DELIVERED)
    s.comes("what came before the reset is late", B, 2, 204, LATE)
    s.comes("1 is after 0", A, 2, 1, DELIVERED)
    s.comes("an address of the other network", A, 2, 2, INTERFACE, interface="40")
    s.comes("VL 1 does not look", A, 1, 4, DELIVERED, interface="40")
    s.comes("VL 3 comes by B", B, 3, 5, DELIVERED)
    s.comes("again: it is checked for integrity", B, 3, 5, OUT_OF_WINDOW)
    s.comes("and not by A", A, 3, 6, NETWORK)

    s.comes("shorter than 64 bytes", A, 1, 5, SHORT, length=63)
    s.comes("longer than 1518", A, 1, 5, LONG, length=1519)
    s.comes("the longest of all, and the other copy of the reset", B, 2, 0, REDUNDANT, length=1518)
    s.comes("no VL", B, 1, 5, DESTINATION, prefix="03:00:00:01")
    s.comes("an unknown VL", B, 4, 5, UNKNOWN_VL)
    s.comes("longer than Lmax", A, 1, 5, LMAX, length=201)
    s.comes("Lmax; what was dropped before is not seen by integrity checking", A, 1, 5, DELIVERED, length=200)
    s.check()
    t.do("check_counter delivered(0) packets == 13", "check_counter delivered(1) packets == 5", "check_counter delivered(2) packets == 1")
    return t


TESTS = [es_receive]
