//! Simulated hardware next to the interpreter: random programs with random packets, and the tests of the repository's programs.

use millrace_dataplane::{EngineKind, Switch, SwitchConfig, SwitchError};
use millrace_differential::{
    compile, compile_path, memory, out_of_steps, packets, program, programs_with_tests, set_up,
};
use millrace_netlist::{Design, verilog};
use millrace_pipeline::Program;
use millrace_pipeline::arbitrary::Rng;
use millrace_rtl::{Hardware, Options};
use millrace_stf::{parse, run_on};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, OnceLock};

/// Programs, and packets of each.
const PROGRAMS: u64 = 150;
const PACKETS: u64 = 24;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

fn switch(program: &Arc<Program>, engine: EngineKind) -> Result<Switch, SwitchError> {
    let config = SwitchConfig { engine, max_passes: 6, ..SwitchConfig::default() };
    let mut switch = Switch::new(Arc::clone(program), config)?;
    set_up(&mut switch);
    Ok(switch)
}

/// Runs one random program in both; gives why hardware cannot have it.
fn compare(seed: u64) -> Option<String> {
    let program = Arc::new(program(seed, 1 + seed as usize % 7));
    // A few programs have one entry twice in a table.
    let mut interp = switch(&program, EngineKind::Interp).ok()?;
    let mut rtl = match switch(&program, EngineKind::Rtl) {
        Ok(switch) => switch,
        Err(error) => return Some(error.to_string()),
    };
    let packets = packets(seed, number("DIFFERENTIAL_PACKETS", PACKETS) as usize);
    for (number, packet) in packets.iter().enumerate() {
        let (port, time_ns) = (number as u32 % 3, number as u64 * 1000);
        let wanted = interp.inject(port, packet, time_ns);
        let found = rtl.inject(port, packet, time_ns);
        if out_of_steps(&wanted, &program) {
            return None;
        }
        assert_eq!(rtl.engine_name(), "rtl", "seed {seed}: {:?}", found.log);
        assert_eq!(wanted, found, "seed {seed}, packet {number} {packet:02x?}\n{program}");
        assert_eq!(interp.counters(), rtl.counters(), "seed {seed}, packet {number}");
    }
    assert_eq!(memory(&interp), memory(&rtl), "seed {seed}");
    None
}

/// `DIFFERENTIAL_FIRST`, `DIFFERENTIAL_PROGRAMS` and `DIFFERENTIAL_PACKETS` choose others.
#[test]
fn random_programs_have_one_outcome() {
    let first = number("DIFFERENTIAL_FIRST", 0);
    let all = number("DIFFERENTIAL_PROGRAMS", PROGRAMS);
    let mut refused: BTreeMap<String, u64> = BTreeMap::new();
    for seed in first..first + all {
        if let Some(why) = compare(seed) {
            let construct = why.split(", in ").next().unwrap_or(&why).to_owned();
            *refused.entry(construct).or_default() += 1;
        }
    }
    let sum: u64 = refused.values().sum();
    println!("{} of {all} programs have hardware; refused: {refused:#?}", all - sum);
    assert!(sum * 2 < all, "{sum} of {all} refused: {refused:#?}");
}

#[test]
fn tests_of_programs_pass() {
    let found = programs_with_tests();
    let mut refused = Vec::new();
    for (path, test) in &found {
        let program = compile_path(path);
        let text = std::fs::read_to_string(test).unwrap();
        let parsed = parse(&text).unwrap();
        let config = |engine| SwitchConfig { engine, ..SwitchConfig::default() };
        let mut rtl = match Switch::new(Arc::clone(&program), config(EngineKind::Rtl)) {
            Ok(switch) => switch,
            Err(error) => {
                refused.push(format!("{}: {error}", path.display()));
                continue;
            }
        };
        let mut interp = Switch::new(Arc::clone(&program), config(EngineKind::Interp)).unwrap();
        let mut wanted = Vec::new();
        let report = run_on(&mut interp, &text, &parsed, |outcome| wanted.push(outcome.clone()));
        assert!(report.failures.is_empty(), "{}: {:?}", test.display(), report.failures);
        let mut found = Vec::new();
        let report = run_on(&mut rtl, &text, &parsed, |outcome| found.push(outcome.clone()));
        assert!(report.failures.is_empty(), "{}: {:?}", test.display(), report.failures);
        assert_eq!(wanted, found, "{}", test.display());
        assert_eq!(interp.counters(), rtl.counters(), "{}", test.display());
        assert_eq!(memory(&interp), memory(&rtl), "{}", test.display());
    }
    assert!(refused.is_empty(), "{} of {} have no hardware: {refused:#?}", refused.len(), found.len());
}

/// A folder of a test, gone when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("millrace-rtl-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    /// Writes a design; gives its files and its top.
    fn write(&self, design: &Design) -> (Vec<PathBuf>, String) {
        let printed = verilog::print(design);
        let files = printed.iter().map(|file| {
            let to = self.0.join(file.file_name());
            std::fs::write(&to, &file.text).unwrap();
            to
        });
        (files.collect(), printed.last().unwrap().module.clone())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Whether a tool is there; says so if it is not.
fn has(tool: &str, version: &str) -> bool {
    let found = Command::new(tool).arg(version).output().is_ok();
    if !found {
        println!("skipped, there is no {tool} (Debian: {tool})");
    }
    found
}

/// The stages of the repository's programs, made once.
fn designs() -> &'static [(PathBuf, Design)] {
    static DESIGNS: OnceLock<Vec<(PathBuf, Design)>> = OnceLock::new();
    DESIGNS.get_or_init(|| {
        let mut all = Vec::new();
        for (path, _) in programs_with_tests() {
            let Ok(hardware) = Hardware::new(compile_path(&path), Options::default()) else { continue };
            all.extend(hardware.designs().map(|(_, design)| (path.clone(), design)));
        }
        all
    })
}

/// Verilator has nothing to say about the SystemVerilog of the repository's programs.
#[test]
fn verilator_has_no_warning() {
    if !has("verilator", "--version") {
        return;
    }
    let folder = Folder::new("lint");
    let designs = designs();
    for (path, design) in designs {
        let (files, top) = folder.write(design);
        let lint = Command::new("verilator")
            .args(["--lint-only", "-Wall", "--top-module", &top])
            .args(&files)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&lint.stderr);
        assert!(lint.status.success() && said.is_empty(), "{}: {said}", path.display());
    }
    assert!(designs.len() > 40, "{} designs", designs.len());
}

/// Yosys reads the ingress of twenty programs, those of the least text: one driver for each bit, no loop, no latch. (The whole synthesis
/// is for `tests/rtl/evaluate`.)
#[test]
fn yosys_finds_no_latch_and_no_loop() {
    const DESIGNS: usize = 20;
    if !has("yosys", "-V") {
        return;
    }
    let folder = Folder::new("yosys");
    let mut designs: Vec<(usize, &PathBuf, &Design)> = designs()
        .iter()
        .filter(|(_, design)| design.top().is_some_and(|top| design.modules[top].name == "ingress"))
        .map(|(path, design)| (verilog::print(design).iter().map(|file| file.text.len()).sum(), path, design))
        .collect();
    designs.sort_by_key(|(size, ..)| *size);
    assert!(designs.len() >= DESIGNS, "{} designs", designs.len());
    for (_, path, design) in &designs[..DESIGNS] {
        let (files, top) = folder.write(design);
        let files: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
        let script = format!(
            "read_verilog -sv {}; hierarchy -check -top {top}; proc; select -assert-none t:$dlatch; flatten; opt_expr; \
             opt_clean; check -assert",
            files.join(" ")
        );
        let ran = Command::new("yosys").args(["-q", "-p", &script]).output().unwrap();
        let said = String::from_utf8_lossy(&ran.stdout).into_owned() + &String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.success(), "{}: {said}", path.display());
    }
}

/// A program for v1model with a header of four bytes and these statements in ingress.
fn ingress(statements: &str) -> Arc<Program> {
    compile(
        "ingress.p4",
        &format!(
            "#include <core.p4>\n#include <v1model.p4>\n\
             header h_t {{ bit<8> a; bit<8> b; bit<8> c; bit<8> d; }}\n\
             struct headers {{ h_t h; }}\nstruct metadata {{ }}\n\
             parser P(packet_in p, out headers hdr, inout metadata m, inout standard_metadata_t s) {{\n\
                 state start {{ p.extract(hdr.h); transition accept; }}\n}}\n\
             control V(inout headers hdr, inout metadata m) {{ apply {{ }} }}\n\
             control I(inout headers hdr, inout metadata m, inout standard_metadata_t s) {{\n\
                 register<bit<8>>(256) r;\n\
                 apply {{ bit<8> v; s.egress_spec = 1;\n{statements}\n}}\n}}\n\
             control E(inout headers hdr, inout metadata m, inout standard_metadata_t s) {{ apply {{ }} }}\n\
             control C(inout headers hdr, inout metadata m) {{ apply {{ }} }}\n\
             control D(packet_out p, in headers hdr) {{ apply {{ p.emit(hdr); }} }}\n\
             V1Switch(P(), V(), I(), E(), C(), D()) main;\n"
        ),
    )
}

/// More ports than memories of other programs have: all reads at once and writes after them, alternately, and each in a case of its own.
#[test]
fn a_register_is_read_and_written_often() {
    const TIMES: usize = 80;
    let all = |statement: &dyn Fn(usize) -> String| (0..TIMES).map(statement).collect::<String>();
    let programs = [
        all(&|i| format!("r.read(v, (bit<32>)(hdr.h.a + {i})); hdr.h.b = hdr.h.b ^ v;\n"))
            + &all(&|i| format!("r.write((bit<32>)(hdr.h.c + 3 * {i}), hdr.h.b + hdr.h.d * {i});\n")),
        all(&|i| {
            format!(
                "r.read(v, (bit<32>)(hdr.h.a + {i})); r.write((bit<32>)(hdr.h.c ^ {i}), v + hdr.h.b); hdr.h.d = v;\n"
            )
        }),
        all(&|i| {
            format!(
                "if (hdr.h.a == {i}) {{ r.read(v, (bit<32>)hdr.h.b); r.write((bit<32>)(hdr.h.c + {i}), v + 1); hdr.h.d = v; }}\n"
            )
        }),
    ];
    for statements in programs {
        let program = ingress(&statements);
        let config = |engine| SwitchConfig { engine, ..SwitchConfig::default() };
        let mut interp = Switch::new(Arc::clone(&program), config(EngineKind::Interp)).unwrap();
        let mut rtl = Switch::new(Arc::clone(&program), config(EngineKind::Rtl)).unwrap();
        let mut rng = Rng::new(80);
        for number in 0..300 {
            let mut packet: Vec<u8> = (0..60).map(|_| rng.next_u64() as u8).collect();
            packet[0] %= 100;
            let wanted = interp.inject(0, &packet, number * 1000);
            let found = rtl.inject(0, &packet, number * 1000);
            assert_eq!(wanted, found, "packet {number} {packet:02x?}\n{statements}");
        }
        assert_eq!(memory(&interp), memory(&rtl), "{statements}");
    }
}

/// Fields of many messages.
#[test]
fn ports_of_a_stage_have_a_limit_of_their_own() {
    let fields = "hdr.h.b, ".repeat(180);
    let text = "{}".repeat(181);
    let logs =
        (0..100).map(|i| format!("if (hdr.h.a == {i}) log_msg(\"{i}{text}\", {{ {fields} hdr.h.a }});\n"));
    let refused =
        Hardware::new(ingress(&logs.collect::<String>()), Options::default()).unwrap_err().to_string();
    assert!(refused.contains("(limit MAX_PORTS), in ingress"), "{refused}");
}
