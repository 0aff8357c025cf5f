// SPDX-License-Identifier: Apache-2.0
//
// A label switching router (RFC 3031, 3032): puts labels on IP packets, swaps and removes them.
//
// Uses: header stacks (next, last, push_front, pop_front), a header union, lookahead, a parser loop, an action
// that calls another, a parser error that reaches ingress.

#include <core.p4>
#include <v1model.p4>

const int MAX_LABELS = 3;

enum bit<16> EtherType {
    IPV4 = 0x0800,
    IPV6 = 0x86dd,
    MPLS = 0x8847
}

header ethernet_t {
    bit<48>   dst;
    bit<48>   src;
    EtherType type;
}

header mpls_t {
    bit<20> label;
    bit<3>  traffic_class;
    bit<1>  bottom;
    bit<8>  ttl;
}

header ipv4_t {
    bit<4>  version;
    bit<4>  ihl;
    bit<8>  tos;
    bit<16> total_length;
    bit<16> identification;
    bit<16> fragment;
    bit<8>  ttl;
    bit<8>  protocol;
    bit<16> checksum;
    bit<32> src;
    bit<32> dst;
}

header ipv6_t {
    bit<32>  first_word;
    bit<16>  payload_length;
    bit<8>   next_header;
    bit<8>   hop_limit;
    bit<128> src;
    bit<128> dst;
}

header_union ip_t {
    ipv4_t v4;
    ipv6_t v6;
}

struct headers_t {
    ethernet_t         ethernet;
    mpls_t[MAX_LABELS] mpls;
    ip_t               ip;
}

struct metadata_t {}

parser LsrParser(packet_in packet,
                 out headers_t hdr,
                 inout metadata_t meta,
                 inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            EtherType.MPLS: mpls;
            EtherType.IPV4: ipv4;
            EtherType.IPV6: ipv6;
            default: accept;
        }
    }

    // One label too many is a StackOutOfBounds.
    state mpls {
        packet.extract(hdr.mpls.next);
        transition select(hdr.mpls.last.bottom) {
            0: mpls;
            1: below_labels;
        }
    }

    // No label says what it carries; the first four bits tell the IP versions apart.
    state below_labels {
        transition select(packet.lookahead<bit<4>>()) {
            4: ipv4;
            6: ipv6;
            default: accept;
        }
    }

    state ipv4 {
        packet.extract(hdr.ip.v4);
        transition accept;
    }

    state ipv6 {
        packet.extract(hdr.ip.v6);
        transition accept;
    }
}

control LsrVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control LsrIngress(inout headers_t hdr,
                   inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    action drop() {
        mark_to_drop(standard_metadata);
    }

    action send(in bit<9> port) {
        standard_metadata.egress_spec = port;
    }

    action push(in bit<20> label, in bit<8> ttl, in bit<1> bottom) {
        hdr.mpls.push_front(1);
        hdr.mpls[0].setValid();
        hdr.mpls[0].label = label;
        hdr.mpls[0].traffic_class = 0;
        hdr.mpls[0].bottom = bottom;
        hdr.mpls[0].ttl = ttl;
        hdr.ethernet.type = EtherType.MPLS;
    }

    // ---- Packets without a label ----

    action impose(bit<20> label, bit<9> port) {
        push(label, hdr.ip.v4.ttl, 1);
        send(port);
    }

    action impose2(bit<20> outer, bit<20> inner, bit<9> port) {
        push(inner, hdr.ip.v4.ttl, 1);
        push(outer, hdr.ip.v4.ttl, 0);
        send(port);
    }

    table fec {
        key = { hdr.ip.v4.dst: lpm; }
        actions = { impose; impose2; drop; }
        default_action = drop();
    }

    // ---- Packets with one ----

    action swap(bit<20> label, bit<9> port) {
        hdr.mpls[0].label = label;
        send(port);
    }

    // The tunnel within a tunnel of fast reroute.
    action swap_and_push(bit<20> label, bit<20> outer, bit<9> port) {
        hdr.mpls[0].label = label;
        push(outer, hdr.mpls[0].ttl, 0);
        send(port);
    }

    // The next label takes over the time to live; below the last one, the IP header does (RFC 3443, uniform model).
    action pop(bit<9> port) {
        bit<8> ttl = hdr.mpls[0].ttl;
        bool was_last = hdr.mpls[0].bottom == 1;
        hdr.mpls.pop_front(1);
        if (!was_last) {
            hdr.mpls[0].ttl = ttl;
        } else if (hdr.ip.v4.isValid()) {
            hdr.ethernet.type = EtherType.IPV4;
            hdr.ip.v4.ttl = ttl;
        } else {
            hdr.ethernet.type = EtherType.IPV6;
            hdr.ip.v6.hop_limit = ttl;
        }
        send(port);
    }

    table lfib {
        key = { hdr.mpls[0].label: exact @name("label"); }
        actions = { swap; swap_and_push; pop; drop; }
        default_action = drop();
    }

    apply {
        if (standard_metadata.parser_error != error.NoError) {
            drop();
        } else if (hdr.mpls[0].isValid()) {
            // What is below the last label must be IP for pop to name it.
            if (hdr.mpls[0].ttl <= 1 || !hdr.ip.isValid()) {
                drop();
            } else {
                hdr.mpls[0].ttl = hdr.mpls[0].ttl - 1;
                lfib.apply();
            }
        } else if (hdr.ip.v4.isValid() && hdr.ip.v4.ttl > 1) {
            hdr.ip.v4.ttl = hdr.ip.v4.ttl - 1;
            fec.apply();
        } else {
            drop();
        }
    }
}

control LsrEgress(inout headers_t hdr,
                  inout metadata_t meta,
                  inout standard_metadata_t standard_metadata) {
    apply {}
}

control LsrComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ip.v4.isValid(),
            { hdr.ip.v4.version, hdr.ip.v4.ihl, hdr.ip.v4.tos, hdr.ip.v4.total_length,
              hdr.ip.v4.identification, hdr.ip.v4.fragment, hdr.ip.v4.ttl, hdr.ip.v4.protocol,
              hdr.ip.v4.src, hdr.ip.v4.dst },
            hdr.ip.v4.checksum, HashAlgorithm.csum16);
    }
}

control LsrDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(LsrParser(), LsrVerifyChecksum(), LsrIngress(), LsrEgress(), LsrComputeChecksum(), LsrDeparser()) main;
