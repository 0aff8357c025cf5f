//! The service `simple_pre_lag`: multicast groups, their nodes, and link aggregation groups. (`simple_pre` is the same
//! without these: its calls leave out the last argument of nodes, which then have none.)

/// Hands the calls of the service `simple_pre_lag` to the macro `$make`: each as `fn name(id argument: type, ...) -> result,
/// exception;`. The types of the interface must be in scope.
#[macro_export]
macro_rules! simple_pre_lag_calls {
    ($make:ident) => {
        $make! { "simple_pre_lag" {
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
    };
}
