//! Function blocks as modules. At each stream a frame has its facts in `tuser`, the same in all of its beats.

use crate::interface::FACTS_BYTES;
use crate::limits::{MAX_FRAME, MAX_OCTETS};
use millrace_netlist::blocks::{SETTLES, fifo, scheduler as choice};
use millrace_netlist::*;
use millrace_rtl::{PortKind, READ_LATENCY, SoftwarePort};

/// Bits of a beat.
pub(super) const WIDTH: u32 = 64;
/// Bytes of a beat.
pub(super) const BEAT: usize = WIDTH as usize / 8;
/// Bits of the facts.
pub(super) const FACTS: u32 = 8 * FACTS_BYTES as u32;
/// The lowest bits of facts in `tuser`.
pub(super) const OCTETS: u32 = 32;
const CLASS: u32 = OCTETS + 8 * MAX_OCTETS as u32;
/// The beats that the selector keeps until it has seen all octets: those of 256 bytes, and as many.
const SELECTOR_BEATS: u32 = 64;
/// Bits of a frame's length.
pub(super) const LENGTH: u32 = 16;
/// Bits of a count of frames.
pub(super) const COUNT: u32 = 17;
/// Bits of what a TCAM says: targets and class.
pub(super) const RESULT: u32 = 40;
/// Bits of a word within a memory of a TCAM.
const WITHIN: u32 = 9;
/// The memory of a TCAM with the results of its entries, after those of the octets, and the word after it: which bank frames meet, and
/// what they get without an entry.
pub(super) const RESULTS: u32 = MAX_OCTETS as u32;
pub(super) const MET: u32 = RESULTS + 1;

/// The ports of software to a TCAM: the words of its memories, each memory from a multiple of 512 on, and the counts of its entries, which
/// are those of a bank, as results are ([`place_in`]). The names of the ports begin with `prefix`.
pub(super) fn tcam_ports(prefix: &str, entries: u32) -> [SoftwarePort; 2] {
    let port = |object: &str, kind, (words, width), readable| SoftwarePort {
        object: format!("{prefix}{object}"),
        kind,
        words,
        width,
        readable,
        writable: !readable,
    };
    [
        port("entries", PortKind::Table, (u64::from(MET + 1) << WITHIN, entries.max(RESULT + 1)), false),
        port("counts", PortKind::Counter, (2 * u64::from(entries.next_power_of_two()), 64), true),
    ]
}

/// The number of the result and of the count of a place, in a bank.
pub(super) fn place_in(bank: u32, place: u32, entries: u32) -> u32 {
    bank * entries.next_power_of_two() + place
}

/// The number of a word of a memory of a TCAM.
pub(super) fn tcam_word(memory: u32, word: u32) -> u64 {
    u64::from(memory) << WITHIN | u64::from(word)
}

/// The streams of all interfaces.
pub(super) fn shape() -> StreamShape {
    StreamShape::frames(WIDTH, FACTS)
}

pub(super) fn parts(beat: &Beat) -> (NodeId, NodeId, NodeId, NodeId) {
    let of = |signal: Option<NodeId>| signal.unwrap_or_else(|| unreachable!("all streams have all signals"));
    (of(beat.data), of(beat.keep), of(beat.last), of(beat.user))
}

/// Something that is counted: whether it happens in this cycle is an output.
pub(super) fn counter(m: &mut ModuleBuilder, name: &str, step: NodeId) {
    m.output(name, step);
}

/// Something that is added up: how much it is in this cycle is an output.
pub(super) fn add_up(m: &mut ModuleBuilder, name: &str, step: NodeId, by: NodeId) {
    let mask = m.repeat(step, m.width(by));
    let by = m.and(mask, by);
    m.output(name, by);
}

/// The bytes of a beat.
pub(super) fn bytes_of(m: &mut ModuleBuilder, keep: NodeId) -> NodeId {
    let none = m.number(LENGTH, 0);
    let ones: Vec<NodeId> = (0..BEAT as u32)
        .map(|byte| {
            let kept = m.bit(keep, byte);
            m.resize(kept, LENGTH)
        })
        .collect();
    m.tree(BinaryOp::Add, &ones, none)
}

/// The bytes of a frame up to this beat; whether one is taken, and is the last. Frames are shorter than what the number holds.
pub(super) fn length_of(
    m: &mut ModuleBuilder,
    name: &str,
    keep: NodeId,
    (take, last): (NodeId, NodeId),
) -> NodeId {
    let (register, before) = m.register(name, LENGTH, Some(0));
    let more = bytes_of(m, keep);
    let length = m.add(before, more);
    let none = m.number(LENGTH, 0);
    let next = m.mux(last, none, length);
    m.set_next(register, next);
    m.set_enable(register, take);
    length
}

/// Frames of several streams `s0`..., one after the other, to `m`: after a frame of one stream the next ones are asked first, so none waits
/// for more than a frame of each other one. A beat that is offered stays until it is taken, also if another stream has one meanwhile: a TCAM
/// looks at a frame before it takes it.
pub(super) fn merge(design: &mut Design, inputs: u32) -> ModuleId {
    let name = format!("merge_{inputs}");
    if let Some(known) = design.module_named(&name) {
        return known;
    }
    let mut m = ModuleBuilder::new(&name);
    let streams: Vec<InStream> = (0..inputs).map(|at| m.input_stream(&format!("s{at}"), shape())).collect();
    let output = m.output_stream("m", shape());
    let bits = address_width(inputs);
    let (busy_register, busy) = m.register("busy", 1, Some(0));
    let (held_register, held) = m.register("held", bits, Some(0));
    let mut choices: Vec<(NodeId, NodeId)> = Vec::new();
    for at in 0..inputs {
        let number = m.number(bits, at.into());
        let after = m.lt(held, number);
        choices.push((m.and(streams[at as usize].valid, after), number));
    }
    choices.extend((0..inputs).map(|at| (streams[at as usize].valid, m.number(bits, at.into()))));
    let next = m.first(&choices, held);
    let chosen = m.mux(busy, held, next);
    let beats: Vec<NodeId> = streams.iter().map(|stream| m.beat_bits(&stream.beat)).collect();
    let valids: Vec<NodeId> = streams.iter().map(|stream| stream.valid).collect();
    let (bits_of, valid) = (m.choose(chosen, &beats), m.choose(chosen, &valids));
    let beat = m.bits_beat(shape(), bits_of);
    let (_, _, last, _) = parts(&beat);
    let take = m.and(valid, output.ready);
    for (at, stream) in (0..).zip(&streams) {
        let own = m.is(chosen, at);
        let ready = m.and(own, output.ready);
        m.set_ready(stream, ready);
    }
    let ends = m.and(take, last);
    let goes_on = m.not(ends);
    m.set_next(busy_register, goes_on);
    m.set_enable(busy_register, valid);
    m.set_next(held_register, chosen);
    m.drive_stream(&output, &beat, valid);
    design.add(m.finish())
}

/// Selects octets: inputs `octet0`... are their places. Frames wait until the last of these has come.
pub(super) fn selector(design: &mut Design, octets: u32) -> ModuleId {
    let name = format!("octet_selector_{octets}");
    if let Some(known) = design.module_named(&name) {
        return known;
    }
    let plain = StreamShape { user: 0, ..shape() };
    let beats = fifo(design, plain, SELECTOR_BEATS);
    let facts = fifo(design, StreamShape::words(FACTS), 8);
    let mut m = ModuleBuilder::new(&name);
    let input = m.input_stream("s", shape());
    let output = m.output_stream("m", shape());
    let places: Vec<NodeId> = (0..octets).map(|at| m.input(&format!("octet{at}"), 8)).collect();
    let (beats, facts) = (m.instance(design, beats, "frame"), m.instance(design, facts, "facts"));
    let (data, keep, last, user) = parts(&input.beat);
    let room = (m.ready_of(beats, "s"), m.ready_of(facts, "s"));
    let ready = m.and(room.0, room.1);
    let take = m.and(input.valid, ready);
    m.set_ready(&input, ready);
    // The number of the beat, up to one that no place reaches.
    let (index_register, index) = m.register("index", 6, Some(0));
    let full = m.bit(index, 5);
    let more = m.add_number(index, 1);
    let more = m.mux(full, index, more);
    let zero = m.number(6, 0);
    let next = m.mux(last, zero, more);
    m.set_next(index_register, next);
    m.set_enable(index_register, take);
    let first = m.is(index, 0);
    let mut seen = last;
    let mut reached = Vec::new();
    let mut selected = Vec::new();
    let starts = m.and(take, first);
    for (at, place) in places.iter().enumerate() {
        // A place is the same for all beats of a frame, also if software changes it meanwhile.
        let kept = m.kept(&format!("place{at}"), *place, starts, Some(0));
        let place = m.mux(first, *place, kept);
        let beat = m.slice(place, 3, 5);
        let beat = m.resize(beat, 6);
        let within = m.slice(place, 0, 3);
        let bytes: Vec<NodeId> = (0..BEAT as u32).map(|byte| m.slice(data, 8 * byte, 8)).collect();
        let kept: Vec<NodeId> = (0..BEAT as u32).map(|byte| m.bit(keep, byte)).collect();
        let (byte, is_there) = (m.choose(within, &bytes), m.choose(within, &kept));
        let none = m.number(8, 0);
        let byte = m.mux(is_there, byte, none);
        let (register, held) = m.register(&format!("selected{at}"), 8, Some(0));
        let held = m.mux(first, none, held);
        let here = m.eq(beat, index);
        let value = m.mux(here, byte, held);
        m.set_next(register, value);
        m.set_enable(register, take);
        selected.push(value);
        reached.push(m.le(beat, index));
    }
    let all = m.all(&reached);
    seen = m.or(seen, all);
    let (done_register, done) = m.register("done", 1, Some(0));
    let fresh = m.not(done);
    let push = m.all(&[take, seen, fresh]);
    let goes_on = m.not(last);
    let is_done = m.or(done, seen);
    let next = m.and(is_done, goes_on);
    m.set_next(done_register, next);
    m.set_enable(done_register, take);
    selected.resize_with(MAX_OCTETS, || m.number(8, 0));
    let chosen = m.concat(&selected);
    let with = m.with_slice(user, OCTETS, chosen);
    m.connect_stream(facts, "s", &Beat { data: Some(with), ..Beat::default() }, push);
    let came = Beat { user: None, ..input.beat };
    m.connect_stream(beats, "s", &came, take);
    let (beat, has_beat) = m.stream_from(beats, "m");
    let (of, has_facts) = m.stream_from(facts, "m");
    let valid = m.and(has_beat, has_facts);
    let leaves = m.and(valid, output.ready);
    m.connect_ready(beats, "m", leaves);
    let ends = beat.last.unwrap_or_else(|| unreachable!("beats have a last one"));
    let ends = m.and(leaves, ends);
    m.connect_ready(facts, "m", ends);
    m.drive_stream(&output, &Beat { user: of.data, ..beat }, valid);
    design.add(m.finish())
}

/// Finds an entry: for each octet a memory with a bit for each entry, the first entry that all of them have is it. Software writes words
/// of the bank that frames do not meet, then has them meet it ([`tcam_ports`]); output `bank` is the one that they meet. A frame takes
/// four cycles more than it has beats.
pub(super) fn tcam(design: &mut Design, entries: u32) -> ModuleId {
    let name = format!("tcam_{entries}");
    if let Some(known) = design.module_named(&name) {
        return known;
    }
    let mut m = ModuleBuilder::new(&name);
    let input = m.input_stream("s", shape());
    let output = m.output_stream("m", shape());
    let bits = address_width(entries);
    let [own, shows] = tcam_ports("", entries);
    let [enable, address, word] = own.write_inputs(&mut m);
    let which = m.slice(address, WITHIN, own.address_width() - WITHIN);
    let address = m.slice(address, 0, WITHIN);
    let writes = |m: &mut ModuleBuilder, memory: u32| {
        let here = m.is(which, memory.into());
        m.and(here, enable)
    };
    let meets = writes(&mut m, MET);
    let met = m.slice(word, 0, RESULT + 1);
    let met = m.kept("met", met, meets, Some(0));
    let bank = m.bit(met, RESULT);
    m.output("bank", bank);
    let (data, keep, last, user) = parts(&input.beat);
    let (state_register, state) = m.register("state", 3, Some(0));
    let at: Vec<NodeId> = (0..5).map(|number| m.is(state, number)).collect();
    let starts = m.and(at[0], input.valid);
    // A frame meets one bank, also if software changes it meanwhile.
    let own = m.kept("own", met, starts, Some(0));
    let (own_bank, miss) = (m.bit(own, RESULT), m.slice(own, 0, RESULT));

    // A bit for each entry, of each octet.
    let mut words = Vec::new();
    for octet in 0..MAX_OCTETS as u32 {
        let memory = m.memory(&format!("octet{octet}"), entries, 512, Vec::new());
        let own = writes(&mut m, octet);
        let written = m.resize(word, entries);
        m.write(memory, own, address, written);
        let value = m.slice(user, OCTETS + 8 * (MAX_OCTETS as u32 - 1 - octet), 8);
        let read = m.concat(&[bank, value]);
        words.push(m.read_clocked(memory, read, Some(starts)));
    }
    let all = m.constant(Bits::ones(entries));
    let matches = m.tree(BinaryOp::And, &words, all);
    let none = m.number(bits, 0);
    let numbered: Vec<(NodeId, NodeId)> =
        (0..entries).map(|number| (m.bit(matches, number), m.number(bits, number.into()))).collect();
    let found = m.first(&numbered, none);
    let any = m.reduce_or(matches);
    let hit = m.kept("hit", any, at[1], Some(0));
    let index = m.kept("index", found, at[1], Some(0));

    let results = m.memory("results", RESULT, 2 * entries.next_power_of_two(), Vec::new());
    let own = writes(&mut m, RESULTS);
    let result_bits = address_width(2 * entries.next_power_of_two());
    let to = m.resize(address, result_bits);
    let written = m.resize(word, RESULT);
    m.write(results, own, to, written);
    let wide = m.resize(index, result_bits - 1);
    let from = m.concat(&[own_bank, wide]);
    let result = m.read_clocked(results, from, Some(at[2]));
    let counts = m.memory("counts", 64, 2 * entries.next_power_of_two(), Vec::new());
    let count = m.read_clocked(counts, from, Some(at[2]));
    let counted = m.add_number(count, 1);
    let hits = m.and(at[3], hit);
    m.write(counts, hits, from, counted);
    let [asked, count_of] = shows.read_inputs(&mut m);
    let mut shown = m.read_clocked(counts, count_of, Some(asked));
    for cycle in 2..=READ_LATENCY {
        shown = m.delayed(&format!("shown{cycle}"), shown, None);
    }
    shows.read_output(&mut m, shown);
    let missed = m.not(hit);
    let missed = m.and(at[3], missed);
    counter(&mut m, "misses", missed);
    let said = m.mux(hit, result, miss);
    let said = m.kept("said", said, at[3], Some(0));

    let ready = m.and(at[4], output.ready);
    let valid = m.and(at[4], input.valid);
    let take = m.and(ready, input.valid);
    let ends = m.and(take, last);
    m.set_ready(&input, ready);
    let next = m.add_number(state, 1);
    let zero = m.number(3, 0);
    let next = m.mux(at[4], zero, next);
    m.set_next(state_register, next);
    let moves = m.any(&[starts, at[1], at[2], at[3], ends]);
    m.set_enable(state_register, moves);
    let (targets, class) = (m.slice(said, 0, 32), m.slice(said, 32, 8));
    let user = m.with_slice(user, 0, targets);
    let user = m.with_slice(user, CLASS, class);
    let beat = Beat { data: Some(data), keep: Some(keep), last: Some(last), user: Some(user) };
    m.drive_stream(&output, &beat, valid);
    design.add(m.finish())
}

/// Sends a frame to all of its targets: `m0`..., the last one for the manager. `lost` counts those without a target.
///
/// A frame goes to its first target as it comes, and is kept meanwhile; then it goes to the others, one after the other, and no other
/// frame comes. So a copy waits for nothing but its own path: copies at once would hold the block where two paths meet, each for a part
/// of a frame, and wait for the other. And copies are in the order of software.
pub(super) fn demultiplexer(design: &mut Design, outputs: u32) -> ModuleId {
    let name = format!("demultiplexer_{outputs}");
    if let Some(known) = design.module_named(&name) {
        return known;
    }
    let mut m = ModuleBuilder::new(&name);
    let input = m.input_stream("s", shape());
    let streams: Vec<OutStream> =
        (0..=outputs).map(|at| m.output_stream(&format!("m{at}"), shape())).collect();
    let (data, keep, last, user) = parts(&input.beat);
    let wide = outputs + 1;
    let (begun_register, begun) = m.register("begun", 1, Some(0));
    let (current_register, current) = m.register("current", wide, Some(0));
    let (rest_register, rest) = m.register("rest", wide, Some(0));
    let (again_register, again) = m.register("again", 1, Some(0));
    let (fetch_register, fetch) = m.register("fetch", 1, Some(0));
    let (there_register, there) = m.register("there", 1, Some(0));

    // The lowest target is the first, and the others follow.
    let named: Vec<NodeId> =
        (0..wide).rev().map(|at| m.bit(user, if at == outputs { 31 } else { at })).collect();
    let named = m.concat(&named);
    let [first, others] = lowest(&mut m, named);
    let target = m.mux(begun, current, first);
    let left = m.mux(begun, rest, others);
    let [next, next_rest] = lowest(&mut m, rest);
    let [left_next, left_rest] = lowest(&mut m, left);

    let to = m.mux(again, current, target);
    let readies: Vec<NodeId> = streams.iter().rev().map(|stream| stream.ready).collect();
    let readies = m.concat(&readies);
    let takes = m.and(to, readies);
    let takes = m.reduce_or(takes);
    let some = m.reduce_or(to);
    let nowhere = m.not(some);
    let free = m.or(takes, nowhere);
    let comes = m.not(again);
    let ready = m.and(comes, free);
    m.set_ready(&input, ready);
    let take = m.and(input.valid, ready);
    let ends = m.and(take, last);
    let begins = m.not(begun);
    let begins = m.and(take, begins);

    let goes = m.and(there, takes);
    let word = m.concat(&[last, keep, data]);
    let kept = repeated(&mut m, (word, take, last), (fetch, goes));
    let kept_last = m.bit(kept, WIDTH + BEAT as u32);
    let over = m.and(goes, kept_last);

    let not_last = m.not(last);
    m.set_next(begun_register, not_last);
    m.set_enable(begun_register, take);
    // When the frame has come or a copy has gone, the next target has its turn.
    let has_left = m.reduce_or(left);
    let repeats = m.and(ends, has_left);
    let has_rest = m.reduce_or(rest);
    let repeats_on = m.and(over, has_rest);
    let turn = m.or(repeats, repeats_on);
    let (after, after_rest) = (m.mux(ends, left_next, next), m.mux(ends, left_rest, next_rest));
    let (now, now_rest) = (m.mux(turn, after, first), m.mux(turn, after_rest, others));
    let changes = m.or(turn, begins);
    m.set_next(current_register, now);
    m.set_enable(current_register, changes);
    m.set_next(rest_register, now_rest);
    m.set_enable(rest_register, changes);
    m.set_next(fetch_register, turn);
    let ended = m.or(turn, over);
    m.set_next(again_register, turn);
    m.set_enable(again_register, ended);
    let not_over = m.not(over);
    let stays = m.and(there, not_over);
    let is_there = m.or(fetch, stays);
    m.set_next(there_register, is_there);

    let facts = m.kept("facts", user, begins, Some(0));
    let (again_data, again_keep) = (m.slice(kept, 0, WIDTH), m.slice(kept, WIDTH, BEAT as u32));
    let beat = Beat {
        data: Some(m.mux(again, again_data, data)),
        keep: Some(m.mux(again, again_keep, keep)),
        last: Some(m.mux(again, kept_last, last)),
        user: Some(m.mux(again, facts, user)),
    };
    let valid = m.mux(again, there, input.valid);
    for (at, stream) in (0..).zip(&streams) {
        let own = m.bit(to, at);
        let valid = m.and(own, valid);
        m.drive_stream(stream, &beat, valid);
    }
    let lost = m.and(ends, nowhere);
    counter(&mut m, "lost", lost);
    design.add(m.finish())
}

/// Keeps the words of a frame, and gives them again from the first one on: that a cycle after `fetch`, the next a cycle after one goes.
fn repeated(
    m: &mut ModuleBuilder,
    (word, take, last): (NodeId, NodeId, NodeId),
    (fetch, goes): (NodeId, NodeId),
) -> NodeId {
    let words = (MAX_FRAME as u32).div_ceil(BEAT as u32);
    let bits = address_width(words);
    let memory = m.memory("frame", m.width(word), words, Vec::new());
    let (count_register, count) = m.register("count", bits, Some(0));
    m.write(memory, take, count, word);
    let zero = m.number(bits, 0);
    let more = m.add_number(count, 1);
    let more = m.mux(last, zero, more);
    m.set_next(count_register, more);
    m.set_enable(count_register, take);
    let load = m.or(fetch, goes);
    let (read_register, read) = m.register("read", bits, Some(0));
    let following = m.add_number(read, 1);
    let read = m.mux(fetch, zero, following);
    m.set_next(read_register, read);
    m.set_enable(read_register, load);
    m.read_clocked(memory, read, Some(load))
}

/// The lowest bit of a value that is 1, and the others.
fn lowest(m: &mut ModuleBuilder, value: NodeId) -> [NodeId; 2] {
    let one = m.number(m.width(value), 1);
    let less = m.sub(value, one);
    let others = m.and(value, less);
    [m.xor(value, others), others]
}

/// Chooses among queues: streams `s0`... with `head0`... and `arrived0`... of each. Inputs `discipline` and `quantum0`....
pub(super) fn scheduler(design: &mut Design, queues: u32) -> ModuleId {
    let name = format!("scheduler_of_{queues}");
    if let Some(known) = design.module_named(&name) {
        return known;
    }
    let chooser = choice(design, queues, LENGTH, COUNT);
    let mut m = ModuleBuilder::new(&name);
    let streams: Vec<InStream> = (0..queues).map(|at| m.input_stream(&format!("s{at}"), shape())).collect();
    let output = m.output_stream("m", shape());
    let mode = m.input("discipline", 2);
    let chooser = m.instance(design, chooser, "chooser");
    m.connect(chooser, "mode", mode);
    let bits = address_width(queues);
    // Frames that the choice has not heard of: it hears of one in a cycle.
    let mut pending = Vec::new();
    for at in 0..queues {
        let (quantum, head) =
            (m.input(&format!("quantum{at}"), LENGTH), m.input(&format!("head{at}"), LENGTH));
        m.connect(chooser, &format!("quantum{at}"), quantum);
        m.connect(chooser, &format!("length{at}"), head);
        let arrived = m.input(&format!("arrived{at}"), 1);
        let (register, waiting) = m.register(&format!("pending{at}"), COUNT, Some(0));
        pending.push((register, waiting, arrived));
    }
    let none = m.number(bits, 0);
    let wanted: Vec<(NodeId, NodeId)> = (0..)
        .zip(&pending)
        .map(|(at, (_, waiting, _))| (m.reduce_or(*waiting), m.number(bits, at)))
        .collect();
    let class = m.first(&wanted, none);
    let asks: Vec<NodeId> = wanted.iter().map(|(wants, _)| *wants).collect();
    let enqueue = m.any(&asks);
    for (at, (register, waiting, arrived)) in (0..).zip(&pending) {
        let own = m.is(class, at);
        let told = m.and(own, enqueue);
        let (plus, minus) = (m.resize(*arrived, COUNT), m.resize(told, COUNT));
        let next = m.add(*waiting, plus);
        let next = m.sub(next, minus);
        m.set_next(*register, next);
    }
    m.connect(chooser, "enqueue", enqueue);
    m.connect(chooser, "class", class);
    // 0: choose; 1: a frame passes; 2 to 4: until heads are those of the next frames; and as long as a choice is made of these.
    let (state_register, state) = m.register("state", 3, Some(0));
    let (idle, passes) = (m.is(state, 0), m.is(state, 1));
    let has_choice = m.output_of(chooser, "valid");
    let quiet = m.not(enqueue);
    let take = m.all(&[idle, has_choice, output.ready, quiet]);
    m.connect(chooser, "take", take);
    let chosen = m.output_of(chooser, "choice");
    let chosen = m.kept("chosen", chosen, take, Some(0));
    let beats: Vec<NodeId> = streams.iter().map(|stream| m.beat_bits(&stream.beat)).collect();
    let valids: Vec<NodeId> = streams.iter().map(|stream| stream.valid).collect();
    let (bits_of, valid) = (m.choose(chosen, &beats), m.choose(chosen, &valids));
    let valid = m.and(valid, passes);
    let beat = m.bits_beat(shape(), bits_of);
    let (_, _, last, _) = parts(&beat);
    let leaves = m.and(valid, output.ready);
    for (at, stream) in (0..).zip(&streams) {
        let own = m.is(chosen, at);
        let ready = m.all(&[own, passes, output.ready]);
        m.set_ready(stream, ready);
    }
    let ends = m.and(leaves, last);
    let next = m.add_number(state, 1);
    let zero = m.number(3, 0);
    let over = m.is(state, 4 + u128::from(SETTLES));
    const _: () = assert!(4 + SETTLES < 8);
    let next = m.mux(over, zero, next);
    m.set_next(state_register, next);
    let waits = m.any(&[idle, passes]);
    let waits = m.not(waits);
    let moves = m.any(&[take, ends, waits]);
    m.set_enable(state_register, moves);
    m.drive_stream(&output, &beat, valid);
    for at in 0..queues {
        let count = m.output_of(chooser, &format!("count{at}"));
        m.output(&format!("count{at}"), count);
    }
    design.add(m.finish())
}
