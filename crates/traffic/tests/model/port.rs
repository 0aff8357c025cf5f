//! A port of the model.

use super::Fraction;
use super::clocks::{Bucket, Credit, Shaping, opens};
use super::plans::RATE;
use millrace_traffic::gates::GateList;
use millrace_traffic::{Among, Arrival, Discard, Handle, Kind, Node, Plan, Queue};
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Clone, Debug)]
struct Packet {
    id: u32,
    class: u8,
    len: u32,
    came: u64,
    mark: bool,
    overflow: bool,
    depth: u32,
}

/// What a node does, and what it knows of its children by their number.
#[derive(Debug)]
enum Rule {
    Queue(usize),
    Priority,
    RoundRobin,
    Deficit { quanta: Vec<u32>, counters: Vec<u32>, given: bool },
    Fair { weights: Vec<u32>, tags: Vec<Fraction>, v: Fraction, largest: Fraction },
    Shaper(Bucket),
    Credit(Credit),
    Gates { list: GateList, start: u64, initial: u8, gates: Vec<u8> },
}

#[derive(Debug)]
struct Place {
    name: (Handle, u32),
    parent: Option<(usize, usize)>,
    children: Vec<usize>,
    rule: Rule,
    /// Children that may have something to send, in the order in which they came.
    ready: Vec<usize>,
    wake: Option<(u64, u64)>,
}

#[derive(Debug)]
struct Line {
    place: usize,
    setting: Queue,
    list: Vec<Packet>,
    /// With the time from which on each may leave, and the order of asking.
    held: Vec<(u64, u64, Packet)>,
    shaping: Option<Shaping>,
    since_hit: u64,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Leaves {
    Packet { id: u32, queue: u32, class: u8, len: u32, came: u64, depths: (u32, u32), mark: bool },
    Discarded(u32, Discard),
    Nothing,
}

pub(crate) struct Model {
    plan: Arc<Plan>,
    places: Vec<Place>,
    lines: Vec<Line>,
    /// By class: the queues and the counts of the groups above each.
    now: u64,
    asked: u64,
    free: Fraction,
    random: u64,
}

impl Line {
    fn all(&self) -> impl Iterator<Item = &Packet> {
        self.list.iter().chain(self.held.iter().map(|(_, _, packet)| packet))
    }

    fn bytes(&self, overflow: bool) -> u64 {
        self.all().filter(|packet| packet.overflow == overflow).map(|packet| u64::from(packet.len)).sum()
    }

    fn packets(&self) -> u32 {
        self.all().count() as u32
    }
}

impl Model {
    pub(crate) fn new(plan: Arc<Plan>, now: u64) -> Model {
        let random = plan.port().seed;
        let mut model = Model {
            places: Vec::new(),
            lines: Vec::new(),
            now,
            asked: 0,
            free: Fraction(now.into(), 1),
            random,
            plan: plan.clone(),
        };
        let root = plan.root();
        match &root.kind {
            Kind::Queue(_) => {
                let name = (Handle(0), 0);
                let rule = Rule::Priority;
                model.places.push(Place {
                    name,
                    parent: None,
                    children: vec![],
                    rule,
                    ready: vec![],
                    wake: None,
                });
                model.add(root, Some((0, 0)), 0);
            }
            _ => {
                model.add(root, None, 0);
            }
        }
        model
    }

    fn add(&mut self, node: &Node, parent: Option<(usize, usize)>, copy: u32) {
        let here = self.places.len();
        if let Some((above, _)) = parent {
            self.places[above].children.push(here);
        }
        let numbers = |numbers: &[u32], count: u32| -> Vec<u32> {
            if numbers.len() == 1 { vec![numbers[0]; count as usize] } else { numbers.to_vec() }
        };
        let deficit =
            |quanta: Vec<u32>| Rule::Deficit { counters: vec![0; quanta.len()], quanta, given: false };
        let fair = |weights: Vec<u32>| Rule::Fair {
            tags: vec![Fraction::ZERO; weights.len()],
            weights,
            v: Fraction::ZERO,
            largest: Fraction::ZERO,
        };
        let one = |node: &Node, copy| vec![(node.clone(), copy)];
        let several =
            |nodes: &[Node]| nodes.iter().map(|node| (node.clone(), copy)).collect::<Vec<(Node, u32)>>();
        let (rule, below) = match &node.kind {
            Kind::Queue(setting) => {
                self.lines.push(Line {
                    place: here,
                    setting: (**setting).clone(),
                    list: vec![],
                    held: vec![],
                    shaping: setting.asynchronous.map(|shaping| Shaping::new(shaping, self.now)),
                    since_hit: 0,
                });
                (Rule::Queue(self.lines.len() - 1), vec![])
            }
            Kind::Priority(nodes) => (Rule::Priority, several(nodes)),
            Kind::RoundRobin(nodes) => (Rule::RoundRobin, several(nodes)),
            Kind::Deficit(shares) | Kind::Fair(shares) => {
                let numbers = shares.iter().map(|share| share.share).collect();
                let rule = if let Kind::Fair(_) = node.kind { fair(numbers) } else { deficit(numbers) };
                (rule, shares.iter().map(|share| (share.node.clone(), copy)).collect())
            }
            Kind::Flows(flows) => {
                let rule = match &flows.among {
                    Among::Priority => Rule::Priority,
                    Among::RoundRobin => Rule::RoundRobin,
                    Among::Deficit(quanta) => deficit(numbers(quanta, flows.count)),
                    Among::Fair(weights) => fair(numbers(weights, flows.count)),
                };
                let copies =
                    (0..flows.count).map(|number| ((*flows.each).clone(), copy * flows.count + number));
                (rule, copies.collect())
            }
            Kind::Shaper { rate, burst, node } => {
                (Rule::Shaper(Bucket::new(*rate, *burst, self.now)), one(node, copy))
            }
            Kind::Credit { idle_slope, hi_credit, lo_credit, node } => {
                let credit = Credit::new(*idle_slope, RATE, *hi_credit, *lo_credit, self.now);
                (Rule::Credit(credit), one(node, copy))
            }
            Kind::Gates { list, initial, gated } => {
                let cycle: u64 = list.entries.iter().map(|entry| entry.interval_ns).sum();
                let start = (0..).map(|n| list.base_ns + n * cycle);
                let passed = self.now.saturating_sub(list.base_ns) / cycle;
                let start = start.skip(passed as usize).find(|start| *start >= self.now).unwrap();
                let gates = gated.iter().map(|gated| gated.gate).collect();
                let below = gated.iter().map(|gated| (gated.node.clone(), copy)).collect();
                (Rule::Gates { list: (**list).clone(), start, initial: *initial, gates }, below)
            }
        };
        let name = (node.handle, copy);
        self.places.push(Place { name, parent, children: vec![], rule, ready: vec![], wake: None });
        for (position, (node, copy)) in below.iter().enumerate() {
            self.add(node, Some((here, position)), *copy);
        }
    }

    /// Which queue a class and a flow go to, and what is left of the flow number.
    fn line(&self, node: &Node, copy: u32, class: u8, flow: u32) -> Option<(usize, u32)> {
        let any = |nodes: &mut dyn Iterator<Item = &Node>| {
            nodes.filter_map(|node| self.line(node, copy, class, flow)).next()
        };
        match &node.kind {
            Kind::Queue(setting) if setting.classes >> class & 1 == 1 => {
                let is = |line: &Line| self.places[line.place].name == (node.handle, copy);
                Some((self.lines.iter().position(is).unwrap(), flow))
            }
            Kind::Queue(_) => None,
            Kind::Priority(nodes) | Kind::RoundRobin(nodes) => any(&mut nodes.iter()),
            Kind::Deficit(shares) | Kind::Fair(shares) => any(&mut shares.iter().map(|share| &share.node)),
            Kind::Shaper { node, .. } | Kind::Credit { node, .. } => self.line(node, copy, class, flow),
            Kind::Gates { gated, .. } => any(&mut gated.iter().map(|gated| &gated.node)),
            Kind::Flows(flows) => {
                let copy = copy * flows.count + flow % flows.count;
                self.line(&flows.each, copy, class, flow / flows.count)
            }
        }
    }

    pub(crate) fn offer(
        &mut self,
        arrival: Arrival,
        now: u64,
        id: u32,
    ) -> Result<(u32, u32, bool), (u32, Discard)> {
        self.advance(now);
        let Arrival { class, flow, len, ecn, send_at_ns } = arrival;
        let plan = self.plan.clone();
        let (number, stream) = self.line(plan.root(), 0, class, flow).unwrap();
        let refused = |why| Err((number as u32, why));
        if len > plan.port().longest {
            return refused(Discard::TooLong);
        }
        let overflow = match self.room(number, len) {
            Ok(overflow) => overflow,
            Err(why) => return refused(why),
        };
        let mark = match self.early(number, class) {
            Some(true) if ecn => true,
            Some(_) => return refused(Discard::Early),
            None => false,
        };
        let (came, wire) = (self.now, len + plan.port().overhead);
        let line = &mut self.lines[number];
        let mut time = send_at_ns.unwrap_or(0);
        if let Some(shaping) = &mut line.shaping {
            match shaping.assign(stream, wire, came) {
                Some(eligible) => time = time.max(eligible),
                None => return refused(Discard::TooOld),
            }
        }
        let depth = line.packets();
        let packet = Packet { id, class, len, came, mark, overflow, depth };
        if time > came {
            self.asked += 1;
            line.held.push((time, self.asked, packet));
        } else {
            self.append(number, packet, came);
        }
        Ok((number as u32, depth, mark))
    }

    fn append(&mut self, number: usize, packet: Packet, at: u64) {
        self.lines[number].list.push(packet);
        if self.lines[number].list.len() == 1 {
            self.activate(self.lines[number].place, at);
        }
    }

    /// Whether a packet goes to the larger buffer.
    fn room(&self, number: usize, len: u32) -> Result<bool, Discard> {
        let (line, port, len) = (&self.lines[number], self.plan.port(), u64::from(len));
        let setting = &line.setting;
        if line.packets() + 1 > setting.packets || line.bytes(false) + line.bytes(true) + len > setting.bytes
        {
            return Err(Discard::QueueFull);
        }
        if self.lines.iter().map(Line::packets).sum::<u32>() + 1 > port.packets {
            return Err(Discard::BufferFull);
        }
        let reserved: u64 = self.lines.iter().map(|line| line.setting.reserved).sum();
        let beyond =
            |line: &Line, more: u64| (line.bytes(false) + more).saturating_sub(line.setting.reserved);
        let used: u64 = self.lines.iter().map(|line| beyond(line, 0)).sum();
        let free = (port.bytes - reserved).saturating_sub(used);
        let (is, will) = (beyond(line, 0), beyond(line, len));
        let below_threshold = setting.alpha.is_none_or(|alpha| will * 256 <= u64::from(alpha) * free);
        if will == is || (will - is <= free && below_threshold) {
            return Ok(false);
        }
        let larger: u64 = self.lines.iter().map(|line| line.bytes(true)).sum();
        match line.bytes(true) + len <= setting.overflow && larger + len <= port.overflow {
            true => Ok(true),
            false => Err(Discard::BufferFull),
        }
    }

    /// Whether a packet is hit by early discard, and may be marked instead.
    fn early(&mut self, number: usize, class: u8) -> Option<bool> {
        let line = &mut self.lines[number];
        let length = line.bytes(false) + line.bytes(true);
        let red = line.setting.red.as_ref()?;
        let curve = *red.curves.iter().find(|curve| curve.classes & 1 << class != 0)?;
        if length <= curve.min {
            line.since_hit = 0;
            return None;
        }
        if length < curve.max {
            let one = 1u128 << 32;
            let p = one * u128::from(curve.probability) / 1_000_000 * u128::from(length - curve.min)
                / u128::from(curve.max - curve.min);
            self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = self.random;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            let drawn = u128::from((z ^ (z >> 31)) >> 32);
            let spent = u128::from(line.since_hit) * p;
            // Hit with probability p / (1 - spent).
            if spent < one && drawn * (one - spent) / one >= p {
                line.since_hit += 1;
                return None;
            }
        }
        line.since_hit = 0;
        Some(curve.ecn)
    }

    fn activate(&mut self, mut here: usize, at: u64) {
        while let Some((above, position)) = self.places[here].parent {
            let place = &mut self.places[above];
            if !place.ready.contains(&position) {
                place.ready.push(position);
                match &mut place.rule {
                    Rule::Fair { tags, v, .. } => tags[position] = tags[position].max(*v),
                    Rule::Credit(credit) => credit.wait(true, at),
                    _ => {}
                }
            }
            place.wake = None;
            here = above;
        }
    }

    /// What is due by now happens, in the order of its times.
    fn advance(&mut self, now: u64) {
        self.now = self.now.max(now);
        loop {
            let nodes = self
                .places
                .iter()
                .enumerate()
                .filter_map(|(at, place)| place.wake.map(|wake| (wake, at, 0, false)));
            let held = self.lines.iter().enumerate().flat_map(|(number, line)| {
                let times = line.held.iter().enumerate();
                times.map(move |(at, (time, asked, _))| ((*time, *asked), number, at, true))
            });
            let Some(((time, _), number, at, is_packet)) = nodes.chain(held).min() else { return };
            if time > self.now {
                return;
            }
            if is_packet {
                let (_, _, packet) = self.lines[number].held.remove(at);
                self.append(number, packet, time);
            } else {
                self.places[number].wake = None;
                self.activate(number, time);
            }
        }
    }

    /// The queue below a node that sends now.
    fn pick(&mut self, here: usize) -> Option<usize> {
        if let Rule::Queue(number) = self.places[here].rule {
            return (!self.lines[number].list.is_empty()).then_some(number);
        }
        if matches!(self.places[here].rule, Rule::Gates { .. }) {
            return self.pick_gate(here);
        }
        loop {
            let place = &self.places[here];
            let position = match &place.rule {
                Rule::Priority => *place.ready.iter().min()?,
                Rule::Fair { tags, .. } => {
                    *place.ready.iter().min_by_key(|child| (tags[**child], **child))?
                }
                _ => *place.ready.first()?,
            };
            let Some(number) = self.pick(place.children[position]) else {
                self.leave(here, position);
                continue;
            };
            let wire = self.lines[number].list[0].len + self.plan.port().overhead;
            let now = self.now;
            let place = &mut self.places[here];
            let from = match &mut place.rule {
                Rule::Shaper(bucket) => bucket.from(wire, now),
                Rule::Credit(credit) => credit.from(now),
                Rule::Deficit { quanta, counters, given } => {
                    if !*given {
                        counters[position] += quanta[position];
                        *given = true;
                    }
                    if counters[position] < wire {
                        *given = false;
                        let first = place.ready.remove(0);
                        place.ready.push(first);
                        continue;
                    }
                    now
                }
                _ => now,
            };
            if from > now {
                self.asked += 1;
                place.wake = Some((from, self.asked));
                return None;
            }
            return Some(number);
        }
    }

    fn pick_gate(&mut self, here: usize) -> Option<usize> {
        let mut order = self.places[here].ready.clone();
        order.sort();
        let mut earliest = None;
        for position in order {
            let Some(number) = self.pick(self.places[here].children[position]) else {
                self.leave(here, position);
                continue;
            };
            let wire = u64::from(self.lines[number].list[0].len + self.plan.port().overhead);
            let Rule::Gates { list, start, initial, gates } = &self.places[here].rule else { unreachable!() };
            let length = (wire * 8 * 1_000_000_000).div_ceil(RATE);
            match opens(list, *start, gates[position], *initial, length, self.now) {
                Some(time) if time == self.now => return Some(number),
                Some(time) => earliest = Some(earliest.unwrap_or(time).min(time)),
                None => {}
            }
        }
        if let Some(time) = earliest {
            self.asked += 1;
            self.places[here].wake = Some((time, self.asked));
        }
        None
    }

    /// A child has nothing to send now.
    fn leave(&mut self, here: usize, position: usize) {
        let now = self.now;
        let place = &mut self.places[here];
        place.ready.retain(|child| *child != position);
        let is_empty = place.ready.is_empty();
        match &mut place.rule {
            Rule::Deficit { counters, given, .. } => (counters[position], *given) = (0, false),
            Rule::Fair { v, largest, .. } if is_empty => *v = *largest,
            Rule::Credit(credit) => credit.wait(false, now),
            _ => {}
        }
    }

    pub(crate) fn next(&mut self, now: u64) -> Leaves {
        self.advance(now);
        let (now, port) = (self.now, self.plan.port().clone());
        if port.rate.is_some() && self.free.up() > now {
            return Leaves::Nothing;
        }
        // The root is not asked again before its time, or until something has come.
        if self.places[0].wake.is_some() {
            return Leaves::Nothing;
        }
        let Some(number) = self.pick(0) else { return Leaves::Nothing };
        let line = &mut self.lines[number];
        let packet = line.list.remove(0);
        let (mut here, mut ready) = (line.place, !line.list.is_empty());
        let wire = packet.len + port.overhead;
        let old = line.setting.age_ns.is_some_and(|age| now - packet.came > age);
        let left = line.packets();
        while let Some((above, position)) = self.places[here].parent {
            if !old {
                self.charge(above, position, wire, ready);
            }
            if !ready {
                self.leave(above, position);
            }
            ready = !self.places[above].ready.is_empty();
            here = above;
        }
        if old {
            return Leaves::Discarded(packet.id, Discard::TooOld);
        }
        if let Some(rate) = port.rate {
            let earliest = now.saturating_sub(port.catch_up_ns);
            if self.free.up() < earliest {
                self.free = Fraction(earliest.into(), 1);
            }
            self.free = self.free.plus(Fraction(u128::from(wire) * 8_000_000_000, rate.into()));
        }
        let Packet { id, class, len, came, mark, depth, .. } = packet;
        Leaves::Packet { id, queue: number as u32, class, len, came, depths: (depth, left), mark }
    }

    fn charge(&mut self, here: usize, position: usize, wire: u32, ready: bool) {
        let now = self.now;
        let place = &mut self.places[here];
        match &mut place.rule {
            Rule::RoundRobin if ready => {
                let first = place.ready.remove(0);
                place.ready.push(first);
            }
            Rule::Deficit { counters, .. } => counters[position] -= wire,
            Rule::Fair { weights, tags, v, largest } => {
                *v = tags[position];
                tags[position] = v.plus(Fraction(wire.into(), weights[position].into()));
                *largest = (*largest).max(tags[position]);
            }
            Rule::Shaper(bucket) => bucket.take(wire, now),
            Rule::Credit(credit) => credit.send(wire, now),
            _ => {}
        }
    }

    /// Another plan. Gives what is discarded.
    pub(crate) fn replace(&mut self, plan: Arc<Plan>, now: u64) -> Vec<u32> {
        self.advance(now);
        let now = self.now;
        let mut new = Model::new(plan.clone(), now);
        new.random = self.random;
        match (self.plan.port().rate, plan.port().rate) {
            (Some(old), Some(rate)) if old == rate => new.free = self.free,
            (Some(_), Some(_)) => new.free = Fraction(self.free.up().into(), 1),
            _ => {}
        }
        let names: BTreeMap<(Handle, u32), usize> =
            self.places.iter().enumerate().map(|(at, place)| (place.name, at)).collect();
        for place in &mut new.places {
            let Some(old) = names.get(&place.name) else { continue };
            match (&mut place.rule, &self.places[*old].rule) {
                (Rule::Shaper(new), Rule::Shaper(old)) => {
                    let (rate, burst) = (new.rate as u64, (new.burst / 8_000_000_000) as u64);
                    *new = old.clone();
                    new.change(rate, burst, now);
                }
                (Rule::Credit(new), Rule::Credit(old)) => {
                    let mut kept = old.clone();
                    kept.wait(kept.waiting, now);
                    (kept.idle, kept.rate, kept.high, kept.low) = (new.idle, new.rate, new.high, new.low);
                    kept.credit = kept.credit.clamp(kept.low, kept.high);
                    kept.wait(false, now);
                    *new = kept;
                }
                (Rule::Gates { start, initial, .. }, Rule::Gates { start: old, initial: was, .. }) => {
                    (*start, *initial) = (*old, *was);
                }
                _ => {}
            }
        }
        let mut gone = Vec::new();
        let mut held: Vec<(u64, u64, (Handle, u32), Packet)> = Vec::new();
        for mut line in std::mem::take(&mut self.lines) {
            let name = self.places[line.place].name;
            let same = new.lines.iter().position(|of| new.places[of.place].name == name);
            held.extend(line.held.into_iter().map(|(time, asked, packet)| (time, asked, name, packet)));
            let Some(same) = same else {
                gone.extend(line.list.iter().map(|packet| packet.id));
                continue;
            };
            let to = &mut new.lines[same];
            to.list.append(&mut line.list);
            if line.setting.red.is_some() && to.setting.red.is_some() {
                to.since_hit = line.since_hit;
            }
            if line.shaping.is_some() {
                to.shaping = line.shaping;
            }
        }
        held.sort_by_key(|(time, asked, ..)| (*time, *asked));
        for (time, _, name, packet) in held {
            new.asked += 1;
            let line = new.lines.iter_mut().find(|line| new.places[line.place].name == name);
            match line {
                Some(line) => line.held.push((time, new.asked, packet)),
                None => gone.push(packet.id),
            }
        }
        for number in 0..new.lines.len() {
            if !new.lines[number].list.is_empty() {
                new.activate(new.lines[number].place, now);
            }
        }
        *self = new;
        gone
    }

    /// Packets and bytes of each queue.
    pub(crate) fn queues(&self) -> Vec<(u32, u64)> {
        self.lines.iter().map(|line| (line.packets(), line.bytes(false) + line.bytes(true))).collect()
    }
}
