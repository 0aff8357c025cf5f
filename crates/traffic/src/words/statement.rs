//! A line as what it says: a port, a discipline or queue, or the share of a class.

use super::quantity;
use super::reader::{self, Line, Place, Word, WordsError};
use crate::gates::{GateEntry, GateList, MAX_ENTRIES};
use crate::plan::{
    Among, Asynchronous, CLASSES, Curve, Handle, MAX_FRAME, MAX_OVERHEAD, MAX_PACKETS, MAX_QUEUES,
    MAX_STREAMS, MAX_WEIGHT, Port, Queue, Red,
};

/// Probability of a curve just below its maximum, in millionths, as `tc` has it.
const PROBABILITY: u32 = 20_000;

pub(super) enum Statement {
    Port(PortLine),
    Node(NodeLine),
    Class(ClassLine),
}

pub(super) struct PortLine {
    pub(super) place: Place,
    pub(super) number: u32,
    pub(super) port: Port,
    /// It says what time may be made up for.
    pub(super) says_catch_up: bool,
}

/// A node of the tree.
pub(super) struct NodeLine {
    pub(super) place: Place,
    /// None is the root.
    pub(super) parent: Option<Handle>,
    pub(super) parent_place: Place,
    pub(super) handle: Handle,
    pub(super) words: Words,
}

/// A class of a node, with its quantum or weight.
pub(super) struct ClassLine {
    pub(super) place: Place,
    pub(super) class: Handle,
    pub(super) word: &'static str,
    pub(super) share: u32,
}

/// What a node is, without what is under it.
pub(super) enum Words {
    /// With the classes that it says, if it does.
    Queue(Box<Queue>, bool),
    Priority(u16),
    RoundRobin,
    Deficit,
    Fair,
    Flows(u32, Among),
    /// Flows with a queue each.
    FairQueues(u32, u32, Box<Queue>, bool),
    Shaper(u64, u64),
    Credit(CreditWords),
    Gates(Box<GateList>, u8),
}

#[derive(Clone, Copy, Default)]
pub(super) struct CreditWords {
    pub(super) idle_slope: u64,
    pub(super) send_slope: Option<(i64, Place)>,
    pub(super) hi_credit: Option<u64>,
    pub(super) lo_credit: Option<u64>,
}

/// Options of a line, each at most once.
struct Options<'l, 't> {
    line: &'l mut Line<'t>,
    seen: Vec<&'t str>,
}

impl<'t> Options<'_, 't> {
    fn of<'l>(line: &'l mut Line<'t>) -> Options<'l, 't> {
        Options { line, seen: Vec::new() }
    }

    fn next(&mut self) -> Result<Option<Word<'t>>, WordsError> {
        let Some(word) = self.line.next() else { return Ok(None) };
        if !matches!(word.text, "sched-entry" | "curve") {
            if self.seen.contains(&word.text) {
                return Err(word.error(format!("`{}` stands here twice", word.text)));
            }
            self.seen.push(word.text);
        }
        Ok(Some(word))
    }
}

fn unknown(word: &Word<'_>, of: &str, known: &str) -> WordsError {
    word.error(format!("{of} has no `{}`; it has {known}", word.text))
}

/// What a line says.
pub(super) fn statement(line: &mut Line<'_>) -> Result<Statement, WordsError> {
    let first = line.need("a statement")?;
    match first.text {
        "port" => Ok(Statement::Port(port(line, first.place)?)),
        "qdisc" | "class" => {
            let verb = line.need("`add`")?;
            if !matches!(verb.text, "add" | "replace") {
                return Err(verb.error(format!("`add` has to be here, not `{}`", verb.text)));
            }
            if first.text == "qdisc" { node(line, first.place) } else { class(line, first.place) }
        }
        "filter" => Err(first.error("there are no filters: a queue says with `classes` what it takes")),
        other => Err(first.error(format!("a line begins with `port`, `qdisc` or `class`, not `{other}`"))),
    }
}

fn port(line: &mut Line<'_>, place: Place) -> Result<PortLine, WordsError> {
    let number = line.number("port", 0, u32::MAX.into())? as u32;
    let mut port = Port::default();
    let mut options = Options::of(line);
    while let Some(word) = options.next()? {
        let line = &mut *options.line;
        match word.text {
            "rate" => port.rate = Some(line.value("a rate", quantity::rate)?),
            "overhead" => port.overhead = line.small("overhead", MAX_OVERHEAD.into())? as u32,
            "mtu" => port.longest = line.number("mtu", 1, MAX_FRAME.into())? as u32,
            "buffer" => port.bytes = line.value("a size", quantity::size)?,
            "packets" => port.packets = line.number("packets", 1, MAX_PACKETS.into())? as u32,
            "overflow" => port.overflow = line.value("a size", quantity::size)?,
            "catch-up" => port.catch_up_ns = line.value("a time", quantity::time)?,
            "seed" => port.seed = line.number("seed", 0, u64::MAX)?,
            _ => {
                let known = "rate, overhead, mtu, buffer, packets, overflow, catch-up, seed";
                return Err(unknown(&word, "a port", known));
            }
        }
    }
    let says_catch_up = options.seen.contains(&"catch-up");
    Ok(PortLine { place, number, port, says_catch_up })
}

fn node(line: &mut Line<'_>, place: Place) -> Result<Statement, WordsError> {
    let word = line.need("`root` or `parent`")?;
    let (parent, parent_place) = match word.text {
        "root" => (None, word.place),
        "parent" => line.handle("the handle of a class").map(|(handle, place)| (Some(handle), place))?,
        other => return Err(word.error(format!("`root` or `parent` has to be here, not `{other}`"))),
    };
    line.keyword("handle")?;
    let (handle, handle_place) = line.handle("a handle")?;
    if minor(handle) != 0 {
        return Err(handle_place.error(format!("`{handle}` is a class; a handle ends with the colon")));
    }
    let words = words(line)?;
    Ok(Statement::Node(NodeLine { place, parent, parent_place, handle, words }))
}

/// The number of a class; 0 is none.
pub(super) fn minor(handle: Handle) -> u16 {
    handle.0 as u16
}

/// What a class belongs to.
pub(super) fn owner(class: Handle) -> Handle {
    Handle(class.0 & !0xffff)
}

fn class(line: &mut Line<'_>, place: Place) -> Result<Statement, WordsError> {
    line.keyword("parent")?;
    let (parent, parent_place) = line.handle("a handle")?;
    line.keyword("classid")?;
    let (class, class_place) = line.handle("the handle of a class")?;
    if minor(parent) != 0 {
        return Err(parent_place.error(format!("`{parent}` is a class, and classes have none of their own")));
    }
    if owner(class) != parent || minor(class) == 0 {
        return Err(class_place.error(format!("`{class}` is no class of `{parent}`")));
    }
    let word = line.need("`drr` or `wfq`")?;
    let (word, share) = match word.text {
        "drr" => {
            line.keyword("quantum")?;
            ("drr", line.value("a size", share_size)?)
        }
        "wfq" => {
            line.keyword("weight")?;
            ("wfq", line.number("weight", 1, MAX_WEIGHT.into())? as u32)
        }
        other => return Err(word.error(format!("a class is of `drr` or `wfq`, not of `{other}`"))),
    };
    match line.next() {
        Some(word) => Err(word.error(format!("the line should end before `{}`", word.text))),
        None => Ok(Statement::Class(ClassLine { place, class, word, share })),
    }
}

/// A quantum.
fn share_size(word: &str) -> Result<u32, String> {
    quantity::size(word)?.try_into().map_err(|_| format!("`{word}` is too large"))
}

fn words(line: &mut Line<'_>) -> Result<Words, WordsError> {
    let word = line.need("a kind of discipline or queue")?;
    match word.text {
        "prio" => {
            line.keyword("bands")?;
            let bands = line.number("bands", 1, u64::from(u16::MAX))? as u16;
            end(line, &word, Words::Priority(bands))
        }
        "rr" => end(line, &word, Words::RoundRobin),
        "drr" => end(line, &word, Words::Deficit),
        "wfq" => end(line, &word, Words::Fair),
        "flows" => flows(line, &word),
        "tbf" => tokens(line, &word),
        "cbs" => credit(line, &word),
        "taprio" => gates(line),
        "pfifo" | "bfifo" | "red" | "wred" => {
            let (queue, classes) = queue(line, &word, &mut Flow::None)?;
            Ok(Words::Queue(queue, classes))
        }
        "fq" => {
            let mut flow = Flow::Wanted { flows: None, quantum: None };
            let (queue, classes) = queue(line, &word, &mut flow)?;
            match flow {
                Flow::Wanted { flows: Some(flows), quantum: Some(quantum) } => {
                    Ok(Words::FairQueues(flows, quantum, queue, classes))
                }
                _ => Err(word.error("fq needs flows and a quantum")),
            }
        }
        other => Err(word.error(format!(
            "`{other}` is no discipline (prio, rr, drr, wfq, flows, tbf, cbs, taprio) and no queue (pfifo, bfifo, red, wred, fq)"
        ))),
    }
}

/// The line has to end.
fn end(line: &mut Line<'_>, kind: &Word<'_>, words: Words) -> Result<Words, WordsError> {
    match line.next() {
        Some(extra) if extra.text == "priomap" => {
            Err(extra.error("there is no `priomap`: queues say with `classes` what they take"))
        }
        Some(extra) => Err(extra.error(format!("`{}` ends before `{}`", kind.text, extra.text))),
        None => Ok(words),
    }
}

fn flows(line: &mut Line<'_>, kind: &Word<'_>) -> Result<Words, WordsError> {
    let count = line.number("flows", 1, MAX_QUEUES as u64)? as u32;
    let word = line.need("`prio`, `rr`, `drr` or `wfq`")?;
    let among = match word.text {
        "prio" => Among::Priority,
        "rr" => Among::RoundRobin,
        "drr" => {
            line.keyword("quantum")?;
            Among::Deficit(line.value("a list of sizes", |list| list.split(',').map(share_size).collect())?)
        }
        "wfq" => {
            line.keyword("weight")?;
            let weight =
                |word: &str| reader::number(word, "weight", 1, MAX_WEIGHT.into()).map(|weight| weight as u32);
            Among::Fair(line.value("a list of weights", |list| list.split(',').map(weight).collect())?)
        }
        other => {
            return Err(
                word.error(format!("flows take turns by `prio`, `rr`, `drr` or `wfq`, not by `{other}`"))
            );
        }
    };
    end(line, kind, Words::Flows(count, among))
}

fn tokens(line: &mut Line<'_>, kind: &Word<'_>) -> Result<Words, WordsError> {
    let (mut rate, mut burst) = (None, None);
    let mut options = Options::of(line);
    while let Some(word) = options.next()? {
        match word.text {
            "rate" => rate = Some(options.line.value("a rate", quantity::rate)?),
            "burst" => burst = Some(options.line.value("a size", quantity::size)?),
            "limit" | "latency" => {
                return Err(word.error(format!("`{}` is said of the queue under it, not of tbf", word.text)));
            }
            _ => return Err(unknown(&word, "tbf", "rate, burst")),
        }
    }
    match (rate, burst) {
        (Some(rate), Some(burst)) => Ok(Words::Shaper(rate, burst)),
        _ => Err(kind.error("tbf needs a rate and a burst")),
    }
}

fn credit(line: &mut Line<'_>, kind: &Word<'_>) -> Result<Words, WordsError> {
    let mut credit = CreditWords::default();
    let mut options = Options::of(line);
    while let Some(word) = options.next()? {
        let line = &mut *options.line;
        match word.text {
            "idleslope" => {
                let slope = line.value("a slope", quantity::slope)?;
                credit.idle_slope =
                    u64::try_from(slope).map_err(|_| word.error("an idle slope is not negative"))?;
            }
            "sendslope" => credit.send_slope = Some((line.value("a slope", quantity::slope)?, word.place)),
            "hicredit" => credit.hi_credit = Some(line.value("a size", quantity::size)?),
            "locredit" => credit.lo_credit = Some(line.value("a negative size", negative_size)?),
            "offload" => return Err(word.error("there is no offload")),
            _ => return Err(unknown(&word, "cbs", "idleslope, sendslope, hicredit, locredit")),
        }
    }
    match credit.idle_slope {
        0 => Err(kind.error("cbs needs an idleslope above 0")),
        _ => Ok(Words::Credit(credit)),
    }
}

/// The amount of a size that is not positive.
fn negative_size(word: &str) -> Result<u64, String> {
    match word.strip_prefix('-') {
        Some(amount) => quantity::size(amount),
        None => match quantity::size(word)? {
            0 => Ok(0),
            _ => Err(format!("`{word}` is positive; the low credit is 0 or less")),
        },
    }
}

fn gates(line: &mut Line<'_>) -> Result<Words, WordsError> {
    let mut list = GateList { base_ns: 0, cycle_ns: 0, extension_ns: 0, entries: Vec::new() };
    let mut initial = 0xff;
    let mut options = Options::of(line);
    while let Some(word) = options.next()? {
        let line = &mut *options.line;
        match word.text {
            "base-time" => list.base_ns = line.value("a time", quantity::gate_time)?,
            "cycle-time" => list.cycle_ns = line.value("a time", quantity::gate_time)?,
            "cycle-time-extension" => list.extension_ns = line.value("a time", quantity::gate_time)?,
            "initial" => initial = line.value("a mask of gates", mask)?,
            "sched-entry" => {
                if list.entries.len() == MAX_ENTRIES {
                    return Err(word.error(format!("there are more than {MAX_ENTRIES} entries")));
                }
                list.entries.push(entry(line)?);
            }
            "num_tc" | "map" | "queues" | "clockid" | "flags" | "txtime-delay" | "max-sdu" => {
                return Err(word.error(format!(
                    "there is no `{}`: class N is gate N - 1, queues say with `classes` what they take, the clock is the switch's",
                    word.text
                )));
            }
            _ => {
                let known = "base-time, cycle-time, cycle-time-extension, initial, sched-entry";
                return Err(unknown(&word, "taprio", known));
            }
        }
    }
    Ok(Words::Gates(Box::new(list), initial))
}

fn entry(line: &mut Line<'_>) -> Result<GateEntry, WordsError> {
    let word = line.need("a command, `S`")?;
    match word.text {
        "S" | "SET" => {}
        "H" | "HOLD" | "R" | "RELEASE" => {
            return Err(word.error(format!(
                "`{}` is for frame preemption, which there is not; an entry only sets gates: S",
                word.text
            )));
        }
        other => return Err(word.error(format!("`{other}` is no command of an entry; it is S"))),
    }
    let open = line.value("a mask of gates", mask)?;
    let interval_ns = line.value("an interval", quantity::gate_time)?;
    Ok(GateEntry { open, interval_ns })
}

/// A mask of gates.
fn mask(word: &str) -> Result<u8, String> {
    let digits = word.strip_prefix("0x").unwrap_or(word);
    let hexadecimal = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    u8::from_str_radix(digits, 16)
        .ok()
        .filter(|_| hexadecimal)
        .ok_or_else(|| format!("`{word}` is no mask of 8 gates: a hexadecimal number of 00 to ff"))
}

/// What `fq` says in addition to its queues.
enum Flow {
    None,
    Wanted { flows: Option<u32>, quantum: Option<u32> },
}

/// The options of a queue, and whether `classes` was one of them.
fn queue(line: &mut Line<'_>, kind: &Word<'_>, flow: &mut Flow) -> Result<(Box<Queue>, bool), WordsError> {
    let in_packets = matches!(kind.text, "pfifo" | "fq");
    let packets = if in_packets { Queue::default().packets } else { MAX_PACKETS };
    let mut queue = Box::new(Queue { packets, ..Queue::default() });
    let mut curve = CurveWords::default();
    let mut options = Options::of(line);
    let red = kind.text == "red";
    while let Some(word) = options.next()? {
        let line = &mut *options.line;
        match (word.text, &mut *flow) {
            ("limit", _) if in_packets => queue.packets = line.number("limit", 1, MAX_PACKETS.into())? as u32,
            ("limit", _) => queue.bytes = line.value("a size", quantity::size)?,
            ("bytes", _) if in_packets => queue.bytes = line.value("a size", quantity::size)?,
            ("packets", _) if !in_packets => {
                queue.packets = line.number("packets", 1, MAX_PACKETS.into())? as u32
            }
            ("classes", _) => queue.classes = line.value("classes", classes)?,
            ("reserve", _) => queue.reserved = line.value("a size", quantity::size)?,
            ("alpha", _) => queue.alpha = Some(line.value("a factor", quantity::alpha)?),
            ("age", _) => queue.age_ns = Some(line.value("a time", quantity::time)?),
            ("overflow", _) => queue.overflow = line.value("a size", quantity::size)?,
            ("ats", _) => queue.asynchronous = Some(asynchronous(&mut options, &word)?),
            ("flows", Flow::Wanted { flows, .. }) => {
                *flows = Some(line.number("flows", 1, MAX_QUEUES as u64)? as u32)
            }
            ("quantum", Flow::Wanted { quantum, .. }) => *quantum = Some(line.value("a size", share_size)?),
            ("average", _) => red_of(&mut queue).average = line.small("average", u8::MAX.into())? as u8,
            ("curve", _) if !red => {
                let classes = line.value("classes", classes)?;
                curve.finish(&mut queue)?;
                curve = CurveWords { word: Some(word), classes, ..CurveWords::default() };
                options.seen.retain(|seen| !matches!(*seen, "min" | "max" | "probability" | "ecn"));
            }
            ("min" | "max" | "probability" | "ecn", _) if red || curve.word.is_some() => {
                curve.option(line, &word)?;
            }
            ("avpkt" | "burst" | "bandwidth" | "adaptive" | "harddrop" | "nodrop", _) => {
                return Err(word.error(format!(
                    "there is no `{}`: `average N` follows the length by 2^-N a packet",
                    word.text
                )));
            }
            _ => return Err(unknown(&word, kind.text, &known(kind.text))),
        }
    }
    if red {
        curve = CurveWords { word: Some(*kind), classes: 0xff, ..curve };
    }
    curve.finish(&mut queue)?;
    if kind.text == "wred" {
        red_of(&mut queue);
    }
    let said = options.seen.contains(&"classes");
    if !said {
        queue.classes = 0;
    }
    Ok((queue, said))
}

/// Options of a kind of queue.
fn known(kind: &str) -> String {
    let first = match kind {
        "pfifo" => "limit, bytes",
        "fq" => "flows, quantum, limit, bytes",
        "red" => "limit, packets, min, max, probability, ecn",
        _ => "limit, packets",
    };
    let curve = if kind == "red" { "" } else { ", curve" };
    format!("{first}, classes, reserve, alpha, age, overflow, average{curve}, ats")
}

fn red_of(queue: &mut Queue) -> &mut Red {
    queue.red.get_or_insert_with(|| Red { average: 0, curves: Vec::new() })
}

/// A curve while it is read.
#[derive(Default)]
struct CurveWords<'t> {
    word: Option<Word<'t>>,
    classes: u8,
    min: Option<u64>,
    max: Option<u64>,
    probability: Option<u32>,
    ecn: bool,
}

impl CurveWords<'_> {
    fn option(&mut self, line: &mut Line<'_>, word: &Word<'_>) -> Result<(), WordsError> {
        match word.text {
            "min" => self.min = Some(line.value("a size", quantity::size)?),
            "max" => self.max = Some(line.value("a size", quantity::size)?),
            "probability" => self.probability = Some(line.value("a share", quantity::share)?),
            _ => self.ecn = true,
        }
        Ok(())
    }

    fn finish(&self, queue: &mut Queue) -> Result<(), WordsError> {
        let Some(word) = self.word else { return Ok(()) };
        let (Some(min), Some(max)) = (self.min, self.max) else {
            return Err(word.error(format!("`{}` needs min and max", word.text)));
        };
        let curves = &mut red_of(queue).curves;
        if curves.len() == CLASSES {
            return Err(word.error(format!("there are more than {CLASSES} curves")));
        }
        let probability = self.probability.unwrap_or(PROBABILITY);
        curves.push(Curve { classes: self.classes, min, max, probability, ecn: self.ecn });
        Ok(())
    }
}

/// What follows `ats`: up to the end of the line.
fn asynchronous(options: &mut Options<'_, '_>, ats: &Word<'_>) -> Result<Asynchronous, WordsError> {
    let (mut rate, mut burst, mut residence, mut streams, mut groups) = (None, None, None, 1, 1);
    while let Some(word) = options.next()? {
        let line = &mut *options.line;
        match word.text {
            "rate" => rate = Some(line.value("a rate", quantity::rate)?),
            "burst" => burst = Some(line.value("a size", quantity::size)?),
            "residence" => residence = Some(line.value("a time", quantity::time)?),
            "streams" => streams = line.number("streams", 1, MAX_STREAMS)? as u32,
            "groups" => groups = line.number("groups", 1, u32::MAX.into())? as u32,
            _ => {
                let known = "rate, burst, residence, streams, groups, and is the last of a queue";
                return Err(unknown(&word, "ats", known));
            }
        }
    }
    match (rate, burst, residence) {
        (Some(rate), Some(burst), Some(residence_ns)) => {
            Ok(Asynchronous { rate, burst, residence_ns, streams, groups })
        }
        _ => Err(ats.error("ats needs a rate, a burst and a residence")),
    }
}

/// Classes as a mask, of a list such as `0,2-5`.
fn classes(word: &str) -> Result<u8, String> {
    let no = || format!("`{word}` is no list of classes of 0 to 7, such as 0,2-5");
    let number = |text: &str| match text.as_bytes() {
        [digit @ b'0'..=b'7'] => Ok(digit - b'0'),
        _ => Err(no()),
    };
    let mut mask = 0;
    for part in word.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return Err(no());
        }
        (first..=last).for_each(|class| mask |= 1 << class);
    }
    Ok(mask)
}
