//! What plugins cost: `cargo bench -p millrace-plugins`. Each figure is the best of many short rounds, with the median after it.
//!
//! - an empty plugin, called alone, and by a program that both engines run over bursts of 64 frames of 64 bytes: the time of a
//!   packet with the call less that of the same program without;
//! - a plugin that loops, until it is stopped;
//! - the longest call while a plugin is replaced a hundred times, and how many calls found no plugin.

use millrace_dataplane::{EngineKind, Switch, SwitchConfig};
use millrace_frames::{Burst, HEADROOM, Place, TAILROOM};
use millrace_pipeline::{Plugin, Program, text, verify};
use millrace_plugins::{Caller, Grants, Policy, Registry, Settings};
use millrace_state::{PluginAnswer, PluginCaller, PluginHost};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

const ROUNDS: usize = 301;
/// How often the plugin is replaced under load.
const REPLACED: usize = 100;

#[derive(Debug)]
struct Host(Registry);

#[derive(Debug)]
struct Called(Caller);

impl PluginHost for Host {
    fn bind(&self, plugin: &Plugin) -> Result<Box<dyn PluginCaller>, String> {
        let grants = Grants { rewrite: plugin.rewrites };
        let caller = self.0.bind(&plugin.name, Policy::Pass, grants).map_err(|error| error.to_string())?;
        Ok(Box::new(Called(caller)))
    }
}

impl PluginCaller for Called {
    fn call(&mut self, args: &[u64], results: &mut [u64], payload: &[u8]) -> PluginAnswer<'_> {
        let called = self.0.call(args, results, payload);
        let payload = called.payload.map(|splice| (splice.replaced, splice.bytes));
        PluginAnswer { drop: called.drop, payload, reply: called.reply }
    }
}

/// A module with no buffer for payloads, or one of 2048 bytes, and this code.
fn module(room: &str, code: &str) -> Vec<u8> {
    let text = format!(
        r#"(module (memory (export "memory") 1)
            (data (i32.const 1024) "\01\00\00\00" "{room}" "\00\08\00\00" "\00\00\00\00" "\00\10\00\00")
            (func (export "millrace_area") (result i32) i32.const 1024)
            (func (export "millrace_call") (result i32) {code}))"#
    );
    wat::parse_str(text).expect("a module")
}

/// The best and the median nanoseconds of one of `times` runs.
fn measure(times: u32, mut run: impl FnMut()) -> (f64, f64) {
    let mut rounds: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            (0..times).for_each(|_| run());
            start.elapsed().as_nanos() as f64 / f64::from(times)
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    (rounds[0], rounds[ROUNDS / 2])
}

fn program(call: &str) -> Arc<Program> {
    let program = text::parse(&format!(
        "program bench architecture test errors (NoError, PacketTooShort)
         ingress (p, c) egress ()
         intrinsic parser_error = perr intrinsic egress_spec = port
         metadata perr: bit<16> metadata port: bit<32> metadata drop: bit<1> metadata x: bit<32>
         header h: h_t {{ dst: bit<48> src: bit<48> type: bit<16> }}
         plugin empty
         body parser p {{ block0: extract h end }}
         body control c {{ block0: port = 32w1 {call} end }}"
    ));
    let program = program.expect("a program");
    verify::verify(&program).expect("a verified program");
    Arc::new(program)
}

/// Nanoseconds of a packet in a program with that call.
fn packet(host: &Arc<dyn PluginHost>, engine: EngineKind, call: &str) -> (f64, f64) {
    let config = SwitchConfig { engine, plugins: Some(Arc::clone(host)), ..SwitchConfig::default() };
    let mut switch = Switch::new(program(call), config).expect("a switch");
    switch.use_best_code().expect("code");
    let (count, len) = (64, 64);
    let stride = HEADROOM + len + TAILROOM;
    let mut memory = vec![0; count * stride + TAILROOM];
    let places: Vec<Place> =
        (0..count).map(|n| Place { at: (n * stride + HEADROOM) as u32, len: len as u32 }).collect();
    let mut sent = 0u64;
    let times = if engine == EngineKind::Interp { 5 } else { 50 };
    let (best, median) = measure(times, || {
        let mut burst = Burst::new(&mut memory, &places, HEADROOM).expect("a burst");
        switch.switch_burst(0, &mut burst, |_, _| sent += 1);
    });
    assert_eq!(sent, ROUNDS as u64 * u64::from(times) * count as u64);
    (best / count as f64, median / count as f64)
}

fn main() {
    let load = |registry: &Registry, name: &str, module: &[u8]| {
        registry.load(name, module, Settings::default()).expect("a plugin");
    };
    let registry = Registry::new().expect("a registry");
    load(&registry, "empty", &module("\\00\\00\\00\\00", "i32.const 0"));
    load(&registry, "buffered", &module("\\00\\08\\00\\00", "i32.const 0"));
    for (name, what, len) in [
        ("empty", "empty plugin, called alone", 50),
        ("buffered", "the same with 64 bytes of payload", 64),
        ("buffered", "the same with 1500 bytes of payload", 1500),
    ] {
        let mut caller = registry.bind(name, Policy::Pass, Grants::default()).expect("a caller");
        let (payload, mut results) = (vec![0; len], [0; 1]);
        let (best, median) = measure(10_000, || {
            caller.call(&[7], &mut results, &payload);
        });
        println!("{what:45} {best:8.1} ns ({median:.1})");
    }
    let host: Arc<dyn PluginHost> = Arc::new(Host(registry));
    let call = "call drop, empty, (zext(h.type, 32)), 1 call_result x, 0 stop ne(drop, 1w0)";
    for engine in EngineKind::HERE {
        let (without, with) = (packet(&host, *engine, ""), packet(&host, *engine, call));
        let name = engine.name();
        println!(
            "{:45} {:8.1} ns ({:.1}): {:.1} with, {:.1} without",
            format!("empty plugin of a program, {name}, a packet"),
            with.0 - without.0,
            with.1 - without.1,
            with.0,
            without.0
        );
    }
    stop_a_loop();
    replace_under_load();
}

fn stop_a_loop() {
    let registry = Registry::new().expect("a registry");
    let settings = Settings { failures: u64::from(u32::MAX), ..Settings::default() };
    let looping = module("\\00\\00\\00\\00", "(loop $again (br $again)) i32.const 0");
    registry.load("loop", &looping, settings.clone()).expect("a plugin");
    let mut caller = registry.bind("loop", Policy::Pass, Grants::default()).expect("a caller");
    let (best, median) = measure(1, || {
        caller.call(&[], &mut [], &[]);
    });
    println!(
        "{:45} {best:8.0} ns ({median:.0})",
        format!("a loop, until {} fuel are used up", settings.fuel)
    );
}

/// The processor time of this thread: what others take of the processor does not count.
fn time_of_thread() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn replace_under_load() {
    let registry = Registry::new().expect("a registry");
    let empty = module("\\00\\00\\00\\00", "i32.const 0");
    registry.load("p", &empty, Settings::default()).expect("a plugin");
    let mut caller = registry.bind("p", Policy::Pass, Grants::default()).expect("a caller");
    let replaced = AtomicUsize::new(0);
    let (mut longest, calls) = std::thread::scope(|scope| {
        let calling = scope.spawn(|| {
            // After each replacement, the longest call until the next one.
            let (mut longest, mut calls) = ([Duration::ZERO; REPLACED], 0u64);
            while let Some(longest) = longest.get_mut(replaced.load(Relaxed)) {
                let start = time_of_thread();
                caller.call(&[], &mut [], &[]);
                *longest = (time_of_thread() - start).max(*longest);
                calls += 1;
            }
            (longest, calls)
        });
        for _ in 0..REPLACED {
            registry.load("p", &empty, Settings::default()).expect("a plugin");
            std::thread::sleep(Duration::from_millis(5));
            replaced.fetch_add(1, Relaxed);
        }
        calling.join().expect("a thread that ends")
    });
    longest.sort();
    let (median, last) = (longest[REPLACED / 2], longest[REPLACED - 1]);
    let unanswered = registry.list()[0].counts.unanswered;
    println!(
        "replaced {REPLACED} times: {calls} calls, {unanswered} without a plugin; the longest call after a \
         replacement: {median:?} in the median, {last:?} at most (processor time)"
    );
}
