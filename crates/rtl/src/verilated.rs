//! A design as a program that Verilator makes of its SystemVerilog: a process that is told inputs and cycles over a pipe, and answers with
//! outputs.
//!
//! A process, and not a library that is loaded: no code of others runs in the switch, and a switch that ends takes it along. What is set and
//! how many cycles pass is gathered until an output is looked at, so a frame costs as many messages as its pipeline has
//! cycles with accesses, and not one for each cycle.
//!
//! A message is words of 32 bits: `0, input, words`: sets an input; `1, n`: n cycles; `2, n, outputs`: asks for outputs, whose words are
//! the answer. Of a port's words the lowest comes first.

use crate::model::Port;
use millrace_netlist::verilog::{self, runtime};
use millrace_netlist::{Design, Module, SignalKind};
use millrace_pipeline::Bits;
use rustc_hash::FxHashMap;
use std::fmt::Write as _;
use std::io::{ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// Bytes that are gathered before they are sent without being asked for.
const MAX_GATHERED: usize = 1 << 16;
/// Bytes of what a tool says that an error tells.
const MAX_SAID: usize = 2000;

/// What a model is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// For many cycles: it is optimised.
    Fast,
    /// For some hundred cycles: it is there soon.
    Quick,
}

/// A running model.
pub(crate) struct Verilated {
    process: Child,
    to: ChildStdin,
    from: ChildStdout,
    names: FxHashMap<(SignalKind, String), Port>,
    widths: Vec<u32>,
    inputs: usize,
    /// What is not sent yet.
    gathered: Vec<u8>,
    /// Cycles that are not in `gathered` yet.
    cycles: u32,
    /// Outputs of this cycle that are known.
    known: FxHashMap<u32, Bits>,
    failure: Option<String>,
}

/// A folder that is gone when this is.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Folder, String> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("millrace-verilator-{}-{number}", std::process::id()));
        std::fs::create_dir(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Folder(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Nobody can be told, and the system clears its folder for temporary files.
        drop(std::fs::remove_dir_all(&self.0));
    }
}

impl Drop for Verilated {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

impl Verilated {
    /// Makes the model of a verified design, and starts it.
    pub(crate) fn new(design: &Design, effort: Effort) -> Result<Verilated, String> {
        let folder = Folder::new()?;
        let mut design = design.clone();
        let top = design.top().ok_or("the design has no top")?;
        let module = &mut design.modules[top];
        let (mut names, mut widths) = (FxHashMap::default(), Vec::new());
        // Names that are the same in the text and in the model, whatever the program calls its fields.
        let given = module.inputs.values_mut().map(|port| (SignalKind::Input, &mut port.name, port.width));
        let told = module.outputs.values_mut().map(|port| (SignalKind::Output, &mut port.name, port.width));
        for (kind, name, width) in given.chain(told) {
            let port = widths.len() as u32;
            names.insert((kind, std::mem::replace(name, format!("port_{port}"))), Port(port));
            widths.push(width);
        }
        let inputs = module.inputs.len();
        let executable = build(&design, &design.modules[top], &folder.0, effort)?;
        let mut process = Command::new(&executable)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{}: {error}", executable.display()))?;
        let (Some(to), Some(from)) = (process.stdin.take(), process.stdout.take()) else {
            return Err("the model has no pipes".to_owned());
        };
        let mut model = Verilated {
            process,
            to,
            from,
            names,
            widths,
            inputs,
            gathered: Vec::new(),
            cycles: 0,
            known: FxHashMap::default(),
            failure: None,
        };
        // The folder goes away; by then the process has to be on its way.
        model.look_at((inputs..model.widths.len()).take(1).map(|port| Port(port as u32)));
        match model.failure() {
            Some(why) => Err(why),
            None => Ok(model),
        }
    }

    pub(crate) fn port(&self, kind: SignalKind, name: &str) -> Option<Port> {
        self.names.get(&(kind, name.to_owned())).copied()
    }

    /// Sets an input, of words of 64 bits, the lowest first.
    pub(crate) fn set(&mut self, port: Port, limbs: &[u64]) {
        self.gather_cycles();
        self.known.clear();
        self.word(0);
        self.word(port.0);
        let width = self.widths[port.0 as usize];
        for at in 0..width.div_ceil(32) {
            let limb = limbs.get(at as usize / 2).copied().unwrap_or(0);
            // A model relies on it that bits above the width of a port are 0.
            let mask = u32::MAX >> (32 - (width - at * 32).min(32));
            self.word((limb >> (32 * (at % 2))) as u32 & mask);
        }
        if self.gathered.len() > MAX_GATHERED {
            self.send();
        }
    }

    pub(crate) fn step(&mut self) {
        self.known.clear();
        self.cycles += 1;
    }

    /// Has outputs of this cycle at hand.
    pub(crate) fn look_at(&mut self, outputs: impl Iterator<Item = Port>) {
        let outputs: Vec<u32> =
            outputs.map(|port| port.0).filter(|port| !self.known.contains_key(port)).collect();
        if outputs.is_empty() || self.failure.is_some() {
            return;
        }
        self.gather_cycles();
        self.word(2);
        self.word(outputs.len() as u32);
        outputs.iter().for_each(|port| self.word(*port));
        self.send();
        let words: usize = outputs.iter().map(|port| self.widths[*port as usize].div_ceil(32) as usize).sum();
        let mut answer = vec![0; words * 4];
        if let Err(error) = self.from.read_exact(&mut answer) {
            self.failure = Some(format!("the model of Verilator has ended: {error}"));
            return;
        }
        let mut words =
            answer.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
        for port in outputs {
            let width = self.widths[port as usize];
            let parts: Vec<u32> = words.by_ref().take(width.div_ceil(32) as usize).collect();
            let parts = parts.into_iter().rev().map(|part| Bits::new(32, part.into()));
            let value = parts.reduce(|high, low| high.concat(&low)).map(|all| all.zero_extend(width));
            self.known.insert(port, value.unwrap_or_else(|| Bits::zero(width)));
        }
    }

    pub(crate) fn get(&mut self, port: Port) -> Bits {
        debug_assert!(port.0 as usize >= self.inputs, "an output");
        if !self.known.contains_key(&port.0) {
            self.look_at([port].into_iter());
        }
        let known = self.known.get(&port.0).cloned();
        known.unwrap_or_else(|| Bits::zero(self.widths[port.0 as usize]))
    }

    pub(crate) fn failure(&mut self) -> Option<String> {
        self.failure.clone()
    }

    fn word(&mut self, word: u32) {
        self.gathered.extend_from_slice(&word.to_le_bytes());
    }

    fn gather_cycles(&mut self) {
        if self.cycles > 0 {
            self.word(1);
            self.word(self.cycles);
            self.cycles = 0;
        }
    }

    fn send(&mut self) {
        if self.failure.is_none()
            && let Err(error) = self.to.write_all(&self.gathered)
        {
            self.failure = Some(format!("the model of Verilator has ended: {error}"));
        }
        self.gathered.clear();
    }
}

/// Has Verilator make the model; gives where it is.
fn build(design: &Design, top: &Module, folder: &Path, effort: Effort) -> Result<PathBuf, String> {
    let write = |name: &str, text: &str| -> Result<PathBuf, String> {
        let path = folder.join(name);
        std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(path)
    };
    let files = verilog::print(design);
    let last = files.last().ok_or("the design has no module")?;
    let main = write("main.cpp", &harness(&last.module, &last.text, top))?;
    let made = folder.join("build");
    runtime::put(&made).map_err(|error| format!("{}: {error}", made.display()))?;
    let mut command = Command::new("verilator");
    command.args(["--cc", "--exe", "--build", "-Wno-fatal", "-Wno-lint", "-O3", "--noassert"]).args([
        "--x-assign",
        "0",
        "--x-initial",
        "0",
    ]);
    match effort {
        Effort::Fast => command
            .args(["--output-split", "60000", "-j", "2"])
            .args(["-MAKEFLAGS", "-s OPT_FAST=-O1 OPT_SLOW=-O0"]),
        // In one file: each would have Verilator's headers again, which take as long as a small model.
        Effort::Quick => command
            .args(["--output-split", "10000000"])
            .args(["-MAKEFLAGS", "-s OPT_FAST=-O0 OPT_SLOW=-O0 OPT_GLOBAL=-O0"]),
    };
    command.args(["-o", "model"]).args(["--top-module", &last.module, "--Mdir"]).arg(&made).arg(&main);
    for file in &files {
        command.arg(write(&file.file_name(), &file.text)?);
    }
    let output = command.stdin(Stdio::null()).output().map_err(|error| match error.kind() {
        ErrorKind::NotFound => "there is no verilator (Debian and Ubuntu: package verilator)".to_owned(),
        _ => format!("verilator: {error}"),
    })?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let end = said.char_indices().map(|(at, _)| at).take_while(|at| *at < MAX_SAID).last().unwrap_or(0);
        return Err(format!(
            "verilator ended with {}; it needs make and a compiler for C++ (Debian and Ubuntu: packages make, g++): {}",
            output.status,
            &said[..end]
        ));
    }
    runtime::keep(&made);
    Ok(made.join("model"))
}

/// The program around a model.
fn harness(module: &str, text: &str, top: &Module) -> String {
    let mut out = format!(
        "#include \"V{module}.h\"\n#include \"verilated.h\"\n#include <cstdint>\n#include <cstring>\n#include <unistd.h>\n"
    );
    let _ = writeln!(out, "static V{module}* t;");
    out += "static char in[1 << 16];\nstatic size_t at, end;\nstatic uint32_t word() {\n  if (end - at < 4) {\n    \
            memmove(in, in + at, end - at);\n    end -= at; at = 0;\n    while (end < 4) {\n      \
            ssize_t n = read(0, in + end, sizeof in - end);\n      if (n <= 0) _exit(0);\n      end += n;\n    }\n  }\n  \
            uint32_t w;\n  memcpy(&w, in + at, 4);\n  at += 4;\n  return w;\n}\n";
    out += "static uint32_t out[1 << 14]; static size_t count;\nstatic void flush() {\n  const char* from = (const char*)out;\n  size_t left = count * 4;\n  \
            while (left > 0) {\n    ssize_t n = write(1, from, left);\n    if (n <= 0) _exit(1);\n    from += n; left -= n;\n  }\n  count = 0;\n}\n\
            static void put(uint32_t w) {\n  if (count == 1 << 14) flush();\n  out[count++] = w;\n}\n";
    out += "static void set(uint32_t port) {\n  switch (port) {\n";
    let ports = top.inputs.values().map(|port| (&port.name, port.width));
    for (at, (name, width)) in ports.enumerate() {
        let _ = match width {
            ..=32 => writeln!(out, "  case {at}: t->{name} = word(); break;"),
            33..=64 => writeln!(
                out,
                "  case {at}: {{ uint64_t l = word(), h = word(); t->{name} = l | h << 32; break; }}"
            ),
            width => writeln!(
                out,
                "  case {at}: for (int i = 0; i < {}; i++) t->{name}[i] = word(); break;",
                width.div_ceil(32)
            ),
        };
    }
    out += "  default: _exit(1);\n  }\n}\nstatic void get(uint32_t port) {\n  switch (port) {\n";
    for (at, port) in top.outputs.values().enumerate() {
        let (at, name) = (at + top.inputs.len(), &port.name);
        let _ = match port.width {
            ..=32 => writeln!(out, "  case {at}: put(t->{name}); break;"),
            33..=64 => writeln!(out, "  case {at}: put(t->{name}); put(t->{name} >> 32); break;"),
            width => writeln!(
                out,
                "  case {at}: for (int i = 0; i < {}; i++) put(t->{name}[i]); break;",
                width.div_ceil(32)
            ),
        };
    }
    let clock = text.contains("input wire clk");
    let (low, high) = match clock {
        true => ("t->clk = 0; t->eval();", "t->clk = 1; t->eval();"),
        false => ("t->eval();", ""),
    };
    let reset = if text.contains("input wire rst") { "t->rst = 0; " } else { "" };
    let _ = write!(
        out,
        "  default: _exit(1);\n  }}\n}}\nint main() {{\n  t = new V{module};\n  {reset}\n  for (;;) {{\n    switch (word()) {{\n    \
         case 0: set(word()); break;\n    case 1: for (uint32_t n = word(); n > 0; n--) {{ {low} {high} }} break;\n    \
         case 2:\n      {low}\n      for (uint32_t n = word(); n > 0; n--) get(word());\n      flush();\n      break;\n    \
         default: _exit(1);\n    }}\n  }}\n}}\n"
    );
    out
}
