// SPDX-License-Identifier: Apache-2.0
//
// A learning Ethernet switch: forwards to the port of a known destination, floods the rest.
//
// It tells the control plane the address and port of every unknown source; the control plane answers with an
// entry in each table. No VLANs, no spanning tree: do not cable a loop.

#include <core.p4>
#include <v1model.p4>

typedef bit<48> mac_t;
typedef bit<9>  port_t;

const int     MAX_STATIONS = 1 << 20;
const bit<16> FLOOD_GROUP = 1;      // multicast group of all ports, made by the control plane
const bit<32> LEARN_DIGEST = 1;     // the receiver of what is learnt

header ethernet_t {
    mac_t   dst;
    mac_t   src;
    bit<16> type;
}

struct headers_t {
    ethernet_t ethernet;
}

struct metadata_t {}

struct mac_learn_t {
    mac_t  address;
    port_t port;
}

parser SwitchParser(packet_in packet,
                    out headers_t hdr,
                    inout metadata_t meta,
                    inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition accept;
    }
}

control SwitchVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control SwitchIngress(inout headers_t hdr,
                      inout metadata_t meta,
                      inout standard_metadata_t standard_metadata) {
    action learn() {
        digest<mac_learn_t>(LEARN_DIGEST, { hdr.ethernet.src, standard_metadata.ingress_port });
    }

    table smac {
        key = { hdr.ethernet.src: exact; }
        actions = { NoAction; learn; }
        default_action = learn();
        size = MAX_STATIONS;
    }

    action forward(port_t port) {
        standard_metadata.egress_spec = port;
    }

    action flood() {
        standard_metadata.mcast_grp = FLOOD_GROUP;
    }

    table dmac {
        key = { hdr.ethernet.dst: exact; }
        actions = { forward; flood; }
        default_action = flood();
        size = MAX_STATIONS;
    }

    apply {
        if (hdr.ethernet.isValid()) {
            smac.apply();
            dmac.apply();
        } else {
            mark_to_drop(standard_metadata);    // shorter than an Ethernet header
        }
    }
}

control SwitchEgress(inout headers_t hdr,
                     inout metadata_t meta,
                     inout standard_metadata_t standard_metadata) {
    apply {
        // Who shares the port with the sender has the frame already. This prunes the flood too.
        if (standard_metadata.egress_port == standard_metadata.ingress_port) {
            mark_to_drop(standard_metadata);
        }
    }
}

control SwitchComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control SwitchDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
    }
}

V1Switch(SwitchParser(),
         SwitchVerifyChecksum(),
         SwitchIngress(),
         SwitchEgress(),
         SwitchComputeChecksum(),
         SwitchDeparser()) main;
