//! The search for the first rule that a frame matches.
//!
//! A frame has 64 bytes at least, so from one to the next there are some cycles, in each of which a part of the rules is compared,
//! the first ones first. Memories hold the rules, one for each that is compared in a cycle: a part costs the comparisons of all.

use super::build::{Words, place_bits};
use super::{BackplaneOptions, RULES};
use crate::report::SHORTEST;
use millrace_netlist::{ModuleBuilder, NodeId, RegisterId, address_width};

/// The bytes that are looked at: destination, source, type, tag.
pub(super) const BYTES: u32 = 16;

/// The cycles of a search.
pub(super) fn cycles(options: &BackplaneOptions) -> u32 {
    8 * SHORTEST / options.width
}

/// Cycles from the last byte that is looked at to the decision: the head waits for a cycle, and what was found takes two more.
pub(super) fn latency(options: &BackplaneOptions) -> u32 {
    cycles(options) + 3
}

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

/// Whose turn it is: one frame is searched for while another waits.
pub(super) struct Turn {
    /// Whether a frame is searched for.
    searches: (RegisterId, NodeId),
    /// Which part of the rules is compared, if there are several.
    part: Option<(RegisterId, NodeId)>,
    /// Whether that is the last.
    is_last: NodeId,
    /// Whether the search takes the frame that waits.
    pub(super) takes: NodeId,
}

impl Turn {
    pub(super) fn new(m: &mut ModuleBuilder, options: &BackplaneOptions, waits: NodeId) -> Turn {
        let cycles = cycles(options);
        let searches = m.register("searches", 1, Some(0));
        let part = (cycles > 1).then(|| m.register("part", address_width(cycles), Some(0)));
        let is_last = match part {
            Some((_, part)) => m.is(part, u128::from(cycles - 1)),
            None => m.number(1, 1),
        };
        let idle = m.not(searches.1);
        let ends = m.or(idle, is_last);
        let takes = m.and(waits, ends);
        Turn { searches, part, is_last, takes }
    }
}

/// What is asked of the rules: the head of a frame, whether it is all there, and on the link the place that the frame comes from.
pub(super) struct Asked {
    pub(super) head: NodeId,
    pub(super) whole: NodeId,
    pub(super) from: Option<NodeId>,
}

/// What the rules say: whether a frame matches one, and where it goes, in the cycle of `now`.
pub(super) struct Found {
    pub(super) known: NodeId,
    pub(super) to: NodeId,
    pub(super) now: NodeId,
}

/// The search for the frame that waits, once it is its turn.
pub(super) fn search(
    m: &mut ModuleBuilder,
    options: &BackplaneOptions,
    line: (u32, bool),
    turn: Turn,
    asked: Asked,
) -> Found {
    let (searches_register, searches) = turn.searches;
    let goes_on = m.not(turn.is_last);
    let goes_on = m.and(searches, goes_on);
    let next = m.or(turn.takes, goes_on);
    m.set_next(searches_register, next);
    if let Some((register, part)) = turn.part {
        let one = m.number(m.width(part), 1);
        let (zero, more) = (m.number(m.width(part), 0), m.add(part, one));
        let next = m.mux(turn.takes, zero, more);
        m.set_next(register, next);
    }
    let mut taken = |name: &str, value: NodeId| m.kept(name, value, turn.takes, None);
    let (head, whole) = (taken("searched", asked.head), taken("searched_whole", asked.whole));
    let asked = Asked { head, whole, from: asked.from.map(|from| taken("searched_from", from)) };
    let part = turn.part.map(|(_, part)| part);
    let found = compared(m, options, line, part, &asked);

    // The first of a part, unless one of a part before it was found.
    let last = m.and(searches, turn.is_last);
    let last = m.delayed("compared_last", last, Some(0));
    let of_part = m.first_found(&found).unwrap_or_else(|| (m.number(1, 0), m.number(place_bits(options), 0)));
    let (known, to) = match part {
        None => (m.delayed("known", of_part.0, None), m.delayed("to", of_part.1, None)),
        Some(part) => {
            let first = m.is(part, 0);
            let first = m.delayed("compared_first", first, None);
            let (known_register, known) = m.register("known", 1, None);
            let (to_register, to) = m.register("to", place_bits(options), None);
            let begun = m.not(first);
            let before = m.and(begun, known);
            let next = m.or(before, of_part.0);
            m.set_next(known_register, next);
            let next = m.mux(before, to, of_part.1);
            m.set_next(to_register, next);
            (known, to)
        }
    };
    Found { known, to, now: m.delayed("found_last", last, Some(0)) }
}

/// For each rule of a part whether the frame matches it, and where it goes then, a cycle later.
fn compared(
    m: &mut ModuleBuilder,
    options: &BackplaneOptions,
    line: (u32, bool),
    part: Option<NodeId>,
    asked: &Asked,
) -> Vec<(NodeId, NodeId)> {
    let byte = |m: &mut ModuleBuilder, at: u32| m.slice(asked.head, 8 * at, 8);
    let bytes = |m: &mut ModuleBuilder, from: u32, to: u32| {
        let parts: Vec<NodeId> = (from..to).map(|at| byte(m, at)).collect();
        m.concat(&parts)
    };
    let destination = bytes(m, 0, 6);
    let (kind, tag) = (bytes(m, 12, 14), bytes(m, 14, 16));
    let is_tagged = m.is(kind, 0x8100);
    let vlan = m.slice(tag, 0, 12);
    let wanted =
        |m: &mut ModuleBuilder, (value, has): (NodeId, NodeId), asked: NodeId, there: Option<NodeId>| {
            let same = m.eq(value, asked);
            let same = there.map_or(same, |there| m.and(same, there));
            let any = m.not(has);
            m.or(any, same)
        };
    let rules = rules(m, options, part);
    let found = rules.into_iter().zip(0..).map(|(rule, number)| {
        let of = Fields::of(m, options, rule, line);
        let destination = wanted(m, of.destination, destination, None);
        let vlan = wanted(m, of.vlan, vlan, Some(is_tagged));
        let mut all = vec![of.valid, of.line, destination, vlan, asked.whole];
        if let (Some(rule), Some(from)) = (of.from, asked.from) {
            let (has, place) = (m.bit(rule, m.width(rule) - 1), m.slice(rule, 0, place_bits(options)));
            all.push(wanted(m, (place, has), from, None));
        }
        let matches = m.all(&all);
        (
            m.delayed(&format!("matches{number}"), matches, None),
            m.delayed(&format!("to{number}"), of.to, None),
        )
    });
    found.collect()
}

/// The rules of a part, as software has written them. A reset leaves them.
fn rules(m: &mut ModuleBuilder, options: &BackplaneOptions, part: Option<NodeId>) -> Vec<NodeId> {
    let (cycles, width) = (cycles(options), rule_bits(options));
    let in_part = RULES / cycles;
    let Words { enable, address, data } = Words::inputs(m, "rule", RULES, width);
    let (low, high) = (address_width(in_part), address_width(RULES) - address_width(in_part));
    let number = m.slice(address, 0, low);
    let rule = |at: u32| {
        let here = m.is(number, at.into());
        let here = m.and(enable, here);
        match part {
            Some(part) => {
                let memory = m.memory(&format!("rules{at}"), width, cycles, Vec::new());
                let word = m.slice(address, low, high);
                m.write(memory, here, word, data);
                m.read(memory, part)
            }
            None => m.kept(&format!("rule{at}"), data, here, None),
        }
    };
    (0..in_part).map(rule).collect()
}
