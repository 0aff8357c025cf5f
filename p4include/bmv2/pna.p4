// SPDX-License-Identifier: Apache-2.0
//
// PNA, the Portable NIC Architecture, in the edition of bmv2's pna_nic and of Linux tc: no pre control, and a
// packet's direction follows from its port.
//
// tc/pna.p4 is the same with PNA_TC defined. The @tc_ annotations, here in both, say what tc's control path may
// do with an extern; other targets need not know them.

#ifndef __PNA_P4__
#define __PNA_P4__

#include <pna_types.p4>

enum PNA_IdleTimeout_t {
    NO_TIMEOUT,
    NOTIFY_CONTROL,
    AUTO_DELETE
}

// ---- Externs ----

enum PNA_HashAlgorithm_t {
    IDENTITY,
    CRC32,
    CRC32_CUSTOM,
    CRC16,
    CRC16_CUSTOM,
    ONES_COMPLEMENT16,
    TARGET_DEFAULT
}

extern Hash<O> {
    Hash(PNA_HashAlgorithm_t algo);
    @tc_md_exec
    O get_hash<D>(in D data);

    /// base + (hash of data) mod max
    @tc_md_exec
    O get_hash<T, D>(in T base, in D data, in T max);
}

extern Checksum<W> {
    Checksum(PNA_HashAlgorithm_t hash);
    void clear();
    void update<T>(in T data);
    W get();
}

/// The 16-bit one's complement sum (RFC 1071), kept so that fields can be taken out again.
extern InternetChecksum {
    InternetChecksum();
    void clear();
    void add<T>(in T data);
    void subtract<T>(in T data);
    bit<16> get();
    bit<16> get_state();
    void set_state(in bit<16> checksum_state);
}

enum PNA_CounterType_t {
    PACKETS,
    BYTES,
    PACKETS_AND_BYTES
}

@noWarn("unused") @tc_acl("RP:RUXP")
extern Counter<W, S> {
    Counter(@tc_numel bit<32> n_counters, PNA_CounterType_t type);
    @tc_md_exec
    void count(in S index);
}

@noWarn("unused") @tc_acl("RP:RUXP")
extern DirectCounter<W> {
    DirectCounter(PNA_CounterType_t type);
    @tc_md_exec
    void count();
}

enum PNA_MeterType_t {
    PACKETS,
    BYTES
}

enum PNA_MeterColor_t { RED, GREEN, YELLOW }

/// Two-rate three-colour meters (RFC 2698); colour aware when told a colour.
@tc_acl("RUP:RUXP")
extern Meter<S> {
    Meter(@tc_numel bit<32> n_meters, PNA_MeterType_t type);
    @tc_md_exec
    PNA_MeterColor_t execute(in S index, in PNA_MeterColor_t color);
    @tc_md_exec
    PNA_MeterColor_t execute(in S index);
}

@tc_acl("RUP:RUXP")
extern DirectMeter {
    DirectMeter(PNA_MeterType_t type);
    @tc_md_exec
    PNA_MeterColor_t execute(in PNA_MeterColor_t color);
    @tc_md_exec
    PNA_MeterColor_t execute();
}

extern Register<T, S> {
    Register(@tc_numel bit<32> size);
    Register(@tc_numel bit<32> size, @tc_init_val T initial_value);
    @tc_md_read
    T read(@tc_key in S index);
    @tc_md_write
    void write(@tc_key in S index, @tc_data in T value);
}

/// Uniform in min to max, both included.
extern Random<T> {
    Random(T min, T max);
    T read();
}

extern ActionProfile {
    ActionProfile(bit<32> size);
}

extern ActionSelector {
    ActionSelector(PNA_HashAlgorithm_t algo, bit<32> size, bit<32> outputWidth);
}

extern Digest<T> {
    Digest();
    @tc_md_exec
    void pack(in T data);
}

#ifdef PNA_TC
// What tc's control path reads and writes of each extern.

struct tc_ControlPath_Counter<W, S> {
    @tc_key  S index;
    @tc_data W pkts;
    @tc_data W bytes;
}

struct tc_ControlPath_DirectCounter<W> {
    @tc_key  bit<32> index;
    @tc_data W pkts;
    @tc_data W bytes;
}

struct tc_ControlPath_Meter<S> {
    @tc_key  S index;
    @tc_data bit<64> cir;
    @tc_data bit<64> cbs;
    @tc_data bit<64> pir;
    @tc_data bit<64> pbs;
}

struct tc_ControlPath_DirectMeter {
    @tc_key  bit<32> index;
    @tc_data bit<64> cir;
    @tc_data bit<64> cbs;
    @tc_data bit<64> pir;
    @tc_data bit<64> pbs;
}

struct tc_ControlPath_Register<T> {
    @tc_key  bit<32> index;
    @tc_data T a_value;
}

struct tc_ControlPath_Digest<T> {
    @tc_key  bit<32> index;
    @tc_data T data;
}

// Fields of the kernel's socket buffer.

extern void skb_get_meta();
extern bit<64> skb_get_tstamp();
extern bit<32> skb_get_mark();
extern bit<16> skb_get_tc_classid();
extern bit<16> skb_get_tc_index();
extern bit<16> skb_get_queue_mapping();
extern bit<16> skb_get_protocol();
extern bit<1> skb_get_tc_at_ingress();
extern bit<1> skb_get_from_ingress();
extern void skb_set_tstamp(in bit<64> dummy);
extern void skb_set_mark(in bit<32> dummy);
extern void skb_set_tc_classid(in bit<16> dummy);
extern void skb_set_tc_index(in bit<16> dummy);
extern void skb_set_queue_mapping(in bit<16> dummy);
extern void skb_set_protocol(in bit<16> dummy);
extern void skb_set_meta();
#endif

// ---- Metadata of a packet ----

enum PNA_Source_t {
    FROM_HOST,
    FROM_NET
}

struct pna_main_parser_input_metadata_t {
    bool             recirculated;
    PortId_t         input_port;
}

extern bool is_host_port(in PortId_t p);
extern bool is_net_port(in PortId_t p);

struct pna_main_input_metadata_t {
    bool             recirculated;
#ifdef PNA_TC
    bool             recirculate;
#endif
    Timestamp_t      timestamp;
    ParserError_t    parser_error;
    ClassOfService_t class_of_service;
    PortId_t         input_port;
}

struct pna_main_output_metadata_t {
    ClassOfService_t class_of_service;
}

// ---- Where a packet goes ----

extern void drop_packet();
extern void send_to_port(in PortId_t dest_port);
extern void mirror_packet(in MirrorSlotId_t mirror_slot_id, in MirrorSessionId_t mirror_session_id);

// ---- Tables that the data plane changes ----

typedef bit<1> AddEntryErrorStatus_t;
const AddEntryErrorStatus_t ADD_ENTRY_SUCCESS = 0;
const AddEntryErrorStatus_t ADD_ENTRY_NOT_DONE = 1;

/// In the default action of a table with add_on_miss = true: adds an entry for the key that missed.
extern AddEntryErrorStatus_t add_entry<T>(
    string action_name,
    in T action_params,
    in ExpireTimeProfileId_t expire_time_profile_id);
extern AddEntryErrorStatus_t add_entry_if<T>(
    in bool do_add_entry,
    string action_name,
    in T action_params,
    in ExpireTimeProfileId_t expire_time_profile_id);
extern FlowId_t allocate_flow_id();

/// In an action that was hit: changes how long the entry lives without hits, or starts that time again.
extern void set_entry_expire_time(in ExpireTimeProfileId_t expire_time_profile_id);
extern void restart_expire_timer();
extern void update_expire_info(
    in bool update_aging_info,
    in bool update_expire_time,
    in ExpireTimeProfileId_t expire_time_profile_id);
extern void set_entry_expire_time_if(
    in bool condition,
    in ExpireTimeProfileId_t expire_time_profile_id);

/// The first value for packets from the network, the second for packets from the host.
@pure
extern T SelectByDirection<T>(in bool is_network_port, in T from_net_value, in T from_host_value);

// ---- The blocks a program supplies ----

parser MainParserT<MH, MM>(
    packet_in pkt,
    out MH main_hdr,
    inout MM main_user_meta,
    in pna_main_parser_input_metadata_t istd);

control MainControlT<MH, MM>(
    inout MH main_hdr,
    inout MM main_user_meta,
    in pna_main_input_metadata_t istd,
    inout pna_main_output_metadata_t ostd);

control MainDeparserT<MH, MM>(
    packet_out pkt,
    inout MH main_hdr,
    in MM main_user_meta,
    in pna_main_output_metadata_t ostd);

package PNA_NIC<MH, MM>(
    MainParserT<MH, MM> main_parser,
    MainControlT<MH, MM> main_control,
    MainDeparserT<MH, MM> main_deparser);

#endif
