//! What a device counts of lookups and drops, and how a switch counts it.

use super::Registers;
use crate::switch::Switch;
use crate::{DropReason, PortCounters};
use millrace_link::Fault;
use millrace_pipeline::Program;
use millrace_rtl::device::{Counted, Reason};
use millrace_rtl::map::MapError;

/// What a device has counted of lookups and drops.
pub(super) fn counted(
    design: &millrace_rtl::Device,
    registers: &mut Registers,
) -> Result<Vec<u64>, MapError<Fault>> {
    let mut read = |(port, word)| Ok::<u64, _>(registers.read_word(port, word)?.to_u64_saturating());
    design.counted().map(|(_, at)| read(at)).collect()
}

/// Counts what a device has counted.
pub(super) fn count(switch: &mut Switch, what: Counted, more: u64) {
    let counters = &mut switch.ledger.counters;
    match what {
        Counted::Hits(table) | Counted::Misses(table) => {
            let of_table = switch.forwarder.state.lookup_counts_mut().get_mut(table.as_u32() as usize);
            if let Some(counts) = of_table {
                counts.lookups += more;
                counts.misses += if what == Counted::Misses(table) { more } else { 0 };
            }
        }
        Counted::Drops(reason) => {
            reason_of(reason).into_iter().for_each(|reason| counters.dropped_elsewhere(reason, more));
        }
        Counted::ParserErrors(error) => counters.dropped_elsewhere(DropReason::ParserError(error), more),
        Counted::DropsFrom(port) => {
            counters.port_dropped(port, PortCounters { rx_drops: more, ..PortCounters::default() })
        }
        Counted::DropsTo(port) => {
            counters.port_dropped(port, PortCounters { tx_drops: more, ..PortCounters::default() })
        }
    }
}

/// The reason of a switch for one of a device; none for parsers, which are counted by their errors.
fn reason_of(reason: Reason) -> Option<DropReason> {
    DropReason::ALL.into_iter().find(|own| own.label(&Program::default()) == reason.name())
}
