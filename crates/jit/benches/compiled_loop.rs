//! Instructions and time that compiled code takes for a packet, with tables made by hand.
//!
//! `cargo bench -p millrace-jit` runs each case twice under valgrind, with different numbers of batches run, and tells
//! the difference in instructions for each packet, which does not depend on what else the machine does; and the time without
//! valgrind. `-- list CASE` prints the machine code. Tables answer from one word each, so what is counted is the code
//! around lookups.

use millrace_frames::{HEADROOM, MAX_BATCH, Place, TAILROOM};
use millrace_jit::abi::{AheadEnv, Env, Moved, ObjectsEnv, PacketsEnv, ResultsEnv, TableEnv, TimesEnv};
use millrace_jit::{Compiled, Options, Outcome, Shape, listing};
use millrace_midend::{Plan, Verdict};
use millrace_pipeline::{Program, SlotId, TableId, passes};
use millrace_state::{LookupCounts, network_order, record_layout};
use std::ffi::c_void;
use std::path::Path;
use std::time::Instant;

/// A program, its tables and a packet.
struct Case {
    name: &'static str,
    program: &'static str,
    tables: &'static [(&'static str, How)],
    packet: &'static [u8],
    verdict: (Verdict, u32),
    /// Whether lookups are counted.
    count_lookups: bool,
}

/// How a table is looked up, and the arguments of the action that it gives, which is its first.
#[derive(Clone, Copy)]
struct How {
    shape: Shape,
    staged: bool,
    arguments: &'static [u64],
}

const fn at_once(shape: Shape, arguments: &'static [u64]) -> How {
    How { shape, staged: false, arguments }
}

const fn staged(arguments: &'static [u64]) -> How {
    How { shape: Shape::Call, staged: true, arguments }
}

/// IPv4 from 10.0.0.1 to 10.1.2.3, UDP, with a right checksum.
const IPV4: &[u8] = &[
    2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0, 0, 46, 0, 1, 0, 0, 64, 17, 0x64, 0xba, 10, 0, 0, 1,
    10, 1, 2, 3, 0, 7, 0, 9, 0, 26, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18,
];
/// IPv6 with UDP.
const IPV6: &[u8] = &[
    2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x86, 0xdd, 0x60, 0, 0, 0, 0, 8, 17, 64, 0x20, 1, 0xd, 0xb8, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 1, 0x20, 1, 0xd, 0xb8, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 7, 0, 9, 0, 8, 0,
    0,
];

const ROUTE: &[u64] = &[0x0200_0000_00aa, 3];
const FRAME: &[u64] = &[0x0200_0000_00bb];
const ROUTER: &[(&str, How)] = &[
    ("ipv4_lpm", at_once(Shape::Two { low: 8, bytes: 2 }, ROUTE)),
    ("ipv6_lpm", staged(ROUTE)),
    ("send_frame", at_once(Shape::Direct, FRAME)),
];
const L2_SWITCH: &[(&str, How)] = &[("smac", staged(&[])), ("dmac", staged(&[5]))];
const CASES: &[Case] = &[
    Case {
        name: "router, IPv4 at once",
        program: "router",
        tables: ROUTER,
        packet: IPV4,
        verdict: (Verdict::Forward, 3),
        count_lookups: false,
    },
    Case {
        name: "router, IPv4 staged",
        program: "router",
        tables: &[
            ("ipv4_lpm", staged(ROUTE)),
            ("ipv6_lpm", staged(ROUTE)),
            ("send_frame", at_once(Shape::Direct, FRAME)),
        ],
        packet: IPV4,
        verdict: (Verdict::Forward, 3),
        count_lookups: false,
    },
    Case {
        name: "router, IPv6 staged",
        program: "router",
        tables: ROUTER,
        packet: IPV6,
        verdict: (Verdict::Forward, 3),
        count_lookups: false,
    },
    Case {
        name: "l2_switch, both tables staged",
        program: "l2_switch",
        tables: L2_SWITCH,
        packet: IPV4,
        verdict: (Verdict::Forward, 5),
        count_lookups: false,
    },
    Case {
        name: "firewall, list staged",
        program: "firewall",
        tables: &[("acl", staged(&[])), ("forward", at_once(Shape::Direct, &[1]))],
        packet: IPV4,
        verdict: (Verdict::Forward, 1),
        count_lookups: false,
    },
    Case {
        name: "router, IPv4 at once, counting lookups",
        program: "router",
        tables: ROUTER,
        packet: IPV4,
        verdict: (Verdict::Forward, 3),
        count_lookups: true,
    },
    Case {
        name: "l2_switch, counting lookups",
        program: "l2_switch",
        tables: L2_SWITCH,
        packet: IPV4,
        verdict: (Verdict::Forward, 5),
        count_lookups: true,
    },
];

/// Finds the entry that every table of a case has.
unsafe extern "C" fn lookup(
    _: *mut c_void,
    _: *const c_void,
    _: *const u64,
    _: *const u64,
    n: u64,
    slots: *mut u32,
    _: *mut u32,
    _: *const i32,
) -> u64 {
    // SAFETY: room for `n` results; the action slot of all is 1.
    unsafe { std::slice::from_raw_parts_mut(slots, n as usize) }.fill(1);
    0
}

fn program(name: &str) -> Program {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../programs/{name}.p4"));
    let parsed = millrace_syntax::parse_path(&path, &millrace_syntax::Options::default());
    let checked = millrace_sema::check(&parsed.program);
    let mut program = millrace_lower::lower(&checked.program, name).expect("a program of this project");
    passes::optimize(&mut program);
    program
}

impl Case {
    fn how(&self, program: &Program, table: TableId) -> How {
        let name = program.tables[table].name.rsplit('.').next();
        let found = self.tables.iter().find(|(own, _)| Some(*own) == name);
        found.map_or(at_once(Shape::Call, &[]), |(_, how)| *how)
    }

    fn options(&self, program: &Program) -> Options {
        let shapes = program.tables.keys().map(|table| self.how(program, table).shape).collect();
        let staged = program.tables.keys().filter(|table| self.how(program, *table).staged).collect();
        Options { shapes, staged, count_lookups: self.count_lookups, ..Options::default() }
    }

    /// Makes so many batches and runs those of them that `runs` says, the last ones; gives the seconds that it took.
    fn run(&self, batches: usize, runs: usize) -> f64 {
        let program = program(self.program);
        let plan = Plan::through(&program, true);
        let code = Compiled::new(&program, &plan, &self.options(&program)).expect("code");
        // Whatever the key, the first level says slot 1; untouched pages cost nothing.
        let mut first: Vec<Vec<u8>> = Vec::new();
        let mut records = Vec::new();
        for table in program.tables.keys() {
            let how = self.how(&program, table);
            first.push(match how.shape {
                Shape::Two { .. } => {
                    let mut level = vec![0; 2 << 24];
                    let route = 2 * ((10 << 16) + (1 << 8) + 2);
                    level[route..route + 2].copy_from_slice(&1u16.to_le_bytes());
                    level
                }
                _ => 1u32.to_le_bytes().repeat(1 << 9),
            });
            let layout = &record_layout(&program, &program.tables[table]);
            let first_action = program.tables[table].actions[0].action;
            let params = &program.actions[first_action].params;
            let width = |slot: &SlotId| program.slots[*slot].ty.bits().unwrap_or(1);
            let widths: Vec<u32> = params.iter().map(width).collect();
            let mut record = vec![0u64; 2 * layout.stride as usize / 8];
            for (width, (offset, argument)) in widths.iter().zip(layout.offsets[0].iter().zip(how.arguments))
            {
                // Arguments of at most 8 bytes, the first action, the second record.
                let argument = match network_order(*width) {
                    true => argument.swap_bytes() >> (64 - width),
                    false => *argument,
                };
                let at = (layout.stride + offset) as usize;
                record[at / 8] |= argument << (8 * (at % 8));
            }
            records.push(record);
        }
        let tables: Vec<TableEnv> = first
            .iter()
            .zip(&records)
            .map(|(first, records)| TableEnv {
                lookup,
                table: std::ptr::null(),
                records: records.as_ptr().cast(),
                base: first.as_ptr(),
                second: std::ptr::null(),
                fallback: std::ptr::null(),
                starts: std::ptr::null(),
            })
            .collect();
        let stride = HEADROOM + self.packet.len().next_multiple_of(64) + TAILROOM;
        let mut frame = vec![0; HEADROOM];
        frame.extend_from_slice(self.packet);
        frame.resize(stride, 0);
        let mut memory = frame.repeat(MAX_BATCH);
        let mut contexts = code.contexts(MAX_BATCH);
        let (contexts, stage) = contexts.memory();
        let mut outcomes = [Outcome::default(); MAX_BATCH];
        let mut moved = [Moved { data: std::ptr::null_mut(), len: 0 }; MAX_BATCH];
        let mut lookups = vec![LookupCounts::default(); program.tables.len()];
        let times = [0u64; MAX_BATCH];
        let place =
            |number: usize| Place { at: (number * stride + HEADROOM) as u32, len: self.packet.len() as u32 };
        let places: Vec<Place> = (0..MAX_BATCH).map(place).collect();
        let env = Env {
            tables: tables.as_ptr(),
            objects: ObjectsEnv { each: std::ptr::null(), has_sections: 0 },
            host: std::ptr::null_mut(),
            contexts,
            stage,
            packets: PacketsEnv {
                memory: memory.as_mut_ptr(),
                places_end: places.as_ptr_range().end,
                places_bytes: size_of_val(&places[..]) as u64,
            },
            ahead: AheadEnv { memory: memory.as_ptr(), places_end: places.as_ptr_range().end },
            results: ResultsEnv {
                outcomes_end: outcomes.as_mut_ptr_range().end,
                moved: moved.as_mut_ptr(),
                dropped_copies: std::ptr::null_mut(),
            },
            lookups: lookups.as_mut_ptr(),
            port: 0,
            times: TimesEnv { end: times.as_ptr_range().end, now_ns: 0 },
        };
        let start = Instant::now();
        for batch in 0..batches {
            for Place { at, .. } in &places {
                // SAFETY: the start of a frame of the memory, which only `env` points to.
                unsafe {
                    let frame = env.packets.memory.add(*at as usize);
                    std::ptr::copy_nonoverlapping(self.packet.as_ptr(), frame, 32);
                }
            }
            if batch + runs < batches {
                continue;
            }
            // SAFETY: the packets lie in frames of their own, the tables are as compiled code wants them, and no helper
            // is called that needs the host.
            unsafe { code.enter(&env) };
        }
        let seconds = start.elapsed().as_secs_f64();
        assert_eq!((outcomes[0].verdict(), outcomes[0].number()), self.verdict, "{}", self.name);
        let counted = lookups.iter().map(|table| table.lookups).max();
        let expected = if self.count_lookups { runs * MAX_BATCH } else { 0 };
        assert_eq!(counted, Some(expected as u64), "{}", self.name);
        seconds
    }
}

/// The batches that are made under valgrind.
const MANY: usize = 3000;

/// The instructions of this program with so many of the batches run, or none without valgrind.
fn instructions(case: usize, runs: usize) -> Option<u64> {
    millrace_counted::instructions(&["run", &case.to_string(), &runs.to_string()])
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["run", case, runs] => {
            let runs = runs.parse().expect("a number of batches");
            CASES[case.parse::<usize>().expect("the number of a case")].run(MANY, runs);
        }
        ["list", name, what @ ..] => {
            for case in CASES.iter().filter(|case| case.name.contains(name)) {
                let program = program(case.program);
                let plan = Plan::through(&program, true);
                let code = listing(&program, &plan, &case.options(&program), None).expect("code");
                match what {
                    ["graph"] => println!("{}\n{}", case.name, code.graph),
                    ["clif"] => println!("{}\n{}", case.name, code.clif),
                    _ => println!("{}\n{}", case.name, code.asm),
                }
            }
        }
        filter => {
            println!("{:<40}{:>14}{:>10}   a packet", "", "instructions", "ns");
            for (number, case) in CASES.iter().enumerate() {
                if filter.iter().any(|part| !case.name.contains(part)) {
                    continue;
                }
                let (few, many) = (MANY / 3, MANY);
                let counted = instructions(number, few).zip(instructions(number, many));
                let each = counted.map(|(few_all, many_all)| {
                    (many_all - few_all) as f64 / ((many - few) * MAX_BATCH) as f64
                });
                let each = each.map_or_else(|| "-".into(), |each| format!("{each:.1}"));
                let batches = 20_000;
                let best = (0..5).map(|_| case.run(batches, batches)).fold(f64::INFINITY, f64::min);
                let ns = best * 1e9 / (batches * MAX_BATCH) as f64;
                println!("{:<40}{each:>14}{ns:>10.2}", case.name);
            }
        }
    }
}
