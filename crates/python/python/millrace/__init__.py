"""A P4 switch in process: compile a program, add entries, send bytes on a port, look at what leaves.

    import millrace

    sw = millrace.Switch("programs/router.p4", entries="programs/router.entries")
    for packet in sw.send(0, frame):
        print(packet.port, packet.bytes.hex())

No interfaces and no root are needed. docs/python.md is the tutorial.
"""

from millrace._millrace import Counter, Meter, Packet, Profile, Register, Switch, Table, ValueSet, check
from millrace.errors import CommandError, CompileError, MillraceError, UnknownNameError, WriteError
from millrace.records import (
    AccountParameters,
    Call,
    CloneSession,
    CounterValue,
    Diagnostic,
    Digest,
    Drop,
    Entry,
    Key,
    MeterRates,
    Outcome,
    Param,
    PortCounters,
    Trace,
)

__all__ = [
    "AccountParameters",
    "Call",
    "CloneSession",
    "CommandError",
    "CompileError",
    "Counter",
    "CounterValue",
    "Diagnostic",
    "Digest",
    "Drop",
    "Entry",
    "Key",
    "Meter",
    "MeterRates",
    "MillraceError",
    "Outcome",
    "Packet",
    "Param",
    "PortCounters",
    "Profile",
    "Register",
    "Switch",
    "Table",
    "Trace",
    "UnknownNameError",
    "ValueSet",
    "WriteError",
    "check",
]
