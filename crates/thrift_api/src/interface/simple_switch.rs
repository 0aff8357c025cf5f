//! The service `simple_switch`: clone sessions, queues and time.

/// Hands the calls of the service `simple_switch` to the macro `$make`: each as `fn name(id argument: type, ...) -> result,
/// exception;`. The types of the interface must be in scope.
#[macro_export]
macro_rules! simple_switch_calls {
    ($make:ident) => {
        $make! { "simple_switch" {
            fn mirroring_mapping_add(1 mirror_id: i32, 2 egress_port: i32) -> i32;
            fn mirroring_mapping_delete(1 mirror_id: i32) -> i32;
            fn mirroring_mapping_get_egress_port(1 mirror_id: i32) -> i32;
            fn mirroring_session_add(1 mirror_id: i32, 2 config: MirroringSession) -> (), InvalidMirroringOperation;
            fn mirroring_session_delete(1 mirror_id: i32) -> (), InvalidMirroringOperation;
            fn mirroring_session_get(1 mirror_id: i32) -> MirroringSession, InvalidMirroringOperation;
            fn set_egress_priority_queue_depth(1 port_num: i32, 2 priority: i32, 3 depth_pkts: i32) -> i32;
            fn set_egress_queue_depth(1 port_num: i32, 2 depth_pkts: i32) -> i32;
            fn set_all_egress_queue_depths(1 depth_pkts: i32) -> i32;
            fn set_egress_priority_queue_rate(1 port_num: i32, 2 priority: i32, 3 rate_pps: i64) -> i32;
            fn set_egress_queue_rate(1 port_num: i32, 2 rate_pps: i64) -> i32;
            fn set_all_egress_queue_rates(1 rate_pps: i64) -> i32;
            fn get_time_elapsed_us() -> i64;
            fn get_time_since_epoch_us() -> i64;
        }}
    };
}
