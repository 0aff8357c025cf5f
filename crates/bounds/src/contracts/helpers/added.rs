//! How many bytes a program can write: to hash them, and before the payload.

use millrace_pipeline::limits::MAX_PAYLOAD;
use millrace_pipeline::*;
use std::collections::BTreeMap;

/// Bytes that all headers together have at most.
pub(super) fn header_bytes(program: &Program) -> u64 {
    program.headers.keys().map(|header| bytes_of(program, header)).sum()
}

fn bytes_of(program: &Program, header: HeaderId) -> u64 {
    let header = &program.headers[header];
    let varbits = header.fields.iter().map(|field| match program.slots[*field].ty {
        Type::Varbit(width) => u64::from(width),
        _ => 0,
    });
    (u64::from(header.fixed_bits) + varbits.sum::<u64>()).div_ceil(8)
}

fn instructions(program: &Program) -> impl Iterator<Item = &Inst> {
    program.bodies.values().flat_map(|body| body.blocks.values()).flat_map(|block| &block.insts)
}

/// Bytes that the headers which a packet leaves with have at most beyond those that were read from it; none: that is not known. A header
/// that is written was read, and the cursor moved over it, or the program has made it valid. All must be whole bytes, as a packet whose
/// payload does not start at a byte does not keep its place.
pub(super) fn bytes(program: &Program) -> Option<u64> {
    let whole = program.headers.values().all(|header| header.fixed_bits.is_multiple_of(8));
    let mut emitted: BTreeMap<HeaderId, u64> = BTreeMap::new();
    let mut made: BTreeMap<HeaderId, u64> = BTreeMap::new();
    for inst in instructions(program) {
        match inst {
            Inst::Advance { .. } => return None,
            Inst::Emit(header) => *emitted.entry(*header).or_default() += 1,
            Inst::SetValid(header) => {
                made.insert(*header, bytes_of(program, *header));
            }
            Inst::Assign { dst, .. } => {
                // It may become longer than it was read.
                let slot = &program.slots[*dst];
                if let (Type::Varbit(_), Home::Header { header, .. }) = (slot.ty, &slot.home) {
                    made.insert(*header, bytes_of(program, *header));
                }
            }
            _ => {}
        }
    }
    let once = emitted.values().all(|times| *times == 1);
    (whole && once).then(|| made.values().sum())
}

/// The most bytes of one hash.
pub(super) fn hashed_bytes(program: &Program) -> u64 {
    let of_item = |item: &DataItem| match item {
        DataItem::Value(value) => match value.ty(program) {
            Type::Bool => 8,
            Type::Bits(width) | Type::Varbit(width) => u64::from(width),
        },
        DataItem::Header(header) => 8 * bytes_of(program, *header),
        DataItem::Payload => 8 * MAX_PAYLOAD as u64,
    };
    let hashes = instructions(program).filter_map(|inst| match inst {
        Inst::Hash { data, .. } => Some(data.iter().map(of_item).sum::<u64>().div_ceil(8)),
        _ => None,
    });
    hashes.max().unwrap_or(0)
}
