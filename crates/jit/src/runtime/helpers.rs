//! The functions that compiled code calls. All of them take and give 64-bit words.

use super::Writer;
use super::host::Host;
use super::lookup::in_lines;
use super::writer::varbit_of;
use crate::abi::Moved;
use millrace_midend::type_width;
use millrace_pipeline::bits;
use millrace_pipeline::semantics::Value;
use millrace_pipeline::*;
use millrace_state::Color;
use millrace_state::messages::varbit_word;
use std::slice;

macro_rules! helpers {
    ($($name:ident = $function:ident;)*) => {
        /// A helper.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Helper { $($name,)* }

        impl Helper {
            /// Where it is.
            pub(crate) fn address(self) -> usize {
                match self { $(Helper::$name => $function as *const () as usize,)* }
            }

            /// What it is called.
            pub(crate) fn name(self) -> &'static str {
                match self { $(Helper::$name => stringify!($function),)* }
            }
        }
    };
}

helpers! {
    Wide = wide;
    CopyVarbit = copy_varbit;
    VarbitsEqual = varbits_equal;
    Zero = zero;
    ReadBits = read_bits;
    ReadVarbit = read_varbit;
    Hash = hash;
    WriterStart = writer_start;
    WriterBits = writer_bits;
    WriterVarbit = writer_varbit;
    WriterPayload = writer_payload;
    WriterHash = writer_hash;
    WriterFinish = writer_finish;
    PutInFront = put_in_front;
    ArgumentBool = argument_bool;
    ArgumentBits = argument_bits;
    ArgumentVarbit = argument_varbit;
    AddToMessage = add_to_message;
    AddVarbitToMessage = add_varbit_to_message;
    Digest = digest;
    Log = log;
    Call = call;
    CallResult = call_result;
    AssertFailed = assert_failed;
    Count = count;
    CountDirect = count_direct;
    Meter = meter;
    // As `Meter`, for accounts that workers share: code asks its own ones itself.
    AskShared = ask_shared;
    MeterDirect = meter_direct;
    RegisterRead = register_read;
    RegisterWrite = register_write;
    AtomicBegin = atomic_begin;
    AtomicEnd = atomic_end;
    Random = random;
    ValueSet = value_set;
    InLines = in_lines;
    Unpack = unpack;
}

/// Operations on numbers wider than a limb that are calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum WideOp {
    Mul,
    Div,
    Mod,
    AddSat,
    SubSat,
    AddSatSigned,
    SubSatSigned,
    Shl,
    Shr,
    ShrSigned,
}

impl WideOp {
    const ALL: [(WideOp, BinaryOp); 10] = [
        (WideOp::Mul, BinaryOp::Mul),
        (WideOp::Div, BinaryOp::Div),
        (WideOp::Mod, BinaryOp::Mod),
        (WideOp::AddSat, BinaryOp::AddSat),
        (WideOp::SubSat, BinaryOp::SubSat),
        (WideOp::AddSatSigned, BinaryOp::AddSatSigned),
        (WideOp::SubSatSigned, BinaryOp::SubSatSigned),
        (WideOp::Shl, BinaryOp::Shl),
        (WideOp::Shr, BinaryOp::Shr),
        (WideOp::ShrSigned, BinaryOp::ShrSigned),
    ];

    /// That of an operation that is generated for narrow numbers only.
    pub(crate) fn of(op: BinaryOp) -> WideOp {
        let found = WideOp::ALL.iter().find(|(_, of)| *of == op);
        debug_assert!(found.is_some(), "{op:?} is generated for all widths");
        found.map_or(WideOp::Mul, |(wide, _)| *wide)
    }
}

/// An empty varbit.
static EMPTY: [u64; 2] = [0; 2];

/// Where an empty varbit is.
pub(crate) fn empty_varbit() -> usize {
    EMPTY.as_ptr() as usize
}

// SAFETY of all helpers: compiled code of this crate alone calls them, with addresses of its stack slots, of the packet's
// context, of the packet, and of the host that `Env` holds; each block names what it takes for granted of them.

unsafe fn limbs<'a>(address: *const u64, width: u64) -> &'a [u64] {
    // SAFETY: `address` is that of a number of this width in memory.
    unsafe { slice::from_raw_parts(address, width.div_ceil(64) as usize) }
}

unsafe fn give(to: *mut u64, bits: &Bits) {
    for (at, limb) in bits.limbs().enumerate() {
        // SAFETY: there is room for a number of the width of `bits`.
        unsafe { *to.add(at) = limb };
    }
}

unsafe fn host<'a>(host: *mut Host<'static>) -> &'a mut Host<'static> {
    // SAFETY: `Env::host` is valid while compiled code runs, and nothing else uses it then.
    unsafe { &mut *host }
}

unsafe extern "C" fn wide(op: u64, width: u64, a: *const u64, b: *const u64, result: *mut u64) -> u64 {
    let Some((wide, op)) = WideOp::ALL.get(op as usize).copied() else { return 0 };
    let shifts = matches!(wide, WideOp::Shl | WideOp::Shr | WideOp::ShrSigned);
    let amount = if shifts { 64 } else { width };
    // SAFETY: two operands in memory, and room for a result; the second operand of a shift has one limb.
    unsafe {
        let a = Bits::from_limbs(width as u32, limbs(a, width));
        let b = Bits::from_limbs(amount as u32, limbs(b, amount));
        let value = semantics::binary(op, &Value::Bits(a), &Value::Bits(b));
        give(result, &value.as_bits());
    }
    0
}

unsafe extern "C" fn copy_varbit(to: *mut u64, from: *const u64) -> u64 {
    // SAFETY: two varbits of one type, which may be the same; as long as the length says.
    unsafe {
        let words = 1 + (*from as usize).div_ceil(64);
        std::ptr::copy(from, to, words);
    }
    0
}

unsafe extern "C" fn varbits_equal(a: *const u64, b: *const u64) -> u64 {
    // SAFETY: two varbits.
    unsafe {
        let bytes = |v: *const u64| slice::from_raw_parts(v.add(1).cast::<u8>(), (*v as usize).div_ceil(8));
        u64::from(*a == *b && bytes(a) == bytes(b))
    }
}

unsafe extern "C" fn zero(to: *mut u8, bytes: u64) -> u64 {
    // SAFETY: so many bytes of the context.
    unsafe { std::ptr::write_bytes(to, 0, bytes as usize) };
    0
}

/// The bytes of the packet that cover `width` bits from bit `at` on, and the bit there.
unsafe fn covering<'a>(data: *const u8, at: u64, width: u64) -> (&'a [u8], usize) {
    let first = at / 8;
    let end = (at + width).div_ceil(8);
    // SAFETY: the bits are in the packet, which was checked.
    let bytes = unsafe { slice::from_raw_parts(data.add(first as usize), (end - first) as usize) };
    (bytes, (at % 8) as usize)
}

unsafe extern "C" fn read_bits(data: *const u8, at: u64, width: u64, result: *mut u64) -> u64 {
    // SAFETY: the bits are in the packet; room for a number of this width.
    unsafe {
        let (bytes, offset) = covering(data, at, width);
        for limb in 0..width.div_ceil(64) as usize {
            let left = width as usize - 64 * limb;
            *result.add(limb) = bits::lowest_word(bytes, offset, left);
        }
    }
    0
}

unsafe extern "C" fn unpack(to: *mut Host<'static>, id: u64, from: *const u8, context: *mut u8) -> u64 {
    // SAFETY: the host, a header without a varbit that lies there, or as many zeros, and a packet's context.
    unsafe {
        let host = host(to);
        let header = &host.program().headers[HeaderId::from_u32(id as u32)];
        let bytes = slice::from_raw_parts(from, header.fixed_bits.div_ceil(8) as usize);
        for field in &header.fields {
            let slot = &host.program().slots[*field];
            let Home::Header { offset, .. } = slot.home else { continue };
            if let Some(bits) = Bits::read_at(bytes, offset as usize, type_width(slot.ty)) {
                give(context.add(host.layout.slots[*field] as usize).cast(), &bits);
            }
        }
    }
    0
}

unsafe extern "C" fn read_varbit(to: *mut u64, data: *const u8, at: u64, width: u64) -> u64 {
    // SAFETY: the bits are in the packet; a varbit in the context has room for the most bits of its type.
    unsafe {
        *to = width;
        if width == 0 {
            return 0;
        }
        let (bytes, offset) = covering(data, at, width);
        let to = slice::from_raw_parts_mut(to.add(1).cast::<u8>(), width.div_ceil(8) as usize);
        if (offset as u64 | width).is_multiple_of(8) {
            to.copy_from_slice(bytes);
        } else {
            // Words from the last on: the first one may be shorter.
            for (number, word) in to.rchunks_mut(8).enumerate() {
                let left = width as usize - 64 * number;
                let value = bits::lowest_word(bytes, offset, left);
                match word.as_mut_array() {
                    Some(whole) => *whole = value.to_be_bytes(),
                    None => word.copy_from_slice(&value.to_be_bytes()[8 - word.len()..]),
                }
            }
        }
    }
    0
}

/// Numbers of hashes of their own start here, those of algorithms end before.
const OWN_HASHES: u64 = 1 << 32;

/// What computes a hash, as helpers take it.
pub(crate) fn hasher_number(algorithm: HashAlgorithm, own: Option<HashId>) -> u64 {
    own.map_or(algorithm as u64, |own| OWN_HASHES + u64::from(own.as_u32()))
}

/// The hash by what has that number.
fn hash_by(host: &Host<'_>, number: u64, data: &[u8]) -> u64 {
    if let Some(own) = number.checked_sub(OWN_HASHES) {
        return host.state.own_hash(HashId::from_u32(own as u32)).compute(data);
    }
    let found = HashAlgorithm::ALL.iter().find(|algorithm| **algorithm as u64 == number);
    found.map_or(0, |algorithm| algorithm.compute(data))
}

unsafe extern "C" fn hash(to: *mut Host<'static>, number: u64, data: *const u8, bytes: u64) -> u64 {
    // SAFETY: the host; a buffer of so many bytes.
    unsafe { hash_by(host(to), number, slice::from_raw_parts(data, bytes as usize)) }
}

unsafe extern "C" fn writer_start(to: *mut Host<'static>, writer: u64, room: u64) -> u64 {
    // SAFETY: the host.
    unsafe { host(to) }.writer(writer).begin(room as usize);
    0
}

unsafe extern "C" fn writer_bits(to: *mut Host<'static>, writer: u64, width: u64, value: *const u64) -> u64 {
    // SAFETY: the host; a number of this width.
    unsafe { host(to).writer(writer).push_limbs(width as u32, limbs(value, width)) };
    0
}

unsafe extern "C" fn writer_varbit(to: *mut Host<'static>, writer: u64, value: *const u64) -> u64 {
    // SAFETY: the host; a varbit.
    unsafe {
        let bytes = slice::from_raw_parts(value.add(1).cast::<u8>(), (*value as usize).div_ceil(8));
        host(to).writer(writer).push_number(*value as u32, bytes);
    }
    0
}

unsafe extern "C" fn writer_payload(to: *mut Host<'static>, data: *const u8, len: u64, cursor: u64) -> u64 {
    // SAFETY: the host; the packet.
    unsafe {
        host(to).write_payload(Writer::Hash, slice::from_raw_parts(data, len as usize), cursor as usize)
    };
    0
}

unsafe extern "C" fn writer_hash(to: *mut Host<'static>, number: u64) -> u64 {
    // SAFETY: the host.
    let host = unsafe { host(to) };
    let writer = std::mem::take(host.writer(Writer::Hash as u64));
    let sum = hash_by(host, number, writer.bytes());
    *host.writer(Writer::Hash as u64) = writer;
    sum
}

unsafe extern "C" fn writer_finish(
    to: *mut Host<'static>,
    packet: *mut Moved,
    cursor: u64,
    growth: u64,
) -> u64 {
    // SAFETY: the host; the packet whose headers were appended.
    unsafe { host(to).put_together(&mut *packet, cursor as usize, growth as usize) };
    0
}

unsafe extern "C" fn put_in_front(
    to: *mut Host<'static>,
    packet: *mut Moved,
    cursor: u64,
    growth: u64,
    headers: *const u8,
    len: u64,
) -> u64 {
    // SAFETY: the host; the packet; its headers, which lie elsewhere.
    unsafe {
        let headers = slice::from_raw_parts(headers, len as usize);
        host(to).put_in_front(&mut *packet, cursor as usize, growth as usize, headers);
    }
    0
}

unsafe extern "C" fn argument_bool(to: *mut Host<'static>, truth: u64) -> u64 {
    // SAFETY: the host.
    unsafe { host(to) }.arguments.push(Value::Bool(truth != 0));
    0
}

unsafe extern "C" fn argument_bits(to: *mut Host<'static>, width: u64, value: *const u64) -> u64 {
    // SAFETY: the host; a number of this width.
    unsafe { host(to).arguments.push(Value::Bits(Bits::from_limbs(width as u32, limbs(value, width)))) };
    0
}

unsafe extern "C" fn argument_varbit(to: *mut Host<'static>, value: *const u64) -> u64 {
    // SAFETY: the host; a varbit.
    unsafe { host(to).arguments.push(Value::Varbit(varbit_of(value))) };
    0
}

unsafe extern "C" fn add_to_message(to: *mut Host<'static>, count: u64, words: *const u64) -> u64 {
    // SAFETY: the host; so many words.
    unsafe { host(to).effects.add_to_message(slice::from_raw_parts(words, count as usize)) };
    0
}

unsafe extern "C" fn add_varbit_to_message(to: *mut Host<'static>, value: *const u64) -> u64 {
    // SAFETY: the host; a varbit, which has its bytes after its length, the highest first.
    unsafe {
        let len = *value;
        let bytes = slice::from_raw_parts(value.add(1).cast::<u8>(), (len as usize).div_ceil(8));
        let effects = &mut *host(to).effects;
        effects.add_to_message(&[varbit_word(len as u32)]);
        for limb in bytes.rchunks(8) {
            let limb = limb.iter().fold(0, |limb, byte| limb << 8 | u64::from(*byte));
            effects.add_to_message(&[limb]);
        }
    }
    0
}

unsafe extern "C" fn digest(to: *mut Host<'static>, count: u64, words: *const u64) -> u64 {
    // SAFETY: the host; so many words.
    unsafe { host(to).digest(slice::from_raw_parts(words, count as usize)) };
    0
}

unsafe extern "C" fn log(to: *mut Host<'static>, text: u64) -> u64 {
    // SAFETY: the host.
    unsafe { host(to) }.log(text);
    0
}

unsafe extern "C" fn call(
    to: *mut Host<'static>,
    id: u64,
    args: *const u64,
    counts: u64,
    packet: *mut Moved,
    cursor: u64,
) -> u64 {
    let (args_len, results) = ((counts & 0xffff) as usize, (counts >> 16) as usize);
    // SAFETY: the host; so many words; the packet, which nothing else uses meanwhile.
    unsafe {
        let args = slice::from_raw_parts(args, args_len);
        host(to).call(PluginId::from_u32(id as u32), args, results, &mut *packet, cursor as usize).into()
    }
}

unsafe extern "C" fn call_result(to: *mut Host<'static>, index: u64) -> u64 {
    // SAFETY: the host.
    unsafe { host(to) }.results.get(index as usize).copied().unwrap_or(0)
}

unsafe extern "C" fn assert_failed(to: *mut Host<'static>, text: u64) -> u64 {
    // SAFETY: the host.
    unsafe { host(to) }.assert_failed(text);
    0
}

unsafe extern "C" fn count(to: *mut Host<'static>, id: u64, index: u64, bytes: u64) -> u64 {
    // SAFETY: the host.
    unsafe { host(to) }.state.count(CounterId::from_u32(id as u32), index, bytes);
    0
}

unsafe extern "C" fn count_direct(to: *mut Host<'static>, id: u64, entry: u64, bytes: u64) -> u64 {
    if let Some(entry) = Host::entry(entry) {
        // SAFETY: the host.
        unsafe { host(to) }.state.count_direct(TableId::from_u32(id as u32), entry, bytes);
    }
    0
}

fn color(number: u64) -> Color {
    match number {
        0 => Color::Green,
        1 => Color::Yellow,
        _ => Color::Red,
    }
}

unsafe extern "C" fn meter(
    to: *mut Host<'static>,
    id: u64,
    index: u64,
    bytes: u64,
    before: u64,
    time_ns: u64,
) -> u64 {
    // SAFETY: the host.
    let host = unsafe { host(to) };
    host.state.meter(MeterId::from_u32(id as u32), index, time_ns, bytes, color(before)) as u64
}

unsafe extern "C" fn ask_shared(
    to: *mut Host<'static>,
    id: u64,
    index: u64,
    bytes: u64,
    before: u64,
    time_ns: u64,
) -> u64 {
    // SAFETY: as `meter`.
    unsafe { meter(to, id, index, bytes, before, time_ns) }
}

unsafe extern "C" fn meter_direct(
    to: *mut Host<'static>,
    id: u64,
    entry: u64,
    bytes: u64,
    before: u64,
    time_ns: u64,
) -> u64 {
    // SAFETY: the host.
    let host = unsafe { host(to) };
    match Host::entry(entry) {
        Some(entry) => {
            let table = TableId::from_u32(id as u32);
            host.state.meter_direct(table, entry, time_ns, bytes, color(before)) as u64
        }
        None => Color::Green as u64,
    }
}

unsafe extern "C" fn register_read(to: *mut Host<'static>, id: u64, index: u64, result: *mut u64) -> u64 {
    let id = RegisterId::from_u32(id as u32);
    // SAFETY: the host; room for a cell.
    unsafe {
        let host = host(to);
        let limbs = host.program().registers[id].width.div_ceil(64) as usize;
        host.state.register_read_limbs(id, index, slice::from_raw_parts_mut(result, limbs));
    }
    0
}

unsafe extern "C" fn register_write(to: *mut Host<'static>, id: u64, index: u64, value: *const u64) -> u64 {
    let id = RegisterId::from_u32(id as u32);
    // SAFETY: the host; a number of the width of a cell.
    unsafe {
        let host = host(to);
        let width = host.program().registers[id].width;
        host.state.register_write_limbs(id, index, limbs(value, u64::from(width)));
    }
    0
}

unsafe extern "C" fn atomic_begin(to: *mut Host<'static>, is_named: u64, index: u64) -> u64 {
    // SAFETY: the host.
    unsafe { host(to) }.state.begin_atomic((is_named != 0).then_some(index));
    0
}

unsafe extern "C" fn atomic_end(to: *mut Host<'static>) -> u64 {
    // SAFETY: the host.
    unsafe { host(to) }.state.end_atomic();
    0
}

unsafe extern "C" fn random(
    to: *mut Host<'static>,
    width: u64,
    low: *const u64,
    high: *const u64,
    result: *mut u64,
) -> u64 {
    // SAFETY: the host; two numbers of this width, and room for one.
    unsafe {
        let low = Bits::from_limbs(width as u32, limbs(low, width));
        let high = Bits::from_limbs(width as u32, limbs(high, width));
        give(result, &host(to).state.random(&low, &high));
    }
    0
}

unsafe extern "C" fn value_set(to: *mut Host<'static>, id: u64, keys: *const u64) -> u64 {
    // SAFETY: the host; a number for each field of the set, one after another.
    u64::from(unsafe { host(to).is_member(ValueSetId::from_u32(id as u32), keys) })
}
