// SPDX-License-Identifier: Apache-2.0
//
// An AFDX switch (ARINC 664 part 7): filters and polices the frames of virtual links, and sends them to sets of ports.
//
// A virtual link (VL) is the last 16 bits of the destination address, after a constant prefix of the network. The configuration is static: per
// ingress port and VL the shortest and the longest frame, the account that polices it, the modes in which it passes, the ports that get
// a copy, and its priority. Frames are checked in the order of the standard, and each reason has a counter of its own.
//
// Lengths are those on the wire, with the frame check sequence (FCS), which the ports have taken off.

#include <core.p4>
#include <v1model.p4>
#include <millrace.p4>

typedef bit<9>  port_t;
typedef bit<16> vl_t;

const bit<32> FCS_BYTES = 4;
const bit<32> SHORTEST_FRAME = 64;
const bit<32> LONGEST_FRAME = 1518;

const int MAX_PORTS = 64;
const int MAX_VLS = 1 << 16;

// The modes of a switch, as the parameter `modes` of a VL counts its bits.
enum bit<3> Mode {
    INIT        = 0,
    OPERATIONAL = 1,
    MAINTENANCE = 2,
    PASSIVE     = 3,
    QUIET       = 4
}

// Why a frame was discarded. The order of the checks.
enum bit<32> Reason {
    LENGTH     = 0,     // shorter than 64 or longer than 1518 bytes
    PREFIX     = 1,     // the destination is not of this network
    UNKNOWN_VL = 2,     // not configured, not at this port, or for no port
    TOO_SHORT  = 3,     // below Smin of the VL
    TOO_LONG   = 4,     // above Smax of the VL
    POLICED    = 5,     // its account does not hold its cost
    MODE       = 6,     // it does not pass in this mode
    AGE        = 7      // longer in the switch than its egress port allows
}
const bit<32> REASONS = 8;

header ethernet_t {
    bit<32> prefix;     // the constant part of the destination
    vl_t    vl;
    bit<48> src;
    bit<16> ether_type;
}

struct headers_t {
    ethernet_t ethernet;
}

struct metadata_t {
    bool    is_known;           // the VL
    bit<32> number;             // of the VL in this switch, for counters
    bit<32> account;
    bit<32> smin;
    bit<32> smax;
    bit<8>  modes;
    bit<32> prefix;
    Mode    mode;
    bit<48> longest_stay;       // in microseconds; 0: no limit
    @egress_ports bit<64> ports;
}

parser AfdxParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.ethernet);
        transition accept;
    }
}

control AfdxVerify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control AfdxIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    account(MAX_VLS) accounts;
    direct_counter(CounterType.packets_and_bytes) frames;
    // By ingress port and reason, and by VL and reason: cell 8 N + reason.
    counter(MAX_PORTS * 8, CounterType.packets) port_discards;
    counter(MAX_VLS * 8, CounterType.packets) vl_discards;

    action discard(Reason reason) {
        port_discards.count((bit<32>)sm.ingress_port * REASONS + (bit<32>)reason);
        mark_to_drop(sm);
    }

    action discard_of_vl(Reason reason) {
        vl_discards.count(meta.number * REASONS + (bit<32>)reason);
        discard(reason);
    }

    // The constant of the network.
    action set_prefix(bit<32> prefix) { meta.prefix = prefix; }
    table network {
        key = { }
        actions = { set_prefix; }
        default_action = set_prefix(0x03000000);
        size = 1;
    }

    action set_mode(Mode mode) { meta.mode = mode; }
    table switch_mode {
        key = { }
        actions = { set_mode; }
        default_action = set_mode(Mode.OPERATIONAL);
        size = 1;
    }

    // VLs that name the same account share it.
    action forward(bit<32> number, bit<32> account, bit<16> smin, bit<16> smax, bit<8> modes, bit<64> ports, bit<3> priority) {
        meta.is_known = true;
        meta.number = number;
        meta.account = account;
        meta.smin = (bit<32>)smin;
        meta.smax = (bit<32>)smax;
        meta.modes = modes;
        meta.ports = ports;
        sm.priority = priority;
    }
    table vls {
        key = {
            sm.ingress_port: exact @name("standard_metadata.ingress_port");
            hdr.ethernet.vl: exact @name("ethernet.vl");
        }
        actions = { forward; NoAction; }
        default_action = NoAction();
        counters = frames;
        size = MAX_VLS;
    }

    apply {
        bit<32> length = sm.packet_length + FCS_BYTES;
        if (length < SHORTEST_FRAME || length > LONGEST_FRAME) {
            discard(Reason.LENGTH);
            return;
        }
        network.apply();
        if (hdr.ethernet.prefix != meta.prefix) {
            discard(Reason.PREFIX);
            return;
        }
        vls.apply();
        if (!meta.is_known || meta.ports == 0) {
            discard(Reason.UNKNOWN_VL);
        } else if (length < meta.smin) {
            discard_of_vl(Reason.TOO_SHORT);
        } else if (length > meta.smax) {
            discard_of_vl(Reason.TOO_LONG);
        } else if (!accounts.admit(meta.account, length)) {
            discard_of_vl(Reason.POLICED);
        } else {
            switch_mode.apply();
            if ((meta.modes >> (bit<8>)(bit<3>)meta.mode) & 1 == 0) {
                discard_of_vl(Reason.MODE);
            }
        }
    }
}

control AfdxEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    // By egress port, and by VL.
    counter(MAX_PORTS, CounterType.packets) port_aged;
    counter(MAX_VLS, CounterType.packets) vl_aged;

    // How long a frame may be in the switch before it leaves by this port.
    action set_longest_stay(bit<48> microseconds) { meta.longest_stay = microseconds; }
    table longest_stays {
        key = { sm.egress_port: exact @name("standard_metadata.egress_port"); }
        actions = { set_longest_stay; NoAction; }
        default_action = NoAction();
        size = MAX_PORTS;
    }

    apply {
        longest_stays.apply();
        if (meta.longest_stay != 0 && sm.egress_global_timestamp - sm.ingress_global_timestamp > meta.longest_stay) {
            port_aged.count((bit<32>)sm.egress_port);
            vl_aged.count(meta.number);
            mark_to_drop(sm);
        }
    }
}

control AfdxCompute(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control AfdxDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
    }
}

V1Switch(AfdxParser(), AfdxVerify(), AfdxIngress(), AfdxEgress(), AfdxCompute(), AfdxDeparser()) main;
