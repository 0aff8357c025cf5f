//! What is wrong with a file is told with its line and name.

use millrace_node::NodeFile;

/// A node of two ports, into which each test writes one thing that is wrong.
const GOOD: &str = r#"
[[device]]
name = "board"
[[device]]
name = "other"
[[service]]
name = "switching"
[[function]]
name = "f"
service = "switching"
device = "board"
[[function]]
name = "g"
service = "switching"
device = "other"
placement = "hardware"
[[block]]
name = "p0"
function = "f"
kind = "mac"
[[block]]
name = "select"
function = "f"
kind = "octet_selector"
octets = [12, 13]
[[block]]
name = "forward"
function = "f"
kind = "tcam"
[[block.entry]]
value = "0x0800"
to = ["out0", "manager"]
[[block]]
name = "spread"
function = "f"
kind = "demultiplexer"
[[block]]
name = "q0"
function = "f"
kind = "queue"
bytes = "2KiB"
[[block]]
name = "s"
function = "f"
kind = "scheduler"
quanta = [1, 2]
ports = 2
[[connection]]
from = "p0.rx"
to = "select.in"
[[connection]]
from = "select.out"
to = "forward.in"
interface = "FFI"
[[connection]]
from = "forward.out"
to = "spread.in"
[[connection]]
from = "spread.out0"
to = "q0.in"
[[connection]]
from = "q0.out"
to = "s.in0"
[[connection]]
from = "s.out"
to = "p0.tx"
"#;

/// The file with one piece replaced.
fn with(old: &str, new: &str) -> Result<NodeFile, millrace_toml_sections::Problems> {
    assert!(GOOD.contains(old), "{old}");
    NodeFile::parse("node.toml", &GOOD.replacen(old, new, 1))
}

#[test]
fn a_file_that_is_right_is_read() {
    let node = NodeFile::parse("node.toml", GOOD).unwrap();
    assert_eq!((node.blocks.len(), node.connections.len(), node.has_hardware()), (6, 6, false));
    let described = node.describe();
    assert!(described.contains("  function f on board\n    p0: mac in software\n"), "{described}");
    assert!(described.contains("spread.out0 -> q0.in (FFI)\n"), "{described}");
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let cases = [
        ("octets = [12, 13]", "octets = [12, 256]", "0 to 255 is expected (MAX_OFFSET)"),
        ("octets = [12, 13]", "octets = []", "1 to 16 (MAX_OCTETS)"),
        (
            "octets = [12, 13]",
            "octets = [12]\nquanta = [1]",
            "`quanta` is for scheduler, and this block is octet_selector",
        ),
        ("octets = [12, 13]", "", "`octets` is missing in [[block]]"),
        ("kind = \"tcam\"", "kind = \"team\"", "`kind` is `team`"),
        ("value = \"0x0800\"", "value = \"0x080\"", "MAX_OCTETS"),
        (
            "value = \"0x0800\"",
            "value = \"0x0800\"\nmask = \"0xff\"",
            "the mask has 1 octets, and the value 2",
        ),
        ("value = \"0x0800\"", "value = \"0x0800\"\nmask = \"0x00ff\"", "bits that the mask leaves out"),
        ("to = [\"out0\", \"manager\"]", "to = \"out16\"", "`out16` is no target"),
        ("function = \"f\"\nkind = \"mac\"", "function = \"h\"\nkind = \"mac\"", "there is no function `h`"),
        ("device = \"board\"", "device = \"bord\"", "there is no device `bord`"),
        ("name = \"q0\"", "name = \"s\"", "there is more than one block `s`"),
        ("name = \"q0\"", "name = \"q.0\"", "has a `.`"),
        ("bytes = \"2KiB\"", "bytes = \"1GiB\"", "256MiB (MAX_BYTES)"),
        ("quanta = [1, 2]", "quanta = [1, 2, 3]", "there are 3 quanta and 2 inputs"),
        (
            "interface = \"FFI\"",
            "interface = \"FDI\"",
            "this is between blocks of one function, which is the FFI",
        ),
        ("to = \"s.in0\"", "to = \"s.in2\"", "there is no input of the scheduler `s` `in2`"),
        ("from = \"p0.rx\"", "from = \"p0.tx\"", "there is no output of the mac `p0` `tx`"),
        ("from = \"p0.rx\"", "from = \"p0\"", "BLOCK.NAME is expected"),
        (
            "from = \"q0.out\"\nto = \"s.in0\"",
            "from = \"spread.out1\"\nto = \"s.in0\"",
            "a scheduler asks queues",
        ),
        ("from = \"s.out\"", "from = \"q0.out\"", "has two connections"),
        ("to = \"p0.tx\"", "to = \"q0.in\"", "what leaves `q0` comes back to it and can go nowhere else"),
        (
            "to = \"forward.in\"\ninterface = \"FFI\"",
            "to = \"select.in\"",
            "what leaves `select` comes back to it",
        ),
        (
            "kind = \"queue\"",
            "kind = \"p4\"\nprogram = \"a.p4\"\nmemory = \"m\"\nshared = \"r\"",
            "there is no memory `m`",
        ),
        (
            "kind = \"mac\"",
            "kind = \"mac\"\naddress = \"03:00:00:00:00:00\"",
            "that of one station is expected",
        ),
        ("kind = \"mac\"", "kind = \"mac\"\nlink = \"mii\"", "one of"),
        ("kind = \"mac\"", "kind = \"mac\"\nattach = \"pcap:\"", "pcap"),
        (
            "to = [\"out0\", \"manager\"]",
            "to = [\"manager\", \"out4\"]",
            "the demultiplexer `spread` has no `out4`: it has 4 outputs",
        ),
        ("kind = \"tcam\"", "kind = \"tcam\"\nmiss = \"out9\"", "`spread` has no `out9`"),
    ];
    for (old, new, why) in cases {
        let problems = with(old, new).unwrap_err();
        let rendered = problems.render(false);
        let found =
            problems.problems.iter().any(|problem| problem.message.contains(why) && problem.place.line > 1);
        assert!(found, "{why}: {rendered}");
    }
}

/// One mistake of a block does not hide another one of it.
#[test]
fn all_that_is_wrong_with_a_block_is_told() {
    for (old, new, wrong) in [
        ("quanta = [1, 2]", "quanta = [0, 2]\ndiscipline = \"fair\"\nports = 17", 3),
        ("bytes = \"2KiB\"", "bytes = \"1GiB\"\nframes = 0", 2),
        ("kind = \"mac\"", "kind = \"mac\"\nport = -1\nlink = \"mii\"\nup = 1", 3),
        ("value = \"0x0800\"", "value = \"0x1\"\npriority = -1\nclass = 16", 3),
        ("kind = \"tcam\"", "kind = \"tcam\"\nsize = 0\nmiss = \"x\"", 2),
        ("kind = \"mac\"", "kind = \"p4\"\nprogram = \"a.p4\"\nports = 17\nlongest = 1\ncpu-port = -1", 3),
    ] {
        // A key stands once.
        let text = if new.contains("quanta") { GOOD.replacen("ports = 2\n", "", 1) } else { GOOD.to_owned() };
        let problems = NodeFile::parse("node.toml", &text.replacen(old, new, 1)).unwrap_err();
        assert_eq!(problems.problems.len(), wrong, "{new}: {}", problems.render(false));
    }
}

/// Nor does it hide mistakes of connections among other blocks.
#[test]
fn connections_are_looked_at_where_blocks_are_wrong() {
    let text = GOOD.replacen("octets = [12, 13]", "octets = []", 1).replacen(
        "from = \"s.out\"",
        "from = \"s.ou\"",
        1,
    );
    let problems = NodeFile::parse("node.toml", &text).unwrap_err();
    let messages: Vec<&str> = problems.problems.iter().map(|problem| problem.message.as_str()).collect();
    assert_eq!(messages.len(), 2, "{messages:?}");
    assert!(
        messages[0].contains("MAX_OCTETS") && messages[1].contains("no output of the scheduler `s` `ou`")
    );
}

/// Two devices whose programs share a memory.
const SHARING: &str = include_str!("../../../programs/nodes/gates.toml");

#[test]
fn what_is_wrong_with_a_memory_is_told_with_its_place() {
    let node = NodeFile::parse("gates.toml", SHARING).unwrap();
    let memory = "memory opened on left: 2048 words\n    left: open_first, open_second\n    right: open_first, open_second\n";
    assert!(node.describe().ends_with(memory), "{}", node.describe());
    let shared = "shared = [\"open_first\", \"open_second\"]\n";
    let sharing = format!("memory = \"opened\"\n{shared}");
    let cases = [
        ("words = 2048", "words = 65537".to_owned(), "1 to 65536 is expected (MAX_SHARED_WORDS)"),
        ("words = 2048", String::new(), "`words` is missing in [[memory]]"),
        ("words = 2048", "words = 2048\nlease = 5001".into(), "1 to 5000 is expected (MAX_BLOCK_LEASE_MS)"),
        ("words = 2048", "words = 2048\nat = \"here\"".into(), "`here` is no address with a port"),
        ("device = \"left\"\nwords", "device = \"lift\"\nwords".into(), "there is no device `lift`"),
        ("memory = \"opened\"", "memory = \"closed\"".into(), "there is no memory `closed`"),
        ("memory = \"opened\"\n", String::new(), "no `memory` is named that they are in"),
        (shared, String::new(), "no registers that are in it"),
        (
            &sharing,
            format!("placement = \"hardware\"\n{sharing}"),
            "`shared` is for a program in software, and this one is in hardware",
        ),
        (
            "kind = \"mac\"",
            "kind = \"mac\"\nmemory = \"opened\"".into(),
            "`memory` is for p4, and this block is mac",
        ),
        (
            "[[memory]]",
            "[[memory]]\nname = \"other\"\ndevice = \"left\"\nwords = 1\n[[memory]]".into(),
            "no block shares the memory `other`",
        ),
        (
            "[[memory]]",
            "[[memory]]\nname = \"opened\"\ndevice = \"left\"\nwords = 1\n[[memory]]".into(),
            "there is more than one memory `opened`",
        ),
    ];
    for (old, new, why) in cases {
        assert!(SHARING.contains(old), "{old}");
        let problems = NodeFile::parse("node.toml", &SHARING.replacen(old, &new, 1)).unwrap_err();
        let found =
            problems.problems.iter().any(|problem| problem.message.contains(why) && problem.place.line > 1);
        assert!(found, "{why}: {}", problems.render(false));
    }
}

#[test]
fn no_text_makes_the_reader_panic() {
    [GOOD, SHARING].into_iter().for_each(no_piece_of_a_text_makes_the_reader_panic);
}

/// Every piece of the file taken out or doubled, and cut at every byte.
fn no_piece_of_a_text_makes_the_reader_panic(text: &str) {
    for at in 0..text.len() {
        drop(NodeFile::parse("node.toml", &text[..at]));
    }
    let lines: Vec<&str> = text.lines().collect();
    for at in 0..lines.len() {
        let without: Vec<&str> =
            lines.iter().enumerate().filter(|(line, _)| *line != at).map(|(_, line)| *line).collect();
        drop(NodeFile::parse("node.toml", &without.join("\n")));
        let mut twice = lines.clone();
        twice.insert(at, lines[at]);
        drop(NodeFile::parse("node.toml", &twice.join("\n")));
    }
}
