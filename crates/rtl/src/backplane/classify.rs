//! Where the frames of a line go: their first bytes are compared with the rules while they wait.

use super::build::place_bits;
use super::search::{Asked, BYTES, Found, Turn, search};
use super::{BackplaneOptions, WAITING};
use millrace_netlist::blocks::fifo;
use millrace_netlist::{Design, ModuleBuilder, ModuleId, NodeId, StreamShape};

/// Frames of a line: stream `s` in, `m` out, and with each beat `place`, the port of a slot that its frame goes to, and `known`, whether
/// there is one. Software writes the rules at `rule`. On the link `s_from` is the place that a frame comes from.
pub(super) fn classify(design: &mut Design, options: &BackplaneOptions, line: u32) -> ModuleId {
    let is_link = line == options.ports;
    let shape = StreamShape::frames(options.width, 1);
    let place = place_bits(options);
    let beats = fifo(design, shape, WAITING);
    let decisions = fifo(design, StreamShape::words(place + 1), WAITING);
    let mut m = ModuleBuilder::new(&format!("classify{line}"));
    let input = m.input_stream("s", shape);
    let from = is_link.then(|| m.input("s_from", place));
    let output = m.output_stream("m", shape);
    let [queue, decided] =
        [(beats, "beats"), (decisions, "decisions")].map(|(of, name)| m.instance(design, of, name));

    // A frame that begins needs room for its decision, and three may be searched for.
    let length = m.output_of(decided, "length");
    let most = m.number(m.width(length), u128::from(WAITING - 4));
    let room = m.lt(length, most);
    let taken = m.ready_of(queue, "s");
    // The head of a frame waits here while one before it is searched for. Of frames of 64 bytes and more none waits longer than a cycle.
    let (waits_register, waits) = m.register("waits", 1, Some(0));
    let turn = Turn::new(&mut m, options, waits);
    let is_free = m.not(waits);
    let is_free = m.or(is_free, turn.takes);
    let room = m.and(room, is_free);
    let ready = m.and(room, taken);
    let push = m.and(input.valid, room);
    m.connect_stream(queue, "s", &input.beat, push);
    m.set_ready(&input, ready);
    let passes = m.and(input.valid, ready);

    let (head, (comes, whole)) = head(&mut m, options, &input.beat, passes);
    let goes = m.not(turn.takes);
    let stays = m.and(waits, goes);
    let waits_next = m.or(comes, stays);
    m.set_next(waits_register, waits_next);
    let mut kept = |name: &str, value: NodeId| m.kept(name, value, comes, None);
    let (head, whole) = (kept("head", head), kept("whole", whole));
    let asked = Asked { head, whole, from: from.map(|from| kept("came_from", from)) };
    let Found { known, to, now } = search(&mut m, options, (line, is_link), turn, asked);
    let decision = m.concat(&[known, to]);
    let beat = m.bits_beat(StreamShape::words(place + 1), decision);
    m.connect_stream(decided, "s", &beat, now);

    let (beat, valid) = m.stream_from(queue, "m");
    let (decision, is_decided) = m.stream_from(decided, "m");
    let valid = m.and(valid, is_decided);
    let goes = m.and(output.ready, is_decided);
    m.connect_ready(queue, "m", goes);
    let leaves = m.and(valid, output.ready);
    let last = beat.last.unwrap_or(leaves);
    let ends = m.and(leaves, last);
    m.connect_ready(decided, "m", ends);
    m.drive_stream(&output, &beat, valid);
    let decision = m.beat_bits(&decision);
    let (to, known) = (m.slice(decision, 0, place), m.bit(decision, place));
    m.output("place", to);
    m.output("known", known);
    design.add(m.finish())
}

/// The first bytes of a frame, the first one lowest; whether they, or the end of the frame, come in this cycle, and whether they are all
/// there.
fn head(
    m: &mut ModuleBuilder,
    options: &BackplaneOptions,
    beat: &millrace_netlist::Beat,
    passes: NodeId,
) -> (NodeId, (NodeId, NodeId)) {
    let beats = (BYTES * 8).div_ceil(options.width);
    let data = beat.data.unwrap_or(passes);
    let (keep, last) = (beat.keep.unwrap_or(passes), beat.last.unwrap_or(passes));
    if beats == 1 {
        let (begins_register, begins) = m.register("begins", 1, Some(1));
        m.set_next(begins_register, last);
        m.set_enable(begins_register, passes);
        let head = m.slice(data, 0, BYTES * 8);
        let whole = m.bit(keep, BYTES - 1);
        let asked = m.and(passes, begins);
        return (head, (asked, whole));
    }
    // Two beats of 64 bits. 0: the first comes; 1: the second; 2: any other.
    let (state_register, state) = m.register("state", 2, Some(0));
    let (first, second) = (m.is(state, 0), m.is(state, 1));
    let [zero, one, two] = [0, 1, 2].map(|number| m.number(2, number));
    let after = m.mux(first, one, two);
    let next = m.mux(last, zero, after);
    m.set_next(state_register, next);
    m.set_enable(state_register, passes);
    let (kept_register, kept) = m.register("kept", options.width, None);
    m.set_next(kept_register, data);
    let begins = m.and(passes, first);
    m.set_enable(kept_register, begins);
    let early = m.and(first, last);
    let asked = m.or(early, second);
    let asked = m.and(passes, asked);
    let low = m.mux(first, data, kept);
    let head = m.concat(&[data, low]);
    let all = m.bit(keep, options.width / 8 - 1);
    let whole = m.and(second, all);
    (head, (asked, whole))
}
