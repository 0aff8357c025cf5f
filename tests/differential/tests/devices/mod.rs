//! What tests of whole devices share: how frames are driven through until all have left.

use millrace_dataplane::{DropReason, Switch};
use millrace_pipeline::arbitrary::Rng;
use millrace_rtl::Objects;
use millrace_rtl::device::{Bench, Counted, Decided, DeviceOptions, Left, Link, Reason};
use millrace_state::Effects;
use std::collections::BTreeMap;

/// What the software has counted that devices count, but what is 0.
pub(crate) fn counted_by(switch: &Switch) -> BTreeMap<Counted, u64> {
    let mut all = BTreeMap::new();
    for (table, counts) in switch.program().tables.keys().zip(switch.state().lookup_counts()) {
        all.insert(Counted::Hits(table), counts.lookups - counts.misses);
        all.insert(Counted::Misses(table), counts.misses);
    }
    for (reason, count) in switch.counters().all_drops() {
        let named = |of: &Reason| of.name() == reason.label(switch.program());
        let what = match reason {
            DropReason::ParserError(error) => Counted::ParserErrors(error),
            other => {
                Counted::Drops(Reason::DROPS.into_iter().find(named).unwrap_or_else(|| panic!("{other:?}")))
            }
        };
        all.insert(what, count);
    }
    for (port, counted) in switch.counters().ports() {
        all.insert(Counted::DropsFrom(port), counted.rx_drops);
        all.insert(Counted::DropsTo(port), counted.tx_drops);
    }
    all.retain(|_, count| *count > 0);
    all
}

/// Compares what a device has counted of lookups and drops with what the software has. Says how many lookups hit and missed, and how many
/// frames were dropped.
pub(crate) fn check_counted(what: &str, bench: &mut Bench, software: &Switch) -> [u64; 3] {
    let mut found = bench.counted();
    found.retain(|_, count| *count > 0);
    let wanted = counted_by(software);
    assert_eq!(found, wanted, "{what}: lookups and drops");
    let sum = |of: fn(&Counted) -> bool| -> u64 {
        wanted.iter().filter(|(what, _)| of(what)).map(|(_, count)| count).sum()
    };
    [
        sum(|of| matches!(of, Counted::Hits(_))),
        sum(|of| matches!(of, Counted::Misses(_))),
        sum(|of| matches!(of, Counted::Drops(_) | Counted::ParserErrors(_))),
    ]
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
