//! The policing of AFDX: accounts of the extern and accounts in plain registers decide each frame as exact fractions do, on both
//! engines, packets of a burst at their own times, and across a change of the program.

use millrace_dataplane::{Clock, EngineKind, Keep, Switch, SwitchConfig, swap_at_rest};
use millrace_differential::{Trio, compile, compile_path};
use millrace_frames::{Burst, HEADROOM, MAX_BATCH, Place, TAILROOM};
use millrace_pipeline::Program;
use millrace_pipeline::arbitrary::Rng;
use millrace_stf::{parse, run_on};
use std::path::Path;
use std::sync::Arc;

const VLS: usize = 200;
/// So many entries that compiled code looks the table up for a burst at a time.
const STAGED_VLS: usize = 4096;
const PORTS: usize = 8;
/// Frames in machine code; of the interpreter, which is slower, a part of them.
const FRAMES: usize = 1_000_000;
/// Between two frames, on the average half of it: 200 VLs with a BAG of 2.4 ms on the average send about as many as they may.
const STEP_NS: usize = 30_000;
/// Bytes of a frame that are looked at.
const HEADERS: usize = 14;
const STRIDE: usize = HEADROOM + 1600;

#[derive(Clone)]
struct Vl {
    port: usize,
    bag_ns: u64,
    jitter_ns: u64,
    smax: u64,
    by_bytes: bool,
    by_frames: bool,
    /// As fractions with the denominator BAG: credits by bytes and by frames, in bytes.
    credits: [i128; 2],
    last_ns: u64,
}

impl Vl {
    fn random(rng: &mut Rng) -> Vl {
        let bag_ns = 500_000 + rng.below(4_000_000) as u64;
        let tests = rng.below(3);
        let mut vl = Vl {
            port: rng.below(PORTS),
            bag_ns,
            jitter_ns: rng.below(bag_ns as usize) as u64,
            smax: 64 + rng.below(1455) as u64,
            by_bytes: tests != 1,
            by_frames: tests != 0,
            credits: [0; 2],
            last_ns: 0,
        };
        vl.credits = [vl.full(); 2];
        vl
    }

    /// Smax (1 + J / BAG).
    fn full(&self) -> i128 {
        i128::from(self.smax) * i128::from(self.bag_ns) + i128::from(self.smax) * i128::from(self.jitter_ns)
    }

    /// What a frame with so many bytes on the wire meets: limits of its length, then the account.
    fn passes(&mut self, now_ns: u64, bytes: u64) -> bool {
        if !(64..=self.smax).contains(&bytes) {
            return false;
        }
        let grown = i128::from(self.smax) * i128::from(now_ns - self.last_ns);
        self.last_ns = now_ns;
        self.credits = self.credits.map(|credit| (credit + grown).min(self.full()));
        let cost = |bytes: u64| i128::from(bytes) * i128::from(self.bag_ns);
        let costs =
            [if self.by_bytes { cost(bytes) } else { 0 }, if self.by_frames { cost(self.smax) } else { 0 }];
        let passes = costs[0] <= self.credits[0] && costs[1] <= self.credits[1];
        if passes {
            self.credits = [self.credits[0] - costs[0], self.credits[1] - costs[1]];
        }
        passes
    }

    fn commands(&self, number: usize, registers: bool) -> String {
        let Vl { port, bag_ns, jitter_ns, smax, .. } = self;
        let (by_bytes, by_frames) = (u8::from(self.by_bytes), u8::from(self.by_frames));
        let test = ["", "frames", "bytes", "both"][usize::from(2 * by_bytes + by_frames)];
        let out = 1 << (number % PORTS);
        match registers {
            true => format!(
                "table_add vls forward {port} {number} => {number} {number} {bag_ns} {jitter_ns} {by_bytes} {by_frames} 64 {smax} 2 \
                 {out} 0\n"
            ),
            false => format!(
                "table_add vls forward {port} {number} => {number} {number} 64 {smax} 2 {out} 0\n\
                 account_set accounts {number} {bag_ns}ns {jitter_ns}ns {smax} {test}\n"
            ),
        }
    }
}

fn program(name: &str) -> Arc<Program> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../programs");
    compile_path(&root.join(format!("{name}.p4")))
}

/// Has each of some workers take so many frames of its own ports, at once; says how many passed. One worker alone changes to the same
/// program in the middle.
fn run(name: &str, engine: EngineKind, workers: usize, frames: usize) -> usize {
    let mut rng = Rng::new(664);
    let vls: Vec<Vl> = (0..VLS).map(|_| Vl::random(&mut rng)).collect();
    let mut switch = Switch::new(program(name), config(engine)).unwrap();
    let all = vls.iter().enumerate().map(|(number, vl)| vl.commands(number, name == "afdx_registers"));
    let mut text: String = all.collect();
    // Others are there so that the table is staged: then accounts and records are asked for before packets need them.
    if frames >= FRAMES {
        (VLS..STAGED_VLS)
            .for_each(|number| text += &vls[number % VLS].commands(number, name == "afdx_registers"));
    }
    let report = run_on(&mut switch, &text, &parse(&text).unwrap(), |_| ());
    assert!(report.failures.is_empty(), "{:?}", report.failures);
    let mut switches = switch.share_with(workers - 1).unwrap();
    switches.push(switch);
    std::thread::scope(|scope| {
        let work = |(worker, switch)| {
            let (vls, swaps) = (vls.clone(), (workers == 1).then(|| (program(name), engine)));
            scope.spawn(move || forward(switch, vls, (worker, workers), frames, swaps))
        };
        let threads: Vec<_> = switches.into_iter().enumerate().map(work).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    })
}

fn config(engine: EngineKind) -> SwitchConfig {
    SwitchConfig { engine, clock: Clock::simulated(), ..SwitchConfig::default() }
}

/// Forwards so many frames of the ports of a worker, and compares what leaves with what has to; says how many passed.
fn forward(
    mut switch: Switch,
    mut vls: Vec<Vl>,
    (worker, workers): (usize, usize),
    frames: usize,
    swaps: Option<(Arc<Program>, EngineKind)>,
) -> usize {
    let mut rng = Rng::new(1 + worker as u64);
    let ports: Vec<Vec<usize>> = (worker..PORTS)
        .step_by(workers)
        .map(|port| (0..VLS).filter(|vl| vls[*vl].port == port).collect())
        .collect();
    let mut memory = vec![0; STRIDE * MAX_BATCH + TAILROOM];
    let (mut now_ns, mut passed) = (switch.now_ns() + 1, 0);
    for (round, first) in (0..frames).step_by(MAX_BATCH).enumerate() {
        if let Some((program, engine)) = swaps.as_ref().filter(|_| round == frames / MAX_BATCH / 2) {
            let config = config(*engine);
            let next = Switch::successor(Arc::clone(program), config, &switch.state().handle()).unwrap();
            swap_at_rest(&mut switch, next, Keep::Everything).unwrap();
        }
        let at_port = rng.below(ports.len());
        let (mut places, mut times, mut wanted) = (Vec::new(), Vec::new(), Vec::new());
        for number in 0..MAX_BATCH.min(frames - first) {
            let vl = ports[at_port][rng.below(ports[at_port].len())];
            now_ns += rng.below(STEP_NS * workers) as u64;
            let bytes = match rng.below(20) {
                0 => 60 + rng.below(1470) as u64,
                _ => 64.max(vls[vl].smax - rng.below(1 + vls[vl].smax as usize / 4) as u64),
            };
            let at = number * STRIDE + HEADROOM;
            let frame = &mut memory[at..at + HEADERS];
            frame[..4].copy_from_slice(&[3, 0, 0, 0]);
            frame[4..6].copy_from_slice(&(vl as u16).to_be_bytes());
            frame[6..12].copy_from_slice(&((first + number) as u64).to_be_bytes()[2..]);
            places.push(Place { at: at as u32, len: bytes as u32 - 4 });
            times.push(now_ns);
            if vls[vl].passes(now_ns, bytes) {
                wanted.push(((vl % PORTS) as u32, (first + number) as u64));
            }
        }
        switch.advance_to(now_ns);
        let mut sent = Vec::new();
        let mut burst = Burst::new(&mut memory, &places, HEADROOM).unwrap();
        let port = worker + at_port * workers;
        switch.switch_burst_at(port as u32, &mut burst, &times, |port, output| {
            let number = output.bytes[6..12].iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
            sent.push((port, number));
        });
        sent.sort_by_key(|(_, number)| *number);
        assert_eq!(sent, wanted, "worker {worker} of {workers}, frames from {first} on");
        passed += wanted.len();
    }
    passed
}

#[test]
fn a_million_frames_are_policed_as_by_exact_fractions() {
    let passed = run("afdx", EngineKind::Jit, 1, FRAMES);
    assert!((FRAMES / 10..FRAMES * 9 / 10).contains(&passed), "{passed} of {FRAMES} passed");
}

#[test]
fn registers_police_a_million_frames_the_same() {
    let passed = run("afdx_registers", EngineKind::Jit, 1, FRAMES);
    assert!((FRAMES / 10..FRAMES * 9 / 10).contains(&passed), "{passed} of {FRAMES} passed");
}

/// A VL comes in on one port, so one worker has its account; the array is shared.
#[test]
fn two_workers_police_the_same() {
    for name in ["afdx", "afdx_registers"] {
        let passed = run(name, EngineKind::Jit, 2, FRAMES / 2);
        assert!((FRAMES / 10..FRAMES * 9 / 10).contains(&passed), "{name}: {passed} of {FRAMES} passed");
    }
}

#[test]
fn the_interpreter_polices_the_same() {
    let frames = FRAMES / 25;
    let passed = run("afdx", EngineKind::Interp, 1, frames);
    assert_eq!(run("afdx_registers", EngineKind::Interp, 1, frames), passed);
}

/// Accounts of which some have no parameters, asked by an index that may be outside, for lengths up to the largest.
#[test]
fn accounts_without_parameters_and_outside_let_all_pass() {
    let program = compile(
        "accounts",
        "#include <core.p4>
         #include <v1model.p4>
         #include <millrace.p4>
         header h_t { bit<32> index; bit<32> bytes; }
         struct headers_t { h_t h; }
         struct meta_t { }
         parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
             state start { packet.extract(hdr.h); transition accept; }
         }
         control V(inout headers_t hdr, inout meta_t meta) { apply { } }
         control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
             account(4) accounts;
             apply {
                 sm.egress_spec = 1;
                 if (!accounts.admit(hdr.h.index, hdr.h.bytes)) { mark_to_drop(sm); }
             }
         }
         control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
         control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.h); } }
         V1Switch(P(), V(), I(), E(), V(), D()) main;",
    );
    let mut trio = Trio::new(&program, &SwitchConfig::default(), |switch| {
        let commands =
            "account_set I.accounts 1 1ms 0us 200 both\naccount_set I.accounts 2 4ms 500us 1518 bytes\n";
        let report = run_on(switch, commands, &parse(commands).unwrap(), |_| ());
        assert!(report.failures.is_empty(), "{:?}", report.failures);
    })
    .unwrap();
    let mut rng = Rng::new(1);
    let (start, mut passed) = (trio.interp.now_ns(), [0; 5]);
    for round in 0..80 {
        let packet = |rng: &mut Rng| {
            let index = if rng.below(9) == 0 { u32::MAX } else { rng.below(5) as u32 };
            let bytes = if rng.below(9) == 0 { u32::MAX } else { rng.below(400) as u32 };
            [index.to_be_bytes(), bytes.to_be_bytes()].concat()
        };
        let batch: Vec<Vec<u8>> = (0..1 + rng.below(MAX_BATCH)).map(|_| packet(&mut rng)).collect();
        let outcome = trio
            .packets(0, &batch, start + round * 300_000)
            .unwrap_or_else(|error| panic!("{round}: {error}"));
        for (_, bytes) in outcome.outputs() {
            passed[usize::from(bytes[3]).min(4)] += 1;
        }
        let open = |bytes: &&Vec<u8>| !matches!(bytes[..4], [0, 0, 0, 1 | 2]);
        let all_open = batch.iter().filter(open).count();
        let open_passed =
            outcome.outputs().filter(|(_, bytes)| !matches!(bytes[..4], [0, 0, 0, 1 | 2])).count();
        assert_eq!(open_passed, all_open, "round {round}");
    }
    trio.state().unwrap();
    assert!(passed.iter().all(|passed| *passed > 10), "{passed:?}");
}
