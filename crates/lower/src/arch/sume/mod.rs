//! SimpleSumeSwitch, the architecture of P4->NetFPGA: parser, pipeline, deparser, and one structure of metadata for all.
//!
//! Ports are sets there, one bit each. Bit 2n is network port n, which is port n of the switch; bit 2n + 1 is its queue
//! to the host, which is port 4 + n. The queue sizes are those of an idle card: 0. What the deparser leaves in the
//! metadata is what counts.

mod atoms;

use foldhash::HashMap;
use millrace_pipeline::{Expr, Intrinsic, OnReject, RegisterId};
use millrace_sema::hir::{self, Call};

use super::blocks::{BoundBlock, Typed, drop_by_default, storage};
use super::fill::Fills;
use super::{Resource, messages};
use crate::code::Code;
use crate::context::Lowering;
use crate::fail::{Lower, code as kind, fail};
use crate::objects::{Binding, ExternObject, ObjectId};
use crate::sites::Asks;
use crate::value::Value;

pub(crate) use atoms::call_function;

/// The architecture of P4->NetFPGA: what it keeps while a program is lowered.
#[derive(Default)]
pub(crate) struct Sume {
    /// Register arrays by the names in the functions that use them.
    arrays: HashMap<String, RegisterId>,
}

/// Network ports, and queues to the host.
const PORTS: u32 = 4;

/// The switch's port for a bit of a port set.
fn port_of_bit(bit: u32) -> u32 {
    if bit.is_multiple_of(2) { bit / 2 } else { PORTS + bit / 2 }
}

/// Lowers all blocks of a `SimpleSumeSwitch`.
pub(crate) fn assemble(cx: &mut Lowering<'_>, main: &hir::Instance, blocks: &[ObjectId]) -> Lower<()> {
    let &[parser, pipe, deparser] = blocks else {
        return fail(kind::FOREIGN, main.span, "`SimpleSumeSwitch` takes three blocks");
    };
    let headers = storage(cx, pipe, 0, "", main)?;
    let user = storage(cx, pipe, 1, "", main)?;
    let digest_data = storage(cx, pipe, 2, "", main)?;
    let sume = storage(cx, pipe, 3, "", main)?;
    let shared = || vec![headers.binding(), user.binding(), digest_data.binding(), sume.binding()];
    let with = |packet: Binding| [vec![packet], shared()].concat();
    let digest = messages::digest(cx, "digest_data", 0, digest_data.ty, main.span)?;

    let drop = sume.slot(cx, "drop");
    cx.sites.watch(drop, Asks::Without(vec![0]));
    drop_by_default(cx, pipe, "no destination port");
    cx.watch_states();
    let parser = BoundBlock::parser(parser, with(Binding::PacketIn)).lower(cx, main)?;
    let pipe = BoundBlock::control(pipe, shared()).lower(cx, main)?;
    let deparser = BoundBlock::deparser(deparser, with(Binding::PacketOut)).lower_between(
        cx,
        main,
        |_| Ok(()),
        |code| {
            send_digest(code, &sume, &digest_data, digest);
            leave(code, &sume);
            Ok(())
        },
    )?;
    let mut fills = Fills::default();
    fills.add(sume.slot(cx, "src_port"), source_set);
    fills.add(sume.slot(cx, "pkt_len"), |cx| Expr::Read(cx.ir.intrinsic(Intrinsic::PacketLength)));
    fills.write(cx, parser);
    let program = cx.ir.program_mut();
    program.ingress = vec![parser, pipe, deparser];
    program.on_reject = OnReject::Drop;
    program.deparse_at_ingress = true;
    Ok(())
}

/// The port that the packet came in on as a set; a port that the card does not have is none.
fn source_set(cx: &mut Lowering<'_>) -> Expr {
    let port = Expr::Read(cx.ir.intrinsic(Intrinsic::IngressPort));
    (0..2 * PORTS).fold(Expr::bits(8, 0), |rest, bit| {
        let here = port.clone().eq(Expr::bits(32, u128::from(port_of_bit(bit))));
        Expr::mux(here, Expr::bits(8, 1 << bit), rest)
    })
}

/// Bit 0 of `send_dig_to_cpu` delivers the digest data.
fn send_digest(
    code: &mut Code<'_, '_>,
    sume: &Typed,
    digest_data: &Typed,
    digest: millrace_pipeline::DigestId,
) {
    let Some(wanted) = sume.slot(code.cx, "send_dig_to_cpu") else { return };
    let wanted = Expr::Read(wanted).slice(0, 0, code.cx.ir.program()).eq(Expr::bits(1, 1));
    let (_, join) = code.branch(wanted);
    messages::send_digest(code, digest, &Value::read(&digest_data.storage));
    code.continue_at(join);
}

/// The end of the deparser: bit 0 of `drop` drops, and so does an empty set of ports.
fn leave(code: &mut Code<'_, '_>, sume: &Typed) {
    let program = code.cx.ir.program();
    let field = |name| sume.slot(code.cx, name).map_or(Expr::bits(8, 0), Expr::Read);
    let destination = field("dst_port");
    let dropped = field("drop").slice(0, 0, program).eq(Expr::bits(1, 1));
    let bits = (0..2 * PORTS).map(|bit| {
        let set = destination.clone().slice(bit, bit, program);
        (port_of_bit(bit), set)
    });
    let mut ports: Vec<(u32, Expr)> = bits.collect();
    ports.sort_by_key(|(port, _)| std::cmp::Reverse(*port));
    let set = ports.into_iter().map(|(_, bit)| bit).reduce(Expr::concat);
    let set = set.unwrap_or(Expr::bits(8, 0)).zext_to(64, program);
    let set = Expr::mux(dropped.clone(), Expr::bits(64, 0), set);
    let drop = code.cx.ir.intrinsic(Intrinsic::Drop);
    code.assign(drop, dropped.or(destination.eq(Expr::bits(8, 0))));
    let copies = code.cx.ir.intrinsic(Intrinsic::EgressPorts);
    code.assign(copies, set);
}

/// The architecture has no extern objects of its own.
pub(crate) fn create_resource(cx: &mut Lowering<'_>, object: &ExternObject) -> Lower<Option<Resource>> {
    match cx.hir.externs[object.ty].name.as_str() {
        "packet_in" | "packet_out" => Ok(None),
        name => {
            let message = format!("SimpleSumeSwitch has no extern object `{name}`");
            fail(kind::ARCHITECTURE, object.span, message)
        }
    }
}

/// Nor have what others declare methods.
pub(crate) fn call_method(
    code: &Code<'_, '_>,
    instance: &ExternObject,
    method: &str,
    call: &Call,
) -> Lower<Value> {
    let name = &code.cx.hir.externs[instance.ty].name;
    fail(kind::ARCHITECTURE, call.span, format!("`{name}` has no method `{method}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_ports_come_before_host_queues() {
        assert_eq!((0..8).map(port_of_bit).collect::<Vec<_>>(), [0, 4, 1, 5, 2, 6, 3, 7]);
    }
}
