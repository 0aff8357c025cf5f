//! `truncate` of ubpf: the packet is cut first and headers are written into it then. A header that does not fit whole is
//! not written; its place shows what was there, the header as it was parsed.

use foldhash::{HashMap, HashMapExt};
use millrace_pipeline::{Expr, HeaderId, Inst, Intrinsic, SlotId, Type};
use millrace_sema::hir;

use super::{model, model_mut};
use crate::arch::blocks::Typed;
use crate::code::Code;
use crate::fail::Lower;
use crate::storage::Storage;
use crate::value::Value;

/// How headers are emitted into a packet that may be cut.
#[derive(Clone)]
pub(crate) struct Emission {
    /// Each header as it was parsed.
    parsed: HashMap<HeaderId, HeaderId>,
    /// The bits that were emitted so far.
    offset: SlotId,
}

/// `truncate(length)`. The switch knows no cut to 0 bytes, so that is remembered in another place.
pub(super) fn truncate<'a>(code: &mut Code<'_, 'a>, length: &'a hir::Expr) -> Lower<Value> {
    let length = code.scalar(length)?.zext_to(32, code.cx.ir.program());
    let slot = code.cx.ir.intrinsic(Intrinsic::Truncate);
    code.assign(slot, length);
    let truncated = truncated(code);
    code.assign(truncated, Expr::Bool(true));
    Ok(Value::Unit)
}

/// Whether the packet is cut at all.
fn truncated(code: &mut Code<'_, '_>) -> SlotId {
    if let Some(known) = model(code.cx).and_then(|s| s.truncated) {
        return known;
    }
    let slot = code.cx.ir.metadata("truncated", Type::Bool);
    if let Some(model) = model_mut(code.cx) {
        model.truncated = Some(slot);
    }
    slot
}

/// Whether the packet is cut to 0 bytes: nothing leaves then.
pub(super) fn cuts_to_nothing(code: &mut Code<'_, '_>) -> Expr {
    match code.cx.ir.program().intrinsics.get(Intrinsic::Truncate) {
        Some(length) => Expr::Read(truncated(code)).and(Expr::Read(length).eq(Expr::bits(32, 0))),
        None => Expr::Bool(false),
    }
}

/// Where the parser accepts: keeps the headers as they are, if the program ever cuts a packet.
pub(super) fn keep_parsed(code: &mut Code<'_, '_>, headers: &Typed) -> Lower<()> {
    if code.cx.ir.program().intrinsics.get(Intrinsic::Truncate).is_none() {
        return Ok(());
    }
    let kept = code.cx.allocate(headers.ty, "parsed", millrace_pipeline::Home::Metadata, code.span)?;
    code.store_in(&kept, Value::read(&headers.storage))?;
    let mut parsed = HashMap::new();
    pair(&headers.storage, &kept, &mut parsed);
    let offset = code.cx.ir.local("emitted", Type::Bits(32));
    if let Some(model) = model_mut(code.cx) {
        model.emission = Some(Emission { parsed, offset });
    }
    Ok(())
}

fn pair(storage: &Storage, kept: &Storage, parsed: &mut HashMap<HeaderId, HeaderId>) {
    match (storage, kept) {
        (Storage::Header(header), Storage::Header(kept)) => {
            parsed.insert(header.id, kept.id);
        }
        (Storage::Struct(members), Storage::Struct(kept))
        | (Storage::Union(members), Storage::Union(kept)) => {
            members.iter().zip(kept.iter()).for_each(|(storage, kept)| pair(storage, kept, parsed));
        }
        (Storage::Stack(stack), Storage::Stack(kept)) => {
            stack.elements.iter().zip(&kept.elements).for_each(|(storage, kept)| pair(storage, kept, parsed));
        }
        _ => {}
    }
}

/// Emits a header.
pub(crate) fn emit_header(code: &mut Code<'_, '_>, header: HeaderId) -> Lower<()> {
    let emission = model(code.cx).and_then(|s| s.emission.clone());
    let length = code.cx.ir.program().intrinsics.get(Intrinsic::Truncate);
    let (Some(Emission { parsed, offset }), Some(length)) = (emission, length) else {
        code.push(Inst::Emit(header));
        return Ok(());
    };
    let bits = code.cx.ir.program().headers[header].fixed_bits;
    let end = Expr::Read(offset).add(Expr::bits(32, u128::from(bits)));
    let program = code.cx.ir.program();
    let room = Expr::Read(length).zext_to(35, program).concat(Expr::bits(3, 0));
    let fits = end.clone().zext_to(38, program).le(room);
    let uncut = Expr::Read(truncated(code)).not();
    let (_, other) = code.branch(fits.or(uncut));
    let join = code.block();
    code.push(Inst::Emit(header));
    code.body.goto(join);
    code.body.switch_to(other);
    if let Some(parsed) = parsed.get(&header) {
        code.push(Inst::Emit(*parsed));
    }
    code.continue_at(join);
    let moved = Expr::mux(Expr::IsValid(header), end, Expr::Read(offset));
    code.assign(offset, moved);
    Ok(())
}
