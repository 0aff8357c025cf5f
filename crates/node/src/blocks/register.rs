//! The registers of a block: what it counts, and what can be set.

use crate::model::Kind;
use std::fmt;

/// The counters of a direction of a MAC, 64 bits each.
pub(crate) const RMON: [&str; 12] = [
    "frames",
    "octets",
    "unicast",
    "multicast",
    "broadcast",
    "size64",
    "size65",
    "size128",
    "size256",
    "size512",
    "size1024",
    "size1519",
];
/// What a MAC in hardware counts of frames that it did not take, 32 bits each; drivers give the software none of these.
pub(crate) const MAC_ERRORS: [&str; 5] = ["bad_check", "runt", "oversize", "bad_control", "bad_preamble"];
/// The first word of the entries of a TCAM, and the words of each.
pub(crate) const ENTRY_START: u32 = 256;
pub(crate) const ENTRY_WORDS: u32 = 16;

/// A register of a block, or several that are one number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Register {
    /// Its name within the block.
    pub name: String,
    /// Its first word.
    pub word: u32,
    /// Its words: 1; 2 of a counter, the lower first; 4 of octets, the first highest.
    pub words: u32,
    /// Whether it can be written.
    pub writable: bool,
}

/// Why a register was not written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal(pub(crate) String);

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refusal {}

/// The registers of a block of a kind.
pub fn registers(kind: &Kind) -> Vec<Register> {
    let mut all = Vec::new();
    let mut add = |name: &str, word: u32, words: u32, writable: bool| {
        all.push(Register { name: name.to_owned(), word, words, writable });
    };
    match kind {
        Kind::Queue(_) => {
            add("frames", 0, 1, false);
            add("bytes", 2, 2, false);
            add("taken", 4, 2, false);
            add("lost", 6, 2, false);
        }
        Kind::Scheduler(spec) => {
            add("discipline", 0, 1, true);
            (0..)
                .zip(&spec.quanta)
                .for_each(|(input, _)| add(&format!("quantum{input}"), 1 + input, 1, true));
        }
        Kind::OctetSelector(places) => {
            (0..).zip(places).for_each(|(octet, _)| add(&format!("octet{octet}"), octet, 1, true));
        }
        Kind::Tcam(spec) => {
            add("misses", 0, 2, false);
            for entry in 0..spec.size {
                let word = ENTRY_START + ENTRY_WORDS * entry;
                let fields = [
                    ("value", 0, 4),
                    ("mask", 4, 4),
                    ("priority", 8, 1),
                    ("targets", 9, 1),
                    ("class", 10, 1),
                    ("valid", 11, 1),
                ];
                for (field, at, words) in fields {
                    add(&format!("entry{entry}.{field}"), word + at, words, true);
                }
                add(&format!("entry{entry}.matches"), word + 12, 2, false);
            }
        }
        Kind::Demultiplexer(_) => add("lost", 0, 2, false),
        Kind::Mac(_) => {
            add("up", 0, 1, true);
            add("promiscuous", 1, 1, true);
            add("rx.filtered", 2, 2, false);
            add("rx.down", 4, 2, false);
            add("tx.down", 6, 2, false);
            add("tx.lost", 8, 2, false);
            add("rx.lost", 10, 2, false);
            for (direction, start) in [("rx", 16), ("tx", 48)] {
                (0..)
                    .zip(RMON)
                    .for_each(|(at, name)| add(&format!("{direction}.{name}"), start + 2 * at, 2, false));
            }
            (80..).zip(MAC_ERRORS).for_each(|(at, name)| add(&format!("rx.{name}"), at, 1, false));
        }
        Kind::P4(_) => {
            add("frames", 0, 2, false);
            add("sent", 2, 2, false);
            add("dropped", 4, 2, false);
            add("link.frames", 6, 2, false);
            add("link.tables", 8, 2, false);
            add("link.lost", 10, 2, false);
            add("memory.frames", 12, 2, false);
            add("memory.waits", 14, 2, false);
            add("memory.lost", 16, 2, false);
        }
        Kind::Manager(_) => {
            add("waiting", 0, 1, false);
            add("taken", 2, 2, false);
            add("lost", 4, 2, false);
            add("answers", 6, 2, false);
        }
    }
    all
}

/// A word of a counter of 64 bits.
pub(crate) fn half(counter: u64, word: u32) -> u32 {
    (counter >> (32 * (word % 2))) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::*;

    #[test]
    fn no_two_registers_share_a_word() {
        let program = ProgramSpec {
            program: "x".into(),
            entries: None,
            ports: 4,
            cpu_port: None,
            software: Vec::new(),
            shared: None,
            longest: 2048,
        };
        let kinds = [
            Kind::P4(program),
            Kind::Queue(QueueSpec { frames: 1, bytes: 1 }),
            Kind::Scheduler(SchedulerSpec { discipline: Discipline::Priority, quanta: vec![1; 16] }),
            Kind::OctetSelector(vec![0; 16]),
            Kind::Tcam(TcamSpec { size: 256, entries: Vec::new(), miss: Outcome::default() }),
            Kind::Demultiplexer(16),
            Kind::Mac(MacSpec::default()),
            Kind::Manager(ManagerSpec { buffer: 1, program: None }),
        ];
        for kind in kinds {
            let mut words = std::collections::BTreeSet::new();
            for register in registers(&kind) {
                for word in register.word..register.word + register.words {
                    assert!(words.insert(word), "{} of {}", register.name, kind.word());
                    assert!(word < crate::registers::WINDOW_WORDS);
                }
            }
        }
    }
}
