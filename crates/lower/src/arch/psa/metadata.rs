//! PSA's metadata structures and the contract with the switch.

use millrace_pipeline::{BodyId, Expr, Intrinsic, PacketPath, SlotId, Type};

use super::{Egress, Ingress};
use crate::arch::blocks::Typed;
use crate::arch::fill::Fills;
use crate::arch::objects::enum_number;
use crate::code::Code;
use crate::context::Lowering;
use crate::fail::Lower;
use crate::storage::Storage;
use crate::types::ENUM_BITS;
use crate::value::Value;

/// `PSA_PORT_RECIRCULATE`.
pub(super) const RECIRCULATE_PORT: u128 = 0xffff_fffa;

/// The lists of what each kind of copy carries.
#[derive(Clone, Copy)]
pub(super) enum List {
    CloneFromIngress = 1,
    CloneFromEgress = 2,
    Resubmit = 3,
    Recirculate = 4,
}

impl List {
    fn expr(self) -> Expr {
        Expr::bits(32, self as u128)
    }
}

/// The members of `PSA_PacketPath_t` that packets have in ingress; `NORMAL` is the rest.
const IN_INGRESS: &[(PacketPath, &str)] =
    &[(PacketPath::Resubmit, "RESUBMIT"), (PacketPath::Recirculate, "RECIRCULATE")];
/// Those in egress; `NORMAL_UNICAST` is the rest.
const IN_EGRESS: &[(PacketPath, &str)] = &[
    (PacketPath::Replication, "NORMAL_MULTICAST"),
    (PacketPath::IngressClone, "CLONE_I2E"),
    (PacketPath::EgressClone, "CLONE_E2E"),
];

fn packet_path(cx: &mut Lowering<'_>, paths: &[(PacketPath, &str)], rest: &str) -> Expr {
    let path = Expr::Read(cx.ir.intrinsic(Intrinsic::PacketPath));
    let number = |name| Expr::bits(ENUM_BITS, enum_number(cx, "PSA_PacketPath_t", name).unwrap_or_default());
    paths.iter().fold(number(rest), |rest, (role, name)| {
        Expr::mux(path.clone().eq(Expr::bits(32, *role as u128)), number(name), rest)
    })
}

fn role(role: Intrinsic) -> impl FnOnce(&mut Lowering<'_>) -> Expr {
    move |cx| Expr::Read(cx.ir.intrinsic(role))
}

/// A field of another structure that is filled already.
fn copy(from: &Typed, field: &str, cx: &Lowering<'_>) -> impl FnOnce(&mut Lowering<'_>) -> Expr + use<> {
    let slot = from.slot(cx, field);
    move |_| slot.map_or(Expr::bits(1, 0), Expr::Read)
}

/// Fills what the two controls are told.
pub(super) fn fill_controls(
    cx: &mut Lowering<'_>,
    (ingress, of_ingress): (BodyId, &Ingress),
    (egress, of_egress): (BodyId, &Egress),
) {
    let mut fills = Fills::default();
    let (input, parser) = (&of_ingress.input, &of_ingress.of_parser);
    fills.add(input.slot(cx, "ingress_port"), copy(parser, "ingress_port", cx));
    fills.add(input.slot(cx, "packet_path"), copy(parser, "packet_path", cx));
    fills.add(input.slot(cx, "ingress_timestamp"), role(Intrinsic::IngressTimestamp));
    fills.add(input.slot(cx, "parser_error"), role(Intrinsic::ParserError));
    fills.write(cx, ingress);

    let mut fills = Fills::default();
    let (input, parser) = (&of_egress.input, &of_egress.of_parser);
    fills.add(input.slot(cx, "class_of_service"), role(Intrinsic::Priority));
    fills.add(input.slot(cx, "egress_port"), copy(parser, "egress_port", cx));
    fills.add(input.slot(cx, "packet_path"), copy(parser, "packet_path", cx));
    fills.add(input.slot(cx, "instance"), role(Intrinsic::EgressRid));
    fills.add(input.slot(cx, "egress_timestamp"), role(Intrinsic::EgressTimestamp));
    fills.add(input.slot(cx, "parser_error"), role(Intrinsic::ParserError));
    fills.write(cx, egress);
}

/// Fills what the deparser of egress is told.
pub(super) fn fill_egress_deparser(cx: &mut Lowering<'_>, deparser: BodyId, of_egress: &Egress) {
    let mut fills = Fills::default();
    fills.add(of_egress.of_deparser.slot(cx, "egress_port"), role(Intrinsic::EgressPort));
    fills.write(cx, deparser);
}

/// Fills what the two parsers are told. A recirculated packet comes from `PSA_PORT_RECIRCULATE`, also when it is
/// resubmitted then: the port goes with the resubmission.
pub(super) fn fill_parsers(
    cx: &mut Lowering<'_>,
    (ingress, of_ingress): (BodyId, &Ingress),
    (egress, of_egress): (BodyId, &Egress),
) {
    let mut fills = Fills::default();
    let port = of_ingress.of_parser.slot(cx, "ingress_port");
    fills.add(port, move |cx| ingress_port(cx, port));
    fills.add(of_ingress.of_parser.slot(cx, "packet_path"), |cx| packet_path(cx, IN_INGRESS, "NORMAL"));
    fills.write(cx, ingress);

    let mut fills = Fills::default();
    let input = &of_egress.of_parser;
    fills.add(input.slot(cx, "egress_port"), role(Intrinsic::EgressPort));
    fills.add(input.slot(cx, "packet_path"), |cx| packet_path(cx, IN_EGRESS, "NORMAL_UNICAST"));
    fills.write(cx, egress);
}

fn ingress_port(cx: &mut Lowering<'_>, kept: Option<SlotId>) -> Expr {
    let path = Expr::Read(cx.ir.intrinsic(Intrinsic::PacketPath));
    let port = Expr::Read(cx.ir.intrinsic(Intrinsic::IngressPort));
    let is = |wanted: PacketPath| path.clone().eq(Expr::bits(32, wanted as u128));
    let kept = kept.map_or_else(|| port.clone(), Expr::Read);
    let recirculated = Expr::bits(32, RECIRCULATE_PORT);
    let fresh = Expr::mux(is(PacketPath::Recirculate), recirculated, port);
    Expr::mux(is(PacketPath::Resubmit), kept, fresh)
}

/// What ingress starts with where that is not 0: the packet is dropped unless the program says otherwise.
pub(super) fn start_ingress(code: &mut Code<'_, '_>, output: &Typed) -> Lower<()> {
    match output.field(code.cx, "drop") {
        Some(storage @ Storage::Scalar(_)) => {
            code.copying(|code| code.store_in(&storage, Value::Scalar(Expr::Bool(true))))
        }
        _ => Ok(()),
    }
}

/// A field of an output structure as a role has it.
fn asked(code: &Code<'_, '_>, output: &Typed, field: &str, role: Intrinsic) -> Expr {
    let ty = role.ty();
    match (output.slot(code.cx, field), ty) {
        (Some(slot), Type::Bits(width)) => Expr::Read(slot).zext_to(width, code.cx.ir.program()),
        (Some(slot), _) => Expr::Read(slot),
        (None, Type::Bits(width)) => Expr::bits(width, 0),
        (None, _) => Expr::Bool(false),
    }
}

fn tell(code: &mut Code<'_, '_>, role: Intrinsic, value: Expr) {
    let slot = code.cx.ir.intrinsic(role);
    code.assign(slot, value);
}

/// The end of ingress.
pub(super) fn leave_ingress(code: &mut Code<'_, '_>, output: &Typed) {
    let drop = asked(code, output, "drop", Intrinsic::Drop);
    ask_clone(code, output, List::CloneFromIngress);
    let resubmit = asked(code, output, "resubmit", Intrinsic::Resubmit).and(drop.clone().not());
    tell(code, Intrinsic::Resubmit, resubmit);
    tell(code, Intrinsic::ResubmitList, List::Resubmit.expr());
    let group = asked(code, output, "multicast_group", Intrinsic::MulticastGroup);
    tell(code, Intrinsic::MulticastGroup, Expr::mux(drop.clone(), Expr::bits(32, 0), group));
    for (field, role) in [("egress_port", Intrinsic::EgressSpec), ("class_of_service", Intrinsic::Priority)] {
        let value = asked(code, output, field, role);
        tell(code, role, value);
    }
    tell(code, Intrinsic::Drop, drop);
}

/// The end of egress. Dropping comes before recirculation.
pub(super) fn leave_egress(code: &mut Code<'_, '_>, output: &Typed) {
    let drop = asked(code, output, "drop", Intrinsic::Drop);
    ask_clone(code, output, List::CloneFromEgress);
    let port = Expr::Read(code.cx.ir.intrinsic(Intrinsic::EgressPort));
    let recirculate = port.eq(Expr::bits(32, RECIRCULATE_PORT)).and(drop.clone().not());
    tell(code, Intrinsic::Recirculate, recirculate);
    tell(code, Intrinsic::RecirculateList, List::Recirculate.expr());
    tell(code, Intrinsic::Drop, drop);
}

fn ask_clone(code: &mut Code<'_, '_>, output: &Typed, list: List) {
    let clone = asked(code, output, "clone", Intrinsic::Clone);
    let session = asked(code, output, "clone_session_id", Intrinsic::CloneSession);
    tell(code, Intrinsic::Clone, clone);
    tell(code, Intrinsic::CloneSession, session);
    tell(code, Intrinsic::CloneList, list.expr());
}
