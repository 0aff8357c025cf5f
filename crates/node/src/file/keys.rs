//! The keys of the file. The reader, the error for an unknown key and docs/node.md all come from here.

use crate::limits::*;
use Absent::{Is, Mistake};
use Form::{Flag, Name, Names, Number, Numbers, Quantity, Special, Text, Word};
use millrace_toml_sections::{Absent, Form, Key, Measure, Section};

/// All sections, in the order of the documentation.
pub(crate) const SECTIONS: [&Section; 9] =
    [&FILE, &NODE, &DEVICE, &SERVICE, &FUNCTION, &BLOCK, &ENTRY, &CONNECTION, &MEMORY];

/// The kinds of blocks.
pub(crate) const KINDS: [&str; 8] =
    ["p4", "queue", "scheduler", "octet_selector", "tcam", "demultiplexer", "mac", "manager"];

const NONE: Absent = Is("none");
const PLACEMENT: Form = Word(&["software", "hardware"]);
const OCTETS: Form = Special("hexadecimal digits, such as \"0x0800\"", "16 octets (`MAX_OCTETS`)");
const TARGETS: Form = Names(MAX_LIST, "MAX_LIST");

const fn key(name: &'static str, form: Form, absent: Absent, means: &'static str) -> Key {
    Key::new(name, form, absent, means)
}

const fn name(means: &'static str) -> Key {
    key("name", Name, Mistake, means)
}

/// The file itself.
pub(crate) const FILE: Section = Section {
    header: "the file",
    means: "The sections of the file.",
    keys: &[
        Key::section("node", "what holds for all of it"),
        Key::sections("device", "16 (`MAX_DEVICES`)", "a forwarding device, once for each"),
        Key::sections("service", "16 (`MAX_SERVICES`)", "a forwarding service, once for each"),
        Key::sections("function", "32 (`MAX_FUNCTIONS`)", "a forwarding function, once for each"),
        Key::sections("block", "64 (`MAX_BLOCKS`)", "a function block, once for each"),
        Key::sections("connection", "512 (`MAX_CONNECTIONS`)", "an output and an input, once for each pair"),
        Key::sections("memory", "16 (`MAX_MEMORIES`)", "a memory that programs share, once for each"),
    ],
};

/// `[node]`.
pub(crate) const NODE: Section = Section {
    header: "[node]",
    means: "What holds for the whole node.",
    keys: &[key("name", Name, Absent::Text("node"), "its name")],
};

/// `[[device]]`.
pub(crate) const DEVICE: Section = Section {
    header: "[[device]]",
    means: "A forwarding device.",
    keys: &[
        name("its name"),
        key(
            "at",
            Text,
            Is("simulated in the process of the node"),
            "where its hardware is served, as \"127.0.0.1:9561\" or \"9561\": by `millrace node serve`",
        ),
    ],
};

/// `[[service]]`.
pub(crate) const SERVICE: Section = Section {
    header: "[[service]]",
    means: "A forwarding service: functions that do something together, on one device or several.",
    keys: &[name("its name")],
};

/// `[[function]]`.
pub(crate) const FUNCTION: Section = Section {
    header: "[[function]]",
    means: "A forwarding function: blocks that do something together, on one device.",
    keys: &[
        name("its name"),
        key("service", Name, Mistake, "the service that it is part of"),
        key("device", Name, Mistake, "the device that it is on"),
        key("placement", PLACEMENT, Absent::Text("software"), "where its blocks are that do not say it"),
    ],
};

/// `[[block]]`.
pub(crate) const BLOCK: Section = Section {
    header: "[[block]]",
    means: "A function block. Its kind says which of the other keys it has.",
    keys: &[
        name("its name, without `.`"),
        key("function", Name, Mistake, "the function that it is part of"),
        key("kind", Word(&KINDS), Mistake, "what it does"),
        key("placement", PLACEMENT, Is("that of the function"), "where it is"),
        key(
            "program",
            Text,
            NONE,
            "p4: its source, has to be there; manager: a program that answers, else the host link does",
        ),
        key("entries", Text, NONE, "p4, manager: a file of commands for the tables"),
        key(
            "ports",
            Number(1, MAX_PORTS, "MAX_PORTS"),
            Absent::Number(4),
            "p4, demultiplexer: outputs, and inputs of p4; scheduler: inputs",
        ),
        key(
            "cpu-port",
            Number(0, 65_535, "16 bits"),
            NONE,
            "p4: the port of the program that is the output `manager`",
        ),
        key("software", Names(MAX_LIST, "MAX_LIST"), NONE, "p4 in hardware: tables that are in software"),
        key("memory", Name, NONE, "p4 in software: the memory that it shares"),
        key(
            "shared",
            Names(MAX_LIST, "MAX_LIST"),
            NONE,
            "p4 in software: registers of the program that are in that memory, one after the other",
        ),
        key(
            "longest",
            Number(512, MAX_FRAME as u64, "MAX_FRAME"),
            Absent::Number(2048),
            "p4 in hardware: bytes of its longest frame; longer ones are dropped",
        ),
        key(
            "frames",
            Number(1, MAX_DEPTH, "MAX_DEPTH"),
            Absent::Number(256),
            "queue: frames that it holds at most",
        ),
        key(
            "bytes",
            Quantity(Measure::Size, MAX_BYTES, "MAX_BYTES"),
            Absent::Number(1 << 20),
            "queue: bytes that it holds at most",
        ),
        key(
            "discipline",
            Word(&["priority", "round-robin", "deficit"]),
            Absent::Text("priority"),
            "scheduler: the order at first; of priorities the highest number is first",
        ),
        key(
            "quanta",
            Numbers(1, MAX_QUANTUM, "MAX_QUANTUM"),
            Is("1518 each"),
            "scheduler: bytes that each input sends in a turn of deficit round robin",
        ),
        key(
            "octets",
            Numbers(0, MAX_OFFSET, "MAX_OFFSET"),
            NONE,
            "octet_selector: their places in the frame, 1 to 16 (`MAX_OCTETS`)",
        ),
        key(
            "size",
            Number(1, MAX_ENTRIES, "MAX_ENTRIES"),
            Absent::Number(32),
            "tcam: entries that it has room for",
        ),
        key("miss", TARGETS, Is("the frame is lost"), "tcam: where frames go that no entry matches"),
        Key::sections("entry", "256 (`MAX_ENTRIES`)", "tcam: an entry, once for each"),
        key(
            "attach",
            Text,
            NONE,
            "mac: what it is connected to, as `--port` of `millrace run` has it after the `@`",
        ),
        key(
            "port",
            Number(0, 65_535, "16 bits"),
            Absent::Number(0),
            "mac: the number that frames say they came in by",
        ),
        key(
            "address",
            Special("an address, such as \"02:00:00:00:00:01\"", "48 bits"),
            Is("all frames come in"),
            "mac: of frames to one station, those to this address alone come in",
        ),
        key("up", Flag, Absent::Flag(true), "mac: whether it is up at first"),
        key(
            "link",
            Word(&["xgmii", "gmii"]),
            Absent::Text("xgmii"),
            "mac in hardware: its link, 10 or 1 Gbit/s, the same for all of a node",
        ),
        key(
            "buffer",
            Number(1, MAX_DEPTH, "MAX_DEPTH"),
            Absent::Number(64),
            "manager: frames that wait for it at most",
        ),
    ],
};

/// `[[block.entry]]`.
pub(crate) const ENTRY: Section = Section {
    header: "[[block.entry]]",
    means: "An entry of a TCAM. The first digits of value and mask are for the first octet that was selected.",
    keys: &[
        key("value", OCTETS, Mistake, "what the octets have to be"),
        key("mask", OCTETS, Is("all bits of the value"), "in which bits"),
        key(
            "priority",
            Number(0, 0xffff_ffff, "32 bits"),
            Absent::Number(0),
            "of several that match, the largest is it",
        ),
        key("to", TARGETS, Mistake, "outputs of the demultiplexer, `outN` or `manager`, or `nowhere`"),
        key("class", Number(0, MAX_CLASS, "MAX_CLASS"), Absent::Number(0), "the class of the frame"),
    ],
};

/// `[[connection]]`.
pub(crate) const CONNECTION: Section = Section {
    header: "[[connection]]",
    means: "What comes from an output goes to an input. Blocks of a function meet over the FFI, functions of a device over the FSI, devices over the FDI.",
    keys: &[
        key("from", Name, Mistake, "BLOCK.OUTPUT"),
        key("to", Name, Mistake, "BLOCK.INPUT"),
        key(
            "interface",
            Word(&["FFI", "FSI", "FDI"]),
            Is("what follows from the blocks"),
            "which interface that is; another one is a mistake",
        ),
    ],
};

/// `[[memory]]`.
pub(crate) const MEMORY: Section = Section {
    header: "[[memory]]",
    means: "A memory that programs in software share, also those of other nodes.",
    keys: &[
        name("its name"),
        key("device", Name, Mistake, "the device that owns it"),
        key(
            "at",
            Text,
            Is("in the process of the node"),
            "where it is served, as \"127.0.0.1:9562\" or \"9562\": by `millrace node memory`",
        ),
        key(
            "words",
            Number(1, MAX_SHARED_WORDS as u64, "MAX_SHARED_WORDS"),
            Mistake,
            "its size, in words of 32 bits",
        ),
        key(
            "lease",
            Number(1, MAX_BLOCK_LEASE_MS, "MAX_BLOCK_LEASE_MS"),
            Absent::Number(250),
            "milliseconds for which a block has it at most without giving it back",
        ),
    ],
};
