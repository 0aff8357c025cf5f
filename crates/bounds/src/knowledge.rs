//! What the tables of a running program say that bounds what a packet meets there.

use millrace_midend::type_width;
use millrace_pipeline::entity::PrimaryMap;
use millrace_pipeline::{ActionId, Bits, EntryMatch, Program, TableAction, TableId};
use millrace_state::{EntryView, LookupContract, State, Tables, Target};

/// Most entries of a table that are told apart. Of a larger one the first ones are, and the others as a whole.
const MAX_ENTRIES: usize = 64;

/// What is known of all tables.
#[derive(Clone, Debug)]
pub struct Knowledge {
    pub(crate) tables: PrimaryMap<TableId, Table>,
    /// Whether several workers share meters and registers.
    pub(crate) is_shared: bool,
    /// Bytes of tables and objects.
    pub(crate) memory: u64,
}

/// What is known of a table.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    /// Entries that are told apart.
    pub(crate) entries: Vec<Entry>,
    /// The actions that one of the other entries may run, by their index; none: there are no others.
    pub(crate) others: Option<Vec<bool>>,
    /// What a miss may run. Of a default group each member may be it.
    pub(crate) default: Vec<Call>,
    /// Of each action, by its index, and each of its parameters, the most bits that are set in what entries and the default give it.
    pub(crate) ones: Vec<Vec<u32>>,
    /// What a lookup takes as the table is built.
    pub(crate) lookup: LookupContract,
}

/// An entry.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) matches: Vec<EntryMatch>,
    /// Among entries that match the largest wins; of equal ones any may.
    pub(crate) rank: u64,
    /// What it may run: of a group, what any member may.
    pub(crate) calls: Vec<Call>,
}

/// An action with its data.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Call {
    pub(crate) action: usize,
    /// Its data, as far as they are known.
    pub(crate) args: Vec<Bits>,
}

impl Knowledge {
    /// What the tables of a state say now.
    pub fn of(state: &State) -> Knowledge {
        let memory = state.memory_bytes() as u64;
        let (program, tables) = (state.program(), state.tables());
        let known = program
            .tables
            .keys()
            .map(|id| Table::of(program, &tables, id, state.needs_priority(id)))
            .collect();
        Knowledge { tables: known, is_shared: state.has_sections(), memory }
    }

    /// Bytes of tables and objects.
    pub fn memory(&self) -> u64 {
        self.memory
    }
}

impl Table {
    fn of(program: &Program, tables: &Tables, id: TableId, has_priority: bool) -> Table {
        let mut entries = Vec::new();
        let mut others: Option<Vec<bool>> = None;
        let mut ones = no_ones(program, id);
        for view in tables.entries(id) {
            let calls = calls_of(program, tables, id, &view.target);
            add_ones(program, id, &calls, &mut ones);
            if entries.len() < MAX_ENTRIES {
                let rank = rank(&view, has_priority);
                entries.push(Entry { matches: view.matches, rank, calls });
            } else {
                let used = others.get_or_insert_with(|| vec![false; program.tables[id].actions.len()]);
                calls.iter().for_each(|call| used[call.action] = true);
            }
        }
        let default = calls_of(program, tables, id, &tables.default_target(id));
        add_ones(program, id, &default, &mut ones);
        Table { entries, others, default, ones, lookup: tables.lookup_contract(id) }
    }

    /// Whether an action may run at a hit, or at a miss.
    pub(crate) fn may_run(&self, action: usize) -> bool {
        let runs = |call: &Call| call.action == action;
        self.default.iter().any(runs)
            || self.entries.iter().any(|entry| entry.calls.iter().any(runs))
            || self.others.as_ref().is_some_and(|used| used[action])
    }
}

/// Of each parameter of the actions of a table: 0.
fn no_ones(program: &Program, id: TableId) -> Vec<Vec<u32>> {
    let actions = program.tables[id].actions.iter();
    actions.map(|listed| vec![0; program.actions[listed.action].params.len()]).collect()
}

/// Makes the most bits of parameters at least those of some calls. Of data that is not known all bits may be set.
fn add_ones(program: &Program, id: TableId, calls: &[Call], ones: &mut [Vec<u32>]) {
    for call in calls {
        let params = &program.actions[program.tables[id].actions[call.action].action].params;
        for (number, (param, most)) in params.iter().zip(&mut ones[call.action]).enumerate() {
            let width = type_width(program.slots[*param].ty);
            let count = |arg: &Bits| (0..arg.width()).filter(|at| arg.bit(*at)).count() as u32;
            *most = (*most).max(call.args.get(number).map_or(width, count));
        }
    }
}

/// The place of an entry among others that match: by priority, or in tables without by the length of its prefix.
fn rank(view: &EntryView, has_priority: bool) -> u64 {
    if has_priority {
        return u64::from(view.priority);
    }
    let prefix = view.matches.iter().map(|field| match field {
        EntryMatch::Lpm(_, len) => u64::from(*len),
        _ => 0,
    });
    prefix.sum()
}

/// What a target may run. The action of an empty group is that of the table, at a hit too.
fn calls_of(program: &Program, tables: &Tables, id: TableId, target: &Target) -> Vec<Call> {
    let call = |call: millrace_pipeline::ActionCall| Call { action: call.action, args: call.args };
    let table = &program.tables[id];
    let Some(profile) = table.profile else {
        return match target {
            Target::Action(own) => vec![call(own.clone())],
            Target::Member(_) | Target::Group(_) => vec![call(tables.default_action(id))],
        };
    };
    // Actions that a table binds arguments to are copies of one name.
    let name = |action: ActionId| &program.actions[action].name;
    let of_member = |number: u32| -> Vec<Call> {
        let Ok(member) = tables.member(profile, number) else { return Vec::new() };
        let is_it = |listed: &TableAction| name(listed.action) == name(member.action);
        match table.actions.iter().position(is_it) {
            Some(action) => vec![Call { action, args: member.args }],
            None => (0..table.actions.len()).map(|action| Call { action, args: Vec::new() }).collect(),
        }
    };
    let mut calls: Vec<Call> = match target {
        Target::Action(own) => vec![call(own.clone())],
        Target::Member(number) => of_member(*number),
        Target::Group(number) => {
            let members = tables.group(profile, *number).unwrap_or_default();
            members.iter().flat_map(|member| of_member(member.member)).collect()
        }
    };
    if matches!(target, Target::Group(_)) || calls.is_empty() {
        calls.push(call(table.empty_group.clone().unwrap_or_else(|| tables.default_action(id))));
        calls.push(call(tables.default_action(id)));
    }
    calls.dedup();
    calls
}
