//! Parser instructions: what moves or reads at the cursor. Each succeeds wholly or has no effect but its error.

use crate::Context;
use millrace_pipeline::semantics::{Value, VarbitValue};
use millrace_pipeline::*;

/// Why a parser rejects a packet by itself: errors of core.p4 (P4_16 section 12.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ParserFailure {
    PacketTooShort,
    HeaderTooShort,
    ParserInvalidArgument,
    ParserTimeout,
}

impl ParserFailure {
    pub(crate) fn name(self) -> &'static str {
        match self {
            ParserFailure::PacketTooShort => "PacketTooShort",
            ParserFailure::HeaderTooShort => "HeaderTooShort",
            ParserFailure::ParserInvalidArgument => "ParserInvalidArgument",
            ParserFailure::ParserTimeout => "ParserTimeout",
        }
    }

    /// The code of the error: its place in [`Program::errors`], or the highest code when the program does not name it.
    pub(crate) fn code(self, program: &Program) -> u16 {
        let place = program.errors.iter().position(|name| name == self.name());
        place.and_then(|place| u16::try_from(place).ok()).unwrap_or(u16::MAX)
    }
}

/// [`Inst::Extract`] and, with the length of the varbit, [`Inst::ExtractVar`]. Gives the bits taken.
pub(crate) fn extract(
    program: &Program,
    context: &mut Context,
    header: HeaderId,
    varbit_bits: u64,
) -> Result<usize, ParserFailure> {
    let layout = &program.headers[header];
    let varbit_max = layout.fields.iter().find_map(|field| match program.slots[*field].ty {
        Type::Varbit(max) => Some(max),
        Type::Bool | Type::Bits(_) => None,
    });
    if varbit_bits > u64::from(varbit_max.unwrap_or(0)) {
        return Err(ParserFailure::HeaderTooShort);
    }
    if !varbit_bits.is_multiple_of(8) {
        return Err(ParserFailure::ParserInvalidArgument);
    }
    let bits = layout.fixed_bits as usize + varbit_bits as usize;
    if bits > remaining(context) {
        return Err(ParserFailure::PacketTooShort);
    }

    context.phv.set_valid(program, header);
    let mut at = context.cursor;
    for field in &layout.fields {
        let width = match program.slots[*field].ty {
            Type::Bool => 1,
            Type::Bits(width) => width,
            Type::Varbit(_) => varbit_bits as u32,
        };
        let value = match (program.slots[*field].ty, read(context, at, width)) {
            (Type::Bool, Some(bits)) => Value::Bool(!bits.is_zero()),
            (Type::Bits(_), Some(bits)) => Value::Bits(bits),
            (Type::Varbit(_), Some(bits)) => Value::Varbit(VarbitValue::new(bits)),
            (ty, None) => Value::zero(ty),
        };
        context.phv.write(program, *field, value);
        at += width as usize;
    }
    context.cursor += bits;
    Ok(bits)
}

/// [`Inst::Advance`].
pub(crate) fn advance(context: &mut Context, bits: u64) -> Result<usize, ParserFailure> {
    if !bits.is_multiple_of(8) {
        return Err(ParserFailure::ParserInvalidArgument);
    }
    match usize::try_from(bits) {
        Ok(bits) if bits <= remaining(context) => {
            context.cursor += bits;
            Ok(bits)
        }
        _ => Err(ParserFailure::PacketTooShort),
    }
}

/// [`Inst::Lookahead`]: the bits after `skip`.
pub(crate) fn lookahead(context: &Context, skip: u32, width: u32) -> Result<Bits, ParserFailure> {
    read(context, context.cursor + skip as usize, width).ok_or(ParserFailure::PacketTooShort)
}

fn remaining(context: &Context) -> usize {
    context.bytes.len() * 8 - context.cursor
}

fn read(context: &Context, at: usize, width: u32) -> Option<Bits> {
    if width == 0 {
        return None;
    }
    Bits::read_at(&context.bytes, at, width)
}
