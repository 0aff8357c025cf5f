//! The two engines side by side.

use millrace_frames::{Ahead, Burst, HEADROOM, Place, TAILROOM};
use millrace_interp::{Abort, Context, Effects, Ending, Interp, Unobserved, World};
use millrace_jit::{Batch, Compiled, Contexts, Effort, Options, Outcomes, Times, shapes};
use millrace_midend::{Footprint, Plan, Start, Verdict};
use millrace_pipeline::*;
use millrace_state::{
    AccountConfig, AccountTest, EntryWrite, GroupMember, MemberWrite, MeterConfig, MeterRates, MeterRef,
    PluginAnswer, PluginCaller, PluginHost, Rate, State, Target,
};
use std::sync::Arc;

/// Each of these with both efforts of the code generator.
pub(crate) fn in_both_ways<T: Copy>(all: impl IntoIterator<Item = T>) -> impl Iterator<Item = (T, Effort)> {
    all.into_iter().flat_map(|one| [(one, Effort::Speed), (one, Effort::Quick)])
}

/// One program in both engines, each with a state of its own.
pub(crate) struct Bench {
    program: Arc<Program>,
    interp: Interp,
    plan: Plan,
    options: Options,
    compiled: Compiled,
    contexts: Contexts,
    outcomes: Outcomes,
    arrival: bool,
    /// Of the interpreter and of compiled code.
    states: [State; 2],
    /// When the first packet of a batch comes.
    now_ns: u64,
    /// The time between two packets of a batch.
    apart_ns: u64,
    failures: Vec<String>,
    /// The packets of the last batch as compiled code left them, but for those that it dropped.
    pub(crate) left: Vec<Vec<u8>>,
}

/// What a packet came to.
#[derive(Debug, PartialEq)]
struct Outcome {
    verdict: (Verdict, u32),
    /// Storage and bytes, of packets that are not dropped.
    storage: Vec<String>,
}

/// Runs plugins that do in one call or another all that plugins can do.
#[derive(Debug)]
struct Fake;

#[derive(Debug, Default)]
struct FakeCaller {
    calls: u64,
    bytes: Vec<u8>,
}

impl PluginHost for Fake {
    fn bind(&self, _plugin: &Plugin) -> Result<Box<dyn PluginCaller>, String> {
        Ok(Box::<FakeCaller>::default())
    }
}

impl PluginCaller for FakeCaller {
    fn call(&mut self, args: &[u64], results: &mut [u64], payload: &[u8]) -> PluginAnswer<'_> {
        self.calls += 1;
        let sum = args.iter().fold(self.calls, |sum, arg| sum.wrapping_mul(31).wrapping_add(*arg));
        let sum = payload.iter().fold(sum, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(*byte)));
        results.iter_mut().zip(0..).for_each(|(result, index)| *result = sum.rotate_left(index));
        // Longer, shorter or as long as what it replaces, which is all, half or nothing.
        let replaced = payload.len() * (self.calls as usize % 3) / 2;
        let len = replaced + [0, 9, 0, 300][self.calls as usize % 4];
        self.bytes.clear();
        self.bytes.extend(payload.iter().cycle().chain([&7]).take(len).map(|byte| byte ^ sum as u8));
        self.bytes.truncate(if self.calls.is_multiple_of(5) { replaced / 2 } else { len });
        PluginAnswer {
            drop: self.calls.is_multiple_of(7),
            payload: (self.calls.is_multiple_of(2)).then_some((replaced, self.bytes.as_slice())),
            reply: (self.calls.is_multiple_of(3)).then_some(self.bytes.as_slice()),
        }
    }
}

impl Bench {
    /// None for a program that its state refuses.
    pub(crate) fn new(program: Program, start: Start, staged: &[TableId], effort: Effort) -> Option<Bench> {
        let program = Arc::new(program);
        let bodies: Vec<BodyId> = program.ingress.iter().chain(&program.egress).copied().collect();
        let mut plan = Plan::bodies("all", &bodies);
        plan.start = start;
        let arrival = start == Start::Arrival;
        let mut states = [State::new(Arc::clone(&program)).ok()?, State::new(Arc::clone(&program)).ok()?];
        let host: Arc<dyn PluginHost> = Arc::new(Fake);
        states.iter_mut().for_each(|state| state.set_plugins(&host).expect("plugins"));
        // Both schedules of lookups are tested.
        let shapes = if start == Start::Unparsed { Vec::new() } else { shapes(&mut states[1]) };
        let options = Options {
            keep_all: true,
            staged: staged.to_vec(),
            far: staged.to_vec(),
            effort,
            shapes,
            ..Options::default()
        };
        let compiled = Compiled::new(&program, &plan, &options).expect("a program that compiles");
        Some(Bench {
            plan,
            options,
            interp: Interp::new(Arc::clone(&program)),
            contexts: compiled.contexts(8),
            outcomes: Outcomes::default(),
            compiled,
            arrival,
            states,
            now_ns: 0,
            apart_ns: 0,
            failures: Vec::new(),
            left: Vec::new(),
            program,
        })
    }

    /// From now on packets of a batch come so long after one another.
    pub(crate) fn set_apart(&mut self, apart_ns: u64) {
        self.apart_ns = apart_ns;
    }

    /// How many entries of a table are idle for too long at a time, in both.
    pub(crate) fn expired(&mut self, table: &str, now_ns: u64) -> [usize; 2] {
        self.states.each_mut().map(|state| {
            let table = state.table_named(table).expect("a table");
            state.tables().expired(table, now_ns).count()
        })
    }

    pub(crate) fn failures(self) -> Vec<String> {
        self.failures
    }

    /// Runs a batch through both and compares.
    pub(crate) fn packets(&mut self, batch: &[Vec<u8>]) {
        let mut effects = Effects::default();
        let interpreted: Vec<Outcome> =
            (0..).zip(batch).map(|(at, bytes)| self.interpret(at, bytes.clone(), &mut effects)).collect();
        let (ran, own_effects) = self.run(batch);
        for (at, (wanted, found)) in interpreted.iter().zip(&ran).enumerate() {
            if wanted.verdict != found.verdict {
                let what =
                    format!("packet {:02x?}: {:?}, not {:?}", batch[at], found.verdict, wanted.verdict);
                self.failures.push(what);
            }
            for (wanted, found) in wanted.storage.iter().zip(&found.storage) {
                if wanted != found {
                    self.failures
                        .push(format!("packet {:02x?}:\n  wanted {wanted}\n  found  {found}", batch[at]));
                }
            }
        }
        let (digests, wanted) = (own_effects.digests(), effects.digests());
        if digests != wanted || effects.log != own_effects.log || effects.answers != own_effects.answers {
            self.failures.push(format!("effects {own_effects:?}, not {effects:?}"));
        }
        let [wanted, found] = &self.states;
        if format!("{wanted:?}") != format!("{found:?}") {
            self.failures.push("the states differ".into());
        }
    }

    /// When a packet of a batch comes.
    fn time_of(&self, number: u64) -> u64 {
        self.now_ns + number * self.apart_ns
    }

    fn interpret(&mut self, number: u64, bytes: Vec<u8>, effects: &mut Effects) -> Outcome {
        let now_ns = self.time_of(number);
        let p = &self.program;
        let mut context = Context::new(p, bytes);
        if self.arrival {
            context.set(p, Intrinsic::IngressPort, 7);
            context.set(p, Intrinsic::IngressTimestamp, now_ns);
            context.set(p, Intrinsic::PacketLength, context.length() as u64);
        }
        for body in p.ingress.iter().chain(&p.egress) {
            let state = &mut self.states[0];
            let mut world = World { state, now_ns, effects, observer: &mut Unobserved };
            let verdict = match self.interp.run(*body, &mut context, &mut world) {
                Ending::Done => continue,
                Ending::Rejected { code } if p.on_reject == OnReject::Drop => {
                    (Verdict::ParserError, u32::from(code))
                }
                Ending::Rejected { .. } if p.on_reject == OnReject::PassOn => break,
                Ending::Rejected { .. } => continue,
                Ending::Aborted(Abort::Assert) => (Verdict::Assert, 0),
                Ending::Aborted(Abort::Plugin) => (Verdict::Plugin, 0),
                Ending::Aborted(Abort::StepLimit) => (Verdict::StepLimit, 0),
            };
            return Outcome { verdict, storage: Vec::new() };
        }
        let slots = p.slots.iter().map(|(id, slot)| format!("{} = {:?}", slot.name, context.phv.read(p, id)));
        let valid = p.headers.iter().map(|(id, h)| format!("{} {}", h.name, context.phv.is_valid(id)));
        let rest = [
            format!("cursor {}", context.cursor),
            format!("steps {}", context.steps),
            format!("{:02x?}", context.bytes),
        ];
        Outcome { verdict: (Verdict::Stopped, 0), storage: slots.chain(valid).chain(rest).collect() }
    }

    /// Entries may have changed how tables are looked up by loads.
    fn look_up_as_now(&mut self) {
        let now = shapes(&mut self.states[1]);
        if !self.options.shapes.is_empty() && self.options.shapes != now {
            self.options.shapes = now;
            self.compiled =
                Compiled::new(&self.program, &self.plan, &self.options).expect("it compiled before");
        }
    }

    fn run(&mut self, batch: &[Vec<u8>]) -> (Vec<Outcome>, millrace_jit::Effects) {
        // Memory of a batch has its tailroom also when there are no packets.
        let (mut memory, mut places) = (vec![0; TAILROOM], Vec::new());
        for bytes in batch {
            memory.extend_from_slice(&[0xa5; HEADROOM]);
            places.push(Place { at: memory.len() as u32, len: bytes.len() as u32 });
            memory.extend_from_slice(bytes);
            memory.extend_from_slice(&[0x5a; TAILROOM]);
        }
        if !self.arrival {
            (0..batch.len()).for_each(|at| self.contexts.storage.clear(at));
        }
        self.look_up_as_now();
        let each: Vec<u64> = (0..batch.len() as u64).map(|at| self.time_of(at)).collect();
        let times = Times { each: &each, now_ns: self.time_of(batch.len() as u64) };
        let mut effects = Effects::default();
        let mut host = self.compiled.host(&mut self.states[1], &mut effects);
        let burst = Burst::new(&mut memory, &places, HEADROOM).expect("packets with room on both sides");
        // Frames that come after it lie where there is no memory: nothing is read there.
        let nowhere = vec![Place { at: u32::MAX, len: u32::MAX }; batch.len()];
        let burst = burst.with_ahead(Ahead { memory: std::ptr::null(), places: &nowhere });
        let ran = Batch::new(burst, 7).expect("a batch");
        let results = ran.run(&self.compiled, &mut host, &mut self.contexts, &mut self.outcomes, times);
        let p = &self.program;
        let outcomes = results
            .outcomes()
            .iter()
            .enumerate()
            .map(|(at, outcome)| {
                let verdict = outcome.verdict();
                let mut storage = Vec::new();
                if verdict == Verdict::Stopped {
                    let contexts = &self.contexts.storage;
                    storage.extend(
                        p.slots
                            .iter()
                            .map(|(id, slot)| format!("{} = {:?}", slot.name, contexts.read(p, at, id))),
                    );
                    storage.extend(
                        p.headers.iter().map(|(id, h)| format!("{} {}", h.name, contexts.is_valid(at, id))),
                    );
                    storage.push(format!("cursor {}", contexts.cursor(at)));
                    storage.push(format!("steps {}", contexts.steps(at)));
                    storage.push(format!("{:02x?}", results.bytes(at)));
                }
                Outcome { verdict: (verdict, outcome.number()), storage }
            })
            .collect();
        let stopped =
            (0..).zip(results.outcomes()).filter(|(_, outcome)| outcome.verdict() == Verdict::Stopped);
        self.left = stopped.map(|(at, _)| results.bytes(at).to_vec()).collect();
        drop(host);
        for (Place { at, len }, bytes) in places.iter().zip(batch) {
            let buffer = &memory[*at as usize - HEADROOM..(at + len) as usize + TAILROOM];
            self.failures.extend(untouched(buffer, bytes, self.compiled.footprint()));
        }
        (outcomes, effects)
    }

    /// A directive of the interpreter's file tests that changes the state; others are left out.
    pub(crate) fn obey(&mut self, word: &str, rest: &str) {
        for which in 0..2 {
            let state = &mut self.states[which];
            match word {
                "time" => self.now_ns = rest.parse().expect("a time"),
                "meter" => {
                    let (cell, numbers) = rest.split_once(' ').expect("rates");
                    let (name, index) = cell_of(cell);
                    let config = meter_config(numbers).expect("a meter's parameters");
                    let meter = state.meter_named(name).expect("a meter");
                    match meter {
                        MeterRef::Indexed(id) => state.set_meter(id, index, Some(config)),
                        MeterRef::Direct(table) => {
                            state.tables().set_direct_meter(table, index, Some(config))
                        }
                    }
                    .expect("a meter's configuration");
                }
                "value" => {
                    let (set, values) = rest.split_once(' ').expect("values");
                    let set = state.value_set_named(set).expect("a value set");
                    let member: Vec<EntryMatch> =
                        bits_list(values).into_iter().map(EntryMatch::Exact).collect();
                    state.insert_value(set, &member).expect("a member");
                }
                "member" => {
                    let mut words = rest.splitn(3, ' ');
                    let mut word = || words.next().unwrap_or("");
                    let (profile, id, call) = (word(), word(), word());
                    let profile = state.profile_named(profile).expect("a profile");
                    let (action, args) = call.trim_end_matches(')').split_once('(').expect("a call");
                    let action = state.member_action_named(profile, action).expect("an action");
                    let member = MemberWrite { action, args: bits_list(args) };
                    state
                        .tables()
                        .insert_member(profile, Some(id.parse().expect("an id")), &member)
                        .expect("a member");
                }
                "group" => {
                    let mut words = rest.split_whitespace();
                    let profile = state.profile_named(words.next().unwrap_or("")).expect("a profile");
                    let numbers: Vec<u32> = words.map(|word| word.parse().expect("a number")).collect();
                    let members: Vec<GroupMember> = numbers[1..]
                        .iter()
                        .map(|member| GroupMember { member: *member, weight: 1 })
                        .collect();
                    state.tables().insert_group(profile, Some(numbers[0]), &members).expect("a group");
                }
                "entry" => {
                    let (left, right) = rest.split_once(" => ").expect("a target");
                    let (table, keys) = left.split_once(' ').expect("keys");
                    let table = state.table_named(table).expect("a table");
                    let entry = EntryWrite {
                        matches: bits_list(keys).into_iter().map(EntryMatch::Exact).collect(),
                        priority: 0,
                        target: target(right),
                        idle_timeout_ns: 0,
                    };
                    state.tables().insert(table, &entry, 0).expect("an entry");
                }
                // Of a table's first action, which has no arguments; ten seconds old at most, where entries age.
                "first" => {
                    let (table, keys) = rest.split_once(' ').expect("keys");
                    let table = state.table_named(table).expect("a table");
                    let ages = self.program.tables[table].idle_timeout;
                    let entry = EntryWrite {
                        matches: bits_list(keys).into_iter().map(EntryMatch::Exact).collect(),
                        priority: 0,
                        target: Target::Action(ActionCall { action: 0, args: Vec::new() }),
                        idle_timeout_ns: if ages { 10_000_000_000 } else { 0 },
                    };
                    state.tables().insert(table, &entry, 0).expect("an entry");
                }
                "default" => {
                    let (table, right) = rest.split_once(" => ").expect("a target");
                    let table = state.table_named(table).expect("a table");
                    state.tables().set_default_target(table, &target(right)).expect("a default");
                }
                _ => {}
            }
        }
    }
}

/// `group ID` or `member ID`.
fn target(text: &str) -> Target {
    let (kind, id) = text.split_once(' ').expect("a target");
    let id = id.parse().expect("an id");
    if kind == "group" { Target::Group(id) } else { Target::Member(id) }
}

/// Says what was changed of a packet's buffer beyond what code may change.
fn untouched(buffer: &[u8], packet: &[u8], written: Footprint) -> Option<String> {
    let front = HEADROOM - written.before;
    let end = (HEADROOM + written.within.min(packet.len())).min(buffer.len());
    let same = buffer[..front].iter().all(|byte| *byte == 0xa5)
        && buffer[end..HEADROOM + packet.len()] == packet[end - HEADROOM..]
        && buffer[HEADROOM + packet.len()..].iter().all(|byte| *byte == 0x5a);
    (!same).then(|| format!("packet {packet:02x?} is changed beyond {written:?}"))
}

/// CIR, CBS, PIR and PBS of a meter, or BAG, jitter, Smax and the test of an account.
fn meter_config(words: &str) -> Option<MeterConfig> {
    let words: Vec<&str> = words.split_whitespace().collect();
    let [a, b, c, d] = words.as_slice() else { return None };
    let [a, b, c] = [a.parse().ok()?, b.parse().ok()?, c.parse().ok()?];
    if let Some(test) = AccountTest::named(d) {
        return Some(AccountConfig::new(a, b, u32::try_from(c).ok()?, test).ok()?.into());
    }
    let rate = Rate::per_second;
    Some(MeterRates { cir: rate(a), cbs: b, pir: rate(c), pbs: d.parse().ok()? }.into())
}

/// The program without what shows the order of packets: then those of a batch may overtake each other.
pub(crate) fn without_memory(mut program: Program) -> Program {
    let ordered = |inst: &Inst| {
        matches!(
            inst,
            Inst::Meter { .. }
                | Inst::MeterDirect { .. }
                | Inst::RegisterRead { .. }
                | Inst::RegisterWrite { .. }
                | Inst::Random { .. }
                | Inst::Call { .. }
                | Inst::CallResult { .. }
                | Inst::Digest { .. }
                | Inst::Log { .. }
                | Inst::Assert { .. }
        )
    };
    for body in program.bodies.values_mut() {
        for block in body.blocks.values_mut() {
            block.insts.retain(|inst| !ordered(inst));
        }
    }
    for table in program.tables.values_mut() {
        if let Some(meter) = &mut table.direct_meter {
            meter.at_hit = None;
        }
    }
    program
}

fn bits_list(text: &str) -> Vec<Bits> {
    text.split(',')
        .filter(|part| !part.trim().is_empty())
        .map(|part| part.trim().parse().expect("bits"))
        .collect()
}

/// `NAME[INDEX]`
fn cell_of(text: &str) -> (&str, u64) {
    let (name, index) = text.trim_end_matches(']').split_once('[').expect("an index");
    (name, index.parse().expect("an index"))
}

pub(crate) fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text.chars().filter_map(|c| c.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect()
}
