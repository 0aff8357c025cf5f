//! The keys of the file. The reader, the error for an unknown key and docs/network.md all come from here.

use crate::limits::*;
use Absent::{Is, Mistake};
use Form::{Flag, Label, Labels, Number, Quantity, Special, Text, Word, Words};
use millrace_toml_sections::{Absent, Form, Key, Measure, Section};

/// All sections, in the order of the documentation.
pub(crate) const SECTIONS: [&Section; 8] =
    [&FILE, &NETWORK, &END_SYSTEM, &SWITCH, &LINK, &ACCOUNT, &VL, &SUB_VL];

const NONE: Absent = Is("none");

const fn key(name: &'static str, form: Form, absent: Absent, means: &'static str) -> Key {
    Key::new(name, form, absent, means)
}

const fn time(name: &'static str, absent: Absent, means: &'static str) -> Key {
    key(name, Quantity(Measure::Time, MAX_TIME, "MAX_TIME"), absent, means)
}

const fn rate(name: &'static str, absent: Absent, means: &'static str) -> Key {
    key(name, Quantity(Measure::Rate, MAX_RATE, "MAX_RATE"), absent, means)
}

const fn bag(absent: Absent) -> Key {
    let form = Special(
        "a time, such as \"2ms\"",
        "0.5 to 128 ms, powers of two (`STANDARD_BAG`); with `bags = \"any\"` 10 us to 1310 ms (`ANY_BAG`)",
    );
    key("bag", form, absent, "bandwidth allocation gap: the shortest time from one frame to the next")
}

const fn length(name: &'static str, absent: Absent, means: &'static str) -> Key {
    key(name, Number(SHORTEST_FRAME, LONGEST_FRAME, "SHORTEST_FRAME, LONGEST_FRAME"), absent, means)
}

const POLICING: Form = Word(&["byte", "frame", "both", "none"]);
const PATHS: Form = Special(
    "a list of paths, each a list of names: `[[\"S1\", \"S2\", \"ES2\"], [\"S1\", \"ES3\"]]`",
    "1024 paths (`MAX_DESTINATIONS`) of 64 nodes (`MAX_PATH`)",
);

/// The file itself.
pub(crate) const FILE: Section = Section {
    header: "the file",
    means: "The sections of the file.",
    keys: &[
        Key::section("network", "what holds for all of it"),
        Key::sections("end-system", "16384 (`MAX_END_SYSTEMS`)", "an end system, once for each"),
        Key::sections("switch", "1024 (`MAX_SWITCHES`)", "a switch, once for each"),
        Key::sections("link", "32768 (`MAX_LINKS`)", "a cable between two of them, once for each"),
        Key::sections(
            "account",
            "65536 (`MAX_ACCOUNTS`)",
            "an account that virtual links share, once for each",
        ),
        Key::sections("vl", "65536 (`MAX_VLS`)", "a virtual link, once for each"),
    ],
};

/// `[network]`.
pub(crate) const NETWORK: Section = Section {
    header: "[network]",
    means: "What holds for the whole network.",
    keys: &[
        key("name", Label, Absent::Text("network"), "its name"),
        key("part-number", Text, NONE, "the part number of the configuration, which switches tell"),
        key(
            "crc",
            Special("eight digits, such as \"0x1b2c3d4e\"", "32 bits"),
            Is("not checked"),
            "CRC-32 of the configuration; a file whose CRC is another is refused",
        ),
        rate("rate", Absent::Number(100_000_000), "rate of links that do not say theirs"),
        key(
            "overhead",
            Number(0, MAX_OVERHEAD, "MAX_OVERHEAD"),
            Absent::Number(20),
            "bytes that the wire adds to a frame: preamble, start delimiter and gap",
        ),
        key(
            "bags",
            Word(&["standard", "any"]),
            Absent::Text("standard"),
            "which bandwidth allocation gaps there may be",
        ),
        time(
            "skew-max",
            Absent::Number(5_000_000),
            "the largest time between the two copies of a frame, of virtual links that do not say theirs",
        ),
    ],
};

/// `[[end-system]]`.
pub(crate) const END_SYSTEM: Section = Section {
    header: "[[end-system]]",
    means: "An end system. Its name is not that of a switch.",
    keys: &[
        key("name", Label, Mistake, "its name"),
        key(
            "id",
            Number(1, 65_535, "16 bits"),
            Is("the next that is free"),
            "its number in MAC and IP addresses",
        ),
        time(
            "latency",
            Absent::Number(0),
            "the longest that a frame takes from its regulator to the queue of the output port",
        ),
        time("least-latency", Absent::Number(0), "the shortest"),
        time(
            "receive-latency",
            Absent::Number(0),
            "the longest from the last bit of a frame to the port of an application",
        ),
        time(
            "technological-jitter",
            Absent::Number(40_000),
            "the first term of the standard's formula of output jitter",
        ),
        time(
            "max-jitter",
            Absent::Number(500_000),
            "the largest output jitter that is allowed by that formula",
        ),
    ],
};

/// `[[switch]]`.
pub(crate) const SWITCH: Section = Section {
    header: "[[switch]]",
    means: "A switch, which stores a frame before it forwards it.",
    keys: &[
        key("name", Label, Mistake, "its name"),
        key("network", Word(&["A", "B"]), Absent::Text("A"), "the network that it belongs to"),
        time(
            "latency",
            Absent::Number(0),
            "the longest from the last bit of a frame to the queue of its output port",
        ),
        time("least-latency", Absent::Number(0), "the shortest"),
        key(
            "latency-report",
            Text,
            NONE,
            "report of `millrace bounds --json` with times, from the folder of this file: twice its time of a batch is added to `latency`",
        ),
        key("latency-machine", Text, NONE, "the machine on which times of the report have to hold"),
        key(
            "latency-batch",
            Number(1, MAX_BATCH, "MAX_BATCH"),
            Absent::Number(MAX_BATCH),
            "most frames that the switch takes at once",
        ),
        key(
            "scheduler",
            Word(&["fifo", "priority", "round-robin", "arbitrary"]),
            Absent::Text("priority"),
            "how ports serve what waits: as it came, the largest priority first, a frame of each in turn (no bounds), any order (no simulation)",
        ),
        key(
            "priorities",
            Number(1, MAX_PRIORITY + 1, "MAX_PRIORITY"),
            Absent::Number(2),
            "how many priorities it tells apart",
        ),
        key(
            "buffer",
            Quantity(Measure::Size, MAX_BUFFER, "MAX_BUFFER"),
            Is("no limit"),
            "room of each output port",
        ),
        time("max-delay", Is("no limit"), "a frame that has waited longer at an output port is discarded"),
        key(
            "end-system",
            Label,
            NONE,
            "its own end system, which answers ICMP echo and SNMP in its virtual links: linked with this switch and nothing else, inside of it",
        ),
    ],
};

/// `[[link]]`.
pub(crate) const LINK: Section = Section {
    header: "[[link]]",
    means: "A cable between two ports. Frames pass in both directions concurrently.",
    keys: &[
        key(
            "between",
            Special(
                "two of `NODE` or `NODE:PORT`, such as `[\"ES1\", \"S1:3\"]`",
                "ports 0 to 63 (`MAX_PORTS`)",
            ),
            Mistake,
            "its ends; a port that is not written is the next free one of its node",
        ),
        key(
            "network",
            Word(&["A", "B"]),
            Is("that of its switch, else A"),
            "the network of a link between two end systems",
        ),
        rate("rate", Is("`rate` of the network"), "in each direction"),
        rate(
            "service-rate",
            Is("`rate`"),
            "what of the rate these virtual links are sure of, if others share it that the file does not know",
        ),
        time("latency", Is("that of the node"), "takes the place of the latency of the node that sends"),
        time("propagation", Absent::Number(0), "how long a bit takes from end to end"),
        key("one-way", Flag, Absent::Flag(false), "frames pass from the first end to the second alone"),
    ],
};

/// `[[account]]`.
pub(crate) const ACCOUNT: Section = Section {
    header: "[[account]]",
    means: "An account that virtual links share. All of these enter a switch by one port.",
    keys: &[
        key("name", Label, Mistake, "its name"),
        bag(Mistake),
        length("lmax", Mistake, "longest frame, in bytes with the check sum"),
        time("jitter", Absent::Number(0), "jitter that it tolerates"),
        key("policing", POLICING, Absent::Text("byte"), "whether it counts bytes, frames or both"),
    ],
};

/// `[[vl]]`.
pub(crate) const VL: Section = Section {
    header: "[[vl]]",
    means: "A virtual link: one end system sends, some receive.",
    keys: &[
        key(
            "id",
            Number(0, 65_535, "16 bits"),
            Mistake,
            "its number, the last 16 bits of the destination address",
        ),
        key("name", Label, Is("`VL` and the id"), "its name"),
        key("source", Label, Mistake, "the end system that sends"),
        key(
            "to",
            Labels(MAX_DESTINATIONS, "MAX_DESTINATIONS"),
            Is("where the routes lead"),
            "the end systems that receive; paths of the fewest links lead there, the first in the file of those alike",
        ),
        key(
            "route-a",
            PATHS,
            Is("computed"),
            "its paths in network A, each from the node after the source to a destination",
        ),
        key("route-b", PATHS, Is("computed"), "its paths in network B"),
        key(
            "networks",
            Words(&["A", "B"]),
            Is("those of its routes, else those of its source"),
            "the networks that it is sent on",
        ),
        bag(Mistake),
        length("lmin", Absent::Number(SHORTEST_FRAME), "shortest frame, in bytes with the check sum"),
        length("lmax", Mistake, "longest frame, in bytes with the check sum"),
        time("jitter", Is("at each switch what the bounds say"), "jitter that accounts of switches tolerate"),
        time("source-jitter", Absent::Number(0), "how much later than due the regulator may release a frame"),
        key(
            "priority",
            Special(
                "0 to 7, or `\"low\"` (0) or `\"high\"` (1)",
                "7 (`MAX_PRIORITY`), and what its switches have",
            ),
            Absent::Number(0),
            "the largest is served first",
        ),
        key(
            "policing",
            POLICING,
            Absent::Text("byte"),
            "whether accounts of switches count bytes, frames or both",
        ),
        key("shared-account", Label, Is("one of its own"), "the account that it shares"),
        time(
            "skew-max",
            Is("`skew-max` of the network"),
            "the largest time between the two copies of a frame",
        ),
        time("deadline", NONE, "the largest delay that its user can bear; a bound above it is told"),
        Key::sections("sub-vl", "4 (`MAX_SUB_VLS`)", "a sub virtual link, once for each"),
    ],
};

/// `[[vl.sub-vl]]`.
pub(crate) const SUB_VL: Section = Section {
    header: "[[vl.sub-vl]]",
    means: "A part of a virtual link with a queue of its own; all take turns. Without one, the virtual link has one queue.",
    keys: &[
        key("name", Label, Mistake, "its name"),
        key("queue", Number(1, MAX_QUEUE, "MAX_QUEUE"), Absent::Number(64), "most frames that wait in it"),
    ],
};
