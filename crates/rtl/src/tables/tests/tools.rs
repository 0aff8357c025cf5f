//! What tools for FPGAs say of units: Verilator has no warning, and Yosys makes each of them without a latch and without memory in
//! registers.

use super::*;
use millrace_netlist::verilog;
use std::path::PathBuf;
use std::process::Command;

/// The SystemVerilog of a unit, in files.
fn print(unit: &TableUnit, program: &Program, name: &str) -> PathBuf {
    let mut design = Design::new();
    design.add(unit.module(program, name));
    millrace_netlist::passes::optimize(&mut design);
    let folder = std::env::temp_dir().join(format!("millrace-unit-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join(format!("{name}.sv"));
    let text: String = verilog::print(&design).into_iter().map(|file| file.text).collect();
    std::fs::write(&path, text).unwrap();
    path
}

fn run(tool: &str, arguments: &[&str]) -> Option<(bool, String)> {
    let Ok(output) = Command::new(tool).args(arguments).output() else {
        println!("skipped: there is no {tool} (Debian: {tool})");
        return None;
    };
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Some((output.status.success(), said(&output.stdout) + &said(&output.stderr)))
}

fn units() -> Vec<(&'static str, Arc<Program>, Option<u64>)> {
    use MatchKind::*;
    let shape = |keys: &[(u32, MatchKind)]| Shape { counted: true, ..Shape::new(keys, 256) }.program();
    let fixed = TableEntry {
        matches: vec![EntryMatch::Ternary(Bits::new(16, 5), Bits::new(16, 7))],
        priority: 1,
        call: call(3),
        is_const: true,
    };
    let constant = Shape { is_const: true, entries: vec![fixed], ..Shape::new(&[(16, Ternary)], 8) };
    let groups = Shape { members: true, groups: Some(14), ..Shape::new(&[(32, Lpm)], 256) };
    vec![
        ("constant", constant.program(), None),
        ("direct", shape(&[(9, Exact)]), None),
        ("hash", shape(&[(48, Exact)]), Some(256)),
        ("tree", shape(&[(12, Exact), (32, Lpm)]), Some(256)),
        ("small", shape(&[(32, Ternary), (16, Range)]), Some(16)),
        ("tcam", shape(&[(32, Ternary), (16, Range)]), Some(72)),
        ("groups", groups.program(), Some(256)),
    ]
}

#[test]
fn verilator_has_no_warning() {
    for (name, program, capacity) in units() {
        let unit = TableUnit::of(&program, table(), |_| capacity).unwrap();
        let path = print(&unit, &program, &format!("lint_{name}"));
        let said = run("verilator", &["--lint-only", "-Wall", path.to_str().unwrap()]);
        let _ = std::fs::remove_file(&path);
        let Some((success, said)) = said else { return };
        assert!(success && said.trim().is_empty(), "{name}: {said}");
    }
}

#[test]
fn yosys_makes_every_unit() {
    let is_whole = std::env::var("MILLRACE_SYNTHESIS").is_ok_and(|what| what == "all");
    for (number, (name, program, capacity)) in units().into_iter().enumerate() {
        let unit = TableUnit::of(&program, table(), |_| capacity).unwrap();
        // Each unit for one of them, as synthesis takes minutes; for both: MILLRACE_SYNTHESIS=all.
        let targets = ["synth_xilinx -flatten -noiopad", "synth_ecp5"].into_iter().enumerate();
        for (_, target) in targets.filter(|(turn, _)| is_whole || number % 2 == *turn) {
            let path = print(&unit, &program, &format!("synth_{name}"));
            let file = path.to_str().unwrap();
            let script = format!("read_verilog -sv {file}; {target} -top synth_{name}; check -assert; stat");
            let said = run("yosys", &["-p", &script]);
            let _ = std::fs::remove_file(&path);
            let Some((success, said)) = said else { return };
            assert!(success, "{name}, {target}: {said}");
            assert!(!said.contains("Latch inferred"), "{name}, {target}: {said}");
            // Registers: what the module has as such, and no memory more.
            let of = |cell: &str| -> u64 {
                let lines = said.lines().rev().take_while(|line| !line.contains("Printing statistics"));
                let counts = lines.filter_map(|line| {
                    line.trim().strip_prefix(cell)?.split_whitespace().last()?.parse::<u64>().ok()
                });
                counts.sum()
            };
            let flops = of("FD") + of("TRELLIS_FF");
            let mut design = Design::new();
            design.add(unit.module(&program, "t"));
            let registers: u64 = design
                .modules
                .values()
                .flat_map(|module| module.registers.values())
                .map(|one| u64::from(one.width))
                .sum();
            assert!(
                flops <= registers + 1024,
                "{name}, {target}: {flops} flip-flops for {registers} bits of registers"
            );
        }
    }
}
