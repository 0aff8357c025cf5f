// SPDX-License-Identifier: Apache-2.0
//
// A gate between a network (port 1) and the outside (port 0). Flows of TCP and UDP over IPv4 are opened from the inside: what comes from the
// outside passes if the other direction of its flow has left before. Everything else is dropped, but ARP.
//
// Which flows are open is two Bloom filters of one hash each: a flow that nobody has opened passes if both say that it is open, which for
// 100 open flows is one in 100.

#include <core.p4>
#include <v1model.p4>

const bit<32> BITS = 1024;

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
    bit<3>  flags;
    bit<13> fragment_offset;
    bit<8>  ttl;
    bit<8>  protocol;
    bit<16> checksum;
    bit<32> src;
    bit<32> dst;
}

// TCP and UDP both begin with this.
header ports_t {
    bit<16> src;
    bit<16> dst;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t     ipv4;
    ports_t    ports;
}

struct metadata_t {}

parser GateParser(packet_in packet,
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
        transition select(hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.fragment_offset, hdr.ipv4.protocol) {
            (4, 5, 0, 6): ports;
            (4, 5, 0, 17): ports;
            default: accept;
        }
    }

    state ports {
        packet.extract(hdr.ports);
        transition accept;
    }
}

control GateVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control GateIngress(inout headers_t hdr,
                    inout metadata_t meta,
                    inout standard_metadata_t standard_metadata) {
    register<bit<1>>(BITS) open_first;
    register<bit<1>>(BITS) open_second;

    apply {
        bool is_inside = standard_metadata.ingress_port == 1;
        standard_metadata.egress_spec = is_inside ? 9w0 : 9w1;
        if (hdr.ethernet.type == 0x0806) {
            return;
        }
        if (!hdr.ports.isValid() || standard_metadata.parser_error != error.NoError) {
            mark_to_drop(standard_metadata);
            return;
        }
        // Both directions of a flow have the same places: those of the inside are first.
        bit<32> inside = is_inside ? hdr.ipv4.src : hdr.ipv4.dst;
        bit<32> outside = is_inside ? hdr.ipv4.dst : hdr.ipv4.src;
        bit<16> inside_port = is_inside ? hdr.ports.src : hdr.ports.dst;
        bit<16> outside_port = is_inside ? hdr.ports.dst : hdr.ports.src;
        bit<32> first;
        bit<32> second;
        hash(first, HashAlgorithm.crc32, 32w0, { inside, outside, hdr.ipv4.protocol, inside_port, outside_port }, BITS);
        hash(second, HashAlgorithm.crc16, 32w0, { inside, outside, hdr.ipv4.protocol, inside_port, outside_port }, BITS);
        if (is_inside) {
            open_first.write(first, 1);
            open_second.write(second, 1);
        } else {
            bit<1> is_first;
            bit<1> is_second;
            open_first.read(is_first, first);
            open_second.read(is_second, second);
            if (is_first == 0 || is_second == 0) {
                mark_to_drop(standard_metadata);
            }
        }
    }
}

control GateEgress(inout headers_t hdr,
                   inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    apply {}
}

control GateComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control GateDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ports);
    }
}

V1Switch(GateParser(),
         GateVerifyChecksum(),
         GateIngress(),
         GateEgress(),
         GateComputeChecksum(),
         GateDeparser()) main;
