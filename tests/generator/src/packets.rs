//! Packets that the parser has something to do with.

use crate::parser::KINDS;
use crate::program::Names;
use crate::types::{Ty, Types};
use millrace_pipeline::arbitrary::Rng;

/// How many packets a program gets.
const PACKETS: usize = 24;

/// Headers in the order of the parser, some left out, some cut short.
pub(crate) fn packets(rng: &mut Rng, types: &Types, names: &Names) -> Vec<Vec<u8>> {
    (0..PACKETS).map(|_| packet(rng, types, names)).collect()
}

fn packet(rng: &mut Rng, types: &Types, names: &Names) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut wanted: Vec<usize> = names.headers.iter().map(|(_, header)| *header).collect();
    wanted.extend(names.stacks.iter().flat_map(|stack| vec![stack.header; rng.below(5)]));
    for header in wanted {
        if !bytes.is_empty() && rng.one_in(4) {
            continue;
        }
        let length = types.bits(Ty::Header(header)) as usize / 8;
        let small = rng.one_in(2);
        bytes.push(rng.below(KINDS) as u8);
        bytes.extend((1..length).map(|_| if small { rng.below(4) as u8 } else { rng.next_u64() as u8 }));
    }
    bytes.extend((0..rng.below(24)).map(|_| rng.next_u64() as u8));
    if rng.one_in(6) {
        bytes.truncate(rng.below(bytes.len() + 1));
    }
    bytes
}
