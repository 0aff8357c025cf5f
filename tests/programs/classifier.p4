// SPDX-License-Identifier: Apache-2.0
//
// Sorts packets into classes of service and marks them; takes VXLAN tunnels apart first.
//
// Uses: a parser value set, masked select cases, a VLAN stack, optional, range and ternary keys, entries
// in the program with priorities, switch on an expression with shared cases, digest, nested structs, an enum,
// header assignment, @name.

#define V1MODEL_VERSION 20200408
#include <core.p4>
#include <v1model.p4>

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

header vlan_t {
    bit<3>  priority;
    bit<1>  drop_eligible;
    bit<12> id;
    bit<16> type;
}

header ipv4_t {
    bit<4>  version;
    bit<4>  ihl;
    bit<6>  dscp;
    bit<2>  ecn;
    bit<16> total_length;
    bit<16> identification;
    bit<16> fragment;
    bit<8>  ttl;
    bit<8>  protocol;
    bit<16> checksum;
    bit<32> src;
    bit<32> dst;
}

header udp_t {
    bit<16> src;
    bit<16> dst;
    bit<16> length;
    bit<16> checksum;
}

header vxlan_t {
    bit<8>  flags;
    bit<24> reserved;
    bit<24> network;
    bit<8>  reserved2;
}

struct frame_t {
    ethernet_t ethernet;
    vlan_t[2]  vlan;
    ipv4_t     ipv4;
    udp_t      udp;
}

struct headers_t {
    frame_t outer;
    vxlan_t vxlan;
    frame_t inner;
}

enum bit<8> Class {
    BULK    = 0,
    NORMAL  = 1,
    VIDEO   = 2,
    VOICE   = 3,
    CONTROL = 4
}

struct metadata_t {
    Class   class;
    bit<24> network;    // of the tunnel it came through
    bit<16> port;       // 0 unless UDP
}

struct new_network_t {
    bit<24>  network;
    PortId_t port;
}

parser ClassifierParser(packet_in packet,
                        out headers_t hdr,
                        inout metadata_t meta,
                        inout standard_metadata_t standard_metadata) {
    value_set<bit<16>>(4) tunnel_ports;

    state start {
        meta.class = Class.NORMAL;
        meta.network = 0;
        packet.extract(hdr.outer.ethernet);
        transition select(hdr.outer.ethernet.type) {
            0x8100: vlan;
            0x88a8: vlan;
            0x0800: ipv4;
            default: accept;
        }
    }

    state vlan {
        packet.extract(hdr.outer.vlan.next);
        transition select(hdr.outer.vlan.last.type) {
            0x8100: vlan;
            0x0800: ipv4;
            default: accept;
        }
    }

    state ipv4 {
        packet.extract(hdr.outer.ipv4);
        transition select(hdr.outer.ipv4.version ++ hdr.outer.ipv4.ihl, hdr.outer.ipv4.fragment, hdr.outer.ipv4.protocol) {
            (0x45, 0 &&& 0x1fff, 17): udp;
            default: accept;
        }
    }

    state udp {
        packet.extract(hdr.outer.udp);
        transition select(hdr.outer.udp.dst) {
            tunnel_ports: vxlan;
            default: accept;
        }
    }

    state vxlan {
        packet.extract(hdr.vxlan);
        meta.network = hdr.vxlan.network;
        packet.extract(hdr.inner.ethernet);
        transition select(hdr.inner.ethernet.type) {
            0x0800: inner_ipv4;
            default: accept;
        }
    }

    state inner_ipv4 {
        packet.extract(hdr.inner.ipv4);
        transition select(hdr.inner.ipv4.protocol) {
            17: inner_udp;
            default: accept;
        }
    }

    state inner_udp {
        packet.extract(hdr.inner.udp);
        transition accept;
    }
}

control ClassifierVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control ClassifierIngress(inout headers_t hdr,
                          inout metadata_t meta,
                          inout standard_metadata_t standard_metadata) {
    action report() {
        digest<new_network_t>(2, { meta.network, standard_metadata.ingress_port });
        mark_to_drop(standard_metadata);
    }

    table networks {
        key = { meta.network: exact; }
        actions = { NoAction; report; }
        const default_action = report();
        const entries = {
            0:    NoAction();       // no tunnel
            5000: NoAction();
        }
    }

    action classify(Class class) {
        meta.class = class;
    }

    table classes {
        key = {
            hdr.outer.ipv4.dscp:     ternary;
            hdr.outer.ipv4.protocol: optional;
            meta.port:               range @name("port");
        }
        actions = { classify; }
        default_action = classify(Class.NORMAL);
        largest_priority_wins = false;
        @noWarn("entries_out_of_priority_order")
        entries = {
            const priority = 10: (0b110000 &&& 0b111000, _, _): classify(Class.CONTROL);
            priority = 40: (_, 17, 16384 .. 32767): classify(Class.VOICE);
            priority = 30: (_, 17, 20000 .. 20999): classify(Class.VIDEO);
            priority = 50: (8, _, _): classify(Class.BULK);
            priority = 20: (_, 89, _): classify(Class.CONTROL);
        }
    }

    action mark(bit<6> dscp, bit<3> queue) {
        hdr.outer.ipv4.dscp = dscp;
        standard_metadata.priority = queue;
        hdr.outer.vlan[0].priority = queue;     // lost unless there is a tag
    }

    apply {
        if (standard_metadata.parser_error != error.NoError || !hdr.outer.ipv4.isValid()) {
            mark_to_drop(standard_metadata);
            return;
        }
        standard_metadata.egress_spec = 1;
        switch (networks.apply().action_run) {
            report: { return; }
        }

        if (hdr.vxlan.isValid()) {
            // The tunnel ends here: what was inside goes on.
            if (!hdr.inner.ipv4.isValid()) {
                mark_to_drop(standard_metadata);
                return;
            }
            hdr.outer = hdr.inner;
            hdr.vxlan.setInvalid();
            hdr.inner.ethernet.setInvalid();
            hdr.inner.ipv4.setInvalid();
            hdr.inner.udp.setInvalid();
        }

        meta.port = hdr.outer.udp.isValid() ? hdr.outer.udp.dst : 0;
        classes.apply();
        switch (meta.class) {
            Class.CONTROL: { mark(48, 7); }
            Class.VOICE: { mark(46, 5); }
            Class.VIDEO: { mark(34, 4); }
            Class.BULK: { mark(8, 0); }
            default: { mark(0, 1); }
        }

        switch (standard_metadata.priority) {
            7:
            5: { standard_metadata.egress_spec = 2; }       // the fast link
            0: { standard_metadata.egress_spec = 3; }
        }
    }
}

control ClassifierEgress(inout headers_t hdr,
                         inout metadata_t meta,
                         inout standard_metadata_t standard_metadata) {
    apply {}
}

control ClassifierComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.outer.ipv4.isValid(),
            { hdr.outer.ipv4.version, hdr.outer.ipv4.ihl, hdr.outer.ipv4.dscp, hdr.outer.ipv4.ecn,
              hdr.outer.ipv4.total_length, hdr.outer.ipv4.identification, hdr.outer.ipv4.fragment,
              hdr.outer.ipv4.ttl, hdr.outer.ipv4.protocol, hdr.outer.ipv4.src, hdr.outer.ipv4.dst },
            hdr.outer.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control ClassifierDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(ClassifierParser(), ClassifierVerifyChecksum(), ClassifierIngress(), ClassifierEgress(),
         ClassifierComputeChecksum(), ClassifierDeparser()) main;
