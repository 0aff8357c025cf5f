//! Where headers go when a packet is put together.
//!
//! The payload never moves: headers are put before it. So a header that already stands where it belongs costs nothing,
//! and a packet whose headers are as they were parsed needs no work at all.

use crate::facts::{Cursor, Facts, HeaderPlace, whole_bytes};
use millrace_pipeline::*;

/// Most bytes of headers that are read before they are written elsewhere.
const MAX_MOVED: u32 = 4096;

/// A header and where it goes, in bytes from the start of the new packet.
pub struct Move {
    /// The header.
    pub header: HeaderId,
    /// Where it goes.
    pub to: u32,
    /// Its bytes.
    pub bytes: u32,
}

/// Where the new packet starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Front {
    /// At that many bytes from the start of the old one.
    At(i64),
    /// That many bytes before the cursor.
    BeforeCursor(u32),
}

/// Where headers go when their bytes show in the facts, and where the new packet starts.
pub fn moves(
    program: &Program,
    facts: &Facts,
    headers: &[HeaderId],
    growth: u32,
) -> Option<(Vec<Move>, Front)> {
    let mut total = 0;
    let mut moves = Vec::new();
    for header in headers {
        match facts.place(*header) {
            HeaderPlace::Invalid => continue,
            HeaderPlace::Unknown | HeaderPlace::Maybe => return None,
            HeaderPlace::At(_) | HeaderPlace::Pointed | HeaderPlace::Stored => {}
        }
        let bytes = whole_bytes(program, *header)?;
        moves.push(Move { header: *header, to: total, bytes });
        total += bytes;
    }
    let front = match facts.cursor {
        Cursor::At(cursor) if cursor.is_multiple_of(8) && total <= MAX_MOVED.min(cursor / 8 + growth) => {
            Front::At(i64::from(cursor / 8) - i64::from(total))
        }
        Cursor::Byte if total <= growth => Front::BeforeCursor(total),
        _ => return None,
    };
    Some((moves, front))
}
