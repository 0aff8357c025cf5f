//! The state of a switch as runtime commands that make it again in a switch that has just started: what bmv2 saves in a
//! format of its own.
//!
//! Members, groups and multicast nodes keep their numbers. Entry handles count again from 0, in the order in which the entries
//! were added: they are the same where none was removed. What no command can say is named in a comment at the start.

mod objects;
mod replication;
mod tables;

use crate::commands::meter_command;
use millrace_commands::matching;
use millrace_dataplane::Replication;
use millrace_pipeline::{Bits, CrcParameters, EntryMatch, HashId, MeterId, Program, RegisterId, ValueSetId};
use millrace_state::{MeterConfig, Tables};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write};

/// Largest state that is saved, in bytes of text.
pub const MAX_SAVED: usize = 1 << 30;

/// Such numbers are always kept; above, only where less than three of four are missing.
const FEW_NUMBERS: usize = 1024;

/// An object whose cells belong to the worker of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnObject {
    /// A register.
    Register(RegisterId),
    /// An indexed meter.
    Meter(MeterId),
    /// A parser value set.
    ValueSet(ValueSetId),
    /// A hash of its own.
    Hash(HashId),
}

/// Commands, and what they do not say.
#[derive(Clone, Debug, Default)]
pub struct Saved {
    commands: String,
    missing: Vec<String>,
    too_long: bool,
}

/// Why a state cannot be saved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SaveError {
    /// No command can name an object of the program.
    Name(String),
    /// It takes more than [`MAX_SAVED`].
    TooLong,
}

impl fmt::Display for SaveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SaveError::Name(name) => write!(f, "no command can name `{name}`"),
            SaveError::TooLong => write!(f, "the state takes more than {MAX_SAVED} bytes"),
        }
    }
}

impl std::error::Error for SaveError {}

/// All objects of a program that a worker keeps, with how many cells they have.
pub fn own_objects(program: &Program) -> impl Iterator<Item = (OwnObject, u64)> {
    let registers = program.registers.iter().map(|(id, register)| (OwnObject::Register(id), register.size));
    let meters = program.meters.iter().map(|(id, meter)| (OwnObject::Meter(id), meter.size));
    let sets = program.value_sets.keys().map(|id| (OwnObject::ValueSet(id), 1));
    let hashes = program.hashes.keys().map(|id| (OwnObject::Hash(id), 1));
    registers.chain(meters).chain(sets).chain(hashes)
}

impl Saved {
    /// Tables, action profiles and counters.
    ///
    /// # Errors
    /// [`SaveError::Name`].
    pub fn tables(program: &Program, tables: &Tables) -> Result<Saved, SaveError> {
        check_names(program)?;
        let mut saved = Saved::default();
        saved.add_tables(program, tables);
        Ok(saved)
    }

    /// Cells of a register that hold something else than at first.
    pub fn register<'v>(
        program: &Program,
        id: RegisterId,
        cells: impl Iterator<Item = (u64, &'v Bits)>,
    ) -> Saved {
        let register = &program.registers[id];
        let zero = Bits::zero(register.width);
        let initial = register.initial.as_ref().unwrap_or(&zero);
        let mut saved = Saved::default();
        for (cell, value) in cells.filter(|(_, value)| *value != initial) {
            saved.line(format_args!("register_write {} {cell} {}", register.name, number(value)));
        }
        saved
    }

    /// Cells of an indexed meter that are configured.
    pub fn meter(
        program: &Program,
        id: MeterId,
        cells: impl Iterator<Item = (u64, Option<MeterConfig>)>,
    ) -> Saved {
        let name = &program.meters[id].name;
        let mut saved = Saved::default();
        for (cell, config) in cells.filter_map(|(cell, config)| Some((cell, config?))) {
            saved.line(format_args!("{}", meter_command(name, cell, &config)));
        }
        saved
    }

    /// The members of a value set.
    pub fn value_set(program: &Program, id: ValueSetId, members: &[Vec<EntryMatch>]) -> Saved {
        let mut saved = Saved::default();
        for member in members {
            let words: Vec<String> = member.iter().map(matching::show).collect();
            saved.line(format_args!("pvs_add {} {}", program.value_sets[id].name, words.join(" ")));
        }
        saved
    }

    /// The CRC that a hash computes.
    pub fn hash(program: &Program, id: HashId, computes: CrcParameters) -> Saved {
        let hash = &program.hashes[id];
        let mut saved = Saved::default();
        if CrcParameters::of(hash.algorithm) != Some(computes) {
            saved.missing(format_args!("the parameters of the hash {}", hash.name));
        }
        saved
    }

    /// Multicast groups and clone sessions.
    pub fn replication(engine: &Replication) -> Saved {
        let mut saved = Saved::default();
        saved.add_replication(engine);
        saved
    }

    /// Puts other commands after these.
    pub fn append(&mut self, mut other: Saved) {
        self.too_long |= other.too_long || self.commands.len() + other.commands.len() > MAX_SAVED;
        if !self.too_long {
            self.commands += &other.commands;
        }
        self.missing.append(&mut other.missing);
    }

    /// The whole as a text, for a program of that name.
    ///
    /// # Errors
    /// [`SaveError::TooLong`].
    pub fn text(self, name: &str) -> Result<String, SaveError> {
        if self.too_long {
            return Err(SaveError::TooLong);
        }
        // The name may have any character.
        let mut text = format!("# The state of {name:?}\n");
        for missing in &self.missing {
            text += "# Not in it: ";
            text += missing;
            text.push('\n');
        }
        Ok(text + &self.commands)
    }

    fn line(&mut self, command: fmt::Arguments<'_>) {
        if self.commands.len() >= MAX_SAVED {
            self.too_long = true;
            return;
        }
        // Writing to a string cannot fail.
        let _ = writeln!(self.commands, "{command}");
    }

    fn missing(&mut self, what: fmt::Arguments<'_>) {
        self.missing.push(what.to_string());
    }
}

/// The numbers that things get which commands number from 0: their own, or the next free one for numbers far above the others.
/// `room` is how many there can be.
fn numbers(own: impl Iterator<Item = u32>, room: usize) -> BTreeMap<u32, u32> {
    let own: BTreeSet<u32> = own.collect();
    let end = room.min(FEW_NUMBERS.max(4 * own.len()));
    let kept = |number: &u32| (*number as usize) < end;
    let mut free = (0..).filter(|number| !own.contains(number) || !kept(number));
    own.iter()
        .map(|number| match kept(number) {
            true => (*number, *number),
            // There are more numbers than things.
            false => (*number, free.next().unwrap_or(*number)),
        })
        .collect()
}

fn number(value: &Bits) -> String {
    format!("0x{}", value.to_hex())
}

/// Commands are split at blanks.
fn check_names(program: &Program) -> Result<(), SaveError> {
    let tables = program.tables.values();
    let names = (tables.clone().map(|table| &table.name))
        .chain(tables.clone().filter_map(|table| Some(&table.direct_counter.as_ref()?.name)))
        .chain(tables.filter_map(|table| Some(&table.direct_meter.as_ref()?.name)))
        .chain(program.actions.values().map(|action| &action.name))
        .chain(program.profiles.values().map(|profile| &profile.name))
        .chain(program.counters.values().map(|counter| &counter.name))
        .chain(program.meters.values().map(|meter| &meter.name))
        .chain(program.registers.values().map(|register| &register.name))
        .chain(program.value_sets.values().map(|set| &set.name));
    let splits = |name: &&String| {
        name.is_empty() || name.starts_with('#') || name.contains(|c: char| c.is_ascii_whitespace())
    };
    names.into_iter().find(splits).map_or(Ok(()), |name| Err(SaveError::Name(name.clone())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entries::load;
    use crate::sample::switch;
    use millrace_dataplane::{Replica, Session, Switch, SwitchConfig};
    use millrace_pipeline::{ActionCall, TableEntry};
    use millrace_state::{GroupMember, Selection};

    /// As a device saves it.
    fn saved(switch: &Switch) -> String {
        let program = switch.program();
        let mut saved = Saved::tables(program, &switch.state().tables()).unwrap();
        for (object, size) in own_objects(program) {
            let state = switch.state();
            saved.append(match object {
                OwnObject::Register(id) => {
                    let values: Vec<Bits> = (0..size).map(|cell| state.register_read(id, cell)).collect();
                    Saved::register(program, id, (0..).zip(&values))
                }
                OwnObject::Meter(id) => {
                    let config = |cell| (cell, state.meter_config(id, cell).unwrap());
                    Saved::meter(program, id, (0..size).map(config))
                }
                OwnObject::ValueSet(id) => {
                    Saved::value_set(program, id, &state.values(id).collect::<Vec<_>>())
                }
                OwnObject::Hash(id) => Saved::hash(program, id, state.own_hash(id).parameters()),
            });
        }
        saved.append(Saved::replication(switch.replication()));
        saved.text(&program.name).unwrap()
    }

    const COMMANDS: &str = "
        act_prof_create_member paths drop
        act_prof_create_member paths set_nhop 08:00:00:00:00:01 1
        act_prof_create_member paths set_nhop 08:00:00:00:00:02 2
        act_prof_delete_member paths 0
        act_prof_create_group paths
        act_prof_create_group paths
        act_prof_add_member_to_group paths 1 1
        act_prof_add_member_to_group paths 2 1
        act_prof_delete_group paths 0
        table_indirect_add spread 3 => 2
        table_indirect_add_with_group spread 4 => 1
        table_indirect_set_default_with_group spread 1
        table_add route set_nhop 10.0.0.0/8 => 1 2
        table_add route drop 10.1.0.0/16 =>
        table_add route drop 10.2.0.0/16 =>
        table_delete route 0
        table_set_timeout route 1 5000
        counter_write hits 2 7 0
        table_set_default route set_nhop 1 1
        table_add acl drop 1&&&1 0->511 => 7
        counter_write count 3 5 600
        meter_set_rates meter 1 0.5:10 1:20
        account_set links 0 0.5ms 1500ns 200 both
        register_write last 2 9
        pvs_add types 1 2
        mc_set_lag_membership 2 5 6
        mc_node_create 1 1 2
        mc_node_create 7 3 | 2
        mc_node_destroy 0
        mc_mgrp_create 5
        mc_node_associate 5 1
        mirroring_add 1 4
        mirroring_add_truncate 2 4 60
        mirroring_add_mc 3 5
    ";

    const SAVED: &str = "\
# The state of \"sample\"
act_prof_create_member ingress.paths ingress.set_nhop 0x080000000002 0x002
act_prof_create_member ingress.paths ingress.set_nhop 0x080000000001 0x001
act_prof_create_member ingress.paths ingress.set_nhop 0x080000000002 0x002
act_prof_delete_member ingress.paths 0
act_prof_create_group ingress.paths
act_prof_create_group ingress.paths
act_prof_delete_group ingress.paths 0
act_prof_add_member_to_group ingress.paths 1 1
act_prof_add_member_to_group ingress.paths 2 1
table_add ingress.route ingress.drop 0x0a010000/16 =>
table_set_timeout ingress.route 0 5000
table_add ingress.route ingress.drop 0x0a020000/16 =>
counter_write ingress.hits 1 7 0
table_set_default ingress.route ingress.set_nhop 0x000000000001 0x001
table_add ingress.acl ingress.drop 0x00000001&&&0x00000001 0x000->0x1ff => 7
table_indirect_add ingress.spread 0x003 => 2
table_indirect_add_with_group ingress.spread 0x004 => 1
table_indirect_set_default_with_group ingress.spread 1
counter_write ingress.count 3 5 600
register_write ingress.last 2 0x000000000009
meter_set_rates ingress.meter 1 0.5:10 1:20
account_set ingress.links 0 500us 1500ns 200 both
pvs_add parser.types 0x01 0x2
mc_set_lag_membership 2 5 6
mc_node_create 0
mc_node_create 7 3 | 2
mc_mgrp_create 5
mc_node_associate 5 1
mc_node_destroy 0
mirroring_add 1 4
mirroring_add_truncate 2 4 60
mirroring_add_mc 3 5
";

    #[test]
    fn what_is_saved_makes_the_same_state() {
        let (mut first, mut second) = (switch(), switch());
        assert_eq!(saved(&first), "# The state of \"sample\"\n");
        load(&mut first, COMMANDS).unwrap();
        assert_eq!(saved(&first), SAVED);
        load(&mut second, SAVED).unwrap();
        assert_eq!(saved(&second), SAVED);
    }

    /// What P4Runtime can write and commands cannot.
    #[test]
    fn what_no_command_says_is_named() {
        let mut switch = switch();
        load(&mut switch, "act_prof_create_member paths drop").unwrap();
        {
            let handle = switch.state().handle();
            let mut tables = handle.lock();
            let profile = switch.state().profile_named("paths").unwrap();
            let member = tables.member(profile, 0).unwrap();
            tables.insert_member(profile, Some(70_000), &member).unwrap();
            let heavy = GroupMember { member: 70_000, weight: 4 };
            tables.insert_group_with(profile, Some(0), &[heavy], Selection::Random).unwrap();
        }
        let engine = switch.replication_mut();
        let copies: Vec<Replica> = [1, 2].map(|port| Replica { port, rid: 6 }).into();
        engine.create_group(9).unwrap();
        engine.set_copies(9, copies.clone()).unwrap();
        engine.set_session(4, Session { copies, ..Session::default() }).unwrap();
        assert_eq!(
            saved(&switch),
            "# The state of \"sample\"\n\
             # Not in it: the number 70000 of a member of ingress.paths: it has 1 here\n\
             # Not in it: that the group 0 of ingress.paths selects by no hash\n\
             # Not in it: the weight 4 of the member 1 of the group 0 of ingress.paths\n\
             # Not in it: the clone session 4, which is not of one port or one group\n\
             act_prof_create_member ingress.paths ingress.drop\n\
             act_prof_create_member ingress.paths ingress.drop\n\
             act_prof_create_group ingress.paths\n\
             act_prof_add_member_to_group ingress.paths 1 0\n\
             mc_mgrp_create 9\n\
             mc_node_create 6 1\n\
             mc_node_associate 9 0\n\
             mc_node_create 6 2\n\
             mc_node_associate 9 1\n"
        );
    }

    /// The first two entries are the program's, and the table has room for so many.
    fn with_entries(size: u64) -> Switch {
        let mut program = Program::clone(switch().program());
        let table = program.tables.values_mut().find(|table| table.name == "ingress.route").unwrap();
        let entry = |first: u128| TableEntry {
            matches: vec![EntryMatch::Lpm(Bits::new(32, first << 24), 8)],
            priority: 0,
            call: ActionCall { action: 1, args: Vec::new() },
            is_const: false,
        };
        table.entries = vec![entry(10), entry(11)];
        table.size = size;
        Switch::new(program.into(), SwitchConfig::default()).unwrap()
    }

    #[test]
    fn entries_of_the_program_that_were_changed_or_removed_are_so_again() {
        let commands = "table_modify route set_nhop 0 1 2\ntable_delete route 1\n\
                        table_add route drop 12.0.0.0/8 =>\n";
        let changed = "table_modify ingress.route ingress.set_nhop 0 0x000000000001 0x002\n";
        let removed = "table_delete ingress.route 1\n";
        let added = "table_add ingress.route ingress.drop 0x0c000000/8 =>\n";
        // With room for all three the last one gets the handle 2; else it gets one that nobody can tell.
        let late = format!("# The state of \"sample\"\n{changed}{added}{removed}");
        let early = format!(
            "# The state of \"sample\"\n# Not in it: timeouts, counters and meters of entries of ingress.route\n\
             {removed}{changed}{added}"
        );
        for (size, wanted) in [(4, late), (2, early)] {
            let (mut first, mut second) = (with_entries(size), with_entries(size));
            load(&mut first, commands).unwrap();
            assert_eq!(saved(&first), wanted);
            load(&mut second, &wanted).unwrap();
            assert_eq!(saved(&second), wanted);
        }
        assert_eq!(saved(&with_entries(4)), "# The state of \"sample\"\n");
    }

    #[test]
    fn numbers_far_above_the_others_become_free_ones() {
        let given = |own: &[u32], room| numbers(own.iter().copied(), room).into_iter().collect::<Vec<_>>();
        assert_eq!(given(&[0, 3, 1000], 2000), [(0, 0), (3, 3), (1000, 1000)]);
        assert_eq!(given(&[0, 3, 1000], 4), [(0, 0), (3, 3), (1000, 1)]);
        assert_eq!(given(&[7, u32::MAX], 1 << 24), [(7, 7), (u32::MAX, 0)]);
    }

    #[test]
    fn a_name_that_no_command_can_hold_is_refused() {
        let mut program = Program::clone(switch().program());
        program.registers.values_mut().for_each(|register| register.name = "a b".into());
        let switch = Switch::new(program.into(), SwitchConfig::default()).unwrap();
        let refused = Saved::tables(switch.program(), &switch.state().tables()).unwrap_err();
        assert_eq!(refused.to_string(), "no command can name `a b`");
    }
}
