//! Isolation: three instances of one program, with the same names of tables, registers and counters, on one running device. Random operations
//! on them (entries, registers and counters over one P4Runtime server; frames, interleaved on the same ports; swaps, rollbacks, copies by
//! snapshot; stops, starts, removals and loads) are compared with a model in plain Rust of what each has to hold, to send and to count. After
//! each operation all of all instances is looked at, so nobody sees the entries, the state or the packets of another.
//!
//!     PROPTEST_CASES=2000 cargo test -p millrace-virtual-switches --test isolation

mod controller;
#[path = "../lab/mod.rs"]
mod lab;
mod model;

use controller::Controller;
use lab::{Folder, Lab, file};
use millrace_compile::{Options, Source, Standard, check};
use millrace_ctl_api::{Answer, RefusalKind, Request, Stats, SwitchStats};
use millrace_describe::image::Image;
use millrace_describe::p4info::describe;
use millrace_p4runtime_api::v1::update::Type;
use model::{CELLS, COUNT, Counts, Held, INSTANCES, Instance, Left, Model, Tags};
use proptest::prelude::*;
use std::fmt::Debug;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// Cases, if `PROPTEST_CASES` does not say more.
const CASES: u32 = 8;
/// Operations of a case.
const OPERATIONS: usize = 40;
/// Frames that no instance claims, and those with another inner tag.
const OTHERS: [Tags; 3] = [(30, None), (10, Some(8)), (20, Some(7))];
/// How long the device may take for what was sent.
const PATIENCE: Duration = Duration::from_secs(5);

/// What is done, to the instance of a number.
#[derive(Clone, Debug)]
enum Operation {
    Insert(usize, u8, (u16, u16)),
    Modify(usize, u8, (u16, u16)),
    Delete(usize, u8),
    SetSeen(usize, usize, u32),
    SetCounted(usize, usize, (i64, i64)),
    /// Frames by a port of the machine, each with its tags and its destination.
    Send(usize, Vec<(Tags, u8)>),
    /// To a version of the program.
    Swap(usize, u8),
    RollBack(usize),
    /// The second goes on with a snapshot of the first.
    Copy(usize, usize),
    Stop(usize),
    Start(usize),
    Remove(usize),
    Load(usize),
}

fn operation() -> impl Strategy<Value = Operation> {
    let one = || 0..COUNT;
    let key = || 0..6u8;
    // Port 2 is none that the instances have.
    let entry = || (0..3u16, any::<u16>());
    let tags = prop_oneof![
        3 => prop::sample::select(INSTANCES.map(|(_, tags)| tags).to_vec()),
        1 => prop::sample::select(OTHERS.to_vec()),
    ];
    prop_oneof![
        8 => (one(), key(), entry()).prop_map(|(of, key, entry)| Operation::Insert(of, key, entry)),
        3 => (one(), key(), entry()).prop_map(|(of, key, entry)| Operation::Modify(of, key, entry)),
        3 => (one(), key()).prop_map(|(of, key)| Operation::Delete(of, key)),
        2 => (one(), 0..CELLS, any::<u32>()).prop_map(|(of, cell, value)| Operation::SetSeen(of, cell, value)),
        2 => (one(), 0..CELLS, (0..1_000_000i64, 0..1_000_000i64))
            .prop_map(|(of, cell, value)| Operation::SetCounted(of, cell, value)),
        8 => (0..2usize, prop::collection::vec((tags, key()), 1..20))
            .prop_map(|(cable, frames)| Operation::Send(cable, frames)),
        2 => (one(), 1..3u8).prop_map(|(of, version)| Operation::Swap(of, version)),
        1 => one().prop_map(Operation::RollBack),
        1 => (one(), one()).prop_map(|(from, to)| Operation::Copy(from, to)),
        1 => one().prop_map(Operation::Stop),
        1 => one().prop_map(Operation::Start),
        1 => one().prop_map(Operation::Remove),
        2 => one().prop_map(Operation::Load),
    ]
}

/// The image of a version of the program: the second has its actions in another order, so no entry means the same as it lies.
fn image(version: u8) -> &'static str {
    static IMAGES: LazyLock<[String; 2]> = LazyLock::new(|| {
        let first = include_str!("../programs/cells.p4");
        let second =
            first.replace("VERSION 1", "VERSION 2").replace("ACTIONS send; drop;", "ACTIONS drop; send;");
        [first, &second].map(|text| {
            let checked = check(Source::Text("cells.p4", text), Standard::P4_16, &Options::default());
            assert!(!checked.has_errors(), "{:?}", checked.findings);
            Image::new(checked.lower().unwrap(), describe(&checked.typed)).to_string()
        })
    });
    &IMAGES[usize::from(version) - 1]
}

/// The id of an instance in P4Runtime.
fn device(of: usize) -> u64 {
    of as u64 + 1
}

/// The section of an instance in the file.
fn section(of: usize, engine: &str) -> String {
    let (name, (vlan, inner)) = INSTANCES[of];
    let inner = inner.map(|inner| format!(", inner = {inner}")).unwrap_or_default();
    let port = |number: usize| {
        format!(
            "[[switch.port]]\nnumber = {number}\nphysical = \"p{number}\"\nmatch = {{ vlan = {vlan}{inner} }}\ntag = \"strip\"\n"
        )
    };
    let (id, ports) = (device(of), [0, 1].map(port).concat());
    format!(
        "[[switch]]\nname = \"{name}\"\nimage = \"cells.mimg\"\nengine = \"{engine}\"\ndevice-id = {id}\n{ports}"
    )
}

/// A device with its controller and its model.
struct Both {
    lab: Lab,
    controller: Controller,
    model: Model,
    engine: &'static str,
    number: u16,
    left: Left,
}

impl Both {
    fn new(engine: &'static str, workers: usize) -> Both {
        let folder = Folder::new();
        folder.write("cells.mimg", image(1));
        let switches: String = (0..COUNT).map(|of| section(of, engine)).collect();
        let lab =
            Lab::within(folder, &file(&format!("workers = {workers}\ngrpc = \"127.0.0.1:0\""), &switches));
        let mut controller = Controller::connect(lab.device.p4runtime().unwrap(), device(0));
        (0..COUNT).for_each(|of| controller.arbitrate(device(of)));
        let model = Model { instances: std::array::from_fn(|_| Some(Instance::new())), unclassified: 0 };
        Both { lab, controller, model, engine, number: 0, left: Left::new() }
    }

    /// Writes over P4Runtime, and to the model if it is right.
    fn write<E: Debug>(
        &mut self,
        of: usize,
        write: impl FnOnce(&mut Controller, u64) -> Result<(), E>,
        note: impl FnOnce(&mut Held) -> bool,
    ) {
        let done = write(&mut self.controller, device(of));
        let is_right = self.model.instances[of].as_mut().is_some_and(|instance| note(&mut instance.held));
        assert_eq!(done.is_ok(), is_right, "{done:?}");
    }

    /// Asks over the socket, for what changes an instance; it is refused if that is not there.
    fn ask(&mut self, request: &Request, of: usize, note: impl FnOnce(&mut Instance) -> bool) {
        let kind = match &mut self.model.instances[of] {
            None => Some(RefusalKind::NotFound),
            Some(instance) => (!note(instance)).then_some(RefusalKind::Invalid),
        };
        match (self.lab.ask(request), kind) {
            (Answer::Changed(_), None) => {}
            (Answer::Refused(refused), Some(kind)) => assert_eq!(refused.kind, kind, "{refused:?}"),
            (answer, wanted) => panic!("{answer:?}, not {wanted:?}"),
        }
    }

    fn carry_out(&mut self, operation: &Operation) {
        let switch = |of: usize| INSTANCES[of].0.to_owned();
        match *operation {
            Operation::Insert(of, key, entry) => self.write(
                of,
                |controller, device| controller.write_entry(device, Type::Insert, key, entry),
                |held| {
                    let is_new = !held.entries.contains_key(&key);
                    held.entries.entry(key).or_insert(entry);
                    is_new
                },
            ),
            Operation::Modify(of, key, entry) => self.write(
                of,
                |controller, device| controller.write_entry(device, Type::Modify, key, entry),
                |held| held.entries.get_mut(&key).map(|known| *known = entry).is_some(),
            ),
            Operation::Delete(of, key) => self.write(
                of,
                |controller, device| controller.write_entry(device, Type::Delete, key, (0, 0)),
                |held| held.entries.remove(&key).is_some(),
            ),
            Operation::SetSeen(of, cell, value) => self.write(
                of,
                |controller, device| controller.set_seen(device, cell, value),
                |held| {
                    held.seen[cell] = value;
                    true
                },
            ),
            Operation::SetCounted(of, cell, value) => self.write(
                of,
                |controller, device| controller.set_counted(device, cell, value),
                |held| {
                    held.counted[cell] = value;
                    true
                },
            ),
            Operation::Send(cable, ref frames) => self.send(cable, frames),
            Operation::Swap(of, version) => {
                let (switch, program) = (switch(of), image(version).to_owned());
                let request = Request::Swap { switch, program, keep_everything: true, probation: None };
                self.ask(&request, of, |instance| {
                    instance.swap(version);
                    true
                });
            }
            Operation::RollBack(of) => {
                self.ask(&Request::Rollback { switch: switch(of) }, of, Instance::roll_back)
            }
            Operation::Copy(from, to) => self.copy(from, to),
            Operation::Stop(of) | Operation::Start(of) => {
                let is_stopped = matches!(operation, Operation::Stop(_));
                let request = match is_stopped {
                    true => Request::Stop { switch: switch(of) },
                    false => Request::Start { switch: switch(of) },
                };
                self.ask(&request, of, |instance| {
                    instance.is_stopped = is_stopped;
                    true
                });
            }
            Operation::Remove(of) => {
                self.ask(&Request::Remove { switch: switch(of) }, of, |_| true);
                if self.model.instances[of].take().is_some() {
                    assert_eq!(self.controller.ended(device(of)), tonic::Code::NotFound);
                }
            }
            Operation::Load(of) => self.load(of),
        }
    }

    fn send(&mut self, cable: usize, frames: &[(Tags, u8)]) {
        let Both { lab, model, number, left, .. } = self;
        let frame = |(tags, key): &(Tags, u8)| {
            *number = number.wrapping_add(1);
            let frame = model::frame(*tags, *key, *number);
            model.send(cable, *tags, &frame, left);
            frame
        };
        let frames: Vec<Vec<u8>> = frames.iter().map(frame).collect();
        lab.cables[cable].send(frames);
    }

    fn copy(&mut self, from: usize, to: usize) {
        let answer = self.lab.ask(&Request::Snapshot { switch: INSTANCES[from].0.into() });
        let Some(instance) = &self.model.instances[from] else {
            assert!(matches!(answer, Answer::Refused(refused) if refused.kind == RefusalKind::NotFound));
            return;
        };
        let Answer::Text(snapshot) = answer else { panic!("{answer:?}") };
        let now = (instance.version, instance.held.clone());
        let request = Request::Restore { switch: INSTANCES[to].0.into(), snapshot };
        self.ask(&request, to, |instance| {
            instance.restore(now);
            true
        });
    }

    fn load(&mut self, of: usize) {
        let text = section(of, self.engine);
        let answer = self.lab.ask(&Request::Load {
            text,
            folder: self.lab.folder.text(),
            files: std::collections::BTreeMap::new(),
        });
        match &self.model.instances[of] {
            // The file would have it twice.
            Some(_) => assert!(matches!(&answer, Answer::Refused(_)), "{answer:?}"),
            None => {
                assert!(matches!(&answer, Answer::Changed(_)), "{answer:?}");
                self.model.instances[of] = Some(Instance::new());
                self.controller.arbitrate(device(of));
            }
        }
    }

    /// Looks at all of all instances.
    fn compare(&mut self) {
        let (begun, wanted) = (Instant::now(), counts_of_model(&self.model));
        let mut got = counts(&self.lab.stats());
        while got != wanted && begun.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_micros(200));
            got = counts(&self.lab.stats());
        }
        assert_eq!(got, wanted, "what was counted of frames that nobody claims, and of each instance");
        let mut left = Left::new();
        for (port, cable) in self.lab.cables.iter().enumerate() {
            let count =
                self.left.iter().filter(|((at, _), _)| *at == port).map(|(_, frames)| frames.len()).sum();
            for frame in cable.receive(count) {
                left.entry((port, model::tags(&frame))).or_default().push(frame);
            }
        }
        assert_eq!(left, std::mem::take(&mut self.left), "what leaves by each port with which tags");
        let Answer::Switches(list) = self.lab.ask(&Request::List) else { panic!() };
        let listed = list.iter().map(|one| (one.device_id, one.is_running, one.can_roll_back));
        let mut listed: Vec<_> = listed.collect();
        listed.sort_unstable();
        let instances = || self.model.instances.iter().enumerate();
        let known = instances().filter_map(|(of, instance)| {
            let instance = instance.as_ref()?;
            Some((device(of), !instance.is_stopped, instance.before.is_some()))
        });
        assert_eq!(listed, known.collect::<Vec<_>>());
        for (of, instance) in self.model.instances.iter().enumerate() {
            let held = self.controller.read(device(of)).map_err(|status| status.code());
            let wanted = instance.as_ref().map(|instance| instance.held.clone()).ok_or(tonic::Code::NotFound);
            assert_eq!(held, wanted, "what instance {of} holds");
        }
    }
}

/// Frames that nobody claims, and what each instance that is there has counted.
type All = (u64, Vec<(String, Counts)>);

fn counts(stats: &Stats) -> All {
    let one = |stats: &SwitchStats| {
        let port = |number: u32| stats.ports.iter().find(|port| port.port == number).unwrap();
        let ports = [0, 1].map(port);
        let mut losses = stats.losses.clone();
        let counts = Counts {
            received: ports.map(|port| port.rx_packets),
            sent: ports.map(|port| port.tx_packets),
            dropped: stats.drops.values().sum(),
            stopped: losses.remove("stopped").unwrap_or(0),
        };
        assert!(losses.is_empty(), "{losses:?}");
        (stats.name.clone(), counts)
    };
    let mut all: Vec<(String, Counts)> = stats.switches.iter().map(one).collect();
    all.sort_by(|one, other| one.0.cmp(&other.0));
    (stats.unclassified.unwrap(), all)
}

fn counts_of_model(model: &Model) -> All {
    let named = model.instances.iter().zip(INSTANCES);
    let all =
        named.filter_map(|(instance, (name, _))| Some((name.to_owned(), instance.as_ref()?.counts.clone())));
    (model.unclassified, all.collect())
}

#[test]
fn instances_of_one_program_do_not_see_each_other() {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(CASES);
    let config = ProptestConfig {
        cases,
        failure_persistence: None,
        max_shrink_time: 60_000,
        ..ProptestConfig::default()
    };
    let engine = prop::sample::select(vec!["interp", "jit"]);
    let operations = prop::collection::vec(operation(), 1..OPERATIONS);
    proptest!(config, |(engine in engine, workers in 1..3usize, operations in operations)| {
        let mut both = Both::new(engine, workers);
        for operation in &operations {
            both.carry_out(operation);
            both.compare();
        }
    });
}
