//! The service `simple_pre_lag`: multicast groups, their nodes, and link aggregation groups. (`simple_pre` is the same
//! without these: its calls leave out the last argument of nodes, which then have none.)

use super::types::*;

/// The name that clients of bmv2 without link aggregation groups use.
pub(crate) const SIMPLE_NAME: &str = "simple_pre";

crate::call::service! { "simple_pre_lag" {
    fn bm_mc_mgrp_create(2 mgrp: i32) -> i32, InvalidMcOperation;
    fn bm_mc_mgrp_destroy(2 mgrp_handle: i32) -> (), InvalidMcOperation;
    fn bm_mc_node_create(2 rid: i32, 3 port_map: String, 4 lag_map: String) -> i32, InvalidMcOperation;
    fn bm_mc_node_associate(2 mgrp_handle: i32, 3 l1_handle: i32) -> (), InvalidMcOperation;
    fn bm_mc_node_dissociate(2 mgrp_handle: i32, 3 l1_handle: i32) -> (), InvalidMcOperation;
    fn bm_mc_node_destroy(2 l1_handle: i32) -> (), InvalidMcOperation;
    fn bm_mc_node_update(2 l1_handle: i32, 3 port_map: String, 4 lag_map: String) -> (), InvalidMcOperation;
    fn bm_mc_set_lag_membership(2 lag_index: i16, 3 port_map: String) -> (), InvalidMcOperation;
    fn bm_mc_get_entries() -> String, InvalidMcOperation;
}}
