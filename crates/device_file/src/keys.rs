//! The keys of the file. The reader, the error for an unknown key and docs/chassis.md all come from here.

use crate::limits::*;
use Absent::{Is, Mistake};
use Form::{Address, Flag, Name, Names, Number, Numbers, Quantity, Special, Text, Texts, Word, Words};
use millrace_toml_sections::{Absent, Form, Key, Measure, Section};

/// All sections, in the order of the documentation.
pub(crate) const SECTIONS: [&Section; 12] =
    [&FILE, &DEVICE, &TENANT, &PORT, &SWITCH, &VIRTUAL_PORT, &MATCH, &BYTES, &TAG, &QUOTA, &LINK, &CLASSIFY];

const NONE: Absent = Is("none");
const NO_LIMIT: Absent = Is("no limit");

const fn key(name: &'static str, form: Form, absent: Absent, means: &'static str) -> Key {
    Key::new(name, form, absent, means)
}

const fn section(name: &'static str, means: &'static str) -> Key {
    Key::section(name, means)
}

const fn sections(name: &'static str, limit: &'static str, means: &'static str) -> Key {
    Key::sections(name, limit, means)
}

const fn per_second(name: &'static str, means: &'static str) -> Key {
    key(name, Number(0, MAX_PER_SECOND, "MAX_PER_SECOND"), NO_LIMIT, means)
}

/// The file itself.
pub(crate) const FILE: Section = Section {
    header: "the file",
    means: "The sections of the file.",
    keys: &[
        section("device", "the device itself"),
        sections("tenant", "1024 (`MAX_TENANTS`)", "a tenant, once for each"),
        sections("port", "256 (`MAX_PORTS`)", "a physical port, once for each"),
        sections("switch", "4096 (`MAX_SWITCHES`)", "a virtual switch, once for each"),
        sections("link", "16384 (`MAX_LINKS`)", "a link between two virtual ports, once for each"),
        section("classify", "the program that says which virtual port a frame belongs to"),
    ],
};

/// `[device]`.
pub(crate) const DEVICE: Section = Section {
    header: "[device]",
    means: "The device itself: its workers, its servers, and what all switches share.",
    keys: &[
        key("name", Name, Absent::Text("millrace"), "its name, in logs and metrics"),
        key(
            "workers",
            Number(1, MAX_WORKERS, "MAX_WORKERS"),
            Absent::Number(1),
            "how many workers run all switches",
        ),
        key(
            "processors",
            Numbers(0, MAX_PROCESSOR, "MAX_PROCESSOR"),
            Is("the system chooses"),
            "the processor of each worker; says how many workers there are, so not together with `workers`",
        ),
        key(
            "socket",
            Special("a text", "107 bytes (`MAX_SOCKET`)"),
            Is("/run/millrace/NAME.sock"),
            "path of the socket of `millrace ctl`",
        ),
        key(
            "socket-mode",
            Special("permissions in octal, such as \"0660\"", "0777"),
            Absent::Text("0600"),
            "who may use the socket",
        ),
        key("socket-group", Text, Is("that of the process"), "group of the socket"),
        key(
            "grpc",
            Address,
            Is("not served"),
            "where the P4Runtime server listens; it has a device id for each switch",
        ),
        key("grpc-cert", Text, Is("no TLS"), "path of the certificate of the P4Runtime server"),
        key("grpc-key", Text, Is("no TLS"), "path of its key"),
        key(
            "grpc-client-ca",
            Text,
            Is("clients need no certificate"),
            "path of the authority that has signed the certificates of clients",
        ),
        key(
            "grpc-allow-plaintext",
            Flag,
            Absent::Flag(false),
            "other machines may reach the P4Runtime server without TLS",
        ),
        key(
            "grpc-ctl",
            Flag,
            Absent::Flag(false),
            "`millrace ctl --grpc` is answered there, for clients whom the file names",
        ),
        key(
            "uploads",
            Text,
            Is("none are taken"),
            "folder of files whose contents are sent over gRPC; nothing else is to be in it",
        ),
        key(
            "operator-certificate",
            Text,
            Is("the operator has no certificate"),
            "common name of the certificate of the operator's clients",
        ),
        key(
            "operator-token-file",
            Text,
            Is("the operator has no token"),
            "path of a file that holds the operator's token",
        ),
        key("http", Address, Is("not served"), "where metrics and captures are served"),
        key("http-allow-remote", Flag, Absent::Flag(false), "other machines may reach metrics and captures"),
        key(
            "http-hosts",
            Texts,
            NONE,
            "names and addresses by which clients ask for them, beyond the addresses of this machine; requests for other hosts are refused",
        ),
        key(
            "captures",
            Text,
            Is("no captures"),
            "folder of captures; those of each switch are in a folder of its name there",
        ),
        key("audit", Text, Is("not written"), "path of the audit log, which has every change"),
        key(
            "hops",
            Number(1, MAX_HOPS, "MAX_HOPS"),
            Absent::Number(16),
            "most links inside the device that a packet takes; the next one drops it",
        ),
        key(
            "packets",
            Number(64, MAX_PACKETS, "MAX_PACKETS"),
            Absent::Number(65_536),
            "packet buffers of all switches together; of each worker 64 to 250000 (`MIN_PACKETS_OF_WORKER`, `MAX_PACKETS_OF_WORKER`)",
        ),
    ],
};

/// `[[tenant]]`.
pub(crate) const TENANT: Section = Section {
    header: "[[tenant]]",
    means: "Who may act on the switches that name it. The operator may do everything to all.",
    keys: &[
        key("name", Name, Mistake, "its name"),
        key(
            "certificate",
            Text,
            NONE,
            "common name of the certificate of its clients; it needs `grpc-client-ca` of the device, and a tenant needs this or `token-file`",
        ),
        key("token-file", Text, NONE, "path of a file that holds its token"),
        key(
            "roles",
            Words(&["read", "write", "swap", "capture", "life-cycle"]),
            Is("`[\"read\"]`"),
            "what it may do to its switches",
        ),
        key(
            "folder",
            Text,
            Is("any place"),
            "folder that images, programs and entries of its switches have to be in; both are written alike, from the root or from the folder of this file",
        ),
    ],
};

/// `[[port]]`.
pub(crate) const PORT: Section = Section {
    header: "[[port]]",
    means: "A physical port, which virtual ports of any switch can share.",
    keys: &[
        key("name", Name, Mistake, "its name"),
        key(
            "device",
            Special("`[DRIVER:]ARGS`, as `millrace run -i` has it", "4096 bytes (`MAX_TEXT`)"),
            Mistake,
            "what it is connected to",
        ),
        key(
            "queues",
            Number(1, MAX_QUEUES, "MAX_QUEUES"),
            Absent::Number(1),
            "its queue pairs; a worker uses one at least",
        ),
        key(
            "rate",
            Quantity(Measure::Rate, MAX_RATE, "MAX_RATE"),
            Is("not known"),
            "the rate of its link; guarantees at the port need it and are at most this together",
        ),
    ],
};

/// `[[switch]]`.
pub(crate) const SWITCH: Section = Section {
    header: "[[switch]]",
    means: "A virtual switch.",
    keys: &[
        key("name", Name, Mistake, "its name"),
        key("image", Text, Is("`program` is given"), "path of its program image"),
        key("program", Text, Is("`image` is given"), "path of the source of its program"),
        key("std", Word(&["p4-16", "p4-14"]), Absent::Text("p4-16"), "the language of `program`"),
        key("include", Texts, NONE, "folders where files that `program` includes are looked for"),
        key("define", Texts, NONE, "macros for `program`, `NAME` or `NAME=VALUE`"),
        key("entries", Texts, NONE, "files of entries, loaded in this order when the switch is made"),
        key("tenant", Name, Is("the operator alone"), "the tenant that it belongs to"),
        key(
            "device-id",
            Number(1, MAX_DEVICE_ID, "MAX_DEVICE_ID"),
            Is("the smallest that is free, in the order of the file"),
            "its device id in P4Runtime",
        ),
        key("thrift", Address, Is("not served"), "where a Thrift server of this switch alone listens"),
        key(
            "thrift-as",
            Name,
            NONE,
            "whom clients of the Thrift server act as, who show nothing to be known by: the tenant of the switch, or `operator`; needed where \
             the file has tenants or credentials of the operator",
        ),
        key(
            "thrift-allow-remote",
            Flag,
            Absent::Flag(false),
            "other machines may reach the Thrift server; not where the file has tenants or credentials of the operator",
        ),
        key(
            "engine",
            Word(&["auto", "jit", "interp", "rtl"]),
            Absent::Text("auto"),
            "what runs its program, as `millrace run --engine` has it; auto: what `millrace chassis --engine` says",
        ),
        key(
            "worker",
            Number(0, MAX_WORKERS - 1, "the workers of the device"),
            Is("the device chooses"),
            "the worker that it is pinned to, from 0",
        ),
        key(
            "state",
            Word(&["running", "stopped"]),
            Absent::Text("running"),
            "a stopped switch has its program and entries, and takes no packets",
        ),
        key(
            "cpu-port",
            Number(0, MAX_PORT_NUMBER, "MAX_PORT_NUMBER"),
            NONE,
            "the virtual port of its controller",
        ),
        sections(
            "port",
            "16384 of all switches (`MAX_VIRTUAL_PORTS`)",
            "a virtual port that is connected to physical ports, once for each",
        ),
        section("quota", "what the switch cannot exceed"),
    ],
};

/// `[[switch.port]]`.
pub(crate) const VIRTUAL_PORT: Section = Section {
    header: "[[switch.port]]",
    means: "A virtual port of the switch that is connected to physical ports. Virtual ports that are connected by links are in the links only.",
    keys: &[
        key(
            "number",
            Number(0, MAX_PORT_NUMBER, "MAX_PORT_NUMBER"),
            Mistake,
            "the number that the program sees",
        ),
        key(
            "physical",
            Names(MAX_PHYSICAL, "MAX_PHYSICAL"),
            Mistake,
            "the physical port, or several: it receives from all and sends to all",
        ),
        key(
            "match",
            Special("a table", ""),
            Is("`{}`, all frames"),
            "the frames of the physical ports that are its own: [match](#match)",
        ),
        key(
            "tag",
            Special("`\"keep\"`, `\"strip\"` or `{ rewrite = VLAN }`", "4094 (`MAX_VLAN`)"),
            Absent::Text("keep"),
            "what becomes of the VLAN tag on the path in; on the path out it is put back; `strip` and `rewrite` need a match by `vlan`",
        ),
        key(
            "broadcast",
            Flag,
            Absent::Flag(false),
            "takes broadcast and multicast frames of the ports and the VLAN that it shares",
        ),
        key(
            "guaranteed",
            Quantity(Measure::Rate, MAX_RATE, "MAX_RATE"),
            Absent::Number(0),
            "the rate that it always gets at the scheduler of each of its physical ports",
        ),
        key(
            "largest",
            Quantity(Measure::Rate, MAX_RATE, "MAX_RATE"),
            NO_LIMIT,
            "the rate that it never exceeds there",
        ),
    ],
};

/// `match` of a virtual port.
pub(crate) const MATCH: Section = Section {
    header: "match",
    means: "The frames of a physical port that belong to a virtual port.",
    keys: &[
        key(
            "vlan",
            Number(1, MAX_VLAN, "MAX_VLAN"),
            Is("any or none"),
            "the VLAN of the outermost tag (802.1Q or 802.1ad)",
        ),
        key(
            "inner",
            Number(1, MAX_VLAN, "MAX_VLAN"),
            Is("any or none"),
            "the VLAN of the tag after it (QinQ); needs `vlan`",
        ),
        key(
            "mac",
            Special("an address, such as `\"02:00:00:00:00:01\"`", "of one station: no multicast"),
            Is("any"),
            "the destination address",
        ),
        key(
            "bytes",
            Special("a list of tables", "128 bytes of a frame (`MAX_MATCHED`)"),
            NONE,
            "bytes of the frame, all of which have to match: [bytes](#bytes); not together with the keys before or `id`",
        ),
        key(
            "id",
            Number(0, MAX_ID, "MAX_ID"),
            NONE,
            "the result of the classify program; not together with the keys before",
        ),
        key(
            "priority",
            Number(0, MAX_PRIORITY, "MAX_PRIORITY"),
            Absent::Number(0),
            "of two virtual ports that match a frame the one with the larger priority has it",
        ),
    ],
};

/// An element of `bytes` of a match.
pub(crate) const BYTES: Section = Section {
    header: "bytes",
    means: "Bytes of a frame, within its first 128.",
    keys: &[
        key(
            "at",
            Number(0, MAX_MATCHED as u64 - 1, "MAX_MATCHED"),
            Mistake,
            "the place of the first byte, from 0",
        ),
        key(
            "value",
            Special(
                "hexadecimal digits, two for each byte, such as `\"0x8100\"`",
                "128 bytes of a frame (`MAX_MATCHED`)",
            ),
            Mistake,
            "what the bytes are",
        ),
        key("mask", Special("as long as `value`", "as `value`"), Is("all bits count"), "the bits that count"),
    ],
};

/// `tag` of a virtual port, as a table.
pub(crate) const TAG: Section = Section {
    header: "tag",
    means: "What becomes of the VLAN tag, as a table.",
    keys: &[key("rewrite", Number(1, MAX_VLAN, "MAX_VLAN"), Mistake, "the VLAN that the program sees")],
};

/// `[switch.quota]`.
pub(crate) const QUOTA: Section = Section {
    header: "[switch.quota]",
    means: "What the switch cannot exceed. What it does not use goes to the others.",
    keys: &[
        key(
            "time",
            Quantity(Measure::Share, WHOLE, "WHOLE"),
            Absent::Number(0),
            "the share of a worker's time that it always gets; those of a worker are at most 100% together",
        ),
        key(
            "largest-time",
            Quantity(Measure::Share, WHOLE, "WHOLE"),
            Absent::Number(WHOLE),
            "the share that it never exceeds",
        ),
        per_second("packets-per-second", "packets that it takes"),
        key(
            "bits-per-second",
            Quantity(Measure::Rate, MAX_RATE, "MAX_RATE"),
            NO_LIMIT,
            "bits of the packets that it takes",
        ),
        key("entries", Number(0, MAX_ENTRIES, "MAX_ENTRIES"), NO_LIMIT, "entries of all its tables"),
        key(
            "memory",
            Quantity(Measure::Size, MAX_MEMORY, "MAX_MEMORY"),
            NO_LIMIT,
            "memory of its tables and state",
        ),
        key(
            "packet-buffers",
            Number(1, MAX_PACKETS, "MAX_PACKETS"),
            Is("`packets` of the device"),
            "packet buffers that it holds at once, at most `packets` of the device",
        ),
        key(
            "queue-places",
            Number(1, MAX_QUEUE_PLACES, "MAX_QUEUE_PLACES"),
            NO_LIMIT,
            "packets of it that wait in queues",
        ),
        per_second("clones-per-second", "clones"),
        per_second("recirculations-per-second", "packets that start again"),
        per_second("copies-per-second", "copies for multicast"),
        per_second("digests-per-second", "digests"),
        per_second("log-lines-per-second", "lines in the log"),
        per_second("requests-per-second", "requests of its controllers"),
    ],
};

/// `[[link]]`.
pub(crate) const LINK: Section = Section {
    header: "[[link]]",
    means: "A link in memory between two virtual ports.",
    keys: &[
        key(
            "between",
            Special("`[\"SWITCH:PORT\", \"SWITCH:PORT\"]`", "65535 (`MAX_PORT_NUMBER`)"),
            Mistake,
            "its ends: virtual ports that nothing else uses",
        ),
        key(
            "delay",
            Quantity(Measure::Time, MAX_DELAY, "MAX_DELAY"),
            Absent::Number(0),
            "how long a packet takes",
        ),
        key("rate", Quantity(Measure::Rate, MAX_RATE, "MAX_RATE"), NO_LIMIT, "its rate in each direction"),
        key(
            "loss",
            Quantity(Measure::Share, WHOLE, "WHOLE"),
            Absent::Number(0),
            "the share of packets that it loses",
        ),
        key(
            "waiting",
            Number(1, MAX_WAITING, "MAX_WAITING"),
            Absent::Number(1024),
            "most packets that wait in each direction; the next one is dropped",
        ),
    ],
};

/// `[classify]`.
pub(crate) const CLASSIFY: Section = Section {
    header: "[classify]",
    means: "A small P4 program whose result is the id that a match names.",
    keys: &[
        key("program", Text, Mistake, "path of its source"),
        key("std", Word(&["p4-16", "p4-14"]), Absent::Text("p4-16"), "its language"),
        key("include", Texts, NONE, "folders where files that it includes are looked for"),
        key("define", Texts, NONE, "macros, `NAME` or `NAME=VALUE`"),
    ],
};
