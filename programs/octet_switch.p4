// SPDX-License-Identifier: Apache-2.0
//
// Forwards by octets that are chosen while it runs: knows no protocol.
//
//   frame -> octet selector -> key of 8 octets -> forwarding table -> demultiplexer -> queues of ports, or the manager
//
// The selector takes 8 octets of the first 60 of a frame, the table matches them under masks, the demultiplexer sends the
// frame to a queue of one port, to several ports, or to the manager at the CPU port, which sees where it came from and
// answers it.

#include <core.p4>
#include <v1model.p4>

typedef bit<9>   port_t;
typedef bit<8>   place_t;           // of an octet in the frame, from 0
typedef bit<480> octets_t;

const port_t MANAGER = 510;         // the CPU port
const int    MAX_FLOWS = 1024;

@controller_header("packet_in")
header packet_in_t {
    port_t ingress_port;
    bit<7> padding;
}

@controller_header("packet_out")
header packet_out_t {
    port_t egress_port;
    bit<3> priority;
    bit<4> padding;
}

header octets_h {
    octets_t all;                   // the first octet highest
}

struct headers_t {
    packet_in_t  packet_in;
    packet_out_t packet_out;
    octets_h     octets;
}

struct metadata_t {
    bit<64> key;
}

parser OctetParser(packet_in packet,
                   out headers_t hdr,
                   inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    state start {
        transition select(standard_metadata.ingress_port) {
            MANAGER: parse_packet_out;
            default: parse_octets;
        }
    }

    state parse_packet_out {
        packet.extract(hdr.packet_out);
        transition accept;
    }

    state parse_octets {
        packet.extract(hdr.octets);
        transition accept;
    }
}

control OctetVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

// The octet at a place; 0 beyond the octets that are there.
control Octet(in octets_t all, in place_t place, out bit<8> octet) {
    apply {
        octets_t moved = all << ((bit<16>)place << 3);
        octet = moved[479:472];
    }
}

control OctetIngress(inout headers_t hdr,
                     inout metadata_t meta,
                     inout standard_metadata_t standard_metadata) {
    direct_counter(CounterType.packets_and_bytes) matches;
    place_t p0 = 0;
    place_t p1 = 0;
    place_t p2 = 0;
    place_t p3 = 0;
    place_t p4 = 0;
    place_t p5 = 0;
    place_t p6 = 0;
    place_t p7 = 0;

    // The places of the octets of the key, the highest first.
    action choose(place_t a, place_t b, place_t c, place_t d, place_t e, place_t f, place_t g, place_t h) {
        p0 = a;
        p1 = b;
        p2 = c;
        p3 = d;
        p4 = e;
        p5 = f;
        p6 = g;
        p7 = h;
    }

    table selector {
        actions = { choose; }
        default_action = choose(0, 1, 2, 3, 4, 5, 12, 13);      // destination and type
    }

    action to_queue(port_t port, bit<3> priority) {
        matches.count();
        standard_metadata.egress_spec = port;
        standard_metadata.priority = priority;
    }

    action to_queues(bit<16> group, bit<3> priority) {
        matches.count();
        standard_metadata.mcast_grp = group;
        standard_metadata.priority = priority;
    }

    action to_manager() {
        matches.count();
        standard_metadata.egress_spec = MANAGER;
        hdr.packet_in.setValid();
        hdr.packet_in.ingress_port = standard_metadata.ingress_port;
        hdr.packet_in.padding = 0;
    }

    action discard() {
        matches.count();
        mark_to_drop(standard_metadata);
    }

    action unknown() {
        mark_to_drop(standard_metadata);
    }

    table forwarding {
        key = {
            standard_metadata.ingress_port: ternary;
            meta.key: ternary;
        }
        actions = { to_queue; to_queues; to_manager; discard; @defaultonly unknown; }
        default_action = unknown();
        counters = matches;
        size = MAX_FLOWS;
    }

    Octet() octet0;
    Octet() octet1;
    Octet() octet2;
    Octet() octet3;
    Octet() octet4;
    Octet() octet5;
    Octet() octet6;
    Octet() octet7;

    apply {
        if (hdr.packet_out.isValid()) {
            standard_metadata.egress_spec = hdr.packet_out.egress_port;
            standard_metadata.priority = hdr.packet_out.priority;
            hdr.packet_out.setInvalid();
        } else if (hdr.octets.isValid()) {
            selector.apply();
            octet0.apply(hdr.octets.all, p0, meta.key[63:56]);
            octet1.apply(hdr.octets.all, p1, meta.key[55:48]);
            octet2.apply(hdr.octets.all, p2, meta.key[47:40]);
            octet3.apply(hdr.octets.all, p3, meta.key[39:32]);
            octet4.apply(hdr.octets.all, p4, meta.key[31:24]);
            octet5.apply(hdr.octets.all, p5, meta.key[23:16]);
            octet6.apply(hdr.octets.all, p6, meta.key[15:8]);
            octet7.apply(hdr.octets.all, p7, meta.key[7:0]);
            forwarding.apply();
        } else {
            mark_to_drop(standard_metadata);        // shorter than frames of Ethernet are
        }
    }
}

control OctetEgress(inout headers_t hdr,
                    inout metadata_t meta,
                    inout standard_metadata_t standard_metadata) {
    apply {
        // One of several ports may be that of the sender, which has the frame.
        if (standard_metadata.egress_rid != 0 && standard_metadata.egress_port == standard_metadata.ingress_port) {
            mark_to_drop(standard_metadata);
        }
    }
}

control OctetComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control OctetDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.octets);
    }
}

V1Switch(OctetParser(),
         OctetVerifyChecksum(),
         OctetIngress(),
         OctetEgress(),
         OctetComputeChecksum(),
         OctetDeparser()) main;
