//! Nodes at random, without loops.

use millrace_node::{Graph, NodeFile};
use std::fmt::Write;
use std::path::Path;

/// Numbers that repeat from run to run.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}

/// The kinds of the blocks between the MACs, in the order in which frames pass them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Selector,
    Tcam,
    Demultiplexer,
    /// Queues and the scheduler after them.
    Queues,
    /// A program of the folder `p4`.
    Program,
}

/// A node of two MACs: blocks of which each sends to later ones, the last ones to the MACs. Gives for each block whether it is to be one
/// with its scheduler.
pub(crate) fn text(numbers: &mut Numbers) -> (String, Vec<Vec<String>>) {
    let mut text = String::from(
        "[[device]]\nname = \"d\"\n[[service]]\nname = \"s\"\n[[function]]\nname = \"f\"\nservice = \"s\"\ndevice = \"d\"\n",
    );
    let mut placed: Vec<Vec<String>> = vec![vec!["p0".into(), "p1".into()]];
    let block = |text: &mut String, name: &str, rest: String| {
        let _ = write!(text, "[[block]]\nname = \"{name}\"\nfunction = \"f\"\n{rest}");
    };
    for port in 0..2 {
        block(&mut text, &format!("p{port}"), format!("kind = \"mac\"\nport = {port}\n"));
    }
    let count = 3 + numbers.below(5);
    let kinds: Vec<Kind> = (0..count)
        .map(|at| match numbers.below(8) {
            _ if at == 0 => Kind::Selector,
            0 => Kind::Selector,
            1 | 2 => Kind::Tcam,
            3 | 4 => Kind::Demultiplexer,
            5 | 6 => Kind::Program,
            _ => Kind::Queues,
        })
        .collect();
    // Where frames enter each block, and what leaves it by which output.
    let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
    for (at, kind) in kinds.iter().enumerate() {
        let name = format!("b{at}");
        match kind {
            Kind::Selector => {
                let octets: Vec<String> =
                    (0..1 + numbers.below(4)).map(|_| numbers.below(64).to_string()).collect();
                block(
                    &mut text,
                    &name,
                    format!("kind = \"octet_selector\"\noctets = [{}]\n", octets.join(", ")),
                );
            }
            Kind::Tcam => {
                let mut rest = String::from("kind = \"tcam\"\nsize = 6\nmiss = [\"out0\", \"out1\"]\n");
                for _ in 0..numbers.below(5) {
                    let (mask, value) = (numbers.below(4), numbers.below(4));
                    let (priority, to) = (numbers.below(3), numbers.below(3));
                    let _ = write!(
                        rest,
                        "[[block.entry]]\nvalue = \"0x0{:x}\"\nmask = \"0x0{mask:x}\"\npriority = {priority}\nto = \"out{to}\"\n",
                        value & mask
                    );
                }
                block(&mut text, &name, rest);
            }
            Kind::Demultiplexer => block(&mut text, &name, "kind = \"demultiplexer\"\nports = 3\n".into()),
            Kind::Program => {
                let (program, entries) = PROGRAMS[numbers.below(PROGRAMS.len())];
                let entries =
                    if entries { format!("entries = \"{program}.entries\"\n") } else { String::new() };
                let rest = format!(
                    "kind = \"p4\"\nprogram = \"{program}.p4\"\n{entries}ports = 3\nlongest = 4096\n"
                );
                block(&mut text, &name, rest);
                placed.push(vec![name.clone()]);
                inputs.push((0..3).map(|input| format!("{name}.in{input}")).collect());
                outputs.push((0..3).map(|output| format!("{name}.out{output}")).collect());
                continue;
            }
            Kind::Queues => {
                let queues = 1 + numbers.below(3);
                for queue in 0..queues {
                    // Room for all copies of a frame: those of software wait until schedulers are asked.
                    let (frames, bytes) = ([64, 256][numbers.below(2)], [128, 256][numbers.below(2)]);
                    let rest = format!("kind = \"queue\"\nframes = {frames}\nbytes = \"{bytes}KiB\"\n");
                    block(&mut text, &format!("q{at}x{queue}"), rest);
                }
                let discipline = ["priority", "round-robin", "deficit"][numbers.below(3)];
                block(
                    &mut text,
                    &name,
                    format!("kind = \"scheduler\"\nports = {queues}\ndiscipline = \"{discipline}\"\n"),
                );
                for queue in 0..queues {
                    let _ = write!(
                        text,
                        "[[connection]]\nfrom = \"q{at}x{queue}.out\"\nto = \"{name}.in{queue}\"\n"
                    );
                }
                placed
                    .push((0..queues).map(|queue| format!("q{at}x{queue}")).chain([name.clone()]).collect());
                inputs.push((0..queues).map(|queue| format!("q{at}x{queue}.in")).collect::<Vec<_>>());
                outputs.push(vec![format!("{name}.out")]);
                continue;
            }
        }
        placed.push(vec![name.clone()]);
        inputs.push(vec![format!("{name}.in")]);
        outputs.push(match kind {
            Kind::Demultiplexer => (0..3).map(|out| format!("{name}.out{out}")).collect(),
            _ => vec![format!("{name}.out")],
        });
    }
    let mut connect = |from: &str, to: &str| {
        let _ = write!(text, "[[connection]]\nfrom = \"{from}\"\nto = \"{to}\"\n");
    };
    let mut fed = vec![false; count];
    for port in 0..2 {
        connect(&format!("p{port}.rx"), &inputs[0][0]);
    }
    fed[0] = true;
    for (at, of_block) in outputs.iter().enumerate() {
        for (number, output) in of_block.iter().enumerate() {
            // The next block that nothing comes to, or any later one, or a MAC.
            let open = (at + 1..count).find(|next| !fed[*next]).filter(|_| number == 0);
            match open.unwrap_or_else(|| at + 1 + numbers.below(count - at)) {
                next if next < count => {
                    fed[next] = true;
                    let input = numbers.below(inputs[next].len());
                    connect(output, &inputs[next][input]);
                }
                _ => connect(output, &format!("p{}.tx", numbers.below(2))),
            }
        }
    }
    (text, placed)
}

/// The programs, each with whether it has entries.
const PROGRAMS: [(&str, bool); 3] = [("edit", true), ("grow", false), ("again", true)];

pub(crate) fn load(path: &Path) -> Result<String, String> {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/p4"));
    std::fs::read_to_string(folder.join(path)).map_err(|why| why.to_string())
}

pub(crate) fn graph(text: &str) -> (Graph, NodeFile) {
    let file =
        NodeFile::parse("node.toml", text).unwrap_or_else(|why| panic!("{}\n{text}", why.render(false)));
    (Graph::new(&file, &mut load).unwrap_or_else(|why| panic!("{why}\n{text}")), file)
}

/// A number of the environment.
pub(crate) fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|of| of.parse().ok()).unwrap_or(default)
}

/// A node with blocks of these names in hardware.
pub(crate) fn in_hardware<'n>(text: &str, blocks: impl Iterator<Item = &'n String>) -> String {
    let mut hardware = text.to_owned();
    for name in blocks {
        let header = format!("name = \"{name}\"\n");
        hardware = hardware.replacen(&header, &format!("{header}placement = \"hardware\"\n"), 1);
    }
    hardware
}
