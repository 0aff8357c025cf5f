// SPDX-License-Identifier: Apache-2.0
//
// A mirror port: frames that a rule names are sent to an analyser too, as they came in.
//
// The switch cables ports to each other and changes no frame. A rule matches source and destination address; its action
// names a clone session, and the control plane says which port that session leads to. The analyser gets the first
// MIRRORED_BYTES bytes of each frame.

#include <core.p4>
#include <v1model.p4>

const bit<32> MIRRORED_BYTES = 128;
const bit<32> INGRESS_CLONE = 1;    // standard_metadata.instance_type of a packet cloned in ingress

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

header ipv4_t {
    bit<64> first_words;
    bit<32> ttl_protocol_checksum;
    bit<32> src;
    bit<32> dst;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t     ipv4;
}

struct metadata_t {}

parser MirrorParser(packet_in packet,
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
        transition accept;
    }
}

control MirrorVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control MirrorIngress(inout headers_t hdr,
                      inout metadata_t meta,
                      inout standard_metadata_t standard_metadata) {
    counter(1024, CounterType.packets_and_bytes) mirrored;

    action drop() {
        mark_to_drop(standard_metadata);
    }

    action set_port(bit<9> port) {
        standard_metadata.egress_spec = port;
    }

    table cables {
        key = { standard_metadata.ingress_port: exact; }
        actions = { set_port; drop; }
        default_action = drop();
        size = 512;
    }

    action mirror(bit<32> session) {
        clone(CloneType.I2E, session);
        mirrored.count(session);
    }

    table rules {
        key = {
            hdr.ipv4.src: ternary;
            hdr.ipv4.dst: ternary;
        }
        actions = { mirror; NoAction; }
        default_action = NoAction();
        size = 1024;
    }

    apply {
        cables.apply();
        if (hdr.ipv4.isValid()) {
            rules.apply();
        }
    }
}

control MirrorEgress(inout headers_t hdr,
                     inout metadata_t meta,
                     inout standard_metadata_t standard_metadata) {
    apply {
        if (standard_metadata.instance_type == INGRESS_CLONE) {
            truncate(MIRRORED_BYTES);
        }
    }
}

control MirrorComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control MirrorDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(MirrorParser(), MirrorVerifyChecksum(), MirrorIngress(), MirrorEgress(), MirrorComputeChecksum(),
         MirrorDeparser()) main;
