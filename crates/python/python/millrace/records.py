"""Plain data that the switch gives. All of it is made once and never changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Optional, Union

if TYPE_CHECKING:
    from millrace import Packet

__all__ = [
    "AccountParameters",
    "Call",
    "CloneSession",
    "CounterValue",
    "Diagnostic",
    "Digest",
    "Drop",
    "Entry",
    "Key",
    "MeterRates",
    "Outcome",
    "Param",
    "PortCounters",
    "Trace",
]


class Diagnostic(NamedTuple):
    """One thing that was found in a text. `str()` shows it with its line and a caret."""

    #: "error" or "warning".
    severity: str
    #: The name of this kind of finding: docs/errors.md.
    code: str
    #: What is wrong, in one line.
    message: str
    file: str
    #: From 1.
    line: int
    #: From 1, in characters.
    column: int
    #: What would put it right.
    help: Optional[str]
    notes: list[str]
    #: All of it with its line and a caret.
    text: str

    def __str__(self) -> str:
        return self.text


class Key(NamedTuple):
    """A field of a table's key."""

    name: str
    #: "exact", "lpm", "ternary", "range" or "optional".
    kind: str
    #: In bits.
    width: int


class Param(NamedTuple):
    """A parameter of an action."""

    name: str
    #: In bits.
    width: int


class Call(NamedTuple):
    """An action with the values of its parameters."""

    action: str
    params: dict[str, int]


class CounterValue(NamedTuple):
    """What a counter counted. As in bmv2 both are counted, whichever the program declares."""

    packets: int
    bytes: int


class MeterRates(NamedTuple):
    """The parameters of a meter (RFC 2698): rates in bytes or packets a second, bursts in bytes or packets."""

    cir: Union[int, float]
    cbs: int
    pir: Union[int, float]
    pbs: int


class AccountParameters(NamedTuple):
    """The parameters of a credit account: times in nanoseconds, the longest frame in bytes, "bytes", "frames" or "both"."""

    bag_ns: int
    jitter_ns: int
    smax: int
    test: str


class Entry(NamedTuple):
    """An entry of a table as it was when it was asked for."""

    handle: int
    #: By key field: a value, (value, length) of a prefix, (value, mask), (low, high), or None for an optional field.
    match: dict[str, Any]
    #: The action and the values of its parameters; None for an entry with a member or group.
    action: Optional[str]
    params: Optional[dict[str, int]]
    member: Optional[int]
    group: Optional[int]
    #: The largest wins; None in a table without priorities.
    priority: Optional[int]
    is_const: bool
    #: Its direct counter.
    counter: Optional[CounterValue]
    #: The rates of its direct meter, or the parameters of its account.
    meter: Union[MeterRates, AccountParameters, None]
    #: How long it may be idle; 0: for ever.
    timeout_ns: int


class PortCounters(NamedTuple):
    """What one port saw."""

    rx_packets: int
    rx_bytes: int
    tx_packets: int
    tx_bytes: int
    #: Packets from this port that were dropped before they had a port to leave by.
    rx_drops: int
    #: Packets and copies for this port that were dropped.
    tx_drops: int


class Drop(NamedTuple):
    """A packet or copy that went nowhere."""

    #: "ingress_drop", "parser_error:PacketTooShort", ...
    reason: str
    ingress_port: int
    #: The port that it was for, when that was known.
    egress_port: Optional[int]


class Digest(NamedTuple):
    """A message of the program to its control plane."""

    #: The name of the structure.
    name: str
    fields: dict[str, Any]


class Outcome(NamedTuple):
    """All that became of one packet."""

    packets: list[Packet]
    drops: list[Drop]
    digests: list[Digest]
    log: list[str]


class Trace(NamedTuple):
    """What the program did with one packet, state by state and table by table. `str()` tells it."""

    packets: list[Packet]
    text: str
    #: The same as data: what `millrace trace --json` prints.
    story: dict[str, Any]

    def __str__(self) -> str:
        return self.text


class CloneSession(NamedTuple):
    """What becomes of a clone."""

    #: (port, replica number) each.
    copies: list[tuple[int, int]]
    #: A multicast group that gets copies too.
    group: Optional[int]
    #: Bytes that a clone keeps at most.
    truncate: Optional[int]
    class_of_service: int
