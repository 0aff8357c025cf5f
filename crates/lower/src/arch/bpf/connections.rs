//! `tcp_conntrack(headers)`: a stateful firewall for TCP. It allows a SYN that opens a connection, the server's SYN-ACK,
//! the client's ACK, and then what both send except another SYN; the client's FIN-ACK ends the connection.
//!
//! Connections live in register arrays of the program, found by a hash of addresses and ports. Two connections that fall
//! on the same cell replace each other.

use millrace_pipeline::{BinaryOp, DataItem, Expr, HashAlgorithm, Inst, Register, RegisterId, Type};
use millrace_sema::hir::{self, Call};

use super::{model, model_mut};
use crate::arch::hashing;
use crate::code::Code;
use crate::fail::{Lower, code as kind, fail};
use crate::types::members;
use crate::value::Value;

/// Cells for connections.
const CELLS: u64 = 16384;
/// No connection, or the SYN, SYN-ACK or ACK was seen.
const CLOSED: u128 = 0;
const SYN_SENT: u128 = 1;
const SYN_ACKED: u128 = 2;
const ESTABLISHED: u128 = 3;

/// Addresses and ports, state and server of each connection.
#[derive(Clone, Copy)]
pub(crate) struct Connections {
    key: RegisterId,
    state: RegisterId,
    server: RegisterId,
}

fn connections(code: &mut Code<'_, '_>) -> Connections {
    if let Some(known) = model(code.cx).and_then(|s| s.connections) {
        return known;
    }
    let mut register = |name: &str, width| {
        let name = code.cx.object_name("register", &format!("tcp_conntrack.{name}"));
        code.cx.ir.program_mut().registers.push(Register { name, width, size: CELLS, initial: None })
    };
    let made =
        Connections { key: register("key", 96), state: register("state", 2), server: register("server", 32) };
    if let Some(model) = model_mut(code.cx) {
        model.connections = Some(made);
    }
    made
}

/// The fields that are looked at.
struct Packet {
    source: Expr,
    destination: Expr,
    source_port: Expr,
    destination_port: Expr,
    syn: Expr,
    ack: Expr,
    fin: Expr,
}

fn packet<'a>(code: &mut Code<'_, 'a>, headers: &'a hir::Expr, call: &Call) -> Lower<Packet> {
    let value = code.eval(headers)?;
    let value = code.settle(value);
    let types = &code.cx.hir.types;
    let field = |header: &str, field: &str, width: u32| -> Lower<Expr> {
        let at = members(types, headers.ty).iter().position(|(n, _)| n == header);
        let inner = at.map(|at| members(types, members(types, headers.ty)[at].1));
        let position = inner.and_then(|fields| fields.iter().position(|(n, _)| n == field));
        let found = match (at, position) {
            (Some(at), Some(position)) => value.clone().member(at).and_then(|h| h.member(position)),
            _ => None,
        };
        match found {
            Some(Value::Scalar(scalar)) => Ok(scalar.zext_to(width, code.cx.ir.program())),
            _ => fail(
                kind::ARCHITECTURE,
                call.span,
                format!("`tcp_conntrack` needs the field `{header}.{field}` in its argument"),
            ),
        }
    };
    let flag = |name: &str| -> Lower<Expr> { Ok(field("tcp", name, 1)?.eq(Expr::bits(1, 1))) };
    Ok(Packet {
        source: field("ipv4", "srcAddr", 32)?,
        destination: field("ipv4", "dstAddr", 32)?,
        source_port: field("tcp", "srcPort", 16)?,
        destination_port: field("tcp", "dstPort", 16)?,
        syn: flag("syn")?,
        ack: flag("ack")?,
        fin: flag("fin")?,
    })
}

/// Whether the packet is allowed; the connection's state follows it.
pub(super) fn track<'a>(code: &mut Code<'_, 'a>, headers: &'a hir::Expr, call: &Call) -> Lower<Expr> {
    let packet = packet(code, headers, call)?;
    let Connections { key: keys, state: states, server: servers } = connections(code);

    // Both directions have one key.
    let sorted = |a: &Expr, b: &Expr| {
        let less = a.clone().lt(b.clone());
        Expr::mux(less.clone(), a.clone(), b.clone()).concat(Expr::mux(less, b.clone(), a.clone()))
    };
    let addresses = sorted(&packet.source, &packet.destination);
    let ports = sorted(&packet.source_port, &packet.destination_port);
    let key = code.in_temp(addresses.concat(ports));
    let hash = hashing::hash(code, HashAlgorithm::Crc32, vec![DataItem::Value(key.clone())], 32);
    let index = Expr::binary(BinaryOp::Mod, hash, Expr::bits(32, u128::from(CELLS)));
    let index = code.in_temp(index);
    let mut read = |register, width| {
        let dst = code.temp(Type::Bits(width));
        code.push(Inst::RegisterRead { dst, register, index: index.clone() });
        Expr::Read(dst)
    };
    let (kept_key, state, server) = (read(keys, 96), read(states, 2), read(servers, 32));

    let is = |wanted: u128| state.clone().eq(Expr::bits(2, wanted));
    let known = code.in_temp(is(CLOSED).not().and(kept_key.clone().eq(key.clone())));
    let from_server = packet.source.eq(server.clone());
    let of_server = |wanted| Expr::all([known.clone(), from_server.clone(), is(wanted)]);
    let of_client = |wanted| Expr::all([known.clone(), from_server.clone().not(), is(wanted)]);
    let (syn, ack, fin) = (packet.syn, packet.ack, packet.fin);
    let opening = syn.clone().and(ack.clone().not());

    let opens = code.in_temp(known.clone().not().and(opening.clone()));
    let answers = code.in_temp(Expr::all([of_server(SYN_SENT), syn.clone(), ack.clone()]));
    let confirms = code.in_temp(Expr::all([of_client(SYN_ACKED), syn.not(), ack.clone()]));
    let goes_on = code.in_temp(of_client(ESTABLISHED).and(opening.not()));
    let closes = Expr::all([goes_on.clone(), fin, ack]);
    let allowed =
        Expr::any([opens.clone(), answers.clone(), confirms.clone(), goes_on, of_server(ESTABLISHED)]);
    let allowed = code.in_temp(allowed);

    let becomes = |condition, wanted, otherwise| Expr::mux(condition, Expr::bits(2, wanted), otherwise);
    let next = becomes(closes, CLOSED, state);
    let next = becomes(confirms, ESTABLISHED, next);
    let next = becomes(answers, SYN_ACKED, next);
    let next = becomes(opens.clone(), SYN_SENT, next);
    let writes = [
        (keys, Expr::mux(opens.clone(), key, kept_key)),
        (states, next),
        (servers, Expr::mux(opens, packet.destination, server)),
    ];
    for (register, value) in writes {
        code.push(Inst::RegisterWrite { register, index: index.clone(), value });
    }
    Ok(allowed)
}
