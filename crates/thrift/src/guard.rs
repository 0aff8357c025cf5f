//! Who may do what. Clients of Thrift show nothing to be known by, so whoever serves a switch says for all of them what they may do; each call
//! takes a right.

use crate::caller;
use crate::device::Device;
use millrace_access::Right;
use millrace_thrift_api::CallError;
use std::fmt;
use std::net::IpAddr;

/// Decides about each call. It may change its mind between two calls.
pub trait Guard: fmt::Debug + Send + Sync {
    /// Whether clients may do what takes a right.
    ///
    /// # Errors
    /// Why not, in words for the client.
    fn may(&self, right: Right) -> Result<(), String>;

    /// Records a call that changes something, or was refused, and what came of it.
    fn record(&self, from: Option<IpAddr>, call: &str, result: Result<(), &str>);
}

/// The right that a call takes: what is not known as anything else writes.
pub(crate) fn right(call: &str) -> Right {
    match call {
        "bm_mt_get_num_entries"
        | "bm_mt_act_prof_get_members"
        | "bm_mt_act_prof_get_member"
        | "bm_mt_act_prof_get_groups"
        | "bm_mt_act_prof_get_group"
        | "bm_mt_read_counter"
        | "bm_mt_get_meter_rates"
        | "bm_mt_get_entries"
        | "bm_mt_get_entry"
        | "bm_mt_get_default_entry"
        | "bm_mt_get_entry_from_key"
        | "bm_counter_read"
        | "bm_meter_get_rates"
        | "bm_register_read"
        | "bm_register_read_all"
        | "bm_parse_vset_get"
        | "bm_dev_mgr_show_ports"
        | "bm_mgmt_get_info"
        | "bm_get_config"
        | "bm_get_config_md5"
        | "bm_get_id_from_name"
        | "bm_serialize_state"
        | "bm_mc_get_entries"
        | "mirroring_mapping_get_egress_port"
        | "mirroring_session_get"
        | "get_time_elapsed_us"
        | "get_time_since_epoch_us" => Right::Read,
        "bm_load_new_config" | "bm_swap_configs" | "swap_program" => Right::Swap,
        "bm_dev_mgr_add_port" | "bm_dev_mgr_remove_port" => Right::LifeCycle,
        _ => Right::Write,
    }
}

impl Device {
    /// Whether a call may be made. It is recorded if not.
    pub(crate) fn enter(&self, call: &str) -> Result<(), String> {
        let Some(guard) = &self.guard else { return Ok(()) };
        let entered = guard.may(right(call));
        entered.inspect_err(|reason| guard.record(caller::address(), call, Err(reason)))
    }

    /// Records a call that was made, if it may have changed something.
    pub(crate) fn record<T, E: fmt::Debug>(&self, call: &str, result: &Result<T, CallError<E>>) {
        let Some(guard) = self.guard.as_ref().filter(|_| right(call) != Right::Read) else { return };
        let result = result.as_ref().map(drop).map_err(ToString::to_string);
        guard.record(caller::address(), call, result.as_ref().copied().map_err(String::as_str));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::services::{millrace, simple_pre_lag, simple_switch, standard};

    /// Words in the names of calls that only look.
    const LOOKS: [&str; 5] = ["_get", "_read", "get_time", "show_ports", "serialize"];

    /// Each call of the interface is in one class by the words of its name, and takes the right of the class.
    #[test]
    fn each_call_takes_the_right_that_its_name_says() {
        let all = [standard::CALLS, simple_pre_lag::CALLS, simple_switch::CALLS, millrace::CALLS].concat();
        assert!(all.len() > 80, "{}", all.len());
        for call in &all {
            let looks = LOOKS.iter().any(|word| call.contains(word));
            let expected = match *call {
                "swap_program" => Right::Swap,
                call if call.ends_with("_config") && !looks || call.contains("swap_config") => Right::Swap,
                "bm_dev_mgr_add_port" | "bm_dev_mgr_remove_port" => Right::LifeCycle,
                _ if looks => Right::Read,
                _ => Right::Write,
            };
            assert_eq!(right(call), expected, "{call}");
        }
        // Those that change something say how.
        const CHANGES: [&str; 24] = [
            "add",
            "clear",
            "set_",
            "reset",
            "delete",
            "modify",
            "create",
            "remove",
            "write",
            "ack",
            "load",
            "swap",
            "destroy",
            "associate",
            "dissociate",
            "update",
            "_ws_",
            "rates",
            "depth",
            "custom",
            "buffer",
            "timeout",
            "membership",
            "hash",
        ];
        for call in all.iter().filter(|call| right(call) != Right::Read) {
            assert!(CHANGES.iter().any(|word| call.contains(word)), "{call} changes nothing by its name");
        }
        assert_eq!(right("no such call"), Right::Write);
    }
}
