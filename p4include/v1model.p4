// SPDX-License-Identifier: Apache-2.0
//
// v1model: the architecture of bmv2's simple_switch, and P4_14's abstract forwarding model in P4_16.
//
//     parser -> verify checksum -> ingress -> replication and queues -> egress -> compute checksum -> deparser
//
// V1MODEL_VERSION chooses between two editions. From 20200408 on, counters, meters and registers take an index
// of any type and ports have a type name; before, an index is bit<32>.

#ifndef _V1_MODEL_P4_
#define _V1_MODEL_P4_

#include <core.p4>

#ifndef V1MODEL_VERSION
#define V1MODEL_VERSION 20180101
#endif

match_kind {
    range,      // low and high, both included
    optional,   // a value, or anything
    selector    // input of an action selector's hash, not matched
}

const bit<32> __v1model_version = V1MODEL_VERSION;
const bool __v1model_version_is_known =
    static_assert(V1MODEL_VERSION >= 20180101 && V1MODEL_VERSION <= 20200408,
                  "V1MODEL_VERSION must be between 20180101 and 20200408");

// ---- Metadata of a packet ----

#if V1MODEL_VERSION >= 20200408
typedef bit<9> PortId_t;
#endif

/// What program and target tell each other about a packet.
@metadata @name("standard_metadata")
struct standard_metadata_t {
#if V1MODEL_VERSION >= 20200408
    PortId_t ingress_port;      // where it came in
    PortId_t egress_spec;       // where it shall go; ingress writes it, 511 drops
    PortId_t egress_port;       // where it goes; egress reads it
#else
    bit<9>   ingress_port;
    bit<9>   egress_spec;
    bit<9>   egress_port;
#endif
    bit<32>  instance_type;     // 0 normal, 1 I2E clone, 2 E2E clone, 4 recirculated, 5 replicated, 6 resubmitted
    bit<32>  packet_length;     // bytes
    // Queueing, for egress. Times are in microseconds, depths in packets.
    @alias("queueing_metadata.enq_timestamp")
    bit<32>  enq_timestamp;
    @alias("queueing_metadata.enq_qdepth")
    bit<19>  enq_qdepth;
    @alias("queueing_metadata.deq_timedelta")
    bit<32>  deq_timedelta;
    @alias("queueing_metadata.deq_qdepth")
    bit<19>  deq_qdepth;
    @alias("queueing_metadata.qid")
    bit<5>   qid;               // the queue, counted from that of the highest priority
    // Microseconds since the switch started.
    @alias("intrinsic_metadata.ingress_global_timestamp")
    bit<48>  ingress_global_timestamp;
    @alias("intrinsic_metadata.egress_global_timestamp")
    bit<48>  egress_global_timestamp;
    // Multicast group (0: none), and which copy of it this is.
    @alias("intrinsic_metadata.mcast_grp")
    bit<16>  mcast_grp;
    @alias("intrinsic_metadata.egress_rid")
    bit<16>  egress_rid;
    bit<1>   checksum_error;    // 1 when verify_checksum found a wrong one
    error    parser_error;
    @alias("intrinsic_metadata.priority")
    bit<3>   priority;          // which queue of the port
}

// ---- Counters, meters, registers ----

enum CounterType {
    packets,
    bytes,
    packets_and_bytes
}

enum MeterType {
    packets,
    bytes
}

/// Cells that a program increments by number.
#if V1MODEL_VERSION >= 20200408
extern counter<I> {
    counter(bit<32> size, CounterType type);
    void count(in I index);
}
#else
extern counter {
    counter(bit<32> size, CounterType type);
    void count(in bit<32> index);
}
#endif

/// One counter for each entry of the table that owns it; a hit counts by itself.
extern direct_counter {
    direct_counter(CounterType type);
    void count();
}

#define V1MODEL_METER_COLOR_GREEN  0
#define V1MODEL_METER_COLOR_YELLOW 1
#define V1MODEL_METER_COLOR_RED    2

/// Two-rate three-colour meters (RFC 2698) that a program runs by number.
#if V1MODEL_VERSION >= 20200408
extern meter<I> {
    meter(bit<32> size, MeterType type);
    void execute_meter<T>(in I index, out T result);
}
#else
extern meter {
    meter(bit<32> size, MeterType type);
    void execute_meter<T>(in bit<32> index, out T result);
}
#endif

/// One meter for each entry of the table that owns it, run by the hit; an action reads the colour.
extern direct_meter<T> {
    direct_meter(MeterType type);
    void read(out T result);
}

/// State that outlives a packet. Reading beyond the size gives 0, writing there does nothing.
#if V1MODEL_VERSION >= 20200408
extern register<T, I> {
    register(bit<32> size);
    @noSideEffects
    void read(out T result, in I index);
    void write(in I index, in T value);
}
#else
extern register<T> {
    register(bit<32> size);
    @noSideEffects
    void read(out T result, in bit<32> index);
    void write(in bit<32> index, in T value);
}
#endif

// ---- Actions shared between entries ----

extern action_profile {
    action_profile(bit<32> size);
}

enum HashAlgorithm {
    crc32,
    crc32_custom,
    crc16,
    crc16_custom,
    random,
    identity,
    csum16,
    xor16
}

/// An action profile whose groups choose a member by the hash of the `selector` keys.
extern action_selector {
    action_selector(HashAlgorithm algorithm, bit<32> size, bit<32> outputWidth);
}

// ---- Numbers ----

/// Uniform in lo to hi, both included.
extern void random<T>(out T result, in T lo, in T hi);

/// base + (hash of data) mod max; base alone when max is 0.
@pure
extern void hash<O, T, D, M>(out O result, in HashAlgorithm algo, in T base, in D data, in M max);

@deprecated("Please use verify_checksum/update_checksum instead.")
extern Checksum16 {
    Checksum16();
    bit<16> get<D>(in D data);
}

/// In control VerifyChecksum: when the condition holds and the checksum is not that of the data, sets
/// standard_metadata.checksum_error.
extern void verify_checksum<T, O>(in bool condition, in T data, in O checksum, HashAlgorithm algo);

/// In control ComputeChecksum: when the condition holds, the checksum becomes that of the data.
@pure
extern void update_checksum<T, O>(in bool condition, in T data, inout O checksum, HashAlgorithm algo);

/// The same two over the data followed by what the parser left unparsed.
extern void verify_checksum_with_payload<T, O>(in bool condition, in T data, in O checksum, HashAlgorithm algo);
@noSideEffects
extern void update_checksum_with_payload<T, O>(in bool condition, in T data, inout O checksum, HashAlgorithm algo);

// ---- Where a packet goes ----

@deprecated("Please use mark_to_drop(standard_metadata) instead.")
extern void mark_to_drop();

/// Sets egress_spec to the drop port and mcast_grp to 0; a later assignment of them revives the packet.
@pure
extern void mark_to_drop(inout standard_metadata_t standard_metadata);

/// Tells the control plane about this packet.
extern void digest<T>(in bit<32> receiver, in T data);

enum CloneType {
    I2E,    // the packet as it came in, sent to egress
    E2E     // the packet as it leaves egress, sent to egress again
}

/// Copies to the ports of a mirror session. User metadata of the copy is 0 but for the fields marked with
/// @field_list(index); the same holds for resubmit (ingress again, as it came in) and recirculate (ingress
/// again, as it left egress).
extern void clone(in CloneType type, in bit<32> session);
extern void clone_preserving_field_list(in CloneType type, in bit<32> session, bit<8> index);
extern void resubmit_preserving_field_list(bit<8> index);
extern void recirculate_preserving_field_list(bit<8> index);

@deprecated("Please use 'clone_preserving_field_list' instead")
extern void clone3<T>(in CloneType type, in bit<32> session, in T data);
@deprecated("Please use 'resubmit_preserving_field_list' instead")
extern void resubmit<T>(in T data);
@deprecated("Please use 'recirculate_preserving_field_list' instead")
extern void recirculate<T>(in T data);

/// Cuts the packet to this many bytes when it leaves.
extern void truncate(in bit<32> length);

// ---- For whoever debugs or verifies the program ----

/// True in every correct run.
extern void assert(in bool check);

/// True by what the control plane promises.
extern void assume(in bool check);

/// `{}` in the message stands for the next field of the data.
extern void log_msg(string msg);
extern void log_msg<T>(string msg, in T data);

// ---- The blocks a program supplies ----

parser Parser<H, M>(packet_in b,
                    out H parsedHdr,
                    inout M meta,
                    inout standard_metadata_t standard_metadata);

control VerifyChecksum<H, M>(inout H hdr, inout M meta);

@pipeline
control Ingress<H, M>(inout H hdr, inout M meta, inout standard_metadata_t standard_metadata);

@pipeline
control Egress<H, M>(inout H hdr, inout M meta, inout standard_metadata_t standard_metadata);

control ComputeChecksum<H, M>(inout H hdr, inout M meta);

@deparser
control Deparser<H>(packet_out b, in H hdr);

package V1Switch<H, M>(Parser<H, M> p,
                       VerifyChecksum<H, M> vr,
                       Ingress<H, M> ig,
                       Egress<H, M> eg,
                       ComputeChecksum<H, M> ck,
                       Deparser<H> dep);

#endif
