//! The module of a backplane.

use super::classify::classify;
use super::gates::{gate_in, gate_out};
use super::merge::merge;
use super::search::{self, rule_bits};
use super::{BEAT, BURST, BackplaneOptions, LONGEST, MAX_PORTS, RULES, WAITING};
use crate::parts::counter;
use millrace_netlist::blocks::register_slice;
use millrace_netlist::{
    Beat, Design, InStream, InstanceId, ModuleBuilder, ModuleId, NodeId, OutStream, RegisterId, StreamShape,
    address_width,
};

/// A backplane: its design, without what is in the slots.
#[derive(Clone, Debug)]
pub struct Backplane {
    pub(super) options: BackplaneOptions,
    pub(super) design: Design,
}

/// Bits of the number of a port of a slot.
pub(super) fn place_bits(options: &BackplaneOptions) -> u32 {
    address_width(options.places())
}

impl Backplane {
    /// A backplane, all of whose gates are closed.
    ///
    /// # Errors
    /// What is wrong with the options.
    pub fn new(options: BackplaneOptions) -> Result<Backplane, String> {
        options.check()?;
        let mut design = Design::new();
        let shape = StreamShape::frames(options.width, 1);
        let modules = Modules {
            slice: register_slice(&mut design, shape),
            to_slot: merge(&mut design, options.lines(), shape),
            to_line: merge(&mut design, options.places(), shape),
            gate_in: gate_in(&mut design, shape),
            gate_out: gate_out(&mut design, shape),
            classify: (0..options.lines()).map(|line| classify(&mut design, &options, line)).collect(),
        };
        let m = ModuleBuilder::new("backplane");
        let mut top = Top { m, design: &design, modules, options, shape, slots: Vec::new() };
        top.build();
        let module = top.m.finish();
        design.add(module);
        Ok(Backplane { options, design })
    }

    /// The design.
    pub fn design(&self) -> &Design {
        &self.design
    }

    /// How it was made.
    pub fn options(&self) -> &BackplaneOptions {
        &self.options
    }

    /// The longest time that a frame needs from a port to a slot and back which has no others before it, in cycles.
    pub fn latency(&self) -> u32 {
        // The queue of beats and decisions (the decision takes two cycles in its queue), two merges that were idle, the queue to the slot, two
        // slices from it, one to the port.
        let head = (search::BYTES * 8).div_ceil(self.options.width);
        head - 1 + search::latency(&self.options) + 2 + 2 + 4
    }
}

struct Modules {
    slice: ModuleId,
    to_slot: ModuleId,
    to_line: ModuleId,
    gate_in: ModuleId,
    gate_out: ModuleId,
    classify: Vec<ModuleId>,
}

/// What is known of a slot while the top is made.
struct Slot {
    closed: NodeId,
    /// Whether its frames may begin to leave.
    may: NodeId,
    /// What its tokens lack: the register and its value; and how many it gets in a cycle.
    rate: (RegisterId, NodeId, NodeId),
}

struct Top<'a> {
    m: ModuleBuilder,
    design: &'a Design,
    modules: Modules,
    options: BackplaneOptions,
    shape: StreamShape,
    slots: Vec<Slot>,
}

/// A port through which software writes words.
#[derive(Clone, Copy)]
pub(super) struct Words {
    pub(super) enable: NodeId,
    pub(super) address: NodeId,
    pub(super) data: NodeId,
}

impl Words {
    /// The inputs of a module for such a port, of that name.
    pub(super) fn inputs(m: &mut ModuleBuilder, name: &str, count: u32, width: u32) -> Words {
        Words {
            enable: m.input(&format!("{name}_write_enable"), 1),
            address: m.input(&format!("{name}_write_address"), address_width(count)),
            data: m.input(&format!("{name}_write_data"), width),
        }
    }
}

/// A stream inside the top: what comes, and the instance that takes it.
type Flow = (Beat, NodeId);

impl Top<'_> {
    fn build(&mut self) {
        let options = self.options;
        let rule = Words::inputs(&mut self.m, "rule", RULES, rule_bits(&options));
        let map = self.words("map", options.places(), address_width(options.lines()), 0);
        self.make_slots();
        // What leaves the slots, past gates and slices.
        let mut leaving: Vec<(InstanceId, Flow)> = Vec::new();
        for place in 0..options.places() {
            leaving.push(self.leaves_slot(place));
        }
        let lines: Vec<InstanceId> =
            (0..options.lines()).map(|line| self.enters_line(line, &leaving, &map)).collect();
        self.take_leaving(&leaving, &lines, &map);
        // What comes, by line.
        let mut coming = Vec::new();
        for line in 0..options.lines() {
            coming.push(self.classified(line, rule, &lines));
        }
        let to_slots: Vec<InstanceId> =
            (0..options.places()).map(|place| self.enters_slot(place, &coming)).collect();
        self.take_coming(&coming, &to_slots);
        for (line, of) in (0..options.ports).zip(&lines) {
            let output = self.m.output_stream(&format!("tx{line}"), self.shape);
            self.sliced(&format!("tx{line}_slice"), *of, &output);
        }
    }

    /// Registers that software writes through a port of that name.
    fn words(&mut self, name: &str, count: u32, width: u32, reset: u128) -> Vec<NodeId> {
        let m = &mut self.m;
        let Words { enable, address, data } = Words::inputs(m, name, count, width);
        let word = |number: u32| {
            let here = m.is(address, number.into());
            let here = m.and(enable, here);
            m.kept(&format!("{name}{number}"), data, here, Some(reset))
        };
        (0..count).map(word).collect()
    }

    /// The gates and rates of slots, and their resets.
    fn make_slots(&mut self) {
        let gates = self.words("gate", self.options.slots, 2, 0b11);
        let rates = self.words("rate", self.options.slots, 16, 0xffff);
        for (number, (gate, rate)) in gates.into_iter().zip(rates).enumerate() {
            let m = &mut self.m;
            let (closed, reset) = (m.bit(gate, 0), m.bit(gate, 1));
            m.output(&format!("slot{number}_reset"), reset);
            // What its tokens lack of `BURST`, as a negative number: it has tokens while that is not below `-BURST`.
            let (register, lack) = m.register(&format!("lack{number}"), 32, Some(u128::from(FULL_LACK)));
            let high = m.slice(lack, ALLOWED_BITS, 32 - ALLOWED_BITS);
            let may = m.reduce_and(high);
            self.slots.push(Slot { closed, may, rate: (register, lack, rate) });
        }
    }

    /// The frames of a port of a slot, after its gate.
    fn leaves_slot(&mut self, place: u32) -> (InstanceId, Flow) {
        let (slot, port) = (place / self.options.ports, place % self.options.ports);
        let m = &mut self.m;
        let input: InStream = m.input_stream(&format!("slot{slot}_tx{port}"), self.shape);
        let gate = m.instance(self.design, self.modules.gate_out, &format!("gate_out{place}"));
        m.connect(gate, "closed", self.slots[slot as usize].closed);
        m.connect_stream(gate, "s", &input.beat, input.valid);
        let ready = m.ready_of(gate, "s");
        m.set_ready(&input, ready);
        let slice = m.instance(self.design, self.modules.slice, &format!("leaving{place}"));
        m.connect_streams((gate, "m"), (slice, "s"));
        let cut = m.output_of(gate, "cut");
        counter(m, &format!("slot{slot}_tx{port}_cut"), cut);
        let flow = m.stream_from(slice, "m");
        (slice, flow)
    }

    /// All frames that leave by a line.
    fn enters_line(&mut self, line: u32, leaving: &[(InstanceId, Flow)], map: &[NodeId]) -> InstanceId {
        let m = &mut self.m;
        let of = m.instance(self.design, self.modules.to_line, &format!("to_line{line}"));
        let mut may = Vec::new();
        for (place, (_, (beat, valid))) in leaving.iter().enumerate() {
            let here = m.is(map[place], line.into());
            let valid = m.and(*valid, here);
            m.connect_stream(of, &format!("s{place}"), beat, valid);
            may.push(self.slots[place / self.options.ports as usize].may);
        }
        may.reverse();
        let may = m.concat(&may);
        m.connect(of, "may", may);
        of
    }

    /// Tells ports of slots which beats were taken, and counts them against the rates of the slots.
    fn take_leaving(&mut self, leaving: &[(InstanceId, Flow)], lines: &[InstanceId], map: &[NodeId]) {
        let m = &mut self.m;
        let mut taken: Vec<Vec<NodeId>> = vec![Vec::new(); self.slots.len()];
        for (place, (slice, (_, valid))) in leaving.iter().enumerate() {
            let mut ready = Vec::new();
            for (line, of) in (0..).zip(lines) {
                let here = m.is(map[place], line);
                let takes = m.ready_of(*of, &format!("s{place}"));
                ready.push(m.and(here, takes));
            }
            let ready = m.any(&ready);
            m.connect_ready(*slice, "m", ready);
            let passes = m.and(*valid, ready);
            taken[place / self.options.ports as usize].push(passes);
        }
        for (number, (slot, taken)) in self.slots.iter().zip(taken).enumerate() {
            let (register, lack, rate) = slot.rate;
            let zero = m.number(32, 0);
            let beats = taken.into_iter().fold(zero, |sum, bit| {
                let bit = m.resize(bit, 32);
                m.add(sum, bit)
            });
            // What a cycle gives and takes is counted in the next one, so that one cycle has one sum.
            let used = m.shl_by(beats, BEAT.trailing_zeros());
            let rate = m.resize(rate, 32);
            let more = m.sub(rate, used);
            let (more_register, more_before) = m.register(&format!("more{number}"), 32, Some(0));
            m.set_next(more_register, more);
            let next = m.add(lack, more_before);
            // More than `BURST` is lost: the lack stays negative.
            let is_less = m.bit(next, 31);
            let is_more = m.not(is_less);
            let mask = m.repeat(is_more, 32);
            let next = m.or(mask, next);
            m.set_next(register, next);
        }
    }

    /// The frames of a line with their places.
    fn classified(&mut self, line: u32, rule: Words, lines: &[InstanceId]) -> InstanceId {
        let m = &mut self.m;
        let of = m.instance(self.design, self.modules.classify[line as usize], &format!("classify{line}"));
        m.connect(of, "rule_write_enable", rule.enable);
        m.connect(of, "rule_write_address", rule.address);
        m.connect(of, "rule_write_data", rule.data);
        if line < self.options.ports {
            let input = m.input_stream(&format!("rx{line}"), self.shape);
            m.connect_stream(of, "s", &input.beat, input.valid);
            let ready = m.ready_of(of, "s");
            m.set_ready(&input, ready);
        } else {
            let link = lines[line as usize];
            m.connect_streams((link, "m"), (of, "s"));
            let from = m.output_of(link, "from");
            let bits = place_bits(&self.options);
            let choices: Vec<(NodeId, NodeId)> = (0..self.options.places())
                .map(|place| (m.bit(from, place), m.number(bits, place.into())))
                .collect();
            let from = m.one_hot(bits, &choices);
            m.connect(of, "s_from", from);
        }
        of
    }

    /// All frames to a port of a slot, through its gate.
    fn enters_slot(&mut self, place: u32, coming: &[InstanceId]) -> InstanceId {
        let (slot, port) = (place / self.options.ports, place % self.options.ports);
        let m = &mut self.m;
        let of = m.instance(self.design, self.modules.to_slot, &format!("to_slot{place}"));
        for (line, classify) in coming.iter().enumerate() {
            let (beat, valid) = m.stream_from(*classify, "m");
            let (to, known) = (m.output_of(*classify, "place"), m.output_of(*classify, "known"));
            let here = m.is(to, place.into());
            let valid = m.all(&[valid, known, here]);
            m.connect_stream(of, &format!("s{line}"), &beat, valid);
        }
        let all = m.number(self.options.lines(), u128::MAX >> (128 - self.options.lines()));
        m.connect(of, "may", all);
        let gate = m.instance(self.design, self.modules.gate_in, &format!("gate_in{place}"));
        m.connect(gate, "closed", self.slots[slot as usize].closed);
        m.connect_streams((of, "m"), (gate, "s"));
        let output = m.output_stream(&format!("slot{slot}_rx{port}"), self.shape);
        let (beat, valid) = m.stream_from(gate, "m");
        m.drive_stream(&output, &beat, valid);
        m.connect_ready(gate, "m", output.ready);
        let dropped = m.output_of(gate, "dropped");
        counter(m, &format!("slot{slot}_rx{port}_dropped"), dropped);
        of
    }

    /// Tells lines which beats were taken; a frame that matches no rule is taken and counted.
    fn take_coming(&mut self, coming: &[InstanceId], to_slots: &[InstanceId]) {
        let m = &mut self.m;
        for (line, classify) in coming.iter().enumerate() {
            let (to, known) = (m.output_of(*classify, "place"), m.output_of(*classify, "known"));
            let unknown = m.not(known);
            let mut ready = vec![unknown];
            for (place, of) in (0..).zip(to_slots) {
                let here = m.is(to, place);
                let takes = m.ready_of(*of, &format!("s{line}"));
                ready.push(m.all(&[known, here, takes]));
            }
            let ready = m.any(&ready);
            m.connect_ready(*classify, "m", ready);
            let (beat, valid) = m.stream_from(*classify, "m");
            let last = beat.last.unwrap_or(valid);
            let lost = m.all(&[valid, last, unknown]);
            let name =
                if line as u32 == self.options.ports { "link".to_owned() } else { format!("rx{line}") };
            counter(m, &format!("{name}_unknown"), lost);
        }
    }

    /// A stream of an instance, through a slice to a port of the top.
    fn sliced(&mut self, name: &str, of: InstanceId, output: &OutStream) {
        let m = &mut self.m;
        let slice = m.instance(self.design, self.modules.slice, name);
        m.connect_streams((of, "m"), (slice, "s"));
        let (beat, valid) = m.stream_from(slice, "m");
        m.drive_stream(output, &beat, valid);
        m.connect_ready(slice, "m", output.ready);
    }
}

/// Tokens of a slot are from 0 to `BURST` beats while it may send: their lack has so many bits, and all above it are those of its sign.
const ALLOWED_BITS: u32 = (BURST * BEAT).trailing_zeros();
/// The lack of a slot without tokens.
const FULL_LACK: u32 = (BURST * BEAT).wrapping_neg();
const _: () = assert!((BURST * BEAT).is_power_of_two());
/// A frame that has begun takes no more tokens than can be counted.
const _: () = assert!(LONGEST.div_ceil(8) as u64 * MAX_PORTS as u64 * (BEAT as u64) < 1 << 30);

/// Frames of any length pass the queue of a line, whose decision is made of its first beats.
const _: () = assert!(WAITING >= 8);
