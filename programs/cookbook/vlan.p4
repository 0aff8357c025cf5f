// SPDX-License-Identifier: Apache-2.0
//
// A VLAN switch (IEEE 802.1Q): access ports, whose frames have no tag, and trunks, whose frames have one.
//
// Each frame belongs to one VLAN: that of its tag on a trunk, that of its port without a tag. It leaves only by ports of
// this VLAN, with a tag on trunks and without one on access ports. A VLAN has a multicast group of the same number, by which
// the switch floods. The control plane writes all tables; the program learns nothing.

#include <core.p4>
#include <v1model.p4>

typedef bit<9>  port_t;
typedef bit<12> vid_t;

const bit<16> TPID = 0x8100;
const vid_t   NONE = 0;             // VLAN identifier 0: a tag that gives a priority only

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

header vlan_t {
    bit<3>  priority;
    bit<1>  drop_eligible;
    vid_t   vid;
    bit<16> type;
}

struct headers_t {
    ethernet_t ethernet;
    vlan_t     vlan;
}

struct metadata_t {
    vid_t  vid;
    bit<3> priority;
}

parser VlanParser(packet_in packet,
                  out headers_t hdr,
                  inout metadata_t meta,
                  inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            TPID: vlan;
            default: accept;
        }
    }

    state vlan {
        packet.extract(hdr.vlan);
        transition accept;
    }
}

control VlanVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control VlanIngress(inout headers_t hdr,
                    inout metadata_t meta,
                    inout standard_metadata_t standard_metadata) {
    action drop() {
        mark_to_drop(standard_metadata);
        exit;
    }

    action set_vlan(vid_t vid) {
        meta.vid = vid;
    }

    // The VLAN of frames without a tag. A trunk without an entry takes tagged frames only.
    table port_vlan {
        key = { standard_metadata.ingress_port: exact; }
        actions = { set_vlan; drop; }
        default_action = drop();
        size = 512;
    }

    // The VLANs that a port may send tagged frames of. An access port has no entry.
    table tagged_members {
        key = {
            standard_metadata.ingress_port: exact;
            meta.vid:                       exact;
        }
        actions = { NoAction; drop; }
        default_action = drop();
        size = 16384;
    }

    action forward(port_t port) {
        standard_metadata.egress_spec = port;
    }

    action flood() {
        standard_metadata.mcast_grp = (bit<16>) meta.vid;
    }

    table stations {
        key = {
            meta.vid:         exact;
            hdr.ethernet.dst: exact;
        }
        actions = { forward; flood; }
        default_action = flood();
        size = 65536;
    }

    apply {
        if (standard_metadata.parser_error != error.NoError) {
            drop();
        }
        if (hdr.vlan.isValid()) {
            meta.priority = hdr.vlan.priority;
            meta.vid = hdr.vlan.vid;
        }
        if (meta.vid != NONE) {
            tagged_members.apply();
        } else {
            port_vlan.apply();
        }
        stations.apply();
    }
}

control VlanEgress(inout headers_t hdr,
                   inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    action drop() {
        mark_to_drop(standard_metadata);
    }

    action untagged() {
        if (hdr.vlan.isValid()) {
            hdr.ethernet.type = hdr.vlan.type;
            hdr.vlan.setInvalid();
        }
    }

    action tagged() {
        if (!hdr.vlan.isValid()) {
            hdr.vlan.setValid();
            hdr.vlan.type = hdr.ethernet.type;
            hdr.ethernet.type = TPID;
        }
        hdr.vlan.priority = meta.priority;
        hdr.vlan.vid = meta.vid;
    }

    // The VLANs of each port, and whether their frames have a tag there.
    table members {
        key = {
            standard_metadata.egress_port: exact;
            meta.vid:                      exact;
        }
        actions = { untagged; tagged; drop; }
        default_action = drop();
        size = 16384;
    }

    apply {
        if (standard_metadata.egress_port == standard_metadata.ingress_port) {
            drop();                 // the sender's segment has the frame already
        } else {
            members.apply();
        }
    }
}

control VlanComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control VlanDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(VlanParser(), VlanVerifyChecksum(), VlanIngress(), VlanEgress(), VlanComputeChecksum(), VlanDeparser()) main;
