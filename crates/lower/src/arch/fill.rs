//! What the switch tells a program: the fields of the architecture's metadata are filled where a block starts, but
//! only those that the program reads.

use millrace_pipeline::{Block, BlockId, BodyId, Expr, Inst, SlotId, Terminator, Type};

use crate::context::Lowering;
use crate::homes;

/// The value of a field, made when it is wanted: so a role that nobody reads gets no slot.
pub(super) type Source<'s> = Box<dyn FnOnce(&mut Lowering<'_>) -> Expr + 's>;

/// Fields that are filled, in order.
#[derive(Default)]
pub(super) struct Fills<'s> {
    list: Vec<(SlotId, Source<'s>)>,
}

impl<'s> Fills<'s> {
    /// Fills a field, if there is one, with a value that is cut or widened to it.
    pub(super) fn add(&mut self, field: Option<SlotId>, source: impl FnOnce(&mut Lowering<'_>) -> Expr + 's) {
        if let Some(slot) = field {
            self.list.push((slot, Box::new(source)));
        }
    }

    /// Writes the code before a body. Everything that may read the fields is lowered by now.
    pub(super) fn write(self, cx: &mut Lowering<'_>, body: BodyId) {
        let read = homes::slots_read(cx.ir.program());
        let mut insts = Vec::new();
        for (dst, source) in self.list {
            if !read.contains(&dst) {
                continue;
            }
            let value = source(cx);
            let program = cx.ir.program();
            let mut told = Vec::new();
            value.for_each_read(&mut |slot| told.push(program.slots[slot].name.as_str()));
            cx.sites.is_filled((dst, &program.slots[dst].name), &told);
            let value = match (program.slots[dst].ty, value.ty(program)) {
                (Type::Bits(width), Type::Bits(_)) => value.zext_to(width, program),
                (Type::Bool, Type::Bits(_)) => value.bits_to_bool(program),
                (Type::Bits(width), Type::Bool) => value.bool_to_bits().zext_to(width, program),
                _ => value,
            };
            insts.push(Inst::Assign { dst, value });
        }
        let body = &mut cx.ir.program_mut().bodies[body];
        let entry = body.entry;
        // The entry may be the target of a jump back; then it gets a block before it.
        if body.edges_in()[entry] > 1 && !insts.is_empty() {
            let block = Block { state: None, line: None, insts, term: Terminator::Goto(entry) };
            let first: BlockId = body.blocks.push(block);
            body.entry = first;
        } else {
            body.blocks[entry].insts.splice(0..0, insts);
        }
    }
}
