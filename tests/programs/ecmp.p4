// SPDX-License-Identifier: Apache-2.0
//
// Spreads flows over several next hops, and over the links to each; a flow stays on its way.
//
// Uses: action selector with groups, action profile, the hash extern with crc16, a struct initialiser, a table
// without keys, a tuple.

#include <core.p4>
#include <v1model.p4>

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
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

header ports_t {
    bit<16> src;
    bit<16> dst;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t     ipv4;
    ports_t    ports;
}

struct flow_t {
    bit<32> src;
    bit<32> dst;
    bit<8>  protocol;
    bit<16> src_port;
    bit<16> dst_port;
}

struct metadata_t {
    flow_t  flow;
    bit<16> next_hop;
    bit<16> link;
}

parser EcmpParser(packet_in packet,
                  out headers_t hdr,
                  inout metadata_t meta,
                  inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            0x0800: ipv4;
            default: accept;
        }
    }

    state ipv4 {
        packet.extract(hdr.ipv4);
        meta.flow = { src = hdr.ipv4.src, dst = hdr.ipv4.dst, protocol = hdr.ipv4.protocol, src_port = 0, dst_port = 0 };
        transition select(hdr.ipv4.protocol) {
            6 &&& 0xff: ports;
            17: ports;
            _: accept;
        }
    }

    state ports {
        packet.extract(hdr.ports);
        meta.flow.src_port = hdr.ports.src;
        meta.flow.dst_port = hdr.ports.dst;
        transition accept;
    }
}

control EcmpVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control EcmpIngress(inout headers_t hdr,
                    inout metadata_t meta,
                    inout standard_metadata_t standard_metadata) {
    const bit<32> LINKS = 2;        // to each next hop

    action_selector(HashAlgorithm.crc32, 64, 32) ways;
    action_profile(16) accounts;

    action drop() {
        mark_to_drop(standard_metadata);
    }

    action set_next_hop(bit<16> next_hop) {
        meta.next_hop = next_hop;
    }

    table routes {
        key = {
            hdr.ipv4.dst:       lpm;
            meta.flow.src:      selector;
            meta.flow.dst:      selector;
            meta.flow.protocol: selector;
            meta.flow.src_port: selector;
            meta.flow.dst_port: selector;
        }
        actions = { set_next_hop; drop; }
        implementation = ways;
        size = 1024;
    }

    action set_link(bit<9> port, bit<48> dmac) {
        standard_metadata.egress_spec = port;
        hdr.ethernet.dst = dmac;
    }

    table links {
        key = {
            meta.next_hop: exact;
            meta.link:     exact;
        }
        actions = { set_link; drop; }
        default_action = drop();
    }

    action mark(bit<8> tos) {
        hdr.ipv4.tos = tos;
    }

    // Many customers, few contracts: entries share members of the profile.
    table customers {
        key = { hdr.ipv4.src: exact; }
        actions = { mark; NoAction; }
        implementation = accounts;
        size = 1024;
    }

    action age() {
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
    }

    table always {
        actions = { age; }
        const default_action = age();
    }

    apply {
        if (!hdr.ipv4.isValid() || hdr.ipv4.ttl < 2) {
            drop();
            return;
        }
        tuple<bit<32>, bit<32>> ends = { meta.flow.src, meta.flow.dst };
        hash(meta.link, HashAlgorithm.crc16, 16w0, { ends[0], ends[1], meta.flow.src_port, meta.flow.dst_port }, LINKS);
        if (routes.apply().hit) {
            links.apply();
            customers.apply();
            always.apply();
        } else {
            drop();
        }
    }
}

control EcmpEgress(inout headers_t hdr,
                   inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    apply {}
}

control EcmpComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid(),
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.total_length,
              hdr.ipv4.identification, hdr.ipv4.fragment, hdr.ipv4.ttl, hdr.ipv4.protocol,
              hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control EcmpDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(EcmpParser(), EcmpVerifyChecksum(), EcmpIngress(), EcmpEgress(), EcmpComputeChecksum(), EcmpDeparser()) main;
