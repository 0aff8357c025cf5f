//! Programs with their bounds, and the instructions that their code executes for packets, counted one by one.

pub mod lines;

use millrace_bounds::{Contract, Input, Knowledge, NoBound, Part, analyse, call_at};
use millrace_compile::{Options, Source, Standard, check};
use millrace_dataplane::{Described, EngineKind, Switch, SwitchConfig, described};
use millrace_frames::{Burst, HEADROOM, MAX_BATCH, MAX_FRAME, Place, TAILROOM};
use millrace_jit::stepping::Steps;
use millrace_jit::{Batch, Compiled, DigestMessage, Effects, Outcomes, Times};
use millrace_midend::Start;
use millrace_midend::machine::Callee;
use millrace_pipeline::{DigestId, Program};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The folder of the programs.
pub fn programs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../programs")
}

/// The paths of all programs, without their endings.
///
/// # Panics
/// The folder cannot be read.
pub fn all() -> Vec<PathBuf> {
    let folders = [programs(), programs().join("cookbook")];
    let files = folders.iter().flat_map(|folder| std::fs::read_dir(folder).unwrap());
    let mut found: Vec<PathBuf> = files
        .map(|file| file.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "p4"))
        .map(|path| path.with_extension(""))
        .collect();
    found.sort();
    found
}

/// A program with its tables and its code, ready to be run and counted.
pub struct Counted {
    /// Its switch, which has its tables.
    pub switch: Switch,
    /// The program as it is compiled.
    pub program: Arc<Program>,
    /// Its code.
    pub parts: Vec<Described>,
    /// What its tables say.
    pub knowledge: Knowledge,
    /// Whether there is room for messages of its packets.
    pub has_room: bool,
}

/// A program with its bounds.
pub struct Bounded {
    /// The program.
    pub counted: Counted,
    /// The bounds of each part.
    pub bounds: Vec<Part>,
    /// The frames of its own test, with their ports.
    pub frames: Vec<(u32, Vec<u8>)>,
}

impl Bounded {
    /// Of a program with its entries.
    ///
    /// # Errors
    /// It has no bound.
    ///
    /// # Panics
    /// The program or its entries are wrong.
    pub fn new(path: &Path) -> Result<Bounded, NoBound> {
        let (standard, with) = match path.to_string_lossy().strip_suffix("_14") {
            // Most have the entries and the test of their twins.
            Some(_) if path.with_extension("entries").exists() => (Standard::P4_14, path.to_owned()),
            Some(newer) => (Standard::P4_14, PathBuf::from(newer)),
            None => (Standard::P4_16, path.to_owned()),
        };
        let read = |path: PathBuf| std::fs::read_to_string(path).unwrap_or_default();
        let source = read(path.with_extension("p4"));
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned() + ".p4");
        let entries = read(with.with_extension("entries"));
        let counted = Counted::new(&name.unwrap_or_default(), &source, standard, &entries);
        let bounds =
            (0..counted.parts.len()).map(|part| analyse(&counted.input(part), &counted.knowledge, None));
        let bounds = bounds.collect::<Result<Vec<_>, _>>()?;
        let frames = frames(&read(with.with_extension("stf")));
        Ok(Bounded { counted, bounds, frames })
    }
}

impl Counted {
    /// The text of a program with its entries, as commands.
    ///
    /// # Panics
    /// The program or its entries are wrong.
    pub fn new(name: &str, source: &str, standard: Standard, entries: &str) -> Counted {
        let checked = check(Source::Text(name, source), standard, &Options::default());
        assert!(!checked.has_errors(), "{name}: {:?}", checked.findings);
        let program = Arc::new(checked.lower().unwrap());
        let config = SwitchConfig { engine: EngineKind::Interp, ..SwitchConfig::default() };
        let mut switch = Switch::new(Arc::clone(&program), config).unwrap();
        if let Err(refused) = millrace_control::entries::load(&mut switch, entries) {
            panic!("{name}: {refused:?}");
        }
        let (program, parts) = described(&program, switch.state_mut()).unwrap();
        let knowledge = Knowledge::of(switch.state());
        Counted { switch, program, parts, knowledge, has_room: true }
    }

    /// What is analysed of a part.
    pub fn input(&self, part: usize) -> Input<'_> {
        let Described { code, start, .. } = &self.parts[part];
        Input { program: &self.program, code, start: *start, longest: MAX_FRAME as u64 }
    }

    /// What is called at an offset of the code of a part, and what it takes at most.
    pub fn call_at(&self, part: usize, at: u32) -> Option<(Callee, Option<Contract>)> {
        call_at(&self.input(part), &self.knowledge, at)
    }

    /// The engine of the table that is looked up, as it is built: its name, probes and lines.
    pub fn engine(&self, callee: &Callee) -> Option<(&'static str, u32, u32)> {
        let (Callee::Lookup(table) | Callee::LookupOfAll(table)) = callee else { return None };
        let found = self.switch.state().tables().lookup_contract(*table);
        Some((found.engine, found.probes, found.lines))
    }

    /// Runs a part over a batch of frames that came in on a port at a time, and waited for so long, counting.
    ///
    /// # Panics
    /// The machine cannot count, or there are more frames than a batch has.
    pub fn count(
        &mut self,
        part: usize,
        port: u32,
        frames: &[&[u8]],
        (time_ns, waited_ns): (u64, u64),
    ) -> Steps {
        let mut steps = None;
        self.run(part, port, frames, (time_ns, waited_ns), |compiled, work| {
            let held = nothing_at_hand();
            steps = Some(compiled.count_steps(work));
            drop(held);
        });
        steps.and_then(Result::ok).expect("instructions are counted on this machine")
    }

    /// The time that such a batch takes after `before` was done.
    ///
    /// # Panics
    /// There are more frames than a batch has.
    pub fn time(
        &mut self,
        part: usize,
        port: u32,
        frames: &[&[u8]],
        times: (u64, u64),
        before: impl FnOnce(),
    ) -> Duration {
        let mut taken = Duration::ZERO;
        self.run(part, port, frames, times, |_, work| {
            before();
            let start = Instant::now();
            work();
            taken = start.elapsed();
        });
        taken
    }

    /// Makes a batch ready and has `measure` run it.
    fn run(
        &mut self,
        part: usize,
        port: u32,
        frames: &[&[u8]],
        (time_ns, waited_ns): (u64, u64),
        measure: impl FnOnce(&Compiled, &mut dyn FnMut()),
    ) {
        assert!(frames.len() <= MAX_BATCH);
        let (mut memory, mut places) = (Vec::new(), Vec::new());
        for frame in frames {
            memory.resize(memory.len() + HEADROOM, 0);
            places.push(Place { at: memory.len() as u32, len: frame.len() as u32 });
            memory.extend_from_slice(frame);
            memory.resize(memory.len() + TAILROOM, 0);
        }
        let compiled = &self.parts[part].compiled;
        let (mut contexts, mut outcomes) = (compiled.contexts(frames.len()), Outcomes::default());
        let mut effects = self.effects();
        let mut host = compiled.host(self.switch.state_mut(), &mut effects);
        let times = vec![time_ns; frames.len()];
        let burst = Burst::new(&mut memory, &places, HEADROOM).expect("frames in their memory");
        let batch = Batch::new(burst, port).expect("a batch");
        let mut ran = 0;
        let mut batch = Some(batch);
        measure(compiled, &mut || {
            let times = Times { each: &times, now_ns: time_ns + waited_ns };
            if let Some(batch) = batch.take() {
                ran = batch.run(compiled, &mut host, &mut contexts, &mut outcomes, times).len();
            }
        });
        assert_eq!(ran, frames.len(), "the code fits the tables");
    }

    /// Where effects go: with room for messages, or without.
    fn effects(&self) -> Effects {
        let mut effects = Effects::of(&self.program);
        while !self.has_room && effects.take_lost() == 0 {
            effects.send(&DigestMessage { digest: DigestId::from_u32(0), values: Vec::new() });
        }
        effects
    }

    /// Whether a part takes packets as they come in.
    pub fn takes_arrivals(&self, part: usize) -> bool {
        matches!(self.parts[part].start, Start::Arrival | Start::Unparsed)
    }
}

/// Memory of all small sizes, so that the allocator has none at hand: what is allocated next takes its long paths.
fn nothing_at_hand() -> Vec<Vec<u8>> {
    let sizes = (1..=32).flat_map(|step| std::iter::repeat_n(16 * step - 8, 64));
    std::hint::black_box(sizes.map(Vec::with_capacity).collect())
}

/// The frames of an STF test, with their ports.
fn frames(stf: &str) -> Vec<(u32, Vec<u8>)> {
    let test = millrace_stf::parse(stf).expect("a test");
    test.frames().map(|(port, frame)| (port, frame.to_vec())).collect()
}

/// Numbers that look random, the same in each run (splitmix64).
pub struct Random(u64);

impl Random {
    /// From a seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// A number below another one.
    pub fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) as usize % most.max(1)
    }
}

/// Frames made of others: cut, filled up, with bits and bytes changed, two spliced.
pub struct Mutations {
    seeds: Vec<(u32, Vec<u8>)>,
    random: Random,
}

impl Mutations {
    /// Of these frames.
    pub fn new(seeds: Vec<(u32, Vec<u8>)>, seed: u64) -> Mutations {
        Mutations { seeds, random: Random::new(seed) }
    }

    /// The next frame, with its port.
    pub fn next_frame(&mut self) -> (u32, Vec<u8>) {
        let at = self.random.below(self.seeds.len());
        let (mut port, mut frame) = self.seeds.get(at).cloned().unwrap_or((0, vec![0; 64]));
        for _ in 0..self.random.below(4) {
            let len = frame.len();
            match self.random.below(7) {
                0 => {
                    let len = self.random.below(len + 1);
                    frame.truncate(len);
                }
                1 => {
                    let more = self.random.below(200);
                    frame.resize((len + more).min(1514), 0);
                }
                2 if len > 0 => {
                    let (at, bit) = (self.random.below(len), self.random.below(8));
                    frame[at] ^= 1 << bit;
                }
                3 if len > 0 => {
                    // Headers are at the start.
                    let (at, byte) = (self.random.below(len.min(64)), self.random.below(256));
                    frame[at] = byte as u8;
                }
                4 => {
                    let other = self.random.below(self.seeds.len());
                    let cut = self.random.below(len.min(64) + 1);
                    if let Some((_, other)) = self.seeds.get(other) {
                        frame.truncate(cut);
                        frame.extend(other.iter().skip(cut));
                    }
                }
                5 => port = self.random.below(8) as u32,
                _ if len > 0 => {
                    let (from, to) = (self.random.below(len), self.random.below(len));
                    frame[to] = frame[from];
                }
                _ => {}
            }
        }
        (port, frame)
    }
}
