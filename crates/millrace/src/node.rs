//! `millrace node`: a packet node made of function blocks, as one file describes it.

use crate::design_folder::DesignFiles;
use crate::device_args::BusKind;
use crate::entries::{read, read_config};
use crate::findings::{Failure, once_each};
use crate::grpc;
use crate::link;
use crate::output::{has_colour, note_line, say_line, tell_coloured};
use crate::registers;
use crate::rtl::TargetKind;
use crate::signals;
use crate::source::STANDARD_INPUT;
use clap::{Args, Subcommand};
use millrace_link::limits::MAX_FRAME;
use millrace_link::{Client, Device, Mapped};
use millrace_listen::{Address, LINK};
use millrace_netlist::verilog;
use millrace_node::hardware::{HardwareDevice, MappedDevice, Programs, Top};
use millrace_node::limits::MAX_PROGRAM;
use millrace_node::{
    Graph, Kind, Mapped as Register, NodeFile, Ports, Round, Shared, SharedMemory, check_served, map,
};
use millrace_printable::counted;
use millrace_rtl::map::{Bus, RegisterMap};
use millrace_rtl::{AreaReport, Target, build_files};
use millrace_syntax::read_text;
use serde_json::{Map, Value, json};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct NodeCommand {
    #[command(subcommand)]
    what: Option<What>,
    #[command(flatten)]
    run: RunNode,
    /// One JSON object on standard output
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

/// Runs a node until it is told to end, or nothing comes any more.
#[derive(Debug, Args)]
struct RunNode {
    /// The file of the node
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Connects a MAC to something else than the file says, as `--port` of `millrace run` has it after the `@`
    #[arg(long, value_name = "MAC=[DRIVER:]ARGS", value_parser = attachment)]
    attach: Vec<(String, String)>,
    /// Where the hardware of a device is served, other than the file says
    #[arg(long, value_name = "DEVICE=ADDR|PORT", value_parser = place)]
    device_at: Vec<(String, Address)>,
    /// Where a memory that blocks share is served, other than the file says
    #[arg(long, value_name = "MEMORY=ADDR|PORT", value_parser = place)]
    memory_at: Vec<(String, Address)>,
    /// Writes the SystemVerilog of its blocks in hardware there, and does not run it; a folder for each of several devices
    #[arg(short, value_name = "DIR", conflicts_with_all = ["attach", "device_at", "memory_at", "listen"])]
    output: Option<PathBuf>,
    /// What that is for
    #[arg(long, value_enum, default_value_t = TargetKind::Generic, requires = "output")]
    target: TargetKind,
    /// The bus of its registers; AXI4-Lite if not given
    #[arg(long, value_enum, requires = "output")]
    bus: Option<BusKind>,
    /// Where to serve its registers, and the frames of its managers, over the host link
    #[arg(long, value_name = "ADDR|PORT")]
    listen: Option<Address>,
    /// Let other machines reach it
    #[arg(long, requires = "listen")]
    link_allow_remote: bool,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Says all that is wrong with the file of a node, else what it is made of and where each block is
    Check {
        /// The file
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Serves the hardware of a device of a node, simulated or mapped, until it is told to end
    Serve {
        /// The file of the node
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// The device
        #[arg(value_name = "DEVICE")]
        device: String,
        /// Its registers, if it is on a board and not simulated: a device of UIO, as /dev/uio0; of a program that is part of it,
        /// BLOCK=/dev/uio1
        #[arg(long, value_name = "[BLOCK=]PATH", value_parser = of_block)]
        uio: Vec<OfBlock>,
        /// Which of the maps of that, the first if not given
        #[arg(long, value_name = "[BLOCK=]N", value_parser = of_block, requires = "uio")]
        map: Vec<OfBlock>,
        /// Where to listen
        #[arg(long, value_name = "ADDR|PORT", default_value = "127.0.0.1:9561")]
        listen: Address,
        /// Let other machines reach it
        #[arg(long)]
        link_allow_remote: bool,
    },
    /// Serves a memory that blocks of several nodes share, until it is told to end
    Memory {
        /// The file of a node
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// The memory
        #[arg(value_name = "MEMORY")]
        memory: String,
        /// Where to listen
        #[arg(long, value_name = "ADDR|PORT", default_value = "127.0.0.1:9562")]
        listen: Address,
        /// Let other machines reach it
        #[arg(long)]
        link_allow_remote: bool,
    },
    /// Runs commands on the program of a block of a running node, as those of its entries: all of them or none
    Commands {
        /// The file of the node that runs
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// The block
        #[arg(value_name = "BLOCK")]
        block: String,
        /// The commands, one a line; - is standard input
        #[arg(value_name = "COMMANDS")]
        commands: PathBuf,
        #[command(flatten)]
        to: To,
    },
    /// Lists the registers of a node with their addresses
    Map {
        /// The file
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Reads registers of a running node by their names, such as `queue0.frames`
    Read {
        /// The file of the node that runs
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Names; without any, all registers that are not 0
        #[arg(value_name = "NAME")]
        names: Vec<String>,
        #[command(flatten)]
        to: To,
    },
    /// Writes registers of a running node, in this order and nothing of other clients between them
    Write {
        /// The file of the node that runs
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Names and numbers; octets as hexadecimal digits, the first octet first
        #[arg(value_name = "NAME=NUMBER", required = true)]
        writes: Vec<String>,
        #[command(flatten)]
        to: To,
    },
}

#[derive(Debug, Args)]
struct To {
    /// Where the node is served
    #[arg(long, value_name = "ADDR|PORT", default_value = "127.0.0.1:9561")]
    server: Address,
}

/// `p0=pcap:in.pcap,out.pcap`.
fn attachment(text: &str) -> Result<(String, String), String> {
    let (mac, to) =
        text.split_once('=').ok_or("an attachment is MAC=[DRIVER:]ARGS, as p0=pcap:in.pcap,out.pcap")?;
    Ok((mac.to_owned(), to.to_owned()))
}

/// What is said of the registers of the node, or of a block.
type OfBlock = (Option<String>, String);

/// `/dev/uio0`, `nat=/dev/uio1`. What is before the first `=` is a block, if it may be the name of one.
fn of_block(text: &str) -> Result<OfBlock, String> {
    match text.split_once('=').filter(|(block, _)| !block.contains(['/', '.'])) {
        Some((block, value)) => Ok((Some(block.to_owned()), value.to_owned())),
        None => Ok((None, text.to_owned())),
    }
}

/// `board=127.0.0.1:9561`.
fn place(text: &str) -> Result<(String, Address), String> {
    let (device, at) =
        text.split_once('=').ok_or("the place of a device is DEVICE=ADDR, as board=127.0.0.1:9561")?;
    Ok((device.to_owned(), at.parse().map_err(|error| format!("{error}"))?))
}

/// `millrace node`.
pub(crate) fn node(args: &NodeCommand) -> Result<(), Failure> {
    match (&args.what, &args.run.file) {
        (None, Some(file)) => match &args.run.output {
            Some(folder) => write_hardware(file, folder, (&args.run, args.json)),
            None => run(file, &args.run, args.json),
        },
        (None, None) => Err(Failure::Usage("FILE is missing: the file of a node".into())),
        (Some(What::Check { file }), _) => check(file, args.json),
        (Some(What::Serve { file, device, uio, map, listen, link_allow_remote }), _) => {
            let node = load(file, args.json)?;
            let device = hardware(&node, (device, file), (uio, map))?;
            link::wait(link::serve(device, listen, *link_allow_remote)?, args.json)
        }
        (Some(What::Memory { file, memory, listen, link_allow_remote }), _) => {
            let node = load(file, args.json)?;
            let spec = &node.memories[memory_named(&node, memory)?];
            let memory = SharedMemory::new(&spec.name, spec.words)
                .map_err(|error| Failure::Failed(error.to_string()))?;
            link::wait(link::serve(Box::new(memory), listen, *link_allow_remote)?, args.json)
        }
        (Some(What::Commands { file, block, commands, to }), _) => {
            let node = load(file, args.json)?;
            run_commands((&node, file), block, &commands_of(commands)?, (to, args.json))
        }
        (Some(What::Map { file }), _) => {
            show_map(&map(&load(file, args.json)?), args.json);
            Ok(())
        }
        (Some(What::Read { file, names, to }), _) => read_registers(file, names, to, args.json),
        (Some(What::Write { file, writes, to }), _) => write_registers(file, writes, to, args.json),
    }
}

/// The node that a file describes; what is wrong is shown.
fn load(file: &Path, is_json: bool) -> Result<NodeFile, Failure> {
    let text = read_config(file)?;
    NodeFile::parse(&file.display().to_string(), &text).map_err(|problems| {
        match is_json {
            true => say_line(json!({ "ok": false, "diagnostics": problems.problems }).to_string()),
            false => tell_coloured(problems.render(has_colour())),
        }
        Failure::Told
    })
}

/// Reads the files that a node names: they are next to its own.
fn open(file: &Path) -> impl FnMut(&Path) -> Result<String, String> {
    let folder = file.parent().unwrap_or(Path::new("")).to_owned();
    move |path: &Path| read_text(&folder.join(path), MAX_PROGRAM).map_err(|error| error.to_string())
}

/// The blocks of a node.
fn graph(node: &NodeFile, file: &Path) -> Result<Graph, Failure> {
    Graph::new(node, &mut open(file)).map_err(|error| Failure::Failed(error.to_string()))
}

fn check(file: &Path, is_json: bool) -> Result<(), Failure> {
    let node = load(file, is_json)?;
    graph(&node, file)?;
    match is_json {
        true => say_line(json!({ "ok": true, "node": node.name, "blocks": node.blocks.len() })),
        false => node.describe().lines().for_each(say_line),
    }
    Ok(())
}

fn run(file: &Path, args: &RunNode, is_json: bool) -> Result<(), Failure> {
    once_each("--attach", args.attach.iter().map(|(mac, _)| mac))?;
    once_each("--device-at", args.device_at.iter().map(|(device, _)| device))?;
    once_each("--memory-at", args.memory_at.iter().map(|(memory, _)| memory))?;
    let mut node = load(file, is_json)?;
    for (name, to) in &args.attach {
        let block = node.blocks.iter_mut().find(|block| block.name == *name).map(|block| &mut block.kind);
        let Some(Kind::Mac(mac)) = block else {
            return Err(Failure::Failed(format!("there is no MAC `{}` to connect", name.escape_debug())));
        };
        mac.attach = Some(to.clone());
    }
    for (name, at) in &args.device_at {
        let at = grpc::address(at, &LINK)?;
        let device = device_named(&node, name)?;
        node.devices[device].at = Some(at);
    }
    for (name, at) in &args.memory_at {
        let at = grpc::address(at, &LINK)?;
        let memory = memory_named(&node, name)?;
        node.memories[memory].at = Some(at);
    }
    let graph = graph(&node, file)?;
    let mut ports = Ports::open(&graph).map_err(|error| Failure::Failed(error.to_string()))?;
    let shared = Shared::new(graph);
    let ends = signals::ends()?;
    let server = args
        .listen
        .as_ref()
        .map(|listen| {
            let device = shared.device(&node);
            link::serve(Box::new(device), listen, args.link_allow_remote)
        })
        .transpose()?;
    note_line(format_args!("node {} runs with {}", node.name, counted(node.blocks.len(), "block")));
    while !ends.load(Ordering::Acquire) {
        let round = ports.round(&mut shared.lock()).map_err(|error| Failure::Failed(error.to_string()))?;
        match round {
            Round::Moved => {}
            Round::Ended if server.is_none() => break,
            Round::Idle | Round::Ended => ports.rest(),
        }
    }
    drop(server);
    let graph = shared.lock();
    show_values(&map(&node), |address| graph.read(address), is_json);
    Ok(())
}

/// The number of a device.
fn device_named(node: &NodeFile, name: &str) -> Result<usize, Failure> {
    named("device", node.devices.iter().map(|device| device.name.as_str()), name)
}

/// The number of a memory.
fn memory_named(node: &NodeFile, name: &str) -> Result<usize, Failure> {
    named("memory", node.memories.iter().map(|memory| memory.name.as_str()), name)
}

/// The number of what has a name.
fn named<'n>(what: &str, mut all: impl Iterator<Item = &'n str>, name: &str) -> Result<usize, Failure> {
    let found = all.position(|other| other == name);
    found.ok_or_else(|| Failure::Failed(format!("there is no {what} `{}`", name.escape_debug())))
}

/// The hardware of a device, by registers that UIO maps, or simulated.
fn hardware(
    node: &NodeFile,
    (name, file): (&str, &Path),
    (uio, maps): (&[OfBlock], &[OfBlock]),
) -> Result<Box<dyn Device>, Failure> {
    let failed = |why: &dyn std::fmt::Display| Failure::Failed(why.to_string());
    let made_for = (Bus::Axi4Lite, Target::default());
    let programs = Programs::of(node, made_for, &mut open(file)).map_err(|why| failed(&why))?;
    let top =
        Top::new(node, &programs, device_named(node, name)?, Bus::Axi4Lite).map_err(|why| failed(&why))?;
    let top = top.ok_or_else(|| {
        Failure::Failed(format!(
            "no block of `{name}` is in hardware, or all that are run programs with tables in software"
        ))
    })?;
    if uio.is_empty() {
        return Ok(Box::new(HardwareDevice::new(node, &top).map_err(Failure::Failed)?));
    }
    let blocks: Vec<Option<&str>> = std::iter::once(None)
        .chain(top.programs.iter().map(|part| Some(node.blocks[part.block()].name.as_str())))
        .collect();
    if let Some((Some(other), _)) =
        uio.iter().chain(maps).find(|(block, _)| !blocks.contains(&block.as_deref()))
    {
        let other = other.escape_debug();
        return Err(Failure::Failed(format!(
            "`{other}` is no program that is part of the hardware of `{name}`"
        )));
    }
    let mut opened = blocks.iter().map(|block| mapped(*block, uio, maps));
    let registers = opened.next().unwrap_or_else(|| unreachable!("the node has registers"))?;
    let device = MappedDevice::new(node, &top, registers, opened.collect::<Result<_, _>>()?);
    Ok(Box::new(device.map_err(|why| failed(&why))?))
}

/// The registers of the node, or of a block, by UIO.
fn mapped(block: Option<&str>, uio: &[OfBlock], maps: &[OfBlock]) -> Result<Box<dyn Device>, Failure> {
    let of = |all: &'_ [OfBlock]| {
        all.iter().find(|(of, _)| of.as_deref() == block).map(|(_, value)| value.clone())
    };
    let path = of(uio).ok_or_else(|| match block {
        Some(block) => {
            Failure::Usage(format!("the registers of the program `{block}` are missing: --uio {block}=PATH"))
        }
        None => Failure::Usage("the registers of the node are missing: --uio PATH".to_owned()),
    })?;
    let map = of(maps).map_or(Ok(0), |number| {
        number
            .parse()
            .map_err(|_| Failure::Usage(format!("`{}` is no number of a map", number.escape_debug())))
    })?;
    let registers = Mapped::open(Path::new(&path), map).map_err(|why| Failure::failed(&path, why))?;
    Ok(Box::new(registers))
}

/// The designs of the blocks in hardware, a file for each module, with their registers and what tools need.
fn write_hardware(file: &Path, folder: &Path, (args, is_json): (&RunNode, bool)) -> Result<(), Failure> {
    let node = load(file, is_json)?;
    let bus = args.bus.map_or(Bus::Axi4Lite, BusKind::bus);
    let failed = |why: &dyn std::fmt::Display| Failure::Failed(why.to_string());
    let target = args.target.target();
    let programs = Programs::of(&node, (bus, target), &mut open(file)).map_err(|why| failed(&why))?;
    let tops = Top::all(&node, &programs, bus).map_err(|why| failed(&why))?;
    if tops.is_empty() {
        return Err(Failure::Failed(
            "no block of the node is in hardware, or all that are run programs with tables in software"
                .into(),
        ));
    }
    for (block, why) in programs.alone() {
        note_line(format_args!("block `{}` is no part of the design: {why}", node.blocks[block].name));
    }
    let (mut written, mut all, is_one) = (Vec::new(), DesignFiles::default(), tops.len() == 1);
    for mut top in tops {
        let device = &node.devices[top.device].name;
        let within = PathBuf::from(if is_one { "" } else { device.as_str() });
        let area = AreaReport::of(&top.design, target.fabric(), |owner| block_of(&owner.instance));
        target.suit(&mut top.design);
        let (name, files) = add_design(&mut all, &top, &within, target);
        for part in &top.programs {
            let within = within.join(&node.blocks[part.block()].name);
            add_registers(&mut all, part.device().register_map(), &within);
        }
        let folder = if is_one { folder.to_owned() } else { folder.join(device) };
        written.push((device, folder, name, files, area));
    }
    all.write(folder)?;
    if is_json {
        let designs: Vec<_> = (written.iter())
            .map(|(device, folder, name, files, _)| {
                json!({ "device": device, "folder": folder, "top": name, "files": files })
            })
            .collect();
        say_line(json!({ "ok": true, "designs": designs }));
        return Ok(());
    }
    for (_, folder, name, files, area) in written {
        say_line(format_args!("{} in {}, the top is {name}", counted(files, "module"), folder.display()));
        area.to_string().lines().for_each(say_line);
    }
    Ok(())
}

/// The part of a design that an instance belongs to: a block, the streams between blocks, or the registers.
fn block_of(path: &str) -> String {
    let names: Vec<&str> = path.split('.').collect();
    match names.as_slice() {
        ["blocks", "merge" | "between", _, _, ..] | ["blocks"] => "streams between blocks".to_owned(),
        ["blocks", block, ..] => format!("block {block}"),
        _ => "registers and bus".to_owned(),
    }
}

/// A file for each module, the register map, and what tools of a target need; gives the name of the top and how many modules there are.
fn add_design(files: &mut DesignFiles, top: &Top, within: &Path, target: Target) -> (String, usize) {
    let modules = verilog::print(&top.design);
    let build = build_files(target, &modules, top.link.period_ps());
    let modules_named = modules.iter().map(|file| (file.file_name(), file.text.clone()));
    let all = modules_named.chain(build.into_iter().map(|file| (file.name, file.text)));
    all.for_each(|(name, text)| files.add(within.join(name).display().to_string(), text));
    add_registers(files, &top.map, within);
    (modules.last().map_or_else(String::new, |file| file.module.clone()), modules.len())
}

/// A register map as a document, a C header and JSON.
fn add_registers(files: &mut DesignFiles, map: &RegisterMap, within: &Path) {
    let all = registers::files(map);
    all.into_iter().for_each(|(name, text)| files.add(within.join(name).display().to_string(), text));
}

/// Connects to the node of a file; another one has other registers at the same addresses.
fn connect(to: &To, (node, file): (&NodeFile, &Path)) -> Result<Client, Failure> {
    let address = grpc::address(&to.server, &LINK)?;
    let client = Client::connect(address, false)
        .map_err(|error| Failure::failed(format_args!("the node at {address}"), error))?;
    let there = &client.shape().name;
    check_served(there, node).map_err(|described| {
        Failure::Failed(format!(
            "{} does not describe what is served at {address}: that is `{}`, and the file describes `{described}`",
            file.display(),
            there.escape_debug()
        ))
    })?;
    Ok(client)
}

/// The commands of a file, or of standard input.
fn commands_of(path: &Path) -> Result<String, Failure> {
    if path != Path::new(STANDARD_INPUT) {
        return read(path);
    }
    let mut text = String::new();
    let input = std::io::stdin().lock().take(MAX_FRAME as u64 + 1).read_to_string(&mut text);
    input.map_err(|error| Failure::failed("standard input", error))?;
    Ok(text)
}

/// Runs commands on a program; shows what they show.
fn run_commands(
    (node, file): (&NodeFile, &Path),
    block: &str,
    commands: &str,
    (to, is_json): (&To, bool),
) -> Result<(), Failure> {
    let number = named("block", node.blocks.iter().map(|block| block.name.as_str()), block)?;
    let text = connect(to, (node, file))?.ask(number as u16, commands)?;
    match is_json {
        true => say_line(json!({ "ok": true, "text": text })),
        false => text.lines().for_each(say_line),
    }
    Ok(())
}

fn find<'m>(map: &'m [Register], name: &str) -> Result<&'m Register, Failure> {
    let found = map.iter().find(|register| register.name == name);
    found.ok_or_else(|| {
        Failure::Failed(format!(
            "there is no register `{}`: `millrace node map` lists them",
            name.escape_debug()
        ))
    })
}

fn read_registers(file: &Path, names: &[String], to: &To, is_json: bool) -> Result<(), Failure> {
    let node = load(file, is_json)?;
    let all = map(&node);
    let wanted: Vec<Register> = match names {
        [] => all,
        names => names.iter().map(|name| find(&all, name).cloned()).collect::<Result<_, _>>()?,
    };
    let mut client = connect(to, (&node, file))?;
    let mut values = Vec::with_capacity(wanted.len());
    for register in &wanted {
        values.push(client.read(register.address, register.words as usize)?);
    }
    let mut shown = Map::new();
    for (register, words) in wanted.iter().zip(&values) {
        let is_zero = words.iter().all(|word| *word == 0);
        if !is_zero || !names.is_empty() {
            shown.insert(register.name.clone(), number(register, words));
        }
    }
    show(shown, is_json);
    Ok(())
}

fn write_registers(file: &Path, writes: &[String], to: &To, is_json: bool) -> Result<(), Failure> {
    let node = load(file, is_json)?;
    let all = map(&node);
    let mut words = Vec::new();
    for write in writes {
        let (name, value) = write
            .split_once('=')
            .ok_or_else(|| Failure::Usage(format!("`{}`: a write is NAME=NUMBER", write.escape_debug())))?;
        let register = find(&all, name)?;
        if !register.writable {
            return Err(Failure::Failed(format!("`{name}` cannot be written")));
        }
        let parsed = words_of(register, value);
        words.extend(
            parsed.ok_or_else(|| {
                Failure::Failed(format!("`{}` is no value of `{name}`", value.escape_debug()))
            })?,
        );
    }
    connect(to, (&node, file))?.write(&words)?;
    if is_json {
        say_line(json!({ "ok": true, "written": words.len() }));
    }
    Ok(())
}

/// The words of a register with a value, each with its address.
fn words_of(register: &Register, text: &str) -> Option<Vec<(u32, u32)>> {
    let hexadecimal = text.strip_prefix("0x");
    if register.words != 4 {
        let number =
            hexadecimal.map_or_else(|| text.parse().ok(), |digits| u32::from_str_radix(digits, 16).ok())?;
        return Some(vec![(register.address, number)]);
    }
    let digits = hexadecimal.filter(|digits| (1..=32).contains(&digits.len()) && digits.is_ascii())?;
    let padded = format!("{digits:0<32}");
    (0..4u32)
        .map(|word| {
            let at = 8 * word as usize;
            Some((register.address + 4 * word, u32::from_str_radix(&padded[at..at + 8], 16).ok()?))
        })
        .collect()
}

/// The value of a register in words.
fn number(register: &Register, words: &[u32]) -> Value {
    match register.words {
        4 => Value::from(format!("0x{}", words.iter().map(|word| format!("{word:08x}")).collect::<String>())),
        _ => Value::from(words.iter().rev().fold(0, |number: u64, word| number << 32 | u64::from(*word))),
    }
}

/// All registers that are not 0.
fn show_values(map: &[Register], read: impl Fn(u32) -> u32, is_json: bool) {
    let mut shown = Map::new();
    for register in map {
        let words: Vec<u32> = (0..register.words).map(|word| read(register.address + 4 * word)).collect();
        if words.iter().any(|word| *word != 0) {
            shown.insert(register.name.clone(), number(register, &words));
        }
    }
    show(shown, is_json);
}

fn show(values: Map<String, Value>, is_json: bool) {
    if is_json {
        return say_line(json!({ "ok": true, "registers": values }));
    }
    for (name, value) in values {
        match value {
            Value::String(text) => say_line(format_args!("{name} {text}")),
            value => say_line(format_args!("{name} {value}")),
        }
    }
}

fn show_map(map: &[Register], is_json: bool) {
    if is_json {
        let registers: Vec<Value> = map
            .iter()
            .map(|of| json!({ "name": of.name, "address": of.address, "words": of.words, "writable": of.writable }))
            .collect();
        return say_line(json!({ "ok": true, "registers": registers }));
    }
    for register in map {
        let access = if register.writable { "rw" } else { "r" };
        say_line(format_args!("{:08x} {} {access:2} {}", register.address, register.words, register.name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instances_belong_to_blocks_streams_or_registers() {
        for (path, part) in [
            ("blocks.forward", "block forward"),
            ("blocks.p0.receive.count", "block p0"),
            ("blocks.merge.queue1.0.1", "streams between blocks"),
            ("blocks.between.forward.0", "streams between blocks"),
            ("blocks.between", "block between"),
            ("blocks", "streams between blocks"),
            ("control.slave", "registers and bus"),
            ("", "registers and bus"),
        ] {
            assert_eq!(block_of(path), part, "{path}");
        }
    }
}
