//! PNA's metadata structures and the contract with the switch.

use millrace_pipeline::{BodyId, Expr, FieldList, Intrinsic, PacketPath, SlotId, Type};

use crate::arch::Architecture;
use crate::arch::blocks::Typed;
use crate::arch::fill::Fills;
use crate::arch::objects::enum_number;
use crate::code::Code;
use crate::context::Lowering;
use crate::types::ENUM_BITS;

/// The first port of the host.
pub(super) const FIRST_HOST_PORT: u128 = 256;
/// The list of what recirculation keeps.
const RECIRCULATE_LIST: u32 = 1;

/// Whether a port is one of the network.
pub(super) fn is_net_port(port: Expr) -> Expr {
    port.lt(Expr::bits(32, FIRST_HOST_PORT))
}

fn path_is(cx: &mut Lowering<'_>, wanted: PacketPath) -> Expr {
    Expr::Read(cx.ir.intrinsic(Intrinsic::PacketPath)).eq(Expr::bits(32, wanted as u128))
}

/// How often a packet went through the blocks before.
pub(super) struct Passes {
    slot: SlotId,
}

impl Passes {
    /// The count goes with a packet that is recirculated.
    pub(super) fn declare(cx: &mut Lowering<'_>) -> Passes {
        let slot = cx.ir.metadata("passes", Type::Bits(32));
        cx.ir.program_mut().field_lists.push(FieldList { id: RECIRCULATE_LIST, slots: vec![slot] });
        Passes { slot }
    }

    /// Counts where a packet starts.
    pub(super) fn count(&self, cx: &mut Lowering<'_>, first: BodyId) {
        let mut fills = Fills::default();
        let slot = self.slot;
        fills.add(Some(slot), move |cx| {
            let more = Expr::Read(slot).add(Expr::bits(32, 1));
            Expr::mux(path_is(cx, PacketPath::Recirculate), more, Expr::bits(32, 0))
        });
        fills.write(cx, first);
    }
}

/// The input structures of the blocks.
#[derive(Default)]
pub(super) struct Told {
    blocks: Vec<(BodyId, Typed)>,
}

impl Told {
    /// A block is told this structure.
    pub(super) fn block(&mut self, body: BodyId, input: Typed) {
        self.blocks.push((body, input));
    }

    /// Fills all of them. What a structure does not have is not filled.
    pub(super) fn fill(self, cx: &mut Lowering<'_>, passes: &Passes) {
        let role = |role: Intrinsic| move |cx: &mut Lowering<'_>| Expr::Read(cx.ir.intrinsic(role));
        let pass = passes.slot;
        for (body, input) in self.blocks {
            let mut fills = Fills::default();
            fills.add(input.slot(cx, "input_port"), role(Intrinsic::IngressPort));
            fills.add(input.slot(cx, "parser_error"), role(Intrinsic::ParserError));
            fills.add(input.slot(cx, "timestamp"), role(Intrinsic::IngressTimestamp));
            fills.add(input.slot(cx, "direction"), direction);
            fills.add(input.slot(cx, "pass"), move |_| Expr::Read(pass));
            fills.add(input.slot(cx, "recirculated"), |cx| path_is(cx, PacketPath::Recirculate));
            fills.write(cx, body);
        }
    }
}

fn direction(cx: &mut Lowering<'_>) -> Expr {
    let number = |cx: &Lowering<'_>, name| {
        Expr::bits(ENUM_BITS, enum_number(cx, "PNA_Direction_t", name).unwrap_or_default())
    };
    let (inwards, outwards) = (number(cx, "NET_TO_HOST"), number(cx, "HOST_TO_NET"));
    let port = Expr::Read(cx.ir.intrinsic(Intrinsic::IngressPort));
    Expr::mux(is_net_port(port), inwards, outwards)
}

/// The end of the main control.
pub(super) fn leave(code: &mut Code<'_, '_>, output: &Typed) {
    if let Some(class) = output.slot(code.cx, "class_of_service") {
        let slot = code.cx.ir.intrinsic(Intrinsic::Priority);
        let value = Expr::Read(class).zext_to(8, code.cx.ir.program());
        code.assign(slot, value);
    }
}

/// The end of the deparser.
pub(super) fn leave_deparser(code: &mut Code<'_, '_>) {
    let Architecture::Pna(model) = &code.cx.arch else { return };
    if let Some(wanted) = model.recirculate {
        let recirculate = code.cx.ir.intrinsic(Intrinsic::Recirculate);
        let list = code.cx.ir.intrinsic(Intrinsic::RecirculateList);
        code.assign(recirculate, Expr::Read(wanted));
        code.assign(list, Expr::bits(32, u128::from(RECIRCULATE_LIST)));
    }
}
