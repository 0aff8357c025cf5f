//! The programs in `filetests/`, each a text of the IR with directives as `millrace_filetests` has them. `; test run` obeys in order:
//!
//! - `; packet: HEX`: runs the bodies of ingress, then those of egress, over a packet, with nothing between. Blanks in HEX
//!   do not count. The state of the program stays from packet to packet.
//! - `; time: NS`: the time of the packets that follow.
//! - `; meter: NAME[INDEX] CIR CBS PIR PBS`: configures a meter, rates in units a second. `NAME[INDEX]` of a direct meter
//!   names an entry of its table.
//! - `; value: SET BITS, BITS`: adds a member to a value set.
//! - `; member: PROFILE ID ACTION(BITS, ...)`, `; group: PROFILE ID MEMBER MEMBER ...`,
//!   `; entry: TABLE BITS, ... => member ID` or `=> group ID`, `; default: TABLE => member ID` or `=> group ID`: writes an
//!   action profile, and what names it.
//!
//! After a packet:
//! - `; expect: slot NAME = VALUE`: VALUE is `8w5`, `true`, `empty` or `varbit 16w0x102`.
//! - `; expect: valid HEADER`, `; expect: invalid HEADER`.
//! - `; expect: bytes HEX`: the packet as the last deparser left it.
//! - `; expect: rejected NAME`, `; expect: aborted assert`, `plugin` or `step_limit`: how the last body ended.
//! - `; expect: steps NUMBER`: what the bodies have taken whose steps are counted.
//! - `; expect: log TEXT`, `; expect: digest NAME VALUE, ...`: one line or message, in order.
//! - `; expect: counter NAME[INDEX] = PACKETS, BYTES`, `; expect: register NAME[INDEX] = BITS`: what the state holds.
//!
//! A log line or a digest that no directive expects is an error.

use millrace_filetests::{Directive, Folder, Harness, Kind, Outcome, Test};
use millrace_interp::{Abort, Context, Effects, Ending, Interp, Unobserved, World};
use millrace_pipeline::semantics::{Value, VarbitValue};
use millrace_pipeline::*;
use millrace_state::{
    AccountConfig, AccountTest, EntryWrite, GroupMember, MemberWrite, MeterConfig, MeterRates, MeterRef,
    Rate, State, Target,
};
use std::collections::VecDeque;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

const WORDS: &[&str] = &["packet", "time", "meter", "value", "member", "group", "entry", "default", "expect"];

fn main() -> ExitCode {
    Harness::default()
        .folder(&Folder {
            path: Path::new(env!("CARGO_MANIFEST_DIR")).join("filetests"),
            extension: "mir",
            sign: ";",
            kinds: &[Kind { name: "run", words: WORDS, run }],
        })
        .run()
}

fn run(test: &Test<'_>) -> Result<Outcome, String> {
    let program = text::parse(test.source).map_err(|error| error.to_string())?;
    if let Err(errors) = verify::verify(&program) {
        return Err(errors.iter().map(|error| format!("\n  {error}")).collect());
    }
    let program = Arc::new(program);
    let mut bench = Bench {
        interp: Interp::new(Arc::clone(&program)),
        state: State::new(Arc::clone(&program)).map_err(|error| error.to_string())?,
        now_ns: 0,
        context: Context::new(&program, Vec::new()),
        ending: Ending::Done,
        digests: VecDeque::new(),
        log: VecDeque::new(),
        program,
    };
    for Directive { line, word, text } in test.script {
        bench.obey(word, text).map_err(|message| format!("line {line}: {message}"))?;
    }
    bench.nothing_left()?;
    match test.script.iter().any(|directive| directive.word == "expect") {
        true => Ok(Outcome::Holds),
        false => Err("nothing is expected".into()),
    }
}

struct Bench {
    program: Arc<Program>,
    interp: Interp,
    state: State,
    now_ns: u64,
    context: Context,
    ending: Ending,
    digests: VecDeque<String>,
    log: VecDeque<String>,
}

impl Bench {
    fn obey(&mut self, word: &str, rest: &str) -> Result<(), String> {
        match word {
            "packet" => {
                self.nothing_left()?;
                self.packet(unhex(rest)?);
                Ok(())
            }
            "time" => {
                self.now_ns = rest.parse().map_err(|_| "no time")?;
                Ok(())
            }
            "meter" => self.meter(rest),
            "value" => {
                let (set, values) = rest.split_once(' ').ok_or("no values")?;
                let set = self.state.value_set_named(set).map_err(|error| error.to_string())?;
                let member: Vec<EntryMatch> = bits_list(values)?.into_iter().map(EntryMatch::Exact).collect();
                self.state.insert_value(set, &member).map_err(|error| error.to_string())
            }
            "member" => self.member(rest),
            "group" => self.group(rest),
            "entry" => self.entry(rest),
            "default" => self.default(rest),
            "expect" => self.expect(rest),
            _ => Err(format!("`{word}` cannot be obeyed")),
        }
    }

    fn packet(&mut self, bytes: Vec<u8>) {
        self.context = Context::new(&self.program, bytes);
        self.ending = Ending::Done;
        let mut effects = Effects::default();
        for body in self.program.ingress.iter().chain(&self.program.egress) {
            let mut world = World {
                state: &mut self.state,
                now_ns: self.now_ns,
                effects: &mut effects,
                observer: &mut Unobserved,
            };
            self.ending = self.interp.run(*body, &mut self.context, &mut world);
            let goes_on = match self.ending {
                Ending::Done => true,
                Ending::Rejected { .. } => self.program.on_reject == OnReject::Continue,
                Ending::Aborted(_) => false,
            };
            if !goes_on {
                break;
            }
        }
        let digests = effects.digests().into_iter();
        self.log = effects.log.into();
        self.digests = digests
            .map(|digest| {
                let values: Vec<String> = digest.values.iter().map(show).collect();
                format!("{} {}", self.program.digests[digest.digest].name, values.join(", "))
            })
            .collect();
    }

    fn nothing_left(&self) -> Result<(), String> {
        match (self.log.front(), self.digests.front()) {
            (Some(line), _) => Err(format!("nobody expects the log line {line}")),
            (_, Some(digest)) => Err(format!("nobody expects the digest {digest}")),
            (None, None) => Ok(()),
        }
    }

    fn meter(&mut self, rest: &str) -> Result<(), String> {
        let (cell, numbers) = rest.split_once(' ').ok_or("no rates")?;
        let (name, index) = cell_of(cell)?;
        let config =
            meter_config(numbers).ok_or("four numbers are wanted, or three and the test of an account")?;
        let meter = self.state.meter_named(name).map_err(|error| error.to_string())?;
        let set = match meter {
            MeterRef::Indexed(id) => self.state.set_meter(id, index, Some(config)),
            MeterRef::Direct(table) => self.state.tables().set_direct_meter(table, index, Some(config)),
        };
        set.map_err(|error| error.to_string())
    }

    fn member(&mut self, rest: &str) -> Result<(), String> {
        let mut words = rest.splitn(3, ' ');
        let (profile, id, call) =
            (words.next().unwrap_or(""), words.next().unwrap_or(""), words.next().unwrap_or(""));
        let profile = self.state.profile_named(profile).map_err(|error| error.to_string())?;
        let (action, args) = call.trim_end_matches(')').split_once('(').ok_or("no call")?;
        let action = self.state.member_action_named(profile, action).map_err(|error| error.to_string())?;
        let member = MemberWrite { action, args: bits_list(args)? };
        let id = id.parse().map_err(|_| "no id")?;
        self.state
            .tables()
            .insert_member(profile, Some(id), &member)
            .map(drop)
            .map_err(|error| error.to_string())
    }

    fn group(&mut self, rest: &str) -> Result<(), String> {
        let mut words = rest.split_whitespace();
        let profile =
            self.state.profile_named(words.next().unwrap_or("")).map_err(|error| error.to_string())?;
        let numbers: Vec<u32> = words.filter_map(|word| word.parse().ok()).collect();
        let (id, members) = numbers.split_first().ok_or("no id")?;
        let members: Vec<GroupMember> =
            members.iter().map(|member| GroupMember { member: *member, weight: 1 }).collect();
        self.state
            .tables()
            .insert_group(profile, Some(*id), &members)
            .map(drop)
            .map_err(|error| error.to_string())
    }

    fn default(&mut self, rest: &str) -> Result<(), String> {
        let (table, target) = rest.split_once(" => ").ok_or("no target")?;
        let table = self.state.table_named(table).map_err(|error| error.to_string())?;
        let set = self.state.tables().set_default_target(table, &self::target(target)?);
        set.map_err(|error| error.to_string())
    }

    fn entry(&mut self, rest: &str) -> Result<(), String> {
        let (left, right) = rest.split_once(" => ").ok_or("no target")?;
        let (table, keys) = left.split_once(' ').ok_or("no keys")?;
        let table = self.state.table_named(table).map_err(|error| error.to_string())?;
        let entry = EntryWrite {
            matches: bits_list(keys)?.into_iter().map(EntryMatch::Exact).collect(),
            priority: 0,
            target: target(right)?,
            idle_timeout_ns: 0,
        };
        self.state.tables().insert(table, &entry, 0).map(drop).map_err(|error| error.to_string())
    }

    fn expect(&mut self, expectation: &str) -> Result<(), String> {
        let (word, rest) = expectation.split_once(' ').unwrap_or((expectation, ""));
        match word {
            "slot" => {
                let (name, wanted) = rest.split_once(" = ").ok_or("no value")?;
                let slot = self.program.slots.iter().find(|(_, slot)| slot.name == name);
                let (slot, _) = slot.ok_or_else(|| format!("no slot {name}"))?;
                same(&value(wanted)?, &self.context.phv.read(&self.program, slot))
            }
            "valid" | "invalid" => {
                let header = self.program.headers.iter().find(|(_, header)| header.name == rest);
                let (header, _) = header.ok_or_else(|| format!("no header {rest}"))?;
                same(&(word == "valid"), &self.context.phv.is_valid(header))
            }
            "bytes" => same(&hex(&unhex(rest)?), &hex(&self.context.bytes)),
            "rejected" => match self.ending {
                Ending::Rejected { code } => {
                    let name = self.program.errors.get(usize::from(code)).cloned();
                    same(&rest.to_owned(), &name.unwrap_or_else(|| code.to_string()))
                }
                other => Err(format!("{other:?}")),
            },
            "aborted" => {
                let wanted = match rest {
                    "assert" => Abort::Assert,
                    "plugin" => Abort::Plugin,
                    _ => Abort::StepLimit,
                };
                same(&Ending::Aborted(wanted), &self.ending)
            }
            "steps" => same(&rest.to_owned(), &self.context.steps.to_string()),
            "log" => same(&Some(rest.to_owned()), &self.log.pop_front()),
            "digest" => same(&Some(rest.to_owned()), &self.digests.pop_front()),
            "counter" => {
                let (cell, wanted) = rest.split_once(" = ").ok_or("no value")?;
                let (name, index) = cell_of(cell)?;
                let counter = self.state.counter_named(name).map_err(|error| error.to_string())?;
                let found =
                    self.state.tables().counter_value(counter, index).map_err(|error| error.to_string())?;
                same(&wanted.to_owned(), &format!("{}, {}", found.packets, found.bytes))
            }
            "register" => {
                let (cell, wanted) = rest.split_once(" = ").ok_or("no value")?;
                let (name, index) = cell_of(cell)?;
                let register = self.state.register_named(name).map_err(|error| error.to_string())?;
                let found = self.state.register_value(register, index).map_err(|error| error.to_string())?;
                same(&bits(wanted)?, &found)
            }
            _ => Err(format!("`{word}` cannot be expected")),
        }
    }
}

fn same<T: PartialEq + std::fmt::Debug>(wanted: &T, found: &T) -> Result<(), String> {
    if wanted == found { Ok(()) } else { Err(format!("wanted {wanted:?}\n  found  {found:?}")) }
}

fn value(text: &str) -> Result<Value, String> {
    match text {
        "true" => Ok(Value::Bool(true)),
        "false" => Ok(Value::Bool(false)),
        "empty" => Ok(Value::Varbit(VarbitValue::EMPTY)),
        _ => match text.strip_prefix("varbit ") {
            Some(rest) => Ok(Value::Varbit(VarbitValue::new(bits(rest)?))),
            None => bits(text).map(Value::Bits),
        },
    }
}

fn show(value: &Value) -> String {
    match value {
        Value::Bool(truth) => truth.to_string(),
        Value::Bits(bits) => bits.to_string(),
        Value::Varbit(varbit) => varbit.bits().map_or("empty".into(), |bits| format!("varbit {bits}")),
    }
}

fn bits(text: &str) -> Result<Bits, String> {
    text.trim().parse().map_err(|error: bits::ParseBitsError| format!("{text}: {error}"))
}

fn bits_list(text: &str) -> Result<Vec<Bits>, String> {
    text.split(',').filter(|part| !part.trim().is_empty()).map(bits).collect()
}

/// `group ID` or `member ID`
fn target(text: &str) -> Result<Target, String> {
    let (kind, id) = text.split_once(' ').ok_or("no target")?;
    let id = id.parse().map_err(|_| "no id")?;
    Ok(if kind == "group" { Target::Group(id) } else { Target::Member(id) })
}

/// `NAME[INDEX]`
fn cell_of(text: &str) -> Result<(&str, u64), String> {
    let (name, index) = text.trim_end_matches(']').split_once('[').ok_or("no index")?;
    Ok((name, index.parse().map_err(|_| "no index")?))
}

fn unhex(text: &str) -> Result<Vec<u8>, String> {
    let digits: Vec<u32> =
        text.chars().filter(|c| !c.is_whitespace()).filter_map(|c| c.to_digit(16)).collect();
    if !digits.len().is_multiple_of(2) {
        return Err("half a byte".into());
    }
    Ok(digits.chunks(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
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
