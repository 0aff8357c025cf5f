// SPDX-License-Identifier: Apache-2.0
//
// A transparent, stateless IPv4 firewall: each port is cabled to another, and what an access list permits
// passes between them unchanged.
//
// What no rule permits is dropped. ARP passes, or hosts on both sides would never find each other; everything
// else that is not IPv4 is dropped, and so are headers with options, which would hide the ports.

#include <core.p4>
#include <v1model.p4>

typedef bit<9> port_t;

const int MAX_RULES = 1 << 17;
const int MAX_PORTS = 1 << 9;       // as many as port_t counts

enum bit<16> EtherType {
    IPV4 = 0x0800,
    ARP  = 0x0806
}

enum bit<8> Protocol {
    TCP = 6,
    UDP = 17
}

header ethernet_t {
    bit<48>   dst;
    bit<48>   src;
    EtherType type;
}

// RFC 791
header ipv4_t {
    bit<4>   version;
    bit<4>   ihl;
    bit<8>   tos;
    bit<16>  total_length;
    bit<16>  identification;
    bit<3>   flags;
    bit<13>  fragment_offset;
    bit<8>   ttl;
    Protocol protocol;
    bit<16>  checksum;
    bit<32>  src;
    bit<32>  dst;
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

struct metadata_t {
    bit<16> src_port;   // 0 unless TCP or UDP
    bit<16> dst_port;
}

parser FirewallParser(packet_in packet,
                      out headers_t hdr,
                      inout metadata_t meta,
                      inout standard_metadata_t standard_metadata) {
    state start {
        meta.src_port = 0;
        meta.dst_port = 0;
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            EtherType.IPV4: ipv4;
            default: accept;
        }
    }

    state ipv4 {
        packet.extract(hdr.ipv4);
        // A later fragment carries no ports; what lies there is payload, chosen by the sender.
        transition select(hdr.ipv4.fragment_offset, hdr.ipv4.protocol) {
            (0, Protocol.TCP): ports;
            (0, Protocol.UDP): ports;
            default: accept;
        }
    }

    state ports {
        packet.extract(hdr.ports);
        meta.src_port = hdr.ports.src;
        meta.dst_port = hdr.ports.dst;
        transition accept;
    }
}

control FirewallVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control FirewallIngress(inout headers_t hdr,
                        inout metadata_t meta,
                        inout standard_metadata_t standard_metadata) {
    action drop() {
        mark_to_drop(standard_metadata);
    }

    action permit() {}

    action deny() {
        mark_to_drop(standard_metadata);
    }

    table acl {
        key = {
            hdr.ipv4.src:      ternary;
            hdr.ipv4.dst:      ternary;
            hdr.ipv4.protocol: ternary;
            meta.src_port:     range;
            meta.dst_port:     range;
        }
        actions = { permit; deny; }
        default_action = deny();
        size = MAX_RULES;
    }

    action set_port(port_t port) {
        standard_metadata.egress_spec = port;
    }

    // An uncabled port leads nowhere.
    table forward {
        key = { standard_metadata.ingress_port: exact; }
        actions = { set_port; drop; }
        default_action = drop();
        size = MAX_PORTS;
    }

    apply {
        if (standard_metadata.parser_error != error.NoError) {
            drop();
            return;
        }
        if (hdr.ipv4.isValid()) {
            if (hdr.ipv4.version != 4 || hdr.ipv4.ihl != 5) {
                drop();
                return;
            }
            switch (acl.apply().action_run) {
                deny: { return; }
            }
        } else if (hdr.ethernet.type != EtherType.ARP) {
            drop();
            return;
        }
        forward.apply();
    }
}

control FirewallEgress(inout headers_t hdr,
                       inout metadata_t meta,
                       inout standard_metadata_t standard_metadata) {
    apply {}
}

control FirewallComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control FirewallDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ports);
    }
}

V1Switch(FirewallParser(),
         FirewallVerifyChecksum(),
         FirewallIngress(),
         FirewallEgress(),
         FirewallComputeChecksum(),
         FirewallDeparser()) main;
