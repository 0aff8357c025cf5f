//! The part of a program that is in software: sends packets to the device of the rest, and applies its tables when it is asked to.

use super::cut::Cut;
use super::device::{AT_SITE, EGRESS, FAILED, GO_ON, INGRESS, PARSER, SplitDevice};
use super::live::Live;
use super::packet::{Head, Packet, decode, encode, head};
use crate::limits::MAX_FRAME;
use millrace_engine::{Context, Ended, Engine, EngineError, Interpreted, Observer, Stage, World};
use millrace_interp::{Abort, Ending, Interp};
use millrace_link::{Client, Event, LinkError, Server};
use millrace_midend::Verdict;
use millrace_pipeline::{Program, TableId};
use millrace_state::State;
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Most packets that are on the link at once.
const WINDOW: usize = 32;
/// How long the answer to a packet may take.
const ANSWER_TIME: Duration = Duration::from_secs(5);
/// After a link was cut, how long until it is tried again.
const RETRY_TIME: Duration = Duration::from_millis(100);
/// Most times that one packet goes on after a table in one stage.
const MAX_ROUNDS: usize = 4096;

/// What was counted of the link of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounts {
    /// Packets that were sent to a stage of the device.
    pub frames: u64,
    /// Tables that were applied in software for it.
    pub tables: u64,
    /// Packets that were on the link when it was cut, or that came while it was.
    pub lost: u64,
    /// Answers that were no answers to a packet on the link.
    pub strays: u64,
}

/// An engine whose hardware is on the far side of a host link.
pub struct SplitEngine {
    program: Arc<Program>,
    cut: Arc<Cut>,
    tables: Interp,
    whole: Interpreted,
    device: Option<SplitDevice>,
    server: Option<Server>,
    path: Path,
    client: Option<Client>,
    failed: Option<Instant>,
    number: u32,
    counts: Arc<Mutex<LinkCounts>>,
}

/// From where the device is served to where the client connects.
type Path = Box<dyn Fn(SocketAddr) -> SocketAddr + Send>;

impl std::fmt::Debug for SplitEngine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SplitEngine").field("program", &self.program.name).finish_non_exhaustive()
    }
}

/// A packet on the link.
struct UnderWay {
    number: u32,
    index: usize,
    rounds: usize,
}

impl SplitEngine {
    /// Of a verified program, with these tables in software.
    ///
    /// # Errors
    /// The program cannot be taken apart, or not be hardware.
    pub fn new(program: &Arc<Program>, software: &[String]) -> Result<SplitEngine, EngineError> {
        let cut = Cut::new(program, software).map_err(|why| EngineError(why.to_string()))?;
        let cut = Arc::new(cut);
        let device = SplitDevice::new(&cut).map_err(|refusal| EngineError(refusal.to_string()))?;
        Ok(SplitEngine {
            program: Arc::clone(program),
            tables: Interp::new(Arc::clone(&cut.wide)),
            whole: Interpreted::new(Arc::clone(program)),
            cut,
            device: Some(device),
            server: None,
            path: Box::new(|address| address),
            client: None,
            failed: None,
            number: 0,
            counts: Arc::default(),
        })
    }

    /// Has the client connect to another address, from which a path leads to the device.
    pub fn through(self, path: impl Fn(SocketAddr) -> SocketAddr + Send + 'static) -> SplitEngine {
        SplitEngine { path: Box::new(path), ..self }
    }

    /// How the program was taken apart.
    pub fn cut(&self) -> &Cut {
        &self.cut
    }

    /// How many entries the tables in hardware take.
    pub fn capacities(&self) -> BTreeMap<TableId, u64> {
        self.device.as_ref().map_or_else(BTreeMap::new, |device| device.capacities().clone())
    }

    /// What is counted, while it is.
    pub fn counts(&self) -> Arc<Mutex<LinkCounts>> {
        Arc::clone(&self.counts)
    }

    fn count(&self, count: impl FnOnce(&mut LinkCounts)) {
        count(&mut self.counts.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Serves the device, once, and connects to it, if that is to be tried.
    fn connect(&mut self, state: &mut State) -> Result<(), EngineError> {
        if let Some(device) = self.device.take() {
            let failed = |why: std::io::Error| EngineError(format!("the device cannot be served: {why}"));
            let objects = state.share().map_err(|error| EngineError(error.to_string()))?;
            let served = Server::local(Box::new(device.with_objects(objects)));
            self.server = Some(served.map_err(failed)?);
        }
        let waits = self.failed.is_some_and(|failed| failed.elapsed() < RETRY_TIME);
        if let (None, Some(server), false) = (&self.client, &self.server, waits) {
            match Client::connect((self.path)(server.address()), true) {
                Ok(client) => (self.client, self.failed) = (Some(client), None),
                Err(why) => {
                    tracing::warn!(%why, "the host link of a program");
                    self.failed = Some(Instant::now());
                }
            }
        }
        Ok(())
    }

    fn say(&mut self, bytes: &[u8]) -> Result<(), LinkError> {
        match &mut self.client {
            Some(client) => client.send(0, bytes),
            None => Err(LinkError::Gone(std::io::ErrorKind::NotConnected.into())),
        }
    }

    /// Runs a stage of the device over packets, as many at once as the order of packets allows.
    fn run_stage(
        &mut self,
        kind: u8,
        packets: &mut [Context],
        world: &mut World<'_, dyn Observer + '_>,
    ) -> Vec<Ended> {
        let lost = Ended::of(Verdict::Plugin);
        let mut said = vec![lost; packets.len()];
        let stage = usize::from(kind == EGRESS);
        let window = if self.cut.is_free { WINDOW } else { 1 };
        let mut under_way: VecDeque<UnderWay> = VecDeque::new();
        let mut next = 0;
        loop {
            while next < packets.len() && under_way.len() < window {
                let index = next;
                next += 1;
                self.number = self.number.wrapping_add(1);
                let request = Head { number: self.number, kind, now_ns: world.now_ns, ..Head::default() };
                let start = Arc::clone(&self.cut);
                let packet = self.taken(&mut packets[index], &start.stages[stage].start);
                if packet.bytes.len() > MAX_FRAME {
                    self.count(|counts| counts.lost += 1);
                    continue;
                }
                let bytes = encode(&self.cut.wide, &request, &start.stages[stage].start, &packet);
                self.count(|counts| counts.frames += 1);
                match self.say(&bytes) {
                    Ok(()) => under_way.push_back(UnderWay { number: self.number, index, rounds: 0 }),
                    Err(why) => self.lose(&why, &mut under_way, 1),
                }
            }
            if under_way.is_empty() {
                return said;
            }
            let heard = self.client.as_mut().map(|client| client.event(ANSWER_TIME));
            match heard {
                Some(Ok(Some(Event::Frame { bytes, .. }))) => {
                    if let Err(why) =
                        self.answered(&bytes, &mut under_way, (packets, &mut said, stage), world)
                    {
                        self.lose(&why, &mut under_way, 1);
                    }
                }
                Some(Ok(Some(Event::Message { .. }))) => {}
                Some(Ok(None)) => {
                    self.lose(&LinkError::Gone(std::io::ErrorKind::TimedOut.into()), &mut under_way, 0);
                }
                Some(Err(why)) => self.lose(&why, &mut under_way, 0),
                None => {
                    self.lose(&LinkError::Gone(std::io::ErrorKind::NotConnected.into()), &mut under_way, 0)
                }
            }
        }
    }

    /// The link is cut: what is on it is lost, with so many more.
    fn lose(&mut self, why: &LinkError, under_way: &mut VecDeque<UnderWay>, more: u64) {
        let lost = under_way.len() as u64 + more;
        under_way.clear();
        self.count(|counts| counts.lost += lost);
        if self.client.take().is_some() {
            tracing::warn!(%why, lost, "the host link of a program is cut");
            self.failed = Some(Instant::now());
        }
    }

    /// What the device says about a packet.
    fn answered(
        &mut self,
        bytes: &[u8],
        under_way: &mut VecDeque<UnderWay>,
        (packets, said, stage): (&mut [Context], &mut [Ended], usize),
        world: &mut World<'_, dyn Observer + '_>,
    ) -> Result<(), LinkError> {
        let cut = Arc::clone(&self.cut);
        let answer = head(bytes).unwrap_or_default();
        let Some(at) = under_way.iter().position(|packet| packet.number == answer.number) else {
            self.count(|counts| counts.strays += 1);
            return Ok(());
        };
        let of = &under_way[at];
        let index = of.index;
        let site = cut
            .sites
            .get(usize::from(answer.site))
            .filter(|site| answer.kind == AT_SITE && site.stage == stage);
        if let Some((site, mut packet)) =
            site.and_then(|site| Some((site, decode(&cut.wide, &site.asked, bytes)?)))
            && of.rounds < MAX_ROUNDS
        {
            under_way[at].rounds += 1;
            self.count(|counts| counts.tables += 1);
            return match self.apply(site.body, &mut packet, &site.answered, world) {
                Ok(goes_on_at) => {
                    let (number, now_ns) = (answer.number, world.now_ns);
                    let request = Head { number, kind: GO_ON, site: goes_on_at, now_ns, ..Head::default() };
                    let sent = self.say(&encode(&cut.wide, &request, &site.answered, &packet));
                    if sent.is_err() {
                        under_way.remove(at);
                    }
                    sent
                }
                Err(ended) => {
                    said[index] = ended;
                    under_way.remove(at);
                    Ok(())
                }
            };
        }
        under_way.remove(at);
        let verdict = Verdict::from_number(answer.kind.into()).filter(|_| answer.kind < FAILED);
        match verdict.zip(decode(&cut.wide, &cut.stages[stage].end, bytes)) {
            Some((verdict, packet)) => {
                said[index] = Ended { verdict, number: answer.detail, drop_site: answer.site };
                self.give_back(&mut packets[index], packet);
            }
            None => self.count(|counts| counts.lost += 1),
        }
        Ok(())
    }

    /// Applies a table in software; where the program goes on, or how it ended.
    fn apply(
        &mut self,
        body: millrace_pipeline::BodyId,
        packet: &mut Packet,
        answered: &Live,
        world: &mut World<'_, dyn Observer + '_>,
    ) -> Result<u16, Ended> {
        let wide = &self.cut.wide;
        let mut context = millrace_interp::Context::new(wide, std::mem::take(&mut packet.bytes));
        packet.valid.iter().for_each(|header| context.phv.set_valid(wide, *header));
        for (slot, value) in &packet.slots {
            context.phv.write(wide, *slot, value.clone());
        }
        context.cursor = packet.cursor;
        let mut inside = World {
            state: &mut *world.state,
            now_ns: world.now_ns,
            effects: &mut *world.effects,
            observer: &mut *world.observer,
        };
        match self.tables.run(body, &mut context, &mut inside) {
            Ending::Done => {}
            Ending::Rejected { .. } => return Err(Ended::of(Verdict::ParserError)),
            Ending::Aborted(Abort::Assert) => return Err(Ended::of(Verdict::Assert)),
            Ending::Aborted(Abort::Plugin) => return Err(Ended::of(Verdict::Plugin)),
            Ending::Aborted(Abort::StepLimit) => return Err(Ended::of(Verdict::StepLimit)),
        }
        let goes_on_at = context.phv.read(wide, self.cut.goes_on_at).as_bits().to_u64_saturating() as u16;
        packet.valid = wide.headers.keys().filter(|header| context.phv.is_valid(*header)).collect();
        packet.slots = answered.iter().map(|slot| (*slot, context.phv.read(wide, *slot))).collect();
        packet.bytes = std::mem::take(&mut context.bytes);
        Ok(goes_on_at)
    }

    /// What is live of a packet.
    fn taken(&self, context: &mut Context, live: &Live) -> Packet {
        let own = self.program.slots.len();
        let (kept, parsed_bits) = context.interpreter_mut(&self.program);
        let program = &self.program;
        let slots = live.iter().filter(|slot| (slot.as_u32() as usize) < own);
        Packet {
            slots: slots.map(|slot| (*slot, kept.phv.read(program, *slot))).collect(),
            valid: program.headers.keys().filter(|header| kept.phv.is_valid(*header)).collect(),
            cursor: kept.cursor,
            parsed_bits: *parsed_bits,
            bytes: kept.bytes.clone(),
        }
    }

    /// What the device has made of a packet.
    fn give_back(&self, context: &mut Context, packet: Packet) {
        let own = self.program.slots.len();
        let (kept, parsed_bits) = context.interpreter_mut(&self.program);
        let program = &self.program;
        for header in program.headers.keys() {
            match packet.valid.contains(&header) {
                true => kept.phv.set_valid(program, header),
                false => kept.phv.set_invalid(header),
            }
        }
        for (slot, value) in packet.slots.into_iter().filter(|(slot, _)| (slot.as_u32() as usize) < own) {
            kept.phv.write(program, slot, value);
        }
        kept.cursor = packet.cursor;
        kept.bytes = packet.bytes;
        *parsed_bits = packet.parsed_bits;
    }
}

impl Engine for SplitEngine {
    fn name(&self) -> &'static str {
        "split"
    }

    fn context(&mut self, bytes: &[u8]) -> Context {
        Context::interpreted(&self.program, bytes.to_vec())
    }

    fn run(
        &mut self,
        stage: Stage,
        packets: &mut [Context],
        world: &mut World<'_, dyn Observer + '_>,
        ended: &mut Vec<Ended>,
    ) -> Result<(), EngineError> {
        let kind = match stage {
            Stage::Ingress => INGRESS,
            Stage::Parser => PARSER,
            Stage::Egress => EGRESS,
            // What is left of a copy after a clone in egress.
            Stage::Tail(_) => return self.whole.run(stage, packets, world, ended),
        };
        self.connect(world.state)?;
        let said = self.run_stage(kind, packets, world);
        ended.extend(said);
        Ok(())
    }
}
