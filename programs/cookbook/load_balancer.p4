// SPDX-License-Identifier: Apache-2.0
//
// A load balancer: TCP connections to a service address go to one of several servers, always the same one for a connection.
//
// Requests: `services` matches the service's address and port; a hash of the connection selects a server of its group, whose
// address takes the place of the service's. Answers: `servers` matches the server's address and port and puts the service's
// back, so clients see the service only. The TCP checksum is computed again with the new addresses.

#include <core.p4>
#include <v1model.p4>

typedef bit<48> mac_t;
typedef bit<32> ipv4_addr_t;
typedef bit<9>  port_t;

const bit<8> TCP = 6;

header ethernet_t {
    mac_t   dst;
    mac_t   src;
    bit<16> type;
}

// RFC 791
header ipv4_t {
    bit<4>      version;
    bit<4>      ihl;
    bit<8>      tos;
    bit<16>     total_length;
    bit<16>     identification;
    bit<3>      flags;
    bit<13>     fragment_offset;
    bit<8>      ttl;
    bit<8>      protocol;
    bit<16>     checksum;
    ipv4_addr_t src;
    ipv4_addr_t dst;
}

// RFC 9293
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
    tcp_t      tcp;
}

struct metadata_t {
    bit<16> tcp_length;             // of the segment, header included
}

parser BalancerParser(packet_in packet,
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
        // With options, or in a later fragment, the ports would stand elsewhere.
        transition select(hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.flags & 1, hdr.ipv4.fragment_offset, hdr.ipv4.protocol) {
            (4, 5, 0, 0, TCP): tcp;
            default: accept;
        }
    }

    state tcp {
        packet.extract(hdr.tcp);
        meta.tcp_length = hdr.ipv4.total_length - 20;
        transition accept;
    }
}

control BalancerVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid(),
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.total_length,
              hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.fragment_offset,
              hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
        // A damaged segment must not leave with a right checksum.
        verify_checksum_with_payload(hdr.tcp.isValid(),
            { hdr.ipv4.src, hdr.ipv4.dst, 8w0, hdr.ipv4.protocol, meta.tcp_length,
              hdr.tcp.src_port, hdr.tcp.dst_port, hdr.tcp.sequence, hdr.tcp.acknowledgement,
              hdr.tcp.data_offset, hdr.tcp.reserved, hdr.tcp.flags, hdr.tcp.window, hdr.tcp.urgent },
            hdr.tcp.checksum, HashAlgorithm.csum16);
    }
}

control BalancerIngress(inout headers_t hdr,
                        inout metadata_t meta,
                        inout standard_metadata_t standard_metadata) {
    action_selector(HashAlgorithm.crc32, 1024, 32) pool;

    action drop() {
        mark_to_drop(standard_metadata);
        exit;
    }

    action to_server(ipv4_addr_t address, mac_t dmac, port_t port) {
        hdr.ipv4.dst = address;
        hdr.ethernet.dst = dmac;
        standard_metadata.egress_spec = port;
    }

    // The entry leads to a group of the pool; the selector fields choose a member of the group.
    table services {
        key = {
            hdr.ipv4.dst:     exact;
            hdr.tcp.dst_port: exact;
            hdr.ipv4.src:     selector;
            hdr.tcp.src_port: selector;
        }
        actions = { to_server; drop; }
        implementation = pool;
        size = 1024;
    }

    action from_service(ipv4_addr_t address) {
        hdr.ipv4.src = address;
    }

    table servers {
        key = {
            hdr.ipv4.src:     exact;
            hdr.tcp.src_port: exact;
        }
        actions = { from_service; drop; }
        default_action = drop();
        size = 1024;
    }

    action set_nhop(mac_t dmac, port_t port) {
        hdr.ethernet.dst = dmac;
        standard_metadata.egress_spec = port;
    }

    // Where clients are.
    table routes {
        key = { hdr.ipv4.dst: lpm; }
        actions = { set_nhop; drop; }
        default_action = drop();
        size = 65536;
    }

    apply {
        if (!hdr.tcp.isValid() || standard_metadata.checksum_error == 1 || hdr.ipv4.ttl <= 1) {
            drop();
        }
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
        if (!services.apply().hit) {
            servers.apply();
            routes.apply();
        }
    }
}

control BalancerEgress(inout headers_t hdr,
                       inout metadata_t meta,
                       inout standard_metadata_t standard_metadata) {
    action drop() {
        mark_to_drop(standard_metadata);
    }

    action rewrite_smac(mac_t smac) {
        hdr.ethernet.src = smac;
    }

    table send_frame {
        key = { standard_metadata.egress_port: exact; }
        actions = { rewrite_smac; drop; }
        default_action = drop();
        size = 512;
    }

    apply {
        send_frame.apply();
    }
}

control BalancerComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid(),
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.total_length,
              hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.fragment_offset,
              hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
        update_checksum_with_payload(hdr.tcp.isValid(),
            { hdr.ipv4.src, hdr.ipv4.dst, 8w0, hdr.ipv4.protocol, meta.tcp_length,
              hdr.tcp.src_port, hdr.tcp.dst_port, hdr.tcp.sequence, hdr.tcp.acknowledgement,
              hdr.tcp.data_offset, hdr.tcp.reserved, hdr.tcp.flags, hdr.tcp.window, hdr.tcp.urgent },
            hdr.tcp.checksum, HashAlgorithm.csum16);
    }
}

control BalancerDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(BalancerParser(), BalancerVerifyChecksum(), BalancerIngress(), BalancerEgress(), BalancerComputeChecksum(),
         BalancerDeparser()) main;
