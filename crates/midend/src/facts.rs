//! What is known about a packet at a point of the program: where its headers are, the cursor, and constant slots.

use crate::cfg::Op;
use crate::constants::Constants;
use crate::simplify::simplify;
use millrace_pipeline::*;
use std::fmt;

/// Where a header is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderPlace {
    /// It is invalid: its fields read 0.
    Invalid,
    /// Valid and in the packet, at that many bytes from its start.
    At(u32),
    /// Valid and in the packet, where the header's own pointer says.
    Pointed,
    /// Where the header's own pointer says: in the packet while it is valid, else where there are zeros.
    Maybe,
    /// Valid, the fields in the storage of slots.
    Stored,
    /// Only the header's own flag says whether it is valid; the fields are in the storage of slots, all 0 while invalid.
    Unknown,
}

/// Where the parser's cursor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cursor {
    /// At that many bits.
    At(u32),
    /// At a whole byte that the cursor's variable knows.
    Byte,
    /// Where the cursor's variable says.
    Bit,
}

/// What is known at one point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Where each header is.
    pub places: Vec<HeaderPlace>,
    /// Where the cursor is.
    pub cursor: Cursor,
    /// The loop over the batch that this point belongs to: 0, or the loop after the staged table of this number.
    pub phase: u32,
    /// Bytes that the packet has at least.
    pub room: u32,
    /// Whether headers may stay in the packet: a deparser will follow.
    pub in_place: bool,
    /// Whether headers that the program makes lie in the context as they would in a packet: where paths join they need
    /// less code than with storage for each field, and each access of a field takes more.
    pub packs: bool,
    /// Slots with a known value, of those worth tracking.
    pub constants: Constants,
}

impl Facts {
    /// Before the program: no headers, the cursor at the start, all tracked slots 0.
    pub fn arrival(program: &Program, tracked: impl Iterator<Item = SlotId>) -> Facts {
        Facts {
            places: vec![HeaderPlace::Invalid; program.headers.len()],
            cursor: Cursor::At(0),
            phase: 0,
            room: 0,
            in_place: packets_are_put_together(program),
            packs: false,
            constants: tracked.map(|slot| (slot, 0)).collect(),
        }
    }

    /// Of a packet whose context has no headers and the cursor at the start.
    pub fn unparsed(program: &Program) -> Facts {
        Facts::arrival(program, std::iter::empty())
    }

    /// Of a packet whose context holds everything.
    pub fn context(program: &Program) -> Facts {
        Facts {
            places: vec![HeaderPlace::Unknown; program.headers.len()],
            cursor: Cursor::Bit,
            phase: 0,
            room: 0,
            in_place: packets_are_put_together(program),
            packs: false,
            constants: Constants::default(),
        }
    }

    /// About the bytes that it takes.
    pub fn bytes(&self) -> usize {
        size_of_val(self.places.as_slice()) + self.constants.bytes()
    }

    /// Where a header is.
    pub fn place(&self, header: HeaderId) -> HeaderPlace {
        self.places[header.as_u32() as usize]
    }

    /// A header is there now.
    pub fn set_place(&mut self, header: HeaderId, place: HeaderPlace) {
        self.places[header.as_u32() as usize] = place;
    }

    /// What holds where either of two holds; says whether that is less than before.
    pub fn join(&mut self, other: &Facts) -> bool {
        let mut changed = self.constants.keep_common(&other.constants);
        for (mine, other) in self.places.iter_mut().zip(&other.places) {
            let joined = match (*mine, *other) {
                (a, b) if a == b => a,
                (HeaderPlace::At(_) | HeaderPlace::Pointed, HeaderPlace::At(_) | HeaderPlace::Pointed) => {
                    HeaderPlace::Pointed
                }
                (HeaderPlace::At(_) | HeaderPlace::Pointed, HeaderPlace::Stored)
                | (HeaderPlace::Stored, HeaderPlace::At(_) | HeaderPlace::Pointed) => HeaderPlace::Stored,
                (HeaderPlace::Stored | HeaderPlace::Unknown, _)
                | (_, HeaderPlace::Stored | HeaderPlace::Unknown) => HeaderPlace::Unknown,
                _ => HeaderPlace::Maybe,
            };
            changed |= std::mem::replace(mine, joined) != joined;
        }
        let cursor = match (self.cursor, other.cursor) {
            (a, b) if a == b => a,
            (a, b) if a.is_byte() && b.is_byte() => Cursor::Byte,
            _ => Cursor::Bit,
        };
        changed |= std::mem::replace(&mut self.cursor, cursor) != cursor;
        changed |= other.room < self.room;
        self.room = self.room.min(other.room);
        changed
    }

    /// The effect of an operation on what is known. `tracks` says which slots are worth tracking.
    pub fn transfer(&mut self, program: &Program, op: &Op, tracks: &impl Fn(SlotId) -> bool) {
        match op {
            Op::Inst(Inst::Assign { dst, value }) => {
                let known = if tracks(*dst) { number(&simplify(program, value, self)) } else { None };
                self.learn(program, *dst, known);
            }
            Op::Inst(Inst::SetValid(header)) => match self.place(*header) {
                HeaderPlace::Invalid => {
                    self.set_place(*header, self.made(program, *header));
                    for field in program.headers[*header].fields.iter().filter(|field| tracks(**field)) {
                        self.constants.insert(*field, 0);
                    }
                }
                HeaderPlace::Maybe => self.set_place(*header, self.made(program, *header)),
                HeaderPlace::Unknown => self.set_place(*header, HeaderPlace::Stored),
                HeaderPlace::At(_) | HeaderPlace::Pointed | HeaderPlace::Stored => {}
            },
            Op::Inst(Inst::SetInvalid(header)) => {
                self.set_place(*header, HeaderPlace::Invalid);
                self.forget_fields(program, *header);
            }
            Op::Inst(other) => {
                if other.rewrites(program) {
                    // What the parser has passed stays.
                    self.room = match self.cursor {
                        Cursor::At(bits) => self.room.min(bits / 8),
                        Cursor::Byte | Cursor::Bit => 0,
                    };
                }
                if let Some(dst) = other.dst() {
                    self.constants.remove(&dst);
                }
            }
            Op::Clear(slot) => self.learn(program, *slot, Some(0).filter(|_| tracks(*slot))),
            Op::Argument { dst, .. } | Op::Hit { dst } | Op::Input { dst, .. } => {
                self.constants.remove(dst);
            }
            Op::AtHit { meter, .. } => {
                if let Some(slot) = meter {
                    self.constants.remove(slot);
                }
            }
            Op::Deparse { keep, .. } | Op::FinishEmit { keep, .. } => {
                for place in &mut self.places {
                    if !keep {
                        *place = HeaderPlace::Invalid;
                    } else {
                        *place = match *place {
                            HeaderPlace::At(_) | HeaderPlace::Pointed => HeaderPlace::Stored,
                            HeaderPlace::Maybe => HeaderPlace::Unknown,
                            other => other,
                        };
                    }
                }
                if !keep {
                    self.constants.retain(|slot| !matches!(program.slots[slot].home, Home::Header { .. }));
                }
                self.cursor = Cursor::At(0);
                self.room = 0;
            }
            Op::Reparse => {
                self.places.fill(HeaderPlace::Invalid);
                self.constants.retain(|slot| !matches!(program.slots[slot].home, Home::Header { .. }));
                self.cursor = Cursor::At(0);
            }
            Op::NoteParsed
            | Op::StartEmit
            | Op::Emit(_)
            | Op::SetOut(_)
            | Op::StartCopies
            | Op::NextCopy
            | Op::DropCopy(_)
            | Op::SetError
            | Op::AddSite(_)
            | Op::AddClass(_)
            | Op::AddQueue(_)
            | Op::StartSteps
            | Op::ForgetSteps
            | Op::AddSteps
            | Op::AssertFailed(_) => {}
        }
    }

    /// Where a header is that the program makes valid.
    pub fn made(&self, program: &Program, header: HeaderId) -> HeaderPlace {
        match self.packs && whole_bytes(program, header).is_some() {
            true => HeaderPlace::Pointed,
            false => HeaderPlace::Stored,
        }
    }

    /// A slot has now that value, or one that is not known.
    pub fn learn(&mut self, program: &Program, slot: SlotId, value: Option<u64>) {
        let place = match program.slots[slot].home {
            Home::Header { header, .. } => self.place(header),
            Home::Metadata | Home::Local => HeaderPlace::Stored,
        };
        match (place, value) {
            // The write is lost, or may be.
            (HeaderPlace::Invalid, _) => {}
            (HeaderPlace::Unknown | HeaderPlace::Maybe, _) | (_, None) => {
                self.constants.remove(&slot);
            }
            (_, Some(value)) => {
                self.constants.insert(slot, value);
            }
        }
    }

    /// The header was read at the cursor.
    pub fn extracted(&mut self, program: &Program, header: HeaderId) {
        let bits = program.headers[header].fixed_bits;
        self.forget_fields(program, header);
        match self.cursor {
            Cursor::At(at) => {
                let place = match at.is_multiple_of(8) && self.in_place {
                    true => HeaderPlace::At(at / 8),
                    false => HeaderPlace::Stored,
                };
                self.set_place(header, place);
                self.room = self.room.max((at + bits).div_ceil(8));
            }
            Cursor::Byte if self.in_place => self.set_place(header, HeaderPlace::Pointed),
            Cursor::Byte | Cursor::Bit => self.set_place(header, HeaderPlace::Stored),
        }
        self.move_cursor(bits);
    }

    /// The header with a varbit was read at the cursor.
    pub fn extracted_var(&mut self, program: &Program, header: HeaderId) {
        self.forget_fields(program, header);
        self.set_place(header, HeaderPlace::Stored);
        self.move_cursor(program.headers[header].fixed_bits);
        self.cursor = if self.cursor.is_byte() { Cursor::Byte } else { Cursor::Bit };
    }

    /// The cursor went that many bits, or a number of whole bytes that is not known.
    pub fn advanced(&mut self, bits: Option<u64>) {
        match (self.cursor, bits) {
            (Cursor::At(at), Some(bits)) if u64::from(at) + bits <= u64::from(limits::MAX_VARBIT) => {
                self.move_cursor(bits as u32);
                self.room = self.room.max((at + bits as u32).div_ceil(8));
            }
            (cursor, _) => self.cursor = if cursor.is_byte() { Cursor::Byte } else { Cursor::Bit },
        }
    }

    fn move_cursor(&mut self, bits: u32) {
        self.cursor = match self.cursor {
            Cursor::At(at) if at + bits <= limits::MAX_VARBIT => Cursor::At(at + bits),
            Cursor::At(at) if (at + bits).is_multiple_of(8) => Cursor::Byte,
            Cursor::Byte if bits.is_multiple_of(8) => Cursor::Byte,
            _ => Cursor::Bit,
        };
    }

    fn forget_fields(&mut self, program: &Program, header: HeaderId) {
        program.headers[header].fields.iter().for_each(|field| {
            self.constants.remove(field);
        });
    }
}

impl Cursor {
    /// Whether it is known to be at a whole byte.
    pub fn is_byte(self) -> bool {
        match self {
            Cursor::At(at) => at.is_multiple_of(8),
            Cursor::Byte => true,
            Cursor::Bit => false,
        }
    }
}

/// Whether what is written to the packet in place is what a later deparser would write.
///
/// A deparser has to follow every parser: without one a packet goes on as it came, whatever happens to its headers.
/// A packet that a parser rejects may go on as it came too ([`OnReject::PassOn`]); then there has to be one parser, which
/// writes to no header, so that nothing is written before it is certain that the deparser follows.
fn packets_are_put_together(program: &Program) -> bool {
    let writes_nothing_before_it_accepts = |bodies: &[BodyId]| {
        let last = bodies.iter().rposition(|body| program.bodies[*body].kind == BodyKind::Parser);
        bodies[..last.map_or(0, |at| at + 1)].iter().all(|body| !writes_headers(program, *body))
    };
    let follows = |bodies: &[BodyId]| {
        let last = |kind| bodies.iter().rposition(|body| program.bodies[*body].kind == kind);
        last(BodyKind::Parser) <= last(BodyKind::Deparser)
            && (program.on_reject != OnReject::PassOn || writes_nothing_before_it_accepts(bodies))
    };
    if program.deparse_at_ingress {
        return follows(&program.ingress) && follows(&program.egress);
    }
    follows(&[program.ingress.as_slice(), &program.egress].concat())
}

/// Whether a body, or an action that it may run, writes to a field of a header.
fn writes_headers(program: &Program, body: BodyId) -> bool {
    let in_header = |slot: Option<SlotId>| {
        slot.is_some_and(|slot| matches!(program.slots[slot].home, Home::Header { .. }))
    };
    program.bodies[body].blocks.values().any(|block| match &block.term {
        // What a table writes, and its actions, are looked at no further.
        Terminator::Apply { .. } => true,
        _ => block.insts.iter().any(|inst| in_header(inst.dst())),
    })
}

/// The bytes of a header, where all of that kind have as many.
pub fn whole_bytes(program: &Program, header: HeaderId) -> Option<u32> {
    let header = &program.headers[header];
    let varbit = header.fields.iter().any(|field| matches!(program.slots[*field].ty, Type::Varbit(_)));
    (!varbit && header.fixed_bits.is_multiple_of(8)).then_some(header.fixed_bits / 8)
}

/// The constant that an expression is, as a number of at most 64 bits.
pub fn number(expr: &Expr) -> Option<u64> {
    match expr {
        Expr::Bool(b) => Some(u64::from(*b)),
        Expr::Const(bits) if bits.width() <= 64 => bits.to_u64(),
        _ => None,
    }
}

impl fmt::Display for HeaderPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HeaderPlace::Invalid => f.write_str("-"),
            HeaderPlace::At(at) => write!(f, "@{at}"),
            HeaderPlace::Pointed => f.write_str("@?"),
            HeaderPlace::Maybe => f.write_str("-@?"),
            HeaderPlace::Stored => f.write_str("stored"),
            HeaderPlace::Unknown => f.write_str("?"),
        }
    }
}
