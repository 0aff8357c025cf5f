//! Verilator and Yosys on printed designs.

use millrace_netlist::{Bits, Design, Simulator, verilog};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{fs, io::Write as _};

/// A folder of a test, gone when the test ends.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("millrace-netlist-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Whether a tool is there; says so if it is not.
pub(crate) fn has(tool: &str) -> bool {
    let found = Command::new(tool).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    let found = found.is_ok() || Command::new(tool).arg("-V").stdout(Stdio::null()).status().is_ok();
    if !found {
        eprintln!("skipped: {tool} is not installed (Debian package {tool})");
    }
    found
}

/// Writes the files of a design; gives their names, the top last.
pub(crate) fn write(design: &Design, folder: &Path) -> Vec<PathBuf> {
    write_files(&verilog::print(design), folder)
}

fn write_files(files: &[verilog::VerilogFile], folder: &Path) -> Vec<PathBuf> {
    let write = |file: &verilog::VerilogFile| {
        let path = folder.join(file.file_name());
        fs::write(&path, &file.text).unwrap();
        path
    };
    files.iter().map(write).collect()
}

/// Runs a tool; gives what it says.
pub(crate) fn run(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    let said =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if output.status.success() { Ok(said) } else { Err(format!("{command:?}: {}\n{said}", output.status)) }
}

/// Verilator has nothing to say about a design.
pub(crate) fn lint(design: &Design, name: &str) -> Result<(), String> {
    lint_files(&verilog::print(design), name)
}

/// The same of files, the top last.
pub(crate) fn lint_files(files: &[verilog::VerilogFile], name: &str) -> Result<(), String> {
    let folder = Folder::new(name);
    let files = write_files(files, &folder.0);
    let top = files.last().unwrap().file_stem().unwrap().to_owned();
    let mut command = Command::new("verilator");
    command.args(["--lint-only", "-Wall", "--top-module"]).arg(top).args(&files);
    let said = run(&mut command)?;
    if said.contains("%Warning") || said.contains("%Error") { Err(said) } else { Ok(()) }
}

/// Yosys with a script after reading the files of a design; gives what it says.
pub(crate) fn yosys(design: &Design, name: &str, script: &str) -> Result<String, String> {
    let folder = Folder::new(name);
    let files = write(design, &folder.0);
    let top = files.last().unwrap().file_stem().unwrap().to_str().unwrap();
    let mut commands = String::new();
    files.iter().for_each(|file| writeln!(commands, "read_verilog -sv {}", file.display()).unwrap());
    writeln!(commands, "{}", script.replace("TOP", top)).unwrap();
    let path = folder.0.join("script.ys");
    fs::write(&path, commands).unwrap();
    run(Command::new("yosys").args(["-q", "-s"]).arg(path))
}

/// Inputs of the top and the reset for each cycle.
pub(crate) type Cycles = Vec<(Vec<Bits>, bool)>;

/// The outputs of the simulator in each cycle.
pub(crate) fn simulated(design: &Design, cycles: &Cycles) -> Vec<Vec<Bits>> {
    let module = &design.modules[design.top().unwrap()];
    let mut sim = Simulator::new(design).unwrap();
    let inputs: Vec<_> = module.inputs.values().map(|port| sim.input(&port.name)).collect();
    let outputs: Vec<_> = module.outputs.values().map(|port| sim.output(&port.name).unwrap()).collect();
    let mut all = Vec::new();
    for (values, reset) in cycles {
        for (signal, value) in inputs.iter().zip(values) {
            signal.iter().for_each(|signal| sim.set(*signal, value));
        }
        sim.set_reset(*reset);
        all.push(outputs.iter().map(|output| sim.get(*output)).collect());
        sim.step();
    }
    all
}

/// The outputs of a model that Verilator makes of the printed design. Names of ports must be plain.
pub(crate) fn verilated(design: &Design, name: &str, cycles: &Cycles) -> Result<Vec<Vec<Bits>>, String> {
    let folder = Folder::new(name);
    let files = write(design, &folder.0);
    let top = files.last().unwrap().file_stem().unwrap().to_str().unwrap();
    let module = &design.modules[design.top().unwrap()];
    let text = fs::read_to_string(files.last().unwrap()).unwrap();
    let main = folder.0.join("main.cpp");
    fs::write(&main, harness(top, &text, module)).unwrap();
    let build = folder.0.join("build");
    // Wide values are slow without any optimisation, which takes longer than some hundred cycles.
    let fast = if cycles.len() > 1000 { "-Og" } else { "-O0" };
    let mut command = Command::new("verilator");
    command.args([
        "--cc",
        "--exe",
        "--build",
        "-Wall",
        "-Wno-UNOPTFLAT",
        "--x-assign",
        "0",
        "--x-initial",
        "0",
        // In one file: each would have Verilator's headers again, which take as long as a small model.
        "--output-split",
        "10000000",
    ]);
    verilog::runtime::put(&build).map_err(|error| error.to_string())?;
    command
        // Options of `-CFLAGS` come before these, so that these count.
        .args(["-MAKEFLAGS", &format!("-s OPT_FAST={fast} OPT_SLOW=-O0 OPT_GLOBAL=-O0")])
        .args(["-o", "model", "--top-module", top, "--Mdir"])
        .arg(&build);
    run(command.arg(&main).args(&files))?;
    verilog::runtime::keep(&build);
    let mut child = Command::new(build.join("model"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    let mut stdin = child.stdin.take().unwrap();
    let mut text = String::new();
    for (values, reset) in cycles {
        write!(text, "{:x}", u32::from(*reset)).unwrap();
        values.iter().flat_map(words).for_each(|word| write!(text, " {word:x}").unwrap());
        text.push('\n');
    }
    let feeder = std::thread::spawn(move || stdin.write_all(text.as_bytes()));
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    feeder.join().unwrap().map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut all = Vec::new();
    for line in text.lines() {
        let mut words = line.split_whitespace().map(|word| u32::from_str_radix(word, 16).unwrap());
        let value = |width: u32| {
            let parts: Vec<Bits> =
                (0..width.div_ceil(32)).map(|_| Bits::new(32, words.next().unwrap().into())).collect();
            parts.into_iter().rev().reduce(|high, low| high.concat(&low)).unwrap().zero_extend(width)
        };
        all.push(module.outputs.values().map(|port| port.width).map(value).collect());
    }
    Ok(all)
}

/// A value in words of 32 bits, the lowest first.
fn words(value: &Bits) -> impl Iterator<Item = u32> {
    let limbs: Vec<u64> = value.limbs().collect();
    let count = value.width().div_ceil(32) as usize;
    (0..count).map(move |at| (limbs[at / 2] >> (32 * (at % 2))) as u32)
}

/// A program that reads words of inputs and writes words of outputs, a line a cycle.
fn harness(top: &str, text: &str, module: &millrace_netlist::Module) -> String {
    let mut out = format!("#include \"V{top}.h\"\n#include \"verilated.h\"\n#include <cstdio>\n");
    out += "static unsigned in() { unsigned v = 0; if (scanf(\"%x\", &v) != 1) v = 0; return v; }\n";
    out += "static void put(unsigned v) { printf(\"%x \", v); }\n";
    writeln!(out, "int main() {{\n  auto* t = new V{top};\n  int reset;").unwrap();
    let (clock, reset) = (text.contains("input wire clk"), text.contains("input wire rst"));
    writeln!(out, "  while (scanf(\"%x\", (unsigned*)&reset) == 1) {{").unwrap();
    if reset {
        writeln!(out, "    t->rst = reset;").unwrap();
    }
    for port in module.inputs.values() {
        let name = &port.name;
        match port.width {
            ..=32 => writeln!(out, "    t->{name} = in();").unwrap(),
            33..=64 => {
                writeln!(out, "    {{ unsigned long long l = in(), h = in(); t->{name} = l | h << 32; }}")
                    .unwrap()
            }
            width => {
                writeln!(out, "    for (int i = 0; i < {}; i++) t->{name}[i] = in();", width.div_ceil(32))
                    .unwrap()
            }
        }
    }
    let low = if clock { "t->clk = 0; " } else { "" };
    writeln!(out, "    {low}t->eval();").unwrap();
    for port in module.outputs.values() {
        let name = &port.name;
        match port.width {
            ..=32 => writeln!(out, "    put(t->{name});").unwrap(),
            33..=64 => {
                writeln!(out, "    put((unsigned)t->{name}); put((unsigned)(t->{name} >> 32));").unwrap()
            }
            width => writeln!(out, "    for (int i = 0; i < {}; i++) put(t->{name}[i]);", width.div_ceil(32))
                .unwrap(),
        }
    }
    if clock {
        writeln!(out, "    t->clk = 1; t->eval();").unwrap();
    }
    out += "    putchar('\\n');\n  }\n  return 0;\n}\n";
    out
}
