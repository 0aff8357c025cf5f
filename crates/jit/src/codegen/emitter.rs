//! Instructions on single values, memory for operands, and calls out of compiled code.

use super::fields::plain;
use crate::prefetch;
use crate::runtime::Helper;
use crate::site::Origins;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    AbiParam, Block, InstBuilder, InstructionData, Opcode, SigRef, Signature, StackSlot, StackSlotData,
    StackSlotKind, Type as ClifType, Value, types,
};
use cranelift_codegen::isa::TargetFrontendConfig;
use cranelift_frontend::{FuncInstBuilder, FunctionBuilder};
use millrace_midend::machine::{Callee, Does, MAX_ARGUMENTS, Origin};
use rustc_hash::FxHashMap;

/// Adds instructions at the end of the current block. It knows values and numbers ([`super::values`]), but neither the
/// program nor the packet.
///
/// What it remembers holds for the whole function: the width of a value, a signature, memory for operands. A buffer of
/// [`Emitter::buffer`] is free again after the operation that asked for it.
pub(super) struct Emitter<'a> {
    pub(super) b: FunctionBuilder<'a>,
    /// How many bits of numbers may be 1, the lowest ones; that holds wherever there is the number.
    pub(super) widths: FxHashMap<Value, u32>,
    /// Of helpers, by the number of their arguments.
    signatures: FxHashMap<usize, SigRef>,
    target: TargetFrontendConfig,
    /// Stack memory for the operands of one operation, grown to what is needed.
    scratch: Vec<StackSlot>,
    /// What instructions are made for.
    origins: Origins,
    /// What those are made for that come now.
    origin: Origin,
}

impl<'a> Emitter<'a> {
    pub(super) fn new(mut b: FunctionBuilder<'a>, target: TargetFrontendConfig) -> Emitter<'a> {
        let (mut origins, origin) = (Origins::default(), Origin::default());
        b.set_srcloc(origins.location(origin));
        Emitter {
            b,
            widths: FxHashMap::default(),
            signatures: FxHashMap::default(),
            target,
            scratch: Vec::new(),
            origins,
            origin,
        }
    }

    /// The next instruction.
    pub(super) fn ins(&mut self) -> FuncInstBuilder<'_, 'a> {
        self.b.ins()
    }

    /// How many instructions there are.
    pub(super) fn len(&self) -> usize {
        self.b.func.dfg.num_insts()
    }

    /// Ends the function; gives what its instructions were made for.
    pub(super) fn finish(mut self) -> Origins {
        self.b.seal_all_blocks();
        self.b.finalize(self.target);
        self.origins
    }

    /// What the instructions from here on are made for.
    pub(super) fn set_origin(&mut self, origin: Origin) {
        self.origin = origin;
        let location = self.origins.location(origin);
        self.b.set_srcloc(location);
    }

    /// What the instructions are made for that come now.
    pub(super) fn origin(&self) -> Origin {
        self.origin
    }

    pub(super) fn new_block(&mut self) -> Block {
        self.b.create_block()
    }

    /// Goes on in a block to which all edges are there.
    pub(super) fn start(&mut self, block: Block) {
        self.b.switch_to_block(block);
        self.b.seal_block(block);
    }

    pub(super) fn int(&mut self, value: u64) -> Value {
        self.ins().iconst(types::I64, value as i64)
    }

    pub(super) fn and(&mut self, a: Value, mask: u64) -> Value {
        if mask == u64::MAX {
            return a;
        }
        let mask = self.int(mask);
        self.ins().band(a, mask)
    }

    pub(super) fn shl(&mut self, a: Value, by: u32) -> Value {
        if by == 0 {
            return a;
        }
        let by = self.int(u64::from(by));
        self.ins().ishl(a, by)
    }

    pub(super) fn shr(&mut self, a: Value, by: u32) -> Value {
        if by == 0 {
            return a;
        }
        // A shift of 32 bits clears the upper half for nothing, which widening would not.
        if let Some(narrow) = self.widened_from(a)
            && by < 32
        {
            let by = self.ins().iconst(types::I32, i64::from(by));
            let moved = self.ins().ushr(narrow, by);
            return self.ins().uextend(types::I64, moved);
        }
        let by = self.int(u64::from(by));
        self.ins().ushr(a, by)
    }

    /// The number of 32 bits that a value is, with zeros above.
    fn widened_from(&self, value: Value) -> Option<Value> {
        let dfg = &self.b.func.dfg;
        let inst = dfg.value_def(dfg.resolve_aliases(value)).inst()?;
        let arg = match dfg.insts[inst] {
            InstructionData::Unary { opcode: Opcode::Uextend, arg } => arg,
            _ => return None,
        };
        (dfg.value_type(arg) == types::I32).then_some(arg)
    }

    pub(super) fn plus(&mut self, a: Value, by: i64) -> Value {
        if by == 0 {
            return a;
        }
        let by = self.ins().iconst(types::I64, by);
        self.ins().iadd(a, by)
    }

    /// Reverses the bytes of a number of whole bytes in a limb.
    pub(super) fn swap(&mut self, value: Value, width: u32) -> Value {
        let ty = match width {
            24 | 40 | 48 | 56 => {
                let up = self.shl(value, 64 - width);
                return self.ins().bswap(up);
            }
            64 => return self.ins().bswap(value),
            32 => types::I32,
            16 => types::I16,
            _ => return value,
        };
        let narrow = self.ins().ireduce(ty, value);
        let swapped = self.ins().bswap(narrow);
        self.ins().uextend(types::I64, swapped)
    }

    pub(super) fn is_zero(&mut self, value: Value) -> Value {
        let zero = self.int(0);
        self.ins().icmp(IntCC::Equal, value, zero)
    }

    pub(super) fn not_zero(&mut self, value: Value) -> Value {
        let zero = self.int(0);
        self.ins().icmp(IntCC::NotEqual, value, zero)
    }

    /// The logical opposite of a truth value.
    pub(super) fn negate(&mut self, truth: Value) -> Value {
        let one = self.ins().iconst(types::I8, 1);
        self.ins().bxor(truth, one)
    }

    /// The number that a value always is.
    pub(super) fn constant(&self, value: Value) -> Option<i64> {
        let dfg = &self.b.func.dfg;
        let inst = dfg.value_def(dfg.resolve_aliases(value)).inst()?;
        match dfg.insts[inst] {
            InstructionData::UnaryImm { opcode: Opcode::Iconst, imm } => Some(imm.bits()),
            _ => None,
        }
    }

    pub(super) fn load_word(&mut self, ty: ClifType, address: Value, offset: u32) -> Value {
        self.ins().load(ty, plain(), address, offset as i32)
    }

    pub(super) fn store_word(&mut self, value: Value, address: Value, offset: u32) {
        self.ins().store(plain(), value, address, offset as i32);
    }

    /// An element of an array of words of 1, 2 or 4 bytes.
    pub(super) fn load_element(&mut self, base: Value, index: Value, word: u32) -> Value {
        let address = self.element(base, index, word);
        match word {
            1 => self.ins().uload8(types::I64, plain(), address, 0),
            2 => self.ins().uload16(types::I64, plain(), address, 0),
            _ => self.ins().uload32(plain(), address, 0),
        }
    }

    /// Where an element of an array of elements of a power of two of bytes lies.
    pub(super) fn element(&mut self, base: Value, index: Value, bytes: u32) -> Value {
        let offset = self.shl(index, bytes.trailing_zeros());
        self.ins().iadd(base, offset)
    }

    /// Where element 0 of an array in pieces would lie if the piece of an element went back to it: `starts[log2(index | 63)]`
    /// (`millrace_tables` makes its first piece of 64).
    pub(super) fn piece_start(&mut self, starts: Value, index: Value) -> Value {
        let at_least = self.ins().bor_imm_u(index, 63);
        let zeros = self.ins().clz(at_least);
        let piece = self.ins().bxor_imm_u(zeros, 63);
        let start = self.element(starts, piece, 8);
        self.load_word(types::I64, start, 0)
    }

    pub(super) fn add_one(&mut self, base: Value, at: usize) {
        let count = self.load_word(types::I64, base, at as u32);
        let count = self.plus(count, 1);
        self.store_word(count, base, at as u32);
    }

    /// Stack memory of at least so many bytes for the current operation; its address. Different numbers give different
    /// memory.
    pub(super) fn buffer(&mut self, number: usize, bytes: u32) -> Value {
        let bytes = bytes.next_multiple_of(8).max(8);
        while self.scratch.len() <= number {
            let data = StackSlotData::new(StackSlotKind::ExplicitSlot, 8, 3);
            let slot = self.b.create_sized_stack_slot(data);
            self.scratch.push(slot);
        }
        let slot = self.scratch[number];
        let size = &mut self.b.func.sized_stack_slots[slot].size;
        *size = (*size).max(bytes);
        self.ins().stack_addr(types::I64, slot, 0)
    }

    pub(super) fn words_in_memory(&mut self, buffer: usize, words: &[Value]) -> Value {
        let address = self.buffer(buffer, 8 * words.len() as u32);
        for (at, word) in words.iter().enumerate() {
            self.store_word(*word, address, 8 * at as u32);
        }
        address
    }

    /// Calls a helper; all arguments and the result are `I64`. What helpers without a result give means nothing.
    pub(super) fn call(&mut self, helper: Helper, args: &[Value]) -> Value {
        let address = self.int(helper.address() as u64);
        let mut known = [None; MAX_ARGUMENTS];
        for (known, arg) in known.iter_mut().zip(args) {
            *known = self.constant(*arg).map(|constant| constant as u64);
        }
        self.call_address(Callee::Helper { name: helper.name(), known }, address, args)
    }

    pub(super) fn call_address(&mut self, callee: Callee, address: Value, args: &[Value]) -> Value {
        let signature = self.signature(args.len());
        let around = self.origin;
        self.set_origin(Origin { does: Does::Call(callee), ..around });
        let call = self.ins().call_indirect(signature, address, args);
        self.set_origin(around);
        self.b.inst_results(call)[0]
    }

    /// Asks for the cache line at an address, which need not be valid.
    pub(super) fn prefetch(&mut self, address: Value) {
        self.ins().sload8(prefetch::LOADED, prefetch::flags(), address, 0);
    }

    fn signature(&mut self, params: usize) -> SigRef {
        if let Some(signature) = self.signatures.get(&params) {
            return *signature;
        }
        let mut signature = Signature::new(self.target.default_call_conv);
        signature.params.resize(params, AbiParam::new(types::I64));
        signature.returns.push(AbiParam::new(types::I64));
        let signature = self.b.import_signature(signature);
        self.signatures.insert(params, signature);
        signature
    }
}
