//! Arbiters: who of several that ask is served.

use super::once;
use crate::*;

/// Of those who ask the one with the lowest number: `request` has a bit for each, `grant` is the lowest of these that is 1, alone.
/// It has no state.
///
/// # Panics
/// `count` is 0.
pub fn priority_arbiter(design: &mut Design, count: u32) -> ModuleId {
    assert!(count > 0, "an arbiter for nobody");
    once(design, format!("priority_arbiter_{count}"), |m| {
        let request = m.input("request", count);
        let grant = lowest(m, request);
        m.output("grant", grant);
    })
}

/// Who asks is served in turn: `request` has a bit for each, `grant` is one of these that is 1, alone; with `take`, it is used, and
/// the next ones come first. Who asks without a break is served after at most `count - 1` others.
///
/// The register `mask` has a 1 for each number after the one that was served last: those come first, the lowest of them; if none of
/// these asks, the lowest of all.
///
/// # Panics
/// `count` is 0.
pub fn round_robin_arbiter(design: &mut Design, count: u32) -> ModuleId {
    assert!(count > 0, "an arbiter for nobody");
    once(design, format!("round_robin_arbiter_{count}"), |m| {
        let request = m.input("request", count);
        let take = m.input("take", 1);
        let (grant, _) = round_robin(m, request, take);
        m.output("grant", grant);
    })
}

/// The grant and the mask.
fn round_robin(m: &mut ModuleBuilder, request: NodeId, take: NodeId) -> (NodeId, NodeId) {
    let (mask_register, mask) = m.register("mask", m.width(request), Some(0));
    let later = m.and(request, mask);
    let any_later = m.reduce_or(later);
    let candidates = m.mux(any_later, later, request);
    let grant = lowest(m, candidates);
    // All numbers up to the one that is served, and its own: the rest comes first then.
    let one = m.number(m.width(grant), 1);
    let below = m.sub(grant, one);
    let up_to = m.or(below, grant);
    let after = m.not(up_to);
    m.set_next(mask_register, after);
    let any = m.reduce_or(request);
    let served = m.and(take, any);
    m.set_enable(mask_register, served);
    (grant, mask)
}

/// The lowest bit that is 1, alone. In the negative of a number all bits above that one are inverted, and it itself is the same.
fn lowest(m: &mut ModuleBuilder, value: NodeId) -> NodeId {
    let zero = m.number(m.width(value), 0);
    let negative = m.sub(zero, value);
    m.and(value, negative)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A round robin for four, with a monitor of any one of them, whose output `fault` is 1 when the grant is not one of those who
    /// ask, or when that one has waited too long. `who` must not change; a register that keeps its first value sees to that.
    pub(crate) fn monitored() -> Design {
        let mut m = ModuleBuilder::new("monitored_arbiter");
        let (request, take) = (m.input("request", 4), m.input("take", 1));
        let choice = m.input("choice", 2);
        let (chosen, is_chosen) = m.register("chosen", 1, Some(0));
        let one = m.number(1, 1);
        m.set_next(chosen, one);
        let (who, who_number) = m.register("who", 2, Some(0));
        m.set_next(who, choice);
        let first = m.not(is_chosen);
        m.set_enable(who, first);
        let (grant, mask) = round_robin(&mut m, request, take);

        // How often others were served while this one asked without a break.
        let (waited, waits) = m.register("waited", 3, Some(0));
        let asks = m.shr(request, who_number);
        let asks = m.bit(asks, 0);
        let served = m.shr(grant, who_number);
        let served = m.bit(served, 0);
        let zero = m.number(3, 0);
        let more = m.add_number(waits, 1);
        let next = m.mux(take, more, waits);
        let own = m.and(served, take);
        let goes_on = m.not(own);
        let goes_on = m.all(&[asks, goes_on, is_chosen]);
        let next = m.mux(goes_on, next, zero);
        m.set_next(waited, next);

        // The number that comes first, and how many come before this one: each time another is served, these get fewer.
        let bits: Vec<NodeId> = (0..4).map(|at| m.bit(mask, at)).collect();
        let first = m.number(2, 0);
        let start = (0..4u32).rev().fold(first, |rest, at| {
            let number = m.number(2, at.into());
            m.mux(bits[at as usize], number, rest)
        });
        let distance = m.sub(who_number, start);
        let distance = m.resize(distance, 3);
        let sum = m.add(waits, distance);
        let most = m.number(3, 3);
        let late = m.lt(most, sum);
        let too_many = m.lt(most, waits);
        // The mask is ones from some number on.
        let gaps: Vec<NodeId> = (0..3)
            .map(|at| {
                let clear = m.not(bits[at + 1]);
                m.and(bits[at], clear)
            })
            .collect();
        let gap = m.any(&gaps);
        let none = m.is(grant, 0);
        let some = m.reduce_or(request);
        let idle = m.and(none, some);
        let outside = m.not(request);
        let outside = m.and(grant, outside);
        let outside = m.reduce_or(outside);
        let less = {
            let one = m.number(4, 1);
            m.sub(grant, one)
        };
        let several = m.and(grant, less);
        let several = m.reduce_or(several);
        let bad = m.any(&[late, too_many, gap, idle, outside, several]);
        m.output("fault", bad);
        let mut design = Design::new();
        design.add(m.finish());
        design
    }
}
