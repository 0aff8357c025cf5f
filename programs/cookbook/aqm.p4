// SPDX-License-Identifier: Apache-2.0
//
// Active queue management by the program: a packet that comes out of a queue tells how long it waited, and packets that
// waited too long are marked, or some of them dropped, so that senders slow down before the queue is full.
//
// The switch cables ports to each other. `targets` says for each class how long its packets may wait. One that waited longer
// gets the ECN code point CE if its sender understands that (RFC 3168); else it is dropped with a probability that a PIE
// controller sets (RFC 8033, with the delay by time stamps; its section 4.2 has the numbers): every 15 ms it grows with
// what the delay is above the target and with what the delay has grown. Its state is in registers, one cell for each class
// of each port. RFC 8033 drops at the tail of the queue and has an allowance for bursts; here packets are dropped at the
// head, and the target is the allowance.

#include <core.p4>
#include <v1model.p4>

typedef bit<9> port_t;

const bit<32> CELLS = 4096;                 // 512 ports, 8 classes

// Microseconds
const bit<48> UPDATE_AFTER = 15000;
const bit<48> FORGET_AFTER = 5000000;       // 333 updates without a queue would have left less than 1 %

// Probabilities and gains are in units of 2^-32, gains for a microsecond of delay.
const int<64> ONE = 0xffffffff;
const int<64> ALPHA = 537;                  // 0.125 for a second
const int<64> BETA = 5369;                  // 1.25 for a second
const int<64> TENTH = 429496730;
const int<64> LARGEST_STEP = 85899346;      // 2 %, from a probability of a tenth on

const bit<2> NOT_CAPABLE = 0;               // of ECN
const bit<2> CONGESTION = 3;

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

// RFC 791, RFC 2474, RFC 3168
header ipv4_t {
    bit<4>  version;
    bit<4>  ihl;
    bit<6>  dscp;
    bit<2>  ecn;
    bit<16> total_length;
    bit<16> identification;
    bit<3>  flags;
    bit<13> fragment_offset;
    bit<8>  ttl;
    bit<8>  protocol;
    bit<16> checksum;
    bit<32> src;
    bit<32> dst;
}

// RFC 8200: the first word is all that is needed.
header ipv6_t {
    bit<4>  version;
    bit<6>  dscp;
    bit<2>  ecn;
    bit<20> flow_label;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t     ipv4;
    ipv6_t     ipv6;
}

struct metadata_t {
    bit<6>  dscp;
    bit<2>  ecn;
    bit<32> target;                         // microseconds
}

parser AqmParser(packet_in packet,
                 out headers_t hdr,
                 inout metadata_t meta,
                 inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            0x0800: ipv4;
            0x86dd: ipv6;
            default: accept;
        }
    }

    state ipv4 {
        packet.extract(hdr.ipv4);
        meta.dscp = hdr.ipv4.dscp;
        meta.ecn = hdr.ipv4.ecn;
        transition accept;
    }

    state ipv6 {
        packet.extract(hdr.ipv6);
        meta.dscp = hdr.ipv6.dscp;
        meta.ecn = hdr.ipv6.ecn;
        transition accept;
    }
}

control AqmVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control AqmIngress(inout headers_t hdr,
                   inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    action drop() {
        mark_to_drop(standard_metadata);
    }

    action set_port(port_t port) {
        standard_metadata.egress_spec = port;
    }

    table cables {
        key = { standard_metadata.ingress_port: exact; }
        actions = { set_port; drop; }
        default_action = drop();
        size = 512;
    }

    // A queue of its own too, on ports that have several.
    action set_class(bit<3> class) {
        standard_metadata.priority = class;
    }

    table classes {
        key = { meta.dscp: exact; }
        actions = { set_class; NoAction; }
        default_action = NoAction();
        size = 64;
    }

    apply {
        cables.apply();
        classes.apply();
    }
}

control AqmEgress(inout headers_t hdr,
                  inout metadata_t meta,
                  inout standard_metadata_t standard_metadata) {
    register<bit<32>>(CELLS) probability;
    register<bit<32>>(CELLS) delay_before;          // at the last update
    register<bit<48>>(CELLS) updated;               // when that was
    counter(CELLS, CounterType.packets) marked;
    counter(CELLS, CounterType.packets) dropped;

    action set_target(bit<32> microseconds) {
        meta.target = microseconds;
    }

    // Classes without an entry are left alone.
    table targets {
        key = { standard_metadata.priority: exact; }
        actions = { set_target; NoAction; }
        default_action = NoAction();
        size = 8;
    }

    // RFC 8033, section 4.2. `p` is the probability up to now, and then the new one.
    action update(inout int<64> p, in int<64> delay, in int<64> before) {
        int<64> step = ALPHA * (delay - (int<64>) (bit<64>) meta.target) + BETA * (delay - before);
        // A small probability takes small steps.
        if (p < 4295) {                 // 0.000001
            step = step >> 11;
        } else if (p < 42950) {
            step = step >> 9;
        } else if (p < 429497) {
            step = step >> 7;
        } else if (p < 4294967) {
            step = step >> 5;
        } else if (p < 42949673) {
            step = step >> 3;
        } else if (p < TENTH) {
            step = step >> 1;
        } else if (step > LARGEST_STEP) {
            step = LARGEST_STEP;
        }
        p = p + step;
        if (delay == 0 && before == 0) {
            p = p - (p >> 6);           // the queue is gone
        }
        if (p < 0) {
            p = 0;
        } else if (p > ONE) {
            p = ONE;
        }
    }

    action mark() {
        if (hdr.ipv4.isValid()) {
            // The checksum by what changes (RFC 1624): so damage to the header is still found later.
            bit<16> before = hdr.ipv4.version ++ hdr.ipv4.ihl ++ hdr.ipv4.dscp ++ hdr.ipv4.ecn;
            hdr.ipv4.ecn = CONGESTION;
            bit<16> after = hdr.ipv4.version ++ hdr.ipv4.ihl ++ hdr.ipv4.dscp ++ hdr.ipv4.ecn;
            hash(hdr.ipv4.checksum, HashAlgorithm.csum16, 16w0, { ~hdr.ipv4.checksum, ~before, after }, 32w65536);
        } else {
            hdr.ipv6.ecn = CONGESTION;
        }
    }

    apply {
        // What is not IP has no way to slow down.
        if (!hdr.ipv4.isValid() && !hdr.ipv6.isValid()) {
            return;
        }
        targets.apply();
        if (meta.target == 0) {
            return;
        }
        bit<32> cell = 20w0 ++ standard_metadata.egress_port ++ standard_metadata.priority;
        bit<32> delay = standard_metadata.deq_timedelta;

        bit<32> p;
        bit<32> before;
        bit<48> last;
        probability.read(p, cell);
        delay_before.read(before, cell);
        updated.read(last, cell);
        bit<48> elapsed = standard_metadata.egress_global_timestamp - last;
        if (elapsed >= UPDATE_AFTER) {
            int<64> wide = (int<64>) (bit<64>) p;
            if (elapsed >= FORGET_AFTER) {
                wide = 0;
                before = 0;
            }
            update(wide, (int<64>) (bit<64>) delay, (int<64>) (bit<64>) before);
            p = ((bit<64>) wide)[31:0];
            probability.write(cell, p);
            delay_before.write(cell, delay);
            updated.write(cell, standard_metadata.egress_global_timestamp);
        }

        if (delay > meta.target) {
            if (meta.ecn != NOT_CAPABLE) {
                mark();
                marked.count(cell);
            } else if (standard_metadata.deq_qdepth >= 2) {     // a short queue is no congestion
                bit<32> chance;
                random(chance, 32w0, 32w0xffffffff);
                if (chance < p) {
                    dropped.count(cell);
                    mark_to_drop(standard_metadata);
                }
            }
        }
    }
}

control AqmComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control AqmDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(AqmParser(), AqmVerifyChecksum(), AqmIngress(), AqmEgress(), AqmComputeChecksum(), AqmDeparser()) main;
