//! Headers: where they are, whether they are valid, and how a header gets from one place to another.

use super::fields::{Base, words};
use super::slots::SlotAccess;
use super::values::Num;
use super::variables::PacketVar;
use crate::runtime::Helper;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, BlockArg, InstBuilder, StackSlotData, StackSlotKind, Value, types};
use millrace_midend::facts::{Cursor, Facts, HeaderPlace};
use millrace_midend::limbs;
use millrace_midend::specialise::Specialised;
use millrace_pipeline::*;

impl SlotAccess<'_> {
    /// Makes the zeros for headers that may be invalid and point there, as many as fields of them may read.
    pub(super) fn make_zeros(&mut self, special: &Specialised) {
        let places = special.order.iter().flat_map(|node| &special.nodes[*node].entry.places);
        let headers = self.program.headers.values().cycle();
        let pointing = places.zip(headers).filter(|(place, _)| **place == HeaderPlace::Maybe);
        let Some(bits) = pointing.map(|(_, header)| header.fixed_bits).max() else { return };
        let bytes = (bits.div_ceil(8) + millrace_frames::TAILROOM as u32).next_multiple_of(8);
        let slot = StackSlotData::new(StackSlotKind::ExplicitSlot, bytes, 3);
        self.zeros = Some(self.e().b.create_sized_stack_slot(slot));
        let (address, bytes) = (self.zeros(), self.e().int(u64::from(bytes)));
        self.e().call(Helper::Zero, &[address, bytes]);
    }

    /// Where the zeros are.
    fn zeros(&mut self) -> Value {
        match self.zeros {
            Some(slot) => self.ins().stack_addr(types::I64, slot, 0),
            // Nothing points there.
            None => self.e().int(0),
        }
    }

    /// Turns what the current facts say into what other, more general ones say.
    pub(super) fn conform(&mut self, wanted: &Facts) {
        for header in self.program.headers.keys() {
            let (from, to) = (self.facts.place(header), wanted.place(header));
            if self.is_as_wanted(header, to) {
                continue;
            }
            match to {
                HeaderPlace::Pointed | HeaderPlace::Maybe => self.point_to(header),
                HeaderPlace::Stored => self.store_header(header),
                HeaderPlace::Unknown => {
                    let flag = self.is_valid(header);
                    self.packet.set(PacketVar::Valid(header), flag);
                    match from {
                        HeaderPlace::Invalid => self.clear_fields(header),
                        _ => self.store_header(header),
                    }
                }
                HeaderPlace::Invalid | HeaderPlace::At(_) => {
                    debug_assert!(false, "{from:?} does not become {to:?}")
                }
            }
        }
        if let (Cursor::At(at), Cursor::Byte | Cursor::Bit) = (self.facts.cursor, wanted.cursor) {
            let at = self.e().int(u64::from(at));
            self.packet.set(PacketVar::Cursor, at);
        }
    }

    /// Whether the current facts are what others say without code.
    pub(super) fn conforms(&self, wanted: &Facts) -> bool {
        let mut headers = self.program.headers.keys();
        let is_cursor = match (self.facts.cursor, wanted.cursor) {
            (Cursor::At(_), to) => matches!(to, Cursor::At(_)),
            _ => true,
        };
        is_cursor && headers.all(|header| self.is_as_wanted(header, wanted.place(header)))
    }

    /// Whether nothing is to be done for a header to be at a place.
    fn is_as_wanted(&self, header: HeaderId, to: HeaderPlace) -> bool {
        match (self.facts.place(header), to) {
            (from, to) if from == to => true,
            // The condition on the edge told; while a header may be either, its fields are in storage.
            (HeaderPlace::Unknown, HeaderPlace::Stored | HeaderPlace::Invalid)
            | (HeaderPlace::Maybe, HeaderPlace::Invalid) => true,
            (_, HeaderPlace::Pointed | HeaderPlace::Maybe) => self.packet.is_kept(PacketVar::Pointer(header)),
            _ => false,
        }
    }

    /// Whether a header is valid, as `I64`.
    pub(super) fn is_valid(&mut self, header: HeaderId) -> Value {
        match self.facts.place(header) {
            HeaderPlace::Invalid => self.e().int(0),
            HeaderPlace::Unknown => self.packet.get(PacketVar::Valid(header)),
            HeaderPlace::Maybe => {
                let (pointer, zeros) = (self.pointer(header), self.zeros());
                let valid = self.ins().icmp(IntCC::NotEqual, pointer, zeros);
                self.ins().uextend(types::I64, valid)
            }
            HeaderPlace::At(_) | HeaderPlace::Pointed | HeaderPlace::Stored => self.e().int(1),
        }
    }

    /// Goes to `otherwise` with these arguments unless a header is valid; goes on where it is.
    pub(super) fn enter_if_valid(&mut self, header: HeaderId, otherwise: Block, args: &[BlockArg]) {
        if matches!(self.facts.place(header), HeaderPlace::Unknown | HeaderPlace::Maybe) {
            let valid = self.is_valid(header);
            let inside = self.e().new_block();
            self.ins().brif(valid, inside, &[], otherwise, args);
            self.e().start(inside);
        }
    }

    /// Where a header is that is [`HeaderPlace::Pointed`] or [`HeaderPlace::Maybe`].
    pub(super) fn pointer(&mut self, header: HeaderId) -> Value {
        self.packet.get(PacketVar::Pointer(header))
    }

    /// A header's own pointer says where it is.
    fn point_to(&mut self, header: HeaderId) {
        let pointer = match self.facts.place(header) {
            HeaderPlace::At(at) => {
                let data = self.packet.data();
                self.e().plus(data, i64::from(at))
            }
            // The condition on the edge told what was unknown.
            HeaderPlace::Invalid | HeaderPlace::Unknown => self.zeros(),
            HeaderPlace::Pointed | HeaderPlace::Maybe | HeaderPlace::Stored => return,
        };
        self.packet.set(PacketVar::Pointer(header), pointer);
        self.packet.cache.forget(Base::Header(header));
    }

    /// A pointer that is kept in memory is always right, and leads to the zeros while its header is invalid, so that edges
    /// need not set it. This is for a header that is where the facts say now.
    pub(super) fn point_early(&mut self, header: HeaderId) {
        if self.packet.is_kept(PacketVar::Pointer(header)) {
            self.point_to(header);
        }
    }

    /// As [`SlotAccess::point_early`], for a header that is invalid.
    pub(super) fn point_nowhere(&mut self, header: HeaderId) {
        if self.packet.is_kept(PacketVar::Pointer(header)) {
            let zeros = self.zeros();
            self.packet.set(PacketVar::Pointer(header), zeros);
            self.packet.cache.forget(Base::Header(header));
        }
    }

    /// The same for all headers.
    pub(super) fn point_all_nowhere(&mut self) {
        self.program.headers.keys().for_each(|header| self.point_nowhere(header));
    }

    /// The cursor in bits.
    pub(super) fn cursor(&mut self) -> Value {
        match self.facts.cursor {
            Cursor::At(at) => self.e().int(u64::from(at)),
            Cursor::Byte | Cursor::Bit => self.packet.get(PacketVar::Cursor),
        }
    }

    pub(super) fn move_cursor(&mut self, bits: Value) {
        let cursor = self.cursor();
        let moved = self.ins().iadd(cursor, bits);
        self.packet.set(PacketVar::Cursor, moved);
    }

    pub(super) fn set_valid(&mut self, header: HeaderId) {
        let made = self.facts.made(self.program, header);
        match (self.facts.place(header), made) {
            (HeaderPlace::Invalid, HeaderPlace::Pointed) => self.make_header(header),
            (HeaderPlace::Invalid, _) => self.clear_fields(header),
            (HeaderPlace::Maybe, HeaderPlace::Pointed) => {
                let valid = self.is_valid(header);
                let (make, done) = (self.e().new_block(), self.e().new_block());
                self.ins().brif(valid, done, &[], make, &[]);
                self.e().start(make);
                let cache = self.packet.cache.clone();
                self.make_header(header);
                self.ins().jump(done, &[]);
                self.e().start(done);
                self.packet.cache = cache;
                self.packet.cache.forget(Base::Header(header));
                self.packet.forget(PacketVar::Pointer(header));
            }
            // Zeros become the fields of one that was invalid.
            (HeaderPlace::Maybe, _) => self.store_header(header),
            _ => {}
        }
    }

    /// A header of zeros in the packet's context, which its pointer leads to.
    fn make_header(&mut self, header: HeaderId) {
        let context = self.packet.context();
        let at = self.layout.made[header];
        let address = self.e().plus(context, i64::from(at));
        let bytes = self.program.headers[header].fixed_bits / 8;
        let zero = self.e().int(0);
        for (at, size) in words(0, bytes) {
            self.packet.store_raw(Base::Other, address, at, size, zero);
        }
        self.packet.set(PacketVar::Pointer(header), address);
        self.packet.cache.forget(Base::Header(header));
    }

    /// A header's fields get storage of their own, where they are only in the packet.
    pub(super) fn store_header(&mut self, header: HeaderId) {
        if matches!(self.facts.place(header), HeaderPlace::At(_) | HeaderPlace::Pointed | HeaderPlace::Maybe)
        {
            for field in &self.program.headers[header].fields {
                let val = self.read(*field);
                self.set_storage(*field, val);
            }
        }
    }

    /// The storage of a header's fields becomes 0.
    fn clear_fields(&mut self, header: HeaderId) {
        for field in &self.program.headers[header].fields {
            self.clear_storage(*field);
        }
    }

    /// Reads all fields of a header into their storage, from a bit that shows at run time.
    pub(super) fn fields_at(&mut self, header: HeaderId, data: Value, start: Value, varbit: Option<Value>) {
        let mut after = false;
        for field in &self.program.headers[header].fields {
            let Home::Header { offset, .. } = self.program.slots[*field].home else { continue };
            let mut at = self.e().plus(start, i64::from(offset));
            if after && let Some(bits) = varbit {
                at = self.ins().iadd(at, bits);
            }
            match self.program.slots[*field].ty {
                Type::Varbit(_) => {
                    let to = self.in_context(*field);
                    let bits = varbit.unwrap_or(at);
                    self.e().call(Helper::ReadVarbit, &[to, data, at, bits]);
                    after = true;
                }
                Type::Bool | Type::Bits(_) => {
                    let width = millrace_midend::type_width(self.program.slots[*field].ty);
                    let num = self.read_bits(data, at, width);
                    let val = self.as_type(*field, num);
                    self.set_storage(*field, val);
                }
            }
        }
    }

    /// Bits of the packet from a bit on that shows at run time.
    pub(super) fn read_bits(&mut self, data: Value, at: Value, width: u32) -> Num {
        let bits = self.e().int(u64::from(width));
        let result = self.e().buffer(0, 8 * limbs(width) as u32);
        self.e().call(Helper::ReadBits, &[data, at, bits, result]);
        self.e().fill_number(result, width)
    }

    /// The bits that all valid headers have together.
    pub(super) fn header_bits(&mut self) -> Value {
        let mut constant = 0;
        let mut sum = None;
        for (id, header) in &self.program.headers {
            let place = self.facts.place(id);
            if place == HeaderPlace::Invalid {
                continue;
            }
            let varbits =
                header.fields.iter().find(|field| matches!(self.program.slots[**field].ty, Type::Varbit(_)));
            let mut own = None;
            if let Some(field) = varbits {
                // The length is 0 while the header is invalid.
                let (context, at) = (self.packet.context(), self.layout.slots[*field]);
                own = Some(self.e().load_word(types::I64, context, at));
            }
            if matches!(place, HeaderPlace::Unknown | HeaderPlace::Maybe) {
                let valid = self.is_valid(id);
                let mask = self.ins().ineg(valid);
                let bits = self.e().and(mask, u64::from(header.fixed_bits));
                own = Some(match own {
                    Some(own) => self.ins().iadd(own, bits),
                    None => bits,
                });
            } else {
                constant += i64::from(header.fixed_bits);
            }
            sum = match (sum, own) {
                (Some(sum), Some(own)) => Some(self.ins().iadd(sum, own)),
                (sum, own) => sum.or(own),
            };
        }
        match sum {
            Some(sum) => self.e().plus(sum, constant),
            None => self.e().int(constant as u64),
        }
    }

    /// The length of the packet in bytes with the headers that it has now.
    pub(super) fn length_now(&mut self) -> Value {
        let bits = self.header_bits();
        let now = self.e().shr(bits, 3);
        let parsed = self.packet.get(PacketVar::Parsed);
        let parsed = self.e().shr(parsed, 3);
        let len = self.packet.length();
        let sum = self.ins().iadd(len, now);
        let difference = self.ins().isub(sum, parsed);
        let under = self.ins().icmp(IntCC::UnsignedLessThan, sum, parsed);
        let zero = self.e().int(0);
        self.ins().select(under, zero, difference)
    }
}
