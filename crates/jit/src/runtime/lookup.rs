//! Looking up a batch of keys, or one, for compiled code.

use super::Host;
use super::writer::numbers_at;
use crate::abi::{LookupBatch, MISSED};
use millrace_midend::type_width;
use millrace_pipeline::entity::EntityRef;
use millrace_pipeline::*;
use millrace_state::{EntryIndex, Line, Spread, State, TableReader};
use std::ffi::c_void;
use std::slice;
use std::sync::atomic::{AtomicU32, Ordering};

/// The lookup function of a table, and its second argument, valid while the state is borrowed.
pub(crate) fn lookup_of(state: &State, id: TableId) -> (LookupBatch, *const c_void) {
    let reader = state.reader(id);
    let number = id.index() as *const c_void;
    match (state.program().tables[id].profile, reader.gives_entries()) {
        (None, false) => (slots, std::ptr::from_ref(reader).cast()),
        (None, true) => (entries, number),
        (Some(_), _) => (selected, number),
    }
}

/// The result of a key in lines ([`Line`]) that start at `lines`, as code does it itself that is not made in a short time.
pub(super) unsafe extern "C" fn in_lines(
    lines: *const u8,
    spread: *const Spread,
    limbs: u64,
    low: u64,
    high: u64,
) -> u64 {
    let (key, layout) = ([low, high], if limbs == 1 { Line::ONE } else { Line::TWO });
    let key = &key[..layout.limbs as usize];
    // SAFETY: what a plan for lines of keys of so many limbs leads to, until the worker's next quiescent point. Keys whose
    // slots are in use do not change, results are written whole.
    unsafe {
        let spread = &*spread;
        let mut line = spread.bucket(spread.hash(key));
        loop {
            let start = lines.add(line as usize * Line::BYTES as usize);
            let word = |at: u32| AtomicU32::from_ptr(start.add(at as usize).cast::<u32>().cast_mut());
            let control = word(Line::CONTROL).load(Ordering::Acquire);
            for slot in (0..layout.slots).filter(|slot| control >> slot & 1 != 0) {
                let own = start.add(8 * (slot * layout.limbs) as usize).cast::<u64>();
                if key.iter().enumerate().all(|(at, limb)| *own.add(at) == *limb) {
                    return word(layout.results + 4 * slot).load(Ordering::Relaxed).into();
                }
            }
            match control >> Line::SLOT_BITS {
                0 => return 0,
                next => line = spread.buckets + u64::from(next) - 1,
            }
        }
    }
}

/// [`LookupBatch`] of a table whose engine gives action slots; `table` is its [`TableReader`].
unsafe extern "C" fn slots(
    host: *mut c_void,
    table: *const c_void,
    keys: *const u64,
    _: *const u64,
    n: u64,
    slots: *mut u32,
    _: *mut u32,
    _: *const i32,
) -> u64 {
    // SAFETY: the host that `Env` holds, the reader that its tables name, `n` keys, and room for as many results.
    unsafe {
        let host = &*host.cast::<Host<'static>>();
        let reader = &*table.cast::<TableReader>();
        let keys = slice::from_raw_parts(keys, n as usize * reader.limbs());
        reader.lookup(host.state.worker(), keys, slice::from_raw_parts_mut(slots, n as usize));
    }
    0
}

/// [`LookupBatch`] of a table whose entries have something of their own; `table` is its number.
unsafe extern "C" fn entries(
    host: *mut c_void,
    table: *const c_void,
    keys: *const u64,
    _: *const u64,
    n: u64,
    slots: *mut u32,
    entries: *mut u32,
    packets: *const i32,
) -> u64 {
    let id = TableId::new(table as usize);
    // SAFETY: the host that `Env` holds, which nothing else uses now, `n` keys, and room for as many results.
    unsafe {
        let host = &mut *host.cast::<Host<'static>>();
        let reader = host.state.reader(id);
        let keys = slice::from_raw_parts(keys, n as usize * reader.limbs());
        let slots = slice::from_raw_parts_mut(slots, n as usize);
        lookup_entries(host, id, keys, slots, (entries, packets));
    }
    0
}

/// [`LookupBatch`] of a table with an action profile; `table` is its number.
unsafe extern "C" fn selected(
    host: *mut c_void,
    table: *const c_void,
    keys: *const u64,
    inputs: *const u64,
    n: u64,
    slots: *mut u32,
    entries: *mut u32,
    packets: *const i32,
) -> u64 {
    let id = TableId::new(table as usize);
    // SAFETY: the host that `Env` holds, which nothing else uses now, `n` keys and inputs, and room for as many
    // results.
    unsafe {
        let host = &mut *host.cast::<Host<'static>>();
        let reader = host.state.reader(id);
        let keys = slice::from_raw_parts(keys, n as usize * reader.limbs());
        let slots = slice::from_raw_parts_mut(slots, n as usize);
        if reader.gives_entries() {
            lookup_entries(host, id, keys, slots, (entries, packets));
        } else {
            reader.lookup(host.state.worker(), keys, slots);
        }
        let program = host.state.program();
        let described = &program.tables[id].selector_inputs;
        let widths: Vec<u32> = described.iter().map(|input| type_width(input.ty(program))).collect();
        let limbs: usize = widths.iter().map(|width| width.div_ceil(64) as usize).sum();
        for (at, slot) in slots.iter_mut().enumerate() {
            let values = || match limbs {
                0 => Vec::new(),
                _ => numbers_at(inputs.add(at * limbs), &widths),
            };
            let selected = host.state.select_slot(id, *slot, values);
            *slot = if *slot == 0 && selected != 0 { selected | MISSED } else { selected };
        }
    }
    0
}

/// Looks up keys of a table that gives entries. Notes their hits, for idle timeouts.
///
/// # Safety
/// `entries` is null or has room for as many as `slots`. For a table with idle timeouts `packets` has as many: packets of the
/// batch that runs, as [`LookupBatch`] has it.
unsafe fn lookup_entries(
    host: &mut Host<'_>,
    id: TableId,
    keys: &[u64],
    slots: &mut [u32],
    (entries, packets): (*mut u32, *const i32),
) {
    host.state.reader(id).lookup(host.state.worker(), keys, slots);
    if !entries.is_null() {
        for (at, found) in slots.iter().enumerate() {
            // SAFETY: the caller promises room.
            unsafe { *entries.add(at) = if *found == 0 { 0 } else { found + 1 } };
        }
    }
    if host.program().tables[id].idle_timeout {
        for (at, found) in slots.iter().enumerate().filter(|(_, found)| **found != 0) {
            // SAFETY: the caller promises packets of the batch.
            let time_ns = unsafe { host.arrival(*packets.add(at)) };
            host.state.record(id, EntryIndex(*found), time_ns);
        }
    }
    host.state.reader(id).slots(slots);
}
