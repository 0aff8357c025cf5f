//! What a switch remembers, as lines that can be compared.

use millrace_dataplane::Switch;
use millrace_pipeline::TableId;
use millrace_state::{CounterRef, Tables};

/// Cells of an array that are looked at: the first ones.
const MAX_CELLS: u64 = 4096;

/// Entries with their counters and the time of their last hit, hits and misses of tables, cells of counters, meters and
/// registers.
pub fn memory(switch: &Switch) -> Vec<String> {
    let (state, program) = (switch.state(), switch.program());
    let tables = state.tables();
    let mut lines = Vec::new();
    for (id, table) in &program.tables {
        lines.extend(entries(&tables, id).into_iter().map(|line| format!("{}: {line}", table.name)));
    }
    for (id, counter) in &program.counters {
        let cell = |index| tables.counter_value(CounterRef::Indexed(id), index);
        lines.extend(
            (0..counter.size.min(MAX_CELLS)).map(|at| format!("{}[{at}]: {:?}", counter.name, cell(at))),
        );
    }
    for (id, meter) in &program.meters {
        let cell = |index| state.meter_config(id, index);
        lines
            .extend((0..meter.size.min(MAX_CELLS)).map(|at| format!("{}[{at}]: {:?}", meter.name, cell(at))));
    }
    for (id, register) in &program.registers {
        let cell = |index| state.register_value(id, index);
        lines.extend(
            (0..register.size.min(MAX_CELLS)).map(|at| format!("{}[{at}]: {:?}", register.name, cell(at))),
        );
    }
    lines
}

fn entries(tables: &Tables, id: TableId) -> Vec<String> {
    let table = tables.table(id);
    let mut lines = vec![format!("{:?}", tables.default_action(id))];
    for entry in tables.entries(id) {
        let last = table.entry(entry.index).map(|kept| kept.last_hit_ns());
        lines.push(format!("last hit {last:?}, {entry:?}"));
    }
    lines
}
