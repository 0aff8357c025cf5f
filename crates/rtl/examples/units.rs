//! What units of tables take on an FPGA, by Yosys: `cargo run --release -p millrace-rtl --example units [ENTRIES [NAME]]`.

use millrace_netlist::{Design, passes, verilog};
use millrace_pipeline::*;
use millrace_rtl::tables::TableUnit;
use std::process::Command;
use std::time::Instant;

/// A program with one table whose keys have these widths and match so.
fn program(keys: &[(u32, MatchKind)], size: u64) -> Program {
    let mut b = ProgramBuilder::new("units", "v1model");
    let params = [("port", 9), ("address", 48)].map(|(name, width)| b.local(name, Type::Bits(width)));
    let mut body = BodyBuilder::new("forward", BodyKind::Action);
    body.end();
    let body = body.finish(&mut b).expect("an action");
    let action = b.action("forward", params.to_vec(), body);
    let keys: Vec<TableKey> = (keys.iter().enumerate())
        .map(|(at, (width, kind))| {
            let slot = b.metadata(&format!("meta.k{at}"), Type::Bits(*width));
            TableKey { name: format!("k{at}"), value: Expr::Read(slot), kind: *kind }
        })
        .collect();
    let actions = vec![TableAction { action, scope: ActionScope::Both }];
    let default = ActionCall { action: 0, args: vec![Bits::zero(9), Bits::zero(48)] };
    b.program_mut().tables.push(Table::new("t".into(), keys, actions, default, size));
    b.finish()
}

/// How many cells of these kinds `stat` of Yosys counts, each with its weight.
fn cells(said: &str, kinds: &[(&str, u32)]) -> u32 {
    let lines = said.lines().rev().take_while(|line| !line.contains("Printing statistics"));
    let count = |line: &str| {
        let mut words = line.split_whitespace();
        let (name, count) = (words.next()?, words.next()?.parse::<u32>().ok()?);
        let (_, weight) = kinds.iter().find(|(kind, _)| name == *kind)?;
        Some(count * weight)
    };
    lines.filter_map(count).sum()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    use MatchKind::*;
    let mut arguments = std::env::args().skip(1);
    let entries: u64 = arguments.next().map_or(Ok(4096), |number| number.parse())?;
    let only = arguments.next();
    let shapes: [(&str, &[(u32, MatchKind)]); 6] = [
        ("mac", &[(48, Exact)]),
        ("ipv4", &[(32, Lpm)]),
        ("vrf", &[(12, Exact), (32, Lpm)]),
        ("ipv6", &[(128, Lpm)]),
        ("ternary", &[(32, Ternary)]),
        ("acl", &[(32, Ternary), (32, Ternary), (8, Ternary), (16, Range), (16, Range)]),
    ];
    let folder = std::env::temp_dir().join(format!("millrace-units-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    println!(
        "| key | unit | cycles | bits of memory, both banks | LUTs | of these memory | flip-flops | RAMB18 | seconds |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    for (name, keys) in
        shapes.into_iter().filter(|(name, _)| only.as_deref().is_none_or(|only| only == *name))
    {
        let program = program(keys, entries);
        let unit = TableUnit::of(&program, TableId::from_u32(0), |_| Some(entries)).ok_or("no unit")?;
        let mut design = Design::new();
        design.add(unit.module(&program, name));
        passes::optimize(&mut design);
        let path = folder.join(format!("{name}.sv"));
        std::fs::write(&path, verilog::print(&design).into_iter().map(|file| file.text).collect::<String>())?;
        let start = Instant::now();
        let script = format!(
            "read_verilog -sv {}; synth_xilinx -flatten -noiopad -top {name}; check -assert; stat",
            path.display()
        );
        let made = Command::new("yosys").args(["-p", &script]).output()?;
        let said = String::from_utf8_lossy(&made.stdout).into_owned();
        if !made.status.success() {
            return Err(String::from_utf8_lossy(&made.stderr).into_owned().into());
        }
        // A distributed memory of four lookup tables, or of one or two.
        let memory =
            cells(&said, &[("RAM32M", 4), ("RAM64M", 4), ("RAM32X1D", 2), ("RAM64X1D", 2), ("RAM128X1D", 4)]);
        let logic =
            cells(&said, &[("LUT1", 1), ("LUT2", 1), ("LUT3", 1), ("LUT4", 1), ("LUT5", 1), ("LUT6", 1)]);
        let flops = cells(&said, &[("FDRE", 1), ("FDSE", 1), ("FDCE", 1), ("FDPE", 1)]);
        let blocks = cells(&said, &[("RAMB18E1", 1), ("RAMB36E1", 2)]);
        println!(
            "| {name} | {} | {} | {} | {} | {memory} | {flops} | {blocks} | {:.0} |",
            unit.kind.name(),
            unit.latency(),
            unit.storage(),
            logic + memory,
            start.elapsed().as_secs_f64()
        );
    }
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}
