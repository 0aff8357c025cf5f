//! The service `standard`: tables, counters, meters, registers, ports and the switch itself.

/// Hands the calls of the service `standard` to the macro `$make`: each as `fn name(id argument: type, ...) -> result,
/// exception;`. The types of the interface must be in scope.
#[macro_export]
macro_rules! standard_calls {
    ($make:ident) => {
        $make! { "standard" {
            fn bm_mt_get_num_entries(2 table_name: String) -> i64, InvalidTableOperation;
            fn bm_mt_clear_entries(2 table_name: String, 3 reset_default_entry: bool) -> (), InvalidTableOperation;
            fn bm_mt_add_entry(
                2 table_name: String, 3 match_key: MatchKey, 4 action_name: String, 5 action_data: ActionData,
                6 options: EntryOptions
            ) -> i32, InvalidTableOperation;
            fn bm_mt_set_default_action(
                2 table_name: String, 3 action_name: String, 4 action_data: ActionData
            ) -> (), InvalidTableOperation;
            fn bm_mt_reset_default_entry(2 table_name: String) -> (), InvalidTableOperation;
            fn bm_mt_delete_entry(2 table_name: String, 3 entry_handle: i32) -> (), InvalidTableOperation;
            fn bm_mt_modify_entry(
                2 table_name: String, 3 entry_handle: i32, 4 action_name: String, 5 action_data: ActionData
            ) -> (), InvalidTableOperation;
            fn bm_mt_set_entry_ttl(
                2 table_name: String, 3 entry_handle: i32, 4 timeout_ms: i32
            ) -> (), InvalidTableOperation;
            fn bm_mt_act_prof_add_member(
                2 act_prof_name: String, 3 action_name: String, 4 action_data: ActionData
            ) -> i32, InvalidTableOperation;
            fn bm_mt_act_prof_delete_member(2 act_prof_name: String, 3 mbr_handle: i32) -> (), InvalidTableOperation;
            fn bm_mt_act_prof_modify_member(
                2 act_prof_name: String, 3 mbr_handle: i32, 4 action_name: String, 5 action_data: ActionData
            ) -> (), InvalidTableOperation;
            fn bm_mt_act_prof_create_group(2 act_prof_name: String) -> i32, InvalidTableOperation;
            fn bm_mt_act_prof_delete_group(2 act_prof_name: String, 3 grp_handle: i32) -> (), InvalidTableOperation;
            fn bm_mt_act_prof_add_member_to_group(
                2 act_prof_name: String, 3 mbr_handle: i32, 4 grp_handle: i32
            ) -> (), InvalidTableOperation;
            fn bm_mt_act_prof_remove_member_from_group(
                2 act_prof_name: String, 3 mbr_handle: i32, 4 grp_handle: i32
            ) -> (), InvalidTableOperation;
            fn bm_mt_act_prof_get_members(2 act_prof_name: String) -> Vec<Member>, InvalidTableOperation;
            fn bm_mt_act_prof_get_member(2 act_prof_name: String, 3 mbr_handle: i32) -> Member, InvalidTableOperation;
            fn bm_mt_act_prof_get_groups(2 act_prof_name: String) -> Vec<Group>, InvalidTableOperation;
            fn bm_mt_act_prof_get_group(2 act_prof_name: String, 3 grp_handle: i32) -> Group, InvalidTableOperation;
            fn bm_mt_indirect_add_entry(
                2 table_name: String, 3 match_key: MatchKey, 4 mbr_handle: i32, 5 options: EntryOptions
            ) -> i32, InvalidTableOperation;
            fn bm_mt_indirect_modify_entry(
                2 table_name: String, 3 entry_handle: i32, 4 mbr_handle: i32
            ) -> (), InvalidTableOperation;
            fn bm_mt_indirect_delete_entry(2 table_name: String, 3 entry_handle: i32) -> (), InvalidTableOperation;
            fn bm_mt_indirect_set_entry_ttl(
                2 table_name: String, 3 entry_handle: i32, 4 timeout_ms: i32
            ) -> (), InvalidTableOperation;
            fn bm_mt_indirect_set_default_member(
                2 table_name: String, 3 mbr_handle: i32
            ) -> (), InvalidTableOperation;
            fn bm_mt_indirect_reset_default_entry(2 table_name: String) -> (), InvalidTableOperation;
            fn bm_mt_indirect_ws_add_entry(
                2 table_name: String, 3 match_key: MatchKey, 4 grp_handle: i32, 5 options: EntryOptions
            ) -> i32, InvalidTableOperation;
            fn bm_mt_indirect_ws_modify_entry(
                2 table_name: String, 3 entry_handle: i32, 4 grp_handle: i32
            ) -> (), InvalidTableOperation;
            fn bm_mt_indirect_ws_set_default_group(
                2 table_name: String, 3 grp_handle: i32
            ) -> (), InvalidTableOperation;
            fn bm_mt_read_counter(2 table_name: String, 3 entry_handle: i32) -> CounterValue, InvalidTableOperation;
            fn bm_mt_reset_counters(2 table_name: String) -> (), InvalidTableOperation;
            fn bm_mt_write_counter(
                2 table_name: String, 3 entry_handle: i32, 4 value: CounterValue
            ) -> (), InvalidTableOperation;
            fn bm_mt_set_meter_rates(
                2 table_name: String, 3 entry_handle: i32, 4 rates: Vec<MeterRate>
            ) -> (), InvalidTableOperation;
            fn bm_mt_get_meter_rates(
                2 table_name: String, 3 entry_handle: i32
            ) -> Vec<MeterRate>, InvalidTableOperation;
            fn bm_mt_get_entries(2 table_name: String) -> Vec<Entry>, InvalidTableOperation;
            fn bm_mt_get_entry(2 table_name: String, 3 entry_handle: i32) -> Entry, InvalidTableOperation;
            fn bm_mt_get_default_entry(2 table_name: String) -> ActionEntry, InvalidTableOperation;
            fn bm_mt_get_entry_from_key(
                2 table_name: String, 3 match_key: MatchKey, 4 options: EntryOptions
            ) -> Entry, InvalidTableOperation;
            fn bm_counter_read(2 counter_name: String, 3 index: i32) -> CounterValue, InvalidCounterOperation;
            fn bm_counter_reset_all(2 counter_name: String) -> (), InvalidCounterOperation;
            fn bm_counter_write(
                2 counter_name: String, 3 index: i32, 4 value: CounterValue
            ) -> (), InvalidCounterOperation;
            fn bm_learning_ack(2 list_id: i32, 3 buffer_id: i64, 4 sample_ids: Vec<i32>) -> (), InvalidLearnOperation;
            fn bm_learning_ack_buffer(2 list_id: i32, 3 buffer_id: i64) -> (), InvalidLearnOperation;
            fn bm_learning_set_timeout(2 list_id: i32, 3 timeout_ms: i32) -> (), InvalidLearnOperation;
            fn bm_learning_set_buffer_size(2 list_id: i32, 3 nb_samples: i32) -> (), InvalidLearnOperation;
            fn bm_load_new_config(1 config_str: String) -> (), InvalidSwapOperation;
            fn bm_swap_configs() -> (), InvalidSwapOperation;
            fn bm_meter_array_set_rates(
                2 meter_array_name: String, 3 rates: Vec<MeterRate>
            ) -> (), InvalidMeterOperation;
            fn bm_meter_set_rates(
                2 meter_array_name: String, 3 index: i32, 4 rates: Vec<MeterRate>
            ) -> (), InvalidMeterOperation;
            fn bm_meter_get_rates(2 meter_array_name: String, 3 index: i32) -> Vec<MeterRate>, InvalidMeterOperation;
            fn bm_register_read(2 register_array_name: String, 3 index: i32) -> i64, InvalidRegisterOperation;
            fn bm_register_read_all(2 register_array_name: String) -> Vec<i64>, InvalidRegisterOperation;
            fn bm_register_write(
                2 register_array_name: String, 3 index: i32, 4 value: i64
            ) -> (), InvalidRegisterOperation;
            fn bm_register_write_range(
                2 register_array_name: String, 3 start_index: i32, 4 end_index: i32, 5 value: i64
            ) -> (), InvalidRegisterOperation;
            fn bm_register_reset(2 register_array_name: String) -> (), InvalidRegisterOperation;
            fn bm_parse_vset_add(2 parse_vset_name: String, 3 value: Vec<u8>) -> (), InvalidParseVSetOperation;
            fn bm_parse_vset_remove(2 parse_vset_name: String, 3 value: Vec<u8>) -> (), InvalidParseVSetOperation;
            fn bm_parse_vset_get(2 parse_vset_name: String) -> Vec<Vec<u8>>, InvalidParseVSetOperation;
            fn bm_parse_vset_clear(2 parse_vset_name: String) -> (), InvalidParseVSetOperation;
            fn bm_dev_mgr_add_port(
                1 iface_name: String, 2 port_num: i32, 3 pcap_path: String
            ) -> (), InvalidDevMgrOperation;
            fn bm_dev_mgr_remove_port(1 port_num: i32) -> (), InvalidDevMgrOperation;
            fn bm_dev_mgr_show_ports() -> Vec<PortInfo>, InvalidDevMgrOperation;
            fn bm_mgmt_get_info() -> SwitchInfo;
            fn bm_set_crc16_custom_parameters(
                2 calc_name: String, 3 crc16_config: Crc16Config
            ) -> (), InvalidCrcOperation;
            fn bm_set_crc32_custom_parameters(
                2 calc_name: String, 3 crc32_config: Crc32Config
            ) -> (), InvalidCrcOperation;
            fn bm_set_toeplitz_hash_key(2 calc_name: String, 3 key: Vec<u8>) -> (), InvalidToeplitzHashOperation;
            fn bm_reset_state() -> ();
            fn bm_get_config() -> String;
            fn bm_get_config_md5() -> Vec<u8>;
            fn bm_get_id_from_name(2 resource_type: ResourceType, 3 resource_name: String) -> i32, InvalidIdLookup;
            fn bm_serialize_state() -> String;
        }}
    };
}
