// SPDX-License-Identifier: Apache-2.0
//
// The receiving side of an AFDX end system (ARINC 664 part 7): what networks A and B bring is checked, and the first valid copy of each
// frame goes to the host. The verdicts are those of the crate `afdx` for the same frames at the same times.
//
// The last byte of a frame is its sequence number: 0 after a reset of the sender, then 1 to 255 and 1 again. Integrity checking compares
// it, per virtual link (VL) and network, with the one before. Redundancy management drops a valid frame whose number went to the host
// not longer than SkewMax ago. Lengths are those on the wire, with the frame check sequence (FCS), which the ports have taken off.
// Times are microseconds.

#include <core.p4>
#include <v1model.p4>

typedef bit<9>  port_t;
typedef bit<16> vl_t;
typedef bit<48> time_t;

const bit<32> FCS_BYTES = 4;
const bit<32> SHORTEST_FRAME = 64;
const bit<32> LONGEST_FRAME = 1518;
const bit<32> HEADER_BYTES = 14;
// What source addresses begin with.
const bit<24> SOURCE_PREFIX = 0x020000;

const int MAX_VLS = 4096;

// What a VL is checked for: bits of the parameter `rules`.
const bit<8> CHECK_INTEGRITY  = 0x01;
const bit<8> CHECK_REDUNDANCY = 0x02;
const bit<8> ACCEPT_RESET     = 0x04;   // 0 is valid after any number
const bit<8> AFTER_VALID      = 0x08;   // a number is compared with the last valid one, not with the last one
const bit<8> KEEP_ORDER       = 0x10;   // what comes after a newer frame is dropped
const bit<8> CHECK_INTERFACE  = 0x20;   // the source address is of an interface to the network

// Why a frame was dropped. The order of the checks.
enum bit<32> Reason {
    SHORT         = 0,
    LONG          = 1,
    DESTINATION   = 2,
    UNKNOWN_VL    = 3,
    NETWORK       = 4,
    INTERFACE     = 5,
    LMAX          = 6,
    OUT_OF_WINDOW = 7,
    REDUNDANT     = 8,
    LATE          = 9
}
const bit<32> REASONS = 16;

// Numbers after one that are newer than it.
const bit<8> NEWER_NUMBERS = 127;
// There are no steps from a number to 0.
const bit<8> NO_STEPS = 0;

header ethernet_t {
    bit<32> prefix;         // the constant part of the destination
    vl_t    vl;
    bit<24> source_prefix;
    bit<16> source;
    bit<8>  interface;
    bit<16> ether_type;
}

header body_t {
    varbit<12000> bytes;
}

header number_t {
    bit<8> number;
}

struct headers_t {
    ethernet_t ethernet;
    body_t     body;
    number_t   last;
}

struct metadata_t {
    bool    is_line;        // the port is connected to a network
    bit<1>  network;        // 0 is A, 1 is B
    bit<8>  interface;      // the last byte of source addresses there
    bit<32> prefix;
    bool    is_known;       // the VL
    bit<32> number;         // of the VL in this end system, for registers and counters
    bit<32> lmax;
    bit<2>  networks;       // bit 0: it comes by A, bit 1: by B
    bit<8>  window;
    time_t  skew_max;
    bit<8>  rules;
    port_t  host;
    bool    is_valid;
    bool    is_redundant;
    bool    is_late;
}

parser EsParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        transition select(sm.packet_length) {
            0 .. 59: accept;
            60 .. 1514: frame;
            default: accept;
        }
    }
    state frame {
        packet.extract(hdr.ethernet);
        packet.extract(hdr.body, (sm.packet_length - HEADER_BYTES - 1) * 8);
        packet.extract(hdr.last);
        transition accept;
    }
}

control EsVerify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

// How many steps lead from one sequence number to another, where 255 is followed by 1; 0 for none.
bit<8> steps_between(in bit<8> before, in bit<8> number) {
    bit<8> ahead = number - before;
    bit<8> around = 255 - (before - number);
    return number == 0 ? NO_STEPS : (before == 0 || number >= before ? ahead : around);
}

control EsIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    // By network and reason, and by VL and reason: cell 16 N + reason.
    counter(2 * 16, CounterType.packets) network_drops;
    counter(MAX_VLS * 16, CounterType.packets) vl_drops;
    counter(MAX_VLS, CounterType.packets_and_bytes) delivered;

    // By VL and network: 256 and the number of the frame before; 0 when there was none.
    register<bit<16>>(2 * MAX_VLS) previous;
    // By VL and number: a microsecond after the time when it went to the host; 0 when it never did.
    register<time_t>(256 * MAX_VLS) delivered_at;
    // By VL: 256 and the number that went to the host last, and when.
    register<bit<16>>(MAX_VLS) last;
    register<time_t>(MAX_VLS) last_at;

    action drop(Reason reason) {
        network_drops.count((bit<32>)meta.network * REASONS + (bit<32>)reason);
        mark_to_drop(sm);
    }

    action drop_of_vl(Reason reason) {
        vl_drops.count(meta.number * REASONS + (bit<32>)reason);
        drop(reason);
    }

    // The networks: which port leads to A and which to B.
    action set_network(bit<1> network, bit<8> interface) {
        meta.is_line = true;
        meta.network = network;
        meta.interface = interface;
    }
    table lines {
        key = { sm.ingress_port: exact @name("standard_metadata.ingress_port"); }
        actions = { set_network; NoAction; }
        default_action = NoAction();
        size = 64;
    }

    action set_prefix(bit<32> prefix) { meta.prefix = prefix; }
    table network {
        key = { }
        actions = { set_prefix; }
        default_action = set_prefix(0x03000000);
        size = 1;
    }

    action receive(bit<32> number, bit<16> lmax, bit<2> networks, bit<8> window, time_t skew_max, bit<8> rules, port_t host) {
        meta.is_known = true;
        meta.number = number;
        meta.lmax = (bit<32>)lmax;
        meta.networks = networks;
        meta.window = window;
        meta.skew_max = skew_max;
        meta.rules = rules;
        meta.host = host;
    }
    table vls {
        key = { hdr.ethernet.vl: exact @name("ethernet.vl"); }
        actions = { receive; NoAction; }
        default_action = NoAction();
        size = MAX_VLS;
    }

    // Whether the number may follow the one before. An action is one step for all workers.
    action check_integrity() {
        bit<32> cell = meta.number << 1 | (bit<32>)meta.network;
        bit<16> before;
        previous.read(before, cell);
        bit<8> steps = steps_between(before[7:0], hdr.last.number);
        bool is_reset = hdr.last.number == 0 && meta.rules & ACCEPT_RESET != 0;
        bool is_next = steps != NO_STEPS && steps <= meta.window;
        meta.is_valid = before == 0 || is_reset || is_next;
        bool keeps = !meta.is_valid && meta.rules & AFTER_VALID != 0;
        previous.write(cell, keeps ? before : 0x100 | (bit<16>)hdr.last.number);
    }

    // Whether a frame of this number, or a newer one, went to the host within SkewMax. A frame that came a little earlier than that one,
    // by the stamp of another port, is within it.
    action check_redundancy() {
        bit<32> cell = meta.number << 8 | (bit<32>)hdr.last.number;
        time_t now = sm.ingress_global_timestamp;
        time_t at;
        bit<16> newest;
        time_t newest_at;
        delivered_at.read(at, cell);
        last.read(newest, meta.number);
        last_at.read(newest_at, meta.number);
        meta.is_redundant = at != 0 && now |-| (at - 1) <= meta.skew_max;
        bit<8> steps = steps_between(newest[7:0], hdr.last.number);
        // A reset takes longer than SkewMax: after a low number it is the first frame, which comes late.
        bool is_newer = hdr.last.number == 0 ? newest[7:0] > NEWER_NUMBERS : steps != NO_STEPS && steps <= NEWER_NUMBERS;
        bool has_newest = newest != 0 && now |-| newest_at <= meta.skew_max;
        meta.is_late = meta.rules & KEEP_ORDER != 0 && has_newest && !is_newer;
        bool goes_on = !meta.is_redundant && !meta.is_late;
        delivered_at.write(cell, goes_on ? now + 1 : at);
        last.write(meta.number, goes_on ? 0x100 | (bit<16>)hdr.last.number : newest);
        last_at.write(meta.number, goes_on ? now : newest_at);
    }

    apply {
        lines.apply();
        if (!meta.is_line) {
            mark_to_drop(sm);
            return;
        }
        bit<32> length = sm.packet_length + FCS_BYTES;
        if (length < SHORTEST_FRAME) {
            drop(Reason.SHORT);
            return;
        }
        if (length > LONGEST_FRAME) {
            drop(Reason.LONG);
            return;
        }
        network.apply();
        if (hdr.ethernet.prefix != meta.prefix) {
            drop(Reason.DESTINATION);
            return;
        }
        vls.apply();
        if (!meta.is_known) {
            drop(Reason.UNKNOWN_VL);
            return;
        }
        bool is_interface = hdr.ethernet.source_prefix == SOURCE_PREFIX && hdr.ethernet.interface == meta.interface;
        if ((meta.networks >> (bit<2>)meta.network) & 1 == 0) {
            drop_of_vl(Reason.NETWORK);
        } else if (meta.rules & CHECK_INTERFACE != 0 && !is_interface) {
            drop_of_vl(Reason.INTERFACE);
        } else if (length > meta.lmax) {
            drop_of_vl(Reason.LMAX);
        } else {
            meta.is_valid = true;
            if (meta.rules & CHECK_INTEGRITY != 0) {
                check_integrity();
            }
            if (meta.is_valid && meta.rules & CHECK_REDUNDANCY != 0) {
                check_redundancy();
            }
            if (!meta.is_valid) {
                drop_of_vl(Reason.OUT_OF_WINDOW);
            } else if (meta.is_redundant) {
                drop_of_vl(Reason.REDUNDANT);
            } else if (meta.is_late) {
                drop_of_vl(Reason.LATE);
            } else {
                delivered.count(meta.number);
                sm.egress_spec = meta.host;
            }
        }
    }
}

control EsEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply { }
}

control EsCompute(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control EsDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.body);
        packet.emit(hdr.last);
    }
}

V1Switch(EsParser(), EsVerify(), EsIngress(), EsEgress(), EsCompute(), EsDeparser()) main;
