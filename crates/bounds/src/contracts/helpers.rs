//! The contracts of helpers.

mod added;

use super::Contract;
use crate::knowledge::Knowledge;
use millrace_midend::machine::MAX_ROOM;
use millrace_pipeline::limits::MAX_PAYLOAD;
use millrace_pipeline::*;

/// Most bytes that a helper is given whose number is not known where it is called.
const MOST_BYTES: u64 = MAX_PAYLOAD as u64;
/// Numbers of one or two limbs are kept without memory of their own.
pub(super) const IN_PLACE: u64 = 128;

pub(super) fn helper(
    name: &str,
    known: &[Option<u64>],
    program: &Program,
    knowledge: &Knowledge,
) -> Option<Contract> {
    let known = |at: usize| known.get(at).copied().flatten();
    let varbit = widest_varbit(program);
    let fixed = Contract::fixed;
    Some(match name {
        "count" => fixed(44, 4),
        "count_direct" => fixed(53, 5),
        "meter" => match program.meters.values().nth(known(1)? as usize)?.unit {
            Unit::Account => fixed(170, 4),
            _ => fixed(187, 4),
        },
        // Called only where several workers share the account: then each may wait for the others.
        "ask_shared" if knowledge.is_shared => return None,
        "ask_shared" => Contract::default(),
        "meter_direct" => {
            match program.tables.values().nth(known(1)? as usize)?.direct_meter.as_ref()?.unit {
                Unit::Account => fixed(204, 5),
                _ => fixed(225, 5),
            }
        }
        "register_read" | "register_write" => {
            let width = program.registers.values().nth(known(1)? as usize)?.width;
            register(name == "register_read", width.into())
        }
        "hash" => hash(known(1)?, known(3).unwrap_or(MOST_BYTES))?,
        "zero" => {
            let bytes = known(1).unwrap_or(MOST_BYTES);
            fixed(60 + bytes, 2 + bytes / 64)
        }
        "random" => random(known(1)?),
        // So many words go to memory that is there: none is allocated.
        "add_to_message" => fixed(40 + 2 * known(1)?, 5 + known(1)?.div_ceil(8)),
        "digest" => fixed(80 + 2 * known(1)?, 6 + known(1)?.div_ceil(8)),
        "put_in_front" | "writer_finish" => {
            let headers = added::header_bytes(program);
            let stays = known(3)
                .is_some_and(|growth| added::bytes(program, knowledge).is_some_and(|added| added <= growth));
            match stays {
                true => fixed(130 + copy(headers), 8 + headers / 32),
                // The packet goes to memory of its own.
                false => Contract::allocating(900 + 5 * (MOST_BYTES + headers), 12 + MOST_BYTES / 32),
            }
        }
        "atomic_begin" => fixed(11, 3),
        "atomic_end" => fixed(7, 2),
        "read_bits" => fixed(bits(known(2)?), 4 + known(2)? / 512),
        "read_varbit" if added::begins_at_bytes(program) => {
            fixed(100 + copy(varbit.div_ceil(8)), 4 + varbit / 256)
        }
        "read_varbit" => fixed(130 + 66 * varbit.div_ceil(64), 4 + varbit / 256),
        "copy_varbit" => fixed(30 + varbit / 8, 4 + varbit / 256),
        "varbits_equal" => fixed(40 + varbit / 8, 4 + varbit / 256),
        // It begins with room for all of its headers, or for so many bytes, and then has twice as many whenever it is full.
        "writer_start" => {
            let room = known(2)?;
            let most = if room < MAX_ROOM {
                room
            } else {
                added::header_bytes(program).max(added::hashed_bytes(program))
            };
            let pieces = most.div_ceil(room.max(1)).max(1).next_power_of_two();
            Contract::allocating(520 + 700 * u64::from(pieces.ilog2()), 4)
        }
        "writer_bits" => Contract::allocating(written(known(2)?), 8 + known(2)? / 256),
        "writer_varbit" if added::begins_at_bytes(program) => {
            Contract::allocating(70 + copy(varbit.div_ceil(8)), 8 + varbit / 256)
        }
        "writer_varbit" => Contract::allocating(260 + 22 * varbit.div_ceil(64), 8 + varbit / 256),
        "writer_payload" => Contract::allocating(1500 + 3 * MOST_BYTES, 8 + MOST_BYTES / 32),
        "writer_hash" => {
            let hash = hash(known(1)?, added::hashed_bytes(program))?;
            Contract { allocates: true, ..Contract::fixed(hash.once.instructions + 140, hash.once.lines + 8) }
        }
        "wide" => wide(known(0)?, known(1)?)?,
        _ => return None,
    })
}

/// Bytes are copied where they are: many at a time, but an instruction each above a length from which the C library has the processor repeat
/// one.
fn copy(bytes: u64) -> u64 {
    if bytes < REPEATED { 40 + bytes / 8 } else { 60 + bytes }
}

/// See [`copy`]; at least half of what C libraries have it at.
const REPEATED: u64 = 2048;

/// Bits of the widest number of varying width.
fn widest_varbit(program: &Program) -> u64 {
    let widths = program.slots.values().map(|slot| match slot.ty {
        Type::Varbit(width) => u64::from(width),
        _ => 0,
    });
    widths.max().unwrap_or(0)
}

/// A number of so many bits is appended to what is written, word by word.
fn written(width: u64) -> u64 {
    60 + 75 * width.div_ceil(64)
}

/// A number of so many bits is read from the packet, in words.
fn bits(width: u64) -> u64 {
    90 + 50 * width.div_ceil(64)
}

fn register(reads: bool, width: u64) -> Contract {
    let limbs = width.div_ceil(64);
    let instructions = match (reads, limbs) {
        (true, 0 | 1) => 109,
        (true, _) => 110 + 6 * limbs,
        (false, 0 | 1) => 98,
        (false, _) => 103 + 6 * limbs,
    };
    Contract::fixed(instructions, 5 + limbs.div_ceil(8))
}

fn hash(number: u64, bytes: u64) -> Option<Contract> {
    let found = HashAlgorithm::ALL.iter().find(|algorithm| **algorithm as u64 == number);
    let instructions = match found {
        Some(HashAlgorithm::Identity) => 72,
        Some(HashAlgorithm::Crc16 | HashAlgorithm::Crc16Custom | HashAlgorithm::CrcCcitt) => 60 + 3 * bytes,
        Some(HashAlgorithm::Crc32 | HashAlgorithm::Crc32Custom) => 66 + 3 * bytes,
        Some(HashAlgorithm::Xor16) => 110 + bytes / 2,
        Some(HashAlgorithm::Csum16 | HashAlgorithm::OnesComplementSum) => 120 + (5 * bytes).div_ceil(8),
        // With parameters of its own.
        None => return None,
    };
    Some(Contract::fixed(instructions, 6 + bytes.div_ceil(64) + bytes.min(64)))
}

/// A number is drawn again until it is in the range, at most so often (`millrace_state`).
const MOST_DRAWS: u64 = 128;

fn random(width: u64) -> Contract {
    let draw = if width <= IN_PLACE { 1000 } else { 5000 + 40 * width.div_ceil(8) };
    Contract::allocating(draw * MOST_DRAWS, 12)
}

/// An operation on numbers wider than a limb. Of the quotient there is no contract.
fn wide(op: u64, width: u64) -> Option<Contract> {
    let limbs = width.div_ceil(64);
    let is_quotient = matches!(op, 1 | 2);
    let instructions = if width <= IN_PLACE { 560 } else { 5300 + 160 * limbs + 12 * limbs * limbs };
    (!is_quotient).then(|| Contract::allocating(instructions, 8 + limbs))
}
