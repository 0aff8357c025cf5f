//! What tests of whole devices share: how frames are driven through until all have left.

use millrace_dataplane::{Outcome, Switch};
use millrace_pipeline::Program;
use millrace_pipeline::arbitrary::Rng;
use millrace_rtl::Objects;
use millrace_rtl::device::{Bench, Decided, DeviceOptions, Left, Link};
use millrace_state::Effects;
use std::collections::BTreeMap;

/// Counts what the software has dropped of a frame, by the names that a device has for the reasons.
pub(crate) fn count_drops(counts: &mut BTreeMap<String, u64>, outcome: &Outcome, program: &Program) {
    for drop in &outcome.drops {
        let label = drop.reason.label(program);
        *counts.entry(label.split(':').next().unwrap_or_default().to_owned()).or_default() += 1;
    }
}

/// Cycles in which nothing leaves or is decided until nothing is left: by GMII the longest frame takes 2072 in, and as many out.
const QUIET: u32 = 6000;

/// Frames of a link begin once in so many cycles on average, so that no queue is full: a port has a beat as often as it begins a frame.
pub(crate) fn seldom(link: Link, of_xgmii: usize) -> usize {
    match link {
        Link::Stream => 8,
        Link::Xgmii => of_xgmii,
        Link::Gmii => 6 * of_xgmii,
    }
}

/// No frame that left through a MAC had to wait for its next word.
pub(crate) fn check_underruns(what: &str, bench: &mut Bench, options: &DeviceOptions) {
    for port in 0..options.ports {
        let waited = bench.get(&format!("port{port}.tx_mac_underrun"));
        let wanted = options.link.has_macs().then_some(0);
        assert_eq!(waited, wanted, "{what}: frames of port {port} that were broken off");
    }
}

/// Drives the frames that wait through a device until nothing has left it for a while: a port has a beat `busy.0` of `every` times and
/// takes one `busy.1` of eight times. Takes messages meanwhile, to the state of `read`. Gives what has left, and whose headers were
/// decided, in order.
pub(crate) fn drive(
    what: &str,
    bench: &mut Bench,
    (every, busy): (usize, (usize, usize)),
    (read, effects): (&mut Switch, &mut Effects),
) -> (Vec<Left>, Vec<Decided>) {
    let (mut left, mut order, mut idle, mut taken) = (Vec::new(), Vec::new(), 0, 0);
    let (mut choice, mut other) = (Rng::new(9), Rng::new(11));
    while bench.waiting() > 0 || idle < QUIET {
        let (gone, decided) =
            bench.step(&mut |_| choice.below(every) < busy.0, &mut |_| other.below(8) < busy.1);
        idle = if gone.is_empty() && decided.is_empty() { idle + 1 } else { 0 };
        left.extend(gone);
        order.extend(decided);
        assert!(idle < 100_000, "{what}: the device stands still");
        // The queue of messages holds 64.
        if order.len() >= taken + 16 || idle == 2000 {
            taken = order.len();
            bench.take_messages(&mut Objects { state: read.state_mut(), now_ns: 0, effects }).unwrap();
        }
    }
    (left, order)
}
