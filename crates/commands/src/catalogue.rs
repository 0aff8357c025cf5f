//! The commands with how they are used: for `help`, and for what an error says.

/// Name, arguments and meaning of every command.
pub const COMMANDS: &[(&str, &str, &str)] = &[
    (
        "account_array_set",
        "ACCOUNT BAG JITTER SMAX bytes|frames|both",
        "configure all accounts of an array, or of the entries of a table",
    ),
    ("account_get", "ACCOUNT INDEX", "show an account: its parameters, what has passed, what was refused"),
    (
        "account_set",
        "ACCOUNT INDEX BAG JITTER SMAX bytes|frames|both",
        "configure an account (times as in 2ms, 500us, 10000ns; bytes); of a table's, by entry handle",
    ),
    ("act_prof_add_member_to_group", "PROFILE MEMBER GROUP", "add a member to a group"),
    ("act_prof_create_group", "PROFILE", "make an empty group"),
    ("act_prof_create_member", "PROFILE ACTION [PARAMETER ...]", "make a member"),
    ("act_prof_delete_group", "PROFILE GROUP", "remove a group"),
    ("act_prof_delete_member", "PROFILE MEMBER", "remove a member"),
    ("act_prof_dump", "PROFILE", "show members and groups"),
    ("act_prof_dump_group", "PROFILE GROUP", "show a group"),
    ("act_prof_dump_member", "PROFILE MEMBER", "show a member"),
    ("act_prof_modify_member", "PROFILE ACTION MEMBER [PARAMETER ...]", "give a member another action"),
    ("act_prof_remove_member_from_group", "PROFILE MEMBER GROUP", "take a member out of a group"),
    ("counter_read", "COUNTER INDEX", "show a cell; of a direct counter, by entry handle"),
    ("counter_reset", "COUNTER", "set all cells to 0"),
    ("counter_write", "COUNTER INDEX PACKETS BYTES", "set a cell"),
    ("help", "[COMMAND]", "show the commands"),
    ("mc_dump", "", "show multicast groups and nodes"),
    ("mc_mgrp_create", "GROUP", "make an empty multicast group"),
    ("mc_mgrp_destroy", "GROUP", "remove a multicast group"),
    ("mc_node_associate", "GROUP NODE", "put a node into a group"),
    ("mc_node_create", "RID [PORT ...] [| LAG ...]", "make a node; its handle counts from 0"),
    ("mc_node_destroy", "NODE", "remove a node"),
    ("mc_node_dissociate", "GROUP NODE", "take a node out of a group"),
    ("mc_node_update", "NODE [PORT ...] [| LAG ...]", "give a node other ports"),
    ("mc_set_lag_membership", "LAG [PORT ...]", "set the ports of a link aggregation group"),
    (
        "meter_array_set_rates",
        "METER RATE:BURST RATE:BURST",
        "configure all cells (committed, peak; units a microsecond)",
    ),
    ("meter_get_rates", "METER INDEX", "show the rates of a cell"),
    (
        "meter_set_rates",
        "METER INDEX RATE:BURST RATE:BURST",
        "configure a cell (committed, peak; units a microsecond)",
    ),
    ("mirroring_add", "SESSION PORT", "clones of a session go to a port"),
    ("mirroring_add_mc", "SESSION GROUP", "clones of a session go to a multicast group"),
    ("mirroring_add_truncate", "SESSION PORT BYTES", "as mirroring_add, at most that many bytes"),
    ("mirroring_delete", "SESSION", "remove a clone session"),
    ("mirroring_get", "SESSION", "show a clone session"),
    ("pvs_add", "VALUE_SET VALUE [VALUE ...]", "add a member: one value, or one for each field"),
    ("pvs_clear", "VALUE_SET", "remove all members"),
    ("pvs_get", "VALUE_SET", "show the members"),
    ("pvs_remove", "VALUE_SET VALUE [VALUE ...]", "remove a member"),
    ("register_read", "REGISTER [INDEX]", "show a cell or all"),
    ("register_reset", "REGISTER", "set all cells to 0"),
    ("register_write", "REGISTER INDEX VALUE", "set a cell"),
    ("reset_state", "", "set everything back to how the program starts"),
    ("set_queue_depth", "PACKETS [PORT [PRIORITY]]", "how many packets queues hold"),
    ("set_queue_rate", "PACKETS_PER_SECOND [PORT [PRIORITY]]", "how fast queues are served; 0: as they come"),
    ("show_actions", "", "show all actions with their parameters"),
    ("show_ports", "", "show the ports with what they carried"),
    ("show_pvs", "", "show all value sets"),
    ("show_tables", "", "show all tables with their keys"),
    ("table_add", "TABLE ACTION MATCH ... => [PARAMETER ...] [PRIORITY]", "add an entry"),
    ("table_clear", "TABLE", "remove all entries"),
    ("table_delete", "TABLE HANDLE", "remove an entry"),
    ("table_dump", "TABLE", "show all entries"),
    ("table_dump_entry", "TABLE HANDLE", "show an entry"),
    ("table_dump_entry_from_key", "TABLE MATCH ... [PRIORITY]", "show an entry"),
    ("table_dump_group", "TABLE GROUP", "as act_prof_dump_group"),
    ("table_dump_member", "TABLE MEMBER", "as act_prof_dump_member"),
    ("table_indirect_add", "TABLE MATCH ... => MEMBER [PRIORITY]", "add an entry with a member"),
    ("table_indirect_add_member_to_group", "TABLE MEMBER GROUP", "as act_prof_add_member_to_group"),
    ("table_indirect_add_with_group", "TABLE MATCH ... => GROUP [PRIORITY]", "add an entry with a group"),
    ("table_indirect_create_group", "TABLE", "as act_prof_create_group"),
    ("table_indirect_create_member", "TABLE ACTION [PARAMETER ...]", "as act_prof_create_member"),
    ("table_indirect_delete", "TABLE HANDLE", "remove an entry"),
    ("table_indirect_delete_group", "TABLE GROUP", "as act_prof_delete_group"),
    ("table_indirect_delete_member", "TABLE MEMBER", "as act_prof_delete_member"),
    ("table_indirect_modify_member", "TABLE ACTION MEMBER [PARAMETER ...]", "as act_prof_modify_member"),
    ("table_indirect_remove_member_from_group", "TABLE MEMBER GROUP", "as act_prof_remove_member_from_group"),
    ("table_indirect_reset_default", "TABLE", "set the default action back"),
    ("table_indirect_set_default", "TABLE MEMBER", "a member becomes the default"),
    ("table_indirect_set_default_with_group", "TABLE GROUP", "a group becomes the default"),
    ("table_info", "TABLE", "show a table and its actions"),
    ("table_modify", "TABLE ACTION HANDLE [=>] [PARAMETER ...]", "give an entry another action"),
    ("table_num_entries", "TABLE", "show how many entries there are"),
    ("table_reset_default", "TABLE", "set the default action back"),
    ("table_set_default", "TABLE ACTION [=>] [PARAMETER ...]", "set the default action"),
    ("table_set_timeout", "TABLE HANDLE MILLISECONDS", "give an entry an idle timeout"),
    ("table_show_actions", "TABLE", "show the actions of a table"),
];

/// Arguments and meaning of a command.
pub fn usage(command: &str) -> Option<(&'static str, &'static str)> {
    let at = COMMANDS.binary_search_by(|(name, ..)| (*name).cmp(command)).ok()?;
    Some((COMMANDS[at].1, COMMANDS[at].2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_in_order_so_that_they_are_found() {
        assert!(COMMANDS.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert!(COMMANDS.iter().all(|(name, ..)| usage(name).is_some()));
        assert_eq!(usage("table_ad"), None);
    }
}
