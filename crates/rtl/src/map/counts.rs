//! Numbers of 64 bits that count what happens in a design, for software to read.
//!
//! Numbers are words of one memory. What happens is counted in a few bits for each number; one number after the other is *visited*: what
//! was counted of it since the last visit is added to its word. So a number more takes no sum and no choice of 64 bits. A read of
//! software is a visit too, so it has all that came before it.

use crate::software_port::SoftwarePort;
use millrace_netlist::{Design, InstanceId, ModuleBuilder, ModuleId, NodeId, address_width};

/// What a number counts of a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// So many events, a bit for each.
    Events(u32),
    /// A sum of so many bits.
    Sum(u32),
}

impl Step {
    /// Bits of what is told of a cycle.
    pub fn width(self) -> u32 {
        match self {
            Step::Events(width) | Step::Sum(width) => width,
        }
    }

    /// The most that a cycle adds.
    fn most(self) -> u64 {
        match self {
            Step::Events(count) => count.into(),
            Step::Sum(width) => (1 << width) - 1,
        }
    }
}

/// Bits of a number.
pub const COUNT_WIDTH: u32 = 64;

/// Has software read by the words of a port how often, or how much, of each of these there was. The values come from registers, or are
/// few gates away from some.
pub fn connect_counts(
    m: &mut ModuleBuilder,
    design: &mut Design,
    (control, port): (InstanceId, &SoftwarePort),
    counted: &[(Step, NodeId)],
) {
    let steps: Vec<Step> = counted.iter().map(|(step, _)| *step).collect();
    let module = numbers(design, &steps);
    let counts = m.instance(design, module, &port.object);
    for (number, (_, value)) in counted.iter().enumerate() {
        m.connect(counts, &format!("counted{number}"), *value);
    }
    for what in ["read_enable", "read_address"] {
        let value = m.output_of(control, &port.port(what));
        m.connect(counts, what, value);
    }
    let data = m.output_of(counts, "read_data");
    m.connect(control, &port.port("read_data"), data);
}

/// Cycles between two visits of a number, of so many: three of any five cycles may belong to a read of software, since a read begins five
/// cycles after the one before it at the earliest ([`super`]).
fn most_cycles(numbers: u32) -> u32 {
    3 * numbers + 10
}

/// The module that has the numbers, by what each counts. Inputs: `counted0` and so on; `read_enable` with `read_address`. Output:
/// `read_data`, four cycles after the enable.
///
/// ```text
/// cycle of the enable   0      1      2      3      4
///                              -    visit    -     data     visits in turn go on in cycle 4
/// ```
///
/// A word is read in the cycle of its visit and written in the next one, so two visits of one number are at least two cycles apart.
fn numbers(design: &mut Design, steps: &[Step]) -> ModuleId {
    let mut made = ModuleBuilder::new("counts");
    let m = &mut made;
    // Two visits of one number in two cycles would both read its word before the first has written it: so there are two words at
    // least.
    let count = (steps.len() as u32).max(2);
    let bits = address_width(count);
    let (read, address) = (m.input("read_enable", 1), m.input("read_address", bits));

    // The first round after a reset begins with 0, whatever memory holds, and software reads 0 meanwhile.
    let (whole_register, is_whole) = m.register("whole", 1, Some(0));
    let asked = m.and(read, is_whole);
    let before = m.delayed("read_begins", asked, Some(0));
    let visits_asked = m.delayed("read_visits", before, Some(0));
    let after = m.delayed("read_ends", visits_asked, Some(0));
    let held = m.kept("read_of", address, read, None);

    let waits = m.or(before, after);
    let visits = m.not(waits);
    let of_software = m.or(waits, visits_asked);
    let in_turn = m.not(of_software);
    let (next_register, next) = m.register("next", bits, Some(0));
    let is_last = m.is(next, u128::from(count - 1));
    let (more, zero) = (m.add_number(next, 1), m.number(bits, 0));
    let following = m.mux(is_last, zero, more);
    m.set_next(next_register, following);
    m.set_enable(next_register, in_turn);
    let ends = m.and(in_turn, is_last);
    let whole = m.or(is_whole, ends);
    m.set_next(whole_register, whole);
    let at = m.mux(visits_asked, held, next);

    let counted: Vec<NodeId> = steps
        .iter()
        .zip(0..)
        .map(|(step, number)| {
            let value = m.input(&format!("counted{number}"), step.width());
            let here = m.is(at, number);
            let visited = m.and(visits, here);
            counted(m, (number, count), (*step, value), visited)
        })
        .collect();
    let most = counted.iter().map(|value| m.width(*value)).max().unwrap_or(1);
    let mut counted: Vec<NodeId> = counted.into_iter().map(|value| m.resize(value, most)).collect();
    counted.resize_with(count as usize, || m.number(most, 0));

    let memory = m.memory("numbers", COUNT_WIDTH, count, Vec::new());
    let word = m.read(memory, at);
    let mask = m.repeat(is_whole, COUNT_WIDTH);
    let word = m.and(word, mask);
    let more = m.choose(at, &counted);
    let word = m.delayed("visited_word", word, None);
    let more = m.delayed("visited_more", more, None);
    let place = m.delayed("visited_place", at, None);
    let visited = m.delayed("visited", visits, Some(0));
    let more = m.resize(more, COUNT_WIDTH);
    let sum = m.add(word, more);
    m.write(memory, visited, place, sum);
    let data = m.kept("read_word", sum, after, Some(0));
    m.output("read_data", data);
    design.add(made.finish())
}

/// What was counted of a number since it was visited last; in the cycle of a visit, of the cycles before it.
fn counted(
    m: &mut ModuleBuilder,
    (number, count): (u128, u32),
    (step, now): (Step, NodeId),
    visited: NodeId,
) -> NodeId {
    let most = step.most() * u64::from(most_cycles(count));
    let width = u64::BITS - most.leading_zeros();
    let (register, value) = m.register(&format!("since{number}"), width, Some(0));
    let zero = m.number(width, 0);
    let start = m.mux(visited, zero, value);
    let parts: Vec<NodeId> = match step {
        Step::Events(events) => (0..events).map(|event| m.bit(now, event)).collect(),
        Step::Sum(_) => vec![now],
    };
    let next = parts.into_iter().fold(start, |sum, part| {
        let part = m.resize(part, width);
        m.add(sum, part)
    });
    m.set_next(register, next);
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use millrace_netlist::Simulator;
    use millrace_pipeline::arbitrary::Rng;

    /// Events in each cycle and reads as close together as there may be: each read has all that happened until the cycle after it was asked.
    /// A reset begins with 0 again.
    #[test]
    fn reads_have_all_that_happened() {
        use Step::{Events, Sum};
        let (one, four) = (Events(1), Events(4));
        for steps in
            [&[one, one][..], &[one], &[one, Events(2), Sum(16), one, Sum(1)], &[one; 40], &[four; 17]]
        {
            let mut design = Design::new();
            numbers(&mut design, steps);
            let mut simulator = Simulator::new(&design).unwrap();
            let input = |name: &str| simulator.input(name).unwrap();
            let events: Vec<_> = (0..steps.len()).map(|at| input(&format!("counted{at}"))).collect();
            let (enable, address) = (input("read_enable"), input("read_address"));
            let data = simulator.output("read_data").unwrap();
            let mut rng = Rng::new(steps.len() as u64);
            for _ in 0..3 {
                simulator.set_reset(true);
                simulator.step();
                simulator.set_reset(false);
                let mut counted = vec![0; steps.len()];
                let (mut reads, mut last) = (Vec::new(), 0);
                for cycle in 0..6000u64 {
                    let number = rng.below(steps.len());
                    // The first round begins with 0.
                    let asks = cycle > 100 && cycle >= last + 5 && (cycle % 2000 < 700 || rng.one_in(30));
                    simulator.set_u64(enable, asks.into());
                    simulator.set_u64(address, number as u64);
                    // All of them at times.
                    let busy = cycle / 500 % 2 == 0;
                    for ((input, step), counted) in events.iter().zip(steps).zip(&mut counted) {
                        let bits = (1u64 << step.width()) - 1;
                        let now = if busy { bits } else { rng.next_u64() & bits };
                        simulator.set_u64(*input, now);
                        *counted += match step {
                            Events(_) => u64::from(now.count_ones()),
                            Sum(_) => now,
                        };
                    }
                    if asks {
                        (last, reads) = (cycle, vec![(cycle, number, 0)]);
                    }
                    for (begun, number, wanted) in &mut reads {
                        match cycle - *begun {
                            1 => *wanted = counted[*number],
                            4 => {
                                assert_eq!(simulator.get_u64(data), *wanted, "{steps:?}: {number}, {cycle}")
                            }
                            _ => {}
                        }
                    }
                    simulator.step();
                }
                assert!(counted.iter().all(|count| *count > 2000), "{counted:?}");
            }
        }
    }
}
