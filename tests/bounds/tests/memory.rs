//! What `millrace bounds` says of memory is what the tables and objects of a program take, measured: a program with many entries is
//! loaded and all its counters, meters and registers are used; then they are let go of, and the process shrinks by as much as they took.
//!
//!     cargo test --release -p millrace-counted-bounds --test memory

use libtest_mimic::{Arguments, Failed, Trial};
use millrace_bounds::Knowledge;
use millrace_compile::Standard;
use millrace_counted_bounds::{Counted, programs};
use millrace_dataplane::State;
use millrace_pipeline::Bits;
use millrace_tables::Color;
use std::fmt::Write;
use std::fs::read_to_string;
use std::process::ExitCode;
use std::sync::Arc;

/// How far the bound may be above what is measured.
const MOST: f64 = 1.1;
/// How often a program is loaded until the bound is that close. Exact tables draw their hashes at random, and with these their room for
/// overflow lines, whose pages take no memory as long as nothing is in them: some draws are farther away. None may be below.
const DRAWS: usize = 3;
/// What the measurement itself may be wrong by: pages that other things are in, too.
const NOISE: f64 = 256.0 * 1024.0;

/// On the main thread alone, whose pieces are in the heap.
fn main() -> ExitCode {
    keep_pieces_in_the_heap();
    let test = Trial::test("the_bound_of_memory_is_close_above_what_a_program_takes", compare);
    let arguments = Arguments { test_threads: Some(1), ..Arguments::from_args() };
    libtest_mimic::run(&arguments, vec![test]).exit_code()
}

fn compare() -> Result<(), Failed> {
    let mut wrong = Vec::new();
    let many = if cfg!(debug_assertions) { 300_000 } else { 1_000_000 };
    for (name, entries) in [
        ("router", router(100_000)),
        ("router", router(many)),
        ("afdx", afdx(4096)),
        ("afdx", afdx(65_536)),
        ("l2_switch", l2_switch(65_536)),
        ("firewall", firewall(4000)),
    ] {
        for draw in 1..=DRAWS {
            let (bound, taken) = measure(name, &entries);
            let (is_below, is_close) = (bound + NOISE < taken, bound <= MOST * taken + NOISE);
            if is_below || !is_close && draw == DRAWS {
                wrong.push(format!("{name}: the bound is {bound}, {taken} are taken"));
            }
            if is_below || is_close {
                break;
            }
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
}

/// The bound of a program with these entries, and what it takes.
fn measure(name: &str, entries: &str) -> (f64, f64) {
    let source = read_to_string(programs().join(name).with_extension("p4")).unwrap();
    let mut counted = Counted::new(name, &source, Standard::P4_16, entries);
    let empty = State::new(Arc::clone(counted.switch.program())).unwrap();
    use_all(counted.switch.state_mut());
    let bound = Knowledge::of(counted.switch.state()).memory() as f64;
    let before = pieces() + mapped();
    drop(std::mem::replace(counted.switch.state_mut(), empty));
    let taken = before - pieces() - mapped();
    eprintln!(
        "{name:10} {:>8} lines {bound:>10} bytes, {taken:>10} taken: {:.3}",
        entries.lines().count(),
        bound / taken
    );
    (bound, taken)
}

/// Packets use each counter, meter and register, and the counter and the meter of each entry.
fn use_all(state: &mut State) {
    let program = Arc::clone(state.program());
    for (id, counter) in program.counters.iter() {
        (0..counter.size).for_each(|cell| state.count(id, cell, 64));
    }
    for (id, meter) in program.meters.iter() {
        (0..meter.size).for_each(|cell| _ = state.meter(id, cell, 0, 2000, Color::Green));
    }
    for (id, register) in program.registers.iter() {
        let one = Bits::new(register.width, 1);
        (0..register.size).for_each(|cell| state.register_write(id, cell, &one));
    }
    for id in program.tables.keys() {
        let entries: Vec<_> = state.tables().table(id).iter().map(|(index, _)| index).collect();
        entries.iter().for_each(|entry| state.count_direct(id, *entry, 64));
    }
}

/// Prefixes of 24 bits all over the address space.
fn router(routes: u32) -> String {
    let mut text = String::from("table_add send_frame rewrite_smac 1 => 02:00:00:00:00:01\n");
    for number in 0..routes {
        let [_, a, b, c] = ((1 << 16) + (number.wrapping_mul(0x9e_3779) & 0x7f_ffff)).to_be_bytes();
        writeln!(
            text,
            "table_add ipv4_lpm set_nhop {a}.{b}.{c}.0/24 => 06:00:00:00:00:{:02x} 1",
            number & 255
        )
        .unwrap();
    }
    text
}

fn afdx(links: u32) -> String {
    let mut text = String::from(
        "table_set_default network set_prefix 0x03000000\ntable_set_default switch_mode set_mode 1\n",
    );
    for link in 0..links {
        writeln!(text, "table_add vls forward {} {link} => {link} {link} 64 200 0x02 0x0a 7", link % 16)
            .unwrap();
        writeln!(text, "account_set accounts {link} 2ms 500us 200 both").unwrap();
    }
    text
}

fn l2_switch(stations: u32) -> String {
    let mut text = String::new();
    for station in 0..stations {
        let [_, a, b, c] = station.to_be_bytes();
        writeln!(text, "table_add smac NoAction 02:00:00:{a:02x}:{b:02x}:{c:02x} =>").unwrap();
        writeln!(text, "table_add dmac forward 02:00:00:{a:02x}:{b:02x}:{c:02x} => {}", station % 8).unwrap();
    }
    text
}

fn firewall(rules: u32) -> String {
    let mut text = String::new();
    for rule in 0..rules {
        let [_, a, b, c] = rule.wrapping_mul(0x9e_3779).to_be_bytes();
        let net = format!("{a}.{b}.{c}.0&&&0xffffff00");
        writeln!(
            text,
            "table_add acl permit 0&&&0 {net} 6&&&0xff 0->65535 {}->{} => {}",
            rule % 1000,
            rule % 1000 + 80,
            rule + 1
        )
        .unwrap();
    }
    text
}

/// Has the allocator keep all pieces in one place, the heap, so that no mapping is its own.
#[expect(unsafe_code, reason = "the C library has a function for it")]
fn keep_pieces_in_the_heap() {
    // SAFETY: these settings may be changed at any time.
    let done = unsafe { libc::mallopt(libc::M_MMAP_MAX, 0) & libc::mallopt(libc::M_ARENA_MAX, 1) };
    assert_eq!(done, 1);
}

/// Bytes of pieces in use, with what the allocator has next to them.
#[expect(unsafe_code, reason = "the C library has a function for it")]
fn pieces() -> f64 {
    // SAFETY: it may be called at any time.
    unsafe { libc::mallinfo2() }.uordblks as f64
}

/// Bytes in memory of mappings without a name: those of large arrays.
fn mapped() -> f64 {
    let (mut sum, mut is_one) = (0.0, false);
    for line in read_to_string("/proc/self/smaps").unwrap().lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["Rss:", kib, _] if is_one => sum += kib.parse::<f64>().unwrap() * 1024.0,
            [range, _, offset, ..] if range.contains('-') && offset.len() == 8 => is_one = words.len() == 5,
            _ => {}
        }
    }
    sum
}
