//! The modules of units. Each has `key`, `write_enable`, `write_address`, `write_data`, and `answer` three cycles after the key.

use super::{HASHES, Kind, TableUnit};
use millrace_netlist::{Module, ModuleBuilder, NodeId};
use millrace_pipeline::{Bits, MatchKind};

/// The write port, and whether it writes an entry.
struct Write {
    enable: NodeId,
    address: NodeId,
    data: NodeId,
}

impl TableUnit {
    /// The module.
    pub(crate) fn module(&self, name: &str) -> Module {
        let mut m = ModuleBuilder::new(name);
        let key = (self.key() > 0).then(|| m.input("key", self.key()));
        let write = Write {
            enable: m.input("write_enable", 1),
            address: m.input("write_address", self.address()),
            data: m.input("write_data", self.word()),
        };
        let miss = self.miss_answer(&mut m, &write);
        let found = match (self.kind, key) {
            (Kind::Direct, key) => self.direct(&mut m, key, &write),
            (Kind::Hash { bits }, Some(key)) => self.hash(&mut m, key, bits, &write),
            (Kind::Compare { entries }, Some(key)) => self.compare(&mut m, key, entries, &write),
            // Without a key all is a miss.
            (_, None) => {
                let none = m.number(1, 0);
                (none, miss)
            }
        };
        let answer = m.mux(found.0, found.1, miss);
        let answer = m.delayed("answered", answer, None);
        m.output("answer", answer);
        m.finish()
    }

    /// The answer to a miss, in a register.
    fn miss_answer(&self, m: &mut ModuleBuilder, write: &Write) -> NodeId {
        let (register, value) = m.register("miss", self.answer, Some(0));
        let here = m.is(write.address, u128::from(self.miss()));
        let enable = m.and(write.enable, here);
        let answer = m.slice(write.data, 0, self.answer);
        m.set_next(register, answer);
        m.set_enable(register, enable);
        value
    }

    /// Whether there is an entry, and its answer, two cycles after the key.
    fn direct(&self, m: &mut ModuleBuilder, key: Option<NodeId>, write: &Write) -> (NodeId, NodeId) {
        let depth = 1 << self.key();
        let memory = m.memory("entries", self.answer + 1, depth, Vec::new());
        let bits = self.key().max(1);
        let key = key.unwrap_or_else(|| m.number(1, 0));
        let here = m.number(self.address(), u128::from(depth));
        let entry = m.lt(write.address, here);
        let enable = m.and(write.enable, entry);
        let address = m.slice(write.address, 0, bits);
        m.write(memory, enable, address, write.data);
        let word = m.read_clocked(memory, key, None);
        let word = m.delayed("word", word, None);
        (m.slice(word, self.answer, 1), m.slice(word, 0, self.answer))
    }

    fn hash(&self, m: &mut ModuleBuilder, key: NodeId, bits: u32, write: &Write) -> (NodeId, NodeId) {
        let asked = m.delayed("asked", key, None);
        let mut found = Vec::new();
        for way in 0..HASHES {
            let memory = m.memory(&format!("entries{way}"), self.word(), 1 << bits, Vec::new());
            // The highest bits of an address say which memory.
            let chosen = m.slice(write.address, bits, self.address() - bits);
            let here = m.is(chosen, u128::from(way));
            let enable = m.and(write.enable, here);
            let address = m.slice(write.address, 0, bits);
            m.write(memory, enable, address, write.data);
            let mut place: Option<NodeId> = None;
            for bit in (0..bits).rev() {
                let mask = m.constant(hash_mask(self.key(), way, bit));
                let taken = m.and(key, mask);
                let odd = m.reduce_xor(taken);
                place = Some(place.map_or(odd, |high| m.concat(&[high, odd])));
            }
            let place = place.unwrap_or_else(|| m.number(bits.max(1), 0));
            let word = m.read_clocked(memory, place, None);
            let valid = m.slice(word, self.word() - 1, 1);
            let kept = m.slice(word, self.answer, self.key());
            let same = m.eq(kept, asked);
            let hit = m.and(valid, same);
            found.push((hit, m.slice(word, 0, self.answer)));
        }
        // A key is in one place at most.
        let any: Vec<NodeId> = found.iter().map(|(hit, _)| *hit).collect();
        let any = m.any(&any);
        let answer = m.one_hot(self.answer, &found);
        (m.delayed("found", any, None), m.delayed("found_answer", answer, None))
    }

    fn compare(&self, m: &mut ModuleBuilder, key: NodeId, entries: u32, write: &Write) -> (NodeId, NodeId) {
        let width = self.key();
        let mut matched = Vec::new();
        for entry in 0..entries {
            let here = m.is(write.address, u128::from(entry));
            let enable = m.and(write.enable, here);
            let (valid, is_valid) = m.register(&format!("valid{entry}"), 1, Some(0));
            let (value, is_value) = m.register(&format!("value{entry}"), width, None);
            let (mask, is_mask) = m.register(&format!("mask{entry}"), width, None);
            let parts = [
                (valid, self.word() - 1, 1),
                (value, self.answer + width, width),
                (mask, self.answer, width),
            ];
            for (register, low, bits) in parts {
                let next = m.slice(write.data, low, bits);
                m.set_next(register, next);
                m.set_enable(register, enable);
            }
            let mut all = vec![is_valid];
            let mut low = width;
            for (bits, kind) in &self.fields {
                low -= bits;
                let field = |m: &mut ModuleBuilder, of| m.slice(of, low, *bits);
                let (asked, value, mask) = (field(m, key), field(m, is_value), field(m, is_mask));
                all.push(match kind {
                    // From the value to what stands in place of the mask.
                    MatchKind::Range => {
                        let (from, to) = (m.le(value, asked), m.le(asked, mask));
                        m.and(from, to)
                    }
                    MatchKind::Exact => m.eq(asked, value),
                    MatchKind::Lpm | MatchKind::Ternary | MatchKind::Optional => {
                        let differ = m.xor(asked, value);
                        let counts = m.and(differ, mask);
                        let any = m.reduce_or(counts);
                        m.not(any)
                    }
                });
            }
            let all = m.all(&all);
            matched.push(m.delayed(&format!("matched{entry}"), all, Some(0)));
        }
        // The first that matches, as an address of the answers.
        let bits = millrace_netlist::address_width(entries);
        let none = m.number(bits, 0);
        let places: Vec<(NodeId, NodeId)> =
            matched.iter().enumerate().map(|(at, hit)| (*hit, m.number(bits, at as u128))).collect();
        let place = m.first(&places, none);
        let hit = m.any(&matched);
        let answers = m.memory("answers", self.answer, entries, Vec::new());
        let last = m.number(self.address(), u128::from(entries));
        let entry = m.lt(write.address, last);
        let enable = m.and(write.enable, entry);
        let (address, data) = (m.slice(write.address, 0, bits), m.slice(write.data, 0, self.answer));
        m.write(answers, enable, address, data);
        let answer = m.read_clocked(answers, place, None);
        (m.delayed("hit", hit, Some(0)), answer)
    }
}

/// The bits of a key that a bit of its hash is the exclusive or of: a row of a matrix of random bits, by which equal hashes of
/// one memory say nothing about those of another.
pub(super) fn hash_mask(key: u32, way: u32, bit: u32) -> Bits {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(u64::from(way * 64 + bit + 1)) | 1;
    let bytes: Vec<u8> = (0..key.div_ceil(8))
        .map(|_| {
            // xorshift64*
            state ^= state >> 12;
            state ^= state << 25;
            state ^= state >> 27;
            (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 56) as u8
        })
        .collect();
    Bits::from_bytes(key, &bytes)
}
