//! Where the frames of a line go: their first bytes are compared with all rules while they wait.

use super::build::place_bits;
use super::{BackplaneOptions, WAITING};
use millrace_netlist::blocks::fifo;
use millrace_netlist::{Design, ModuleBuilder, ModuleId, NodeId, StreamShape};

/// The bytes that are looked at: destination, source, type, tag.
const BYTES: u32 = 16;

/// The fields of a rule from its lowest bit on, as [`super::Rule::word`] puts them together.
struct Fields {
    to: NodeId,
    from: Option<NodeId>,
    destination: (NodeId, NodeId),
    vlan: (NodeId, NodeId),
    line: NodeId,
    valid: NodeId,
}

impl Fields {
    fn of(
        m: &mut ModuleBuilder,
        options: &BackplaneOptions,
        rule: NodeId,
        (line, is_link): (u32, bool),
    ) -> Fields {
        let place = place_bits(options);
        let mut low = 0;
        let mut next = |m: &mut ModuleBuilder, width: u32| {
            low += width;
            m.slice(rule, low - width, width)
        };
        let to = next(m, place);
        let (from, has_from) = (next(m, place), next(m, 1));
        let (destination, has_destination) = (next(m, 48), next(m, 1));
        let (vlan, has_vlan) = (next(m, 12), next(m, 1));
        let lines = next(m, options.lines());
        let valid = next(m, 1);
        let line = m.bit(lines, line);
        // Frames of other lines come from no slot.
        let not = m.not(has_from);
        let valid = if is_link { valid } else { m.and(valid, not) };
        let from = is_link.then(|| m.concat(&[has_from, from]));
        Fields { to, from, destination: (destination, has_destination), vlan: (vlan, has_vlan), line, valid }
    }
}

/// Bits of a rule.
pub(super) fn rule_bits(options: &BackplaneOptions) -> u32 {
    2 * place_bits(options) + 1 + 49 + 13 + options.lines() + 1
}

/// Frames of a line: stream `s` in, `m` out, and with each beat `place`, the port of a slot that its frame goes to, and `known`, whether
/// there is one. `rules` are all rules, the first one lowest. On the link `s_from` is the place that a frame comes from.
pub(super) fn classify(design: &mut Design, options: &BackplaneOptions, line: u32) -> ModuleId {
    let is_link = line == options.ports;
    let shape = StreamShape::frames(options.width, 1);
    let place = place_bits(options);
    let beats = fifo(design, shape, WAITING);
    let decisions = fifo(design, StreamShape::words(place + 1), WAITING);
    let mut m = ModuleBuilder::new(&format!("classify{line}"));
    let rules = m.input("rules", rule_bits(options) * super::RULES);
    let input = m.input_stream("s", shape);
    let from = is_link.then(|| m.input("s_from", place));
    let output = m.output_stream("m", shape);
    let [queue, decided] =
        [(beats, "beats"), (decisions, "decisions")].map(|(of, name)| m.instance(design, of, name));

    // A frame that begins needs room for its decision, which comes two cycles after its head at the latest.
    let length = m.output_of(decided, "length");
    let most = m.number(m.width(length), u128::from(WAITING - 4));
    let room = m.lt(length, most);
    let taken = m.ready_of(queue, "s");
    let ready = m.and(room, taken);
    let push = m.and(input.valid, room);
    m.connect_stream(queue, "s", &input.beat, push);
    m.set_ready(&input, ready);
    let passes = m.and(input.valid, ready);

    let (head, is_whole) = head(&mut m, options, &input.beat, passes);
    let (asked, head, whole) = {
        let asked = m.delayed("asked", is_whole.0, Some(0));
        (asked, m.delayed("head", head, None), m.delayed("whole", is_whole.1, None))
    };
    let from = from.map(|from| m.delayed("came_from", from, None));
    let (known, to) = first_rule(&mut m, options, (line, is_link), rules, (head, whole, from));
    let asked = m.delayed("asked_2", asked, Some(0));
    let decision = m.concat(&[known, to]);
    let beat = m.bits_beat(StreamShape::words(place + 1), decision);
    m.connect_stream(decided, "s", &beat, asked);

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

/// The first rule that a frame matches, a cycle later: whether there is one, and where the frame goes.
fn first_rule(
    m: &mut ModuleBuilder,
    options: &BackplaneOptions,
    line: (u32, bool),
    rules: NodeId,
    (head, whole, from): (NodeId, NodeId, Option<NodeId>),
) -> (NodeId, NodeId) {
    let byte = |m: &mut ModuleBuilder, at: u32| m.slice(head, 8 * at, 8);
    let bytes = |m: &mut ModuleBuilder, from: u32, to: u32| {
        let parts: Vec<NodeId> = (from..to).map(|at| byte(m, at)).collect();
        m.concat(&parts)
    };
    let destination = bytes(m, 0, 6);
    let (kind, tag) = (bytes(m, 12, 14), bytes(m, 14, 16));
    let is_tagged = m.is(kind, 0x8100);
    let vlan = m.slice(tag, 0, 12);
    let width = rule_bits(options);
    let mut found: Vec<(NodeId, NodeId)> = Vec::new();
    for number in 0..super::RULES {
        let rule = m.slice(rules, number * width, width);
        let of = Fields::of(m, options, rule, line);
        let wanted =
            |m: &mut ModuleBuilder, (value, has): (NodeId, NodeId), asked: NodeId, there: Option<NodeId>| {
                let same = m.eq(value, asked);
                let same = there.map_or(same, |there| m.and(same, there));
                let any = m.not(has);
                m.or(any, same)
            };
        let destination = wanted(m, of.destination, destination, None);
        let vlan = wanted(m, of.vlan, vlan, Some(is_tagged));
        let mut all = vec![of.valid, of.line, destination, vlan, whole];
        if let (Some(rule), Some(from)) = (of.from, from) {
            let (has, place) = (m.bit(rule, m.width(rule) - 1), m.slice(rule, 0, place_bits(options)));
            all.push(wanted(m, (place, has), from, None));
        }
        found.push((m.all(&all), of.to));
    }
    let (known, to) =
        m.first_found(&found).unwrap_or_else(|| (m.number(1, 0), m.number(place_bits(options), 0)));
    (m.delayed("known", known, None), m.delayed("to", to, None))
}
