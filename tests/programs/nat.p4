// SPDX-License-Identifier: Apache-2.0
//
// Network address and port translation between an inside (port 0) and an outside (port 1).
//
// Uses: checksums over the payload, verified and updated, for TCP and UDP; functions with in and inout
// parameters; a control instantiated twice with a constructor argument; direct counters; an early exit.

#include <core.p4>
#include <v1model.p4>

const bit<9> INSIDE = 0;
const bit<9> OUTSIDE = 1;

const bit<16> IPV4 = 0x0800;
const bit<8>  TCP = 6;
const bit<8>  UDP = 17;

typedef bit<32> address_t;

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

header ipv4_t {
    bit<4>    version;
    bit<4>    ihl;
    bit<8>    tos;
    bit<16>   total_length;
    bit<16>   identification;
    bit<3>    flags;
    bit<13>   fragment_offset;
    bit<8>    ttl;
    bit<8>    protocol;
    bit<16>   checksum;
    address_t src;
    address_t dst;
}

header udp_t {
    bit<16> src_port;
    bit<16> dst_port;
    bit<16> length;
    bit<16> checksum;
}

// Options, if any, count as payload.
header tcp_t {
    bit<16> src_port;
    bit<16> dst_port;
    bit<32> sequence;
    bit<32> acknowledgement;
    bit<4>  data_offset;
    bit<4>  reserved;
    bit<8>  flags;
    bit<16> window;
    bit<16> checksum;
    bit<16> urgent;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t     ipv4;
    udp_t      udp;
    tcp_t      tcp;
}

struct metadata_t {
    bit<16> segment_length;     // of TCP or UDP, for the pseudo header
    bool    udp_has_checksum;   // which is optional: 0 says there is none (RFC 768)
}

bit<16> segment_length(in ipv4_t ip) {
    return ip.total_length - ((bit<16>) ip.ihl << 2);
}

void forward_one_hop(inout bit<8> ttl, inout bit<9> port, in bit<9> to) {
    ttl = ttl - 1;
    port = to;
}

parser NatParser(packet_in packet,
                 out headers_t hdr,
                 inout metadata_t meta,
                 inout standard_metadata_t standard_metadata) {
    state start {
        meta.udp_has_checksum = false;
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            IPV4: ipv4;
            default: accept;
        }
    }

    state ipv4 {
        packet.extract(hdr.ipv4);
        meta.segment_length = segment_length(hdr.ipv4);
        transition select(hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.flags & 1, hdr.ipv4.fragment_offset, hdr.ipv4.protocol) {
            (4, 5, 0, 0, TCP): tcp;
            (4, 5, 0, 0, UDP): udp;
            default: accept;
        }
    }

    state tcp {
        packet.extract(hdr.tcp);
        transition accept;
    }

    state udp {
        packet.extract(hdr.udp);
        meta.udp_has_checksum = hdr.udp.checksum != 0;
        transition accept;
    }
}

control NatVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid(),
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.total_length,
              hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.fragment_offset,
              hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
        verify_checksum_with_payload(hdr.tcp.isValid(),
            { hdr.ipv4.src, hdr.ipv4.dst, 8w0, hdr.ipv4.protocol, meta.segment_length,
              hdr.tcp.src_port, hdr.tcp.dst_port, hdr.tcp.sequence, hdr.tcp.acknowledgement,
              hdr.tcp.data_offset, hdr.tcp.reserved, hdr.tcp.flags, hdr.tcp.window, hdr.tcp.urgent },
            hdr.tcp.checksum, HashAlgorithm.csum16);
        verify_checksum_with_payload(meta.udp_has_checksum,
            { hdr.ipv4.src, hdr.ipv4.dst, 8w0, hdr.ipv4.protocol, meta.segment_length,
              hdr.udp.src_port, hdr.udp.dst_port, hdr.udp.length },
            hdr.udp.checksum, HashAlgorithm.csum16);
    }
}

/// Replaces one end of a connection; `known` tells whether there is a rule for it.
control Translate(inout address_t address, inout bit<16> port, out bool known)(bit<32> capacity) {
    direct_counter(CounterType.packets_and_bytes) used;

    action to(address_t new_address, bit<16> new_port) {
        address = new_address;
        port = new_port;
        used.count();
    }

    table rules {
        key = {
            address: exact;
            port:    exact;
        }
        actions = { to; NoAction; }
        default_action = NoAction();
        counters = used;
        size = capacity;
    }

    apply {
        known = rules.apply().hit;
    }
}

control NatIngress(inout headers_t hdr,
                   inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    Translate(4096) source;
    Translate(4096) destination;

    apply {
        if (standard_metadata.checksum_error == 1
                || !hdr.tcp.isValid() && !hdr.udp.isValid()
                || hdr.ipv4.ttl <= 1) {
            mark_to_drop(standard_metadata);
            exit;
        }
        bool known = false;
        if (standard_metadata.ingress_port == INSIDE) {
            if (hdr.tcp.isValid()) {
                source.apply(hdr.ipv4.src, hdr.tcp.src_port, known);
            } else {
                source.apply(hdr.ipv4.src, hdr.udp.src_port, known);
            }
            forward_one_hop(hdr.ipv4.ttl, standard_metadata.egress_spec, OUTSIDE);
        } else {
            if (hdr.tcp.isValid()) {
                destination.apply(hdr.ipv4.dst, hdr.tcp.dst_port, known);
            } else {
                destination.apply(hdr.ipv4.dst, hdr.udp.dst_port, known);
            }
            forward_one_hop(hdr.ipv4.ttl, standard_metadata.egress_spec, INSIDE);
        }
        if (!known) {
            mark_to_drop(standard_metadata);
        }
    }
}

control NatEgress(inout headers_t hdr,
                  inout metadata_t meta,
                  inout standard_metadata_t standard_metadata) {
    apply {}
}

control NatComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid(),
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.total_length,
              hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.fragment_offset,
              hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
        update_checksum_with_payload(hdr.tcp.isValid(),
            { hdr.ipv4.src, hdr.ipv4.dst, 8w0, hdr.ipv4.protocol, meta.segment_length,
              hdr.tcp.src_port, hdr.tcp.dst_port, hdr.tcp.sequence, hdr.tcp.acknowledgement,
              hdr.tcp.data_offset, hdr.tcp.reserved, hdr.tcp.flags, hdr.tcp.window, hdr.tcp.urgent },
            hdr.tcp.checksum, HashAlgorithm.csum16);
        update_checksum_with_payload(meta.udp_has_checksum,
            { hdr.ipv4.src, hdr.ipv4.dst, 8w0, hdr.ipv4.protocol, meta.segment_length,
              hdr.udp.src_port, hdr.udp.dst_port, hdr.udp.length },
            hdr.udp.checksum, HashAlgorithm.csum16);
    }
}

control NatDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.udp);
        packet.emit(hdr.tcp);
    }
}

V1Switch(NatParser(), NatVerifyChecksum(), NatIngress(), NatEgress(), NatComputeChecksum(), NatDeparser()) main;
