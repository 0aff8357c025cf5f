// SPDX-License-Identifier: Apache-2.0
//
// Every way in which v1model sends a packet round or twice; the packet says which it wants.
//
// Uses: clone I2E and E2E, resubmit and recirculate with field lists, multicast with replication ids, truncate,
// instance types, switch on an expression.

#include <core.p4>
#include <v1model.p4>

const bit<32> INGRESS_SESSION = 7;
const bit<32> EGRESS_SESSION = 8;

const bit<32> NORMAL = 0;
const bit<32> INGRESS_CLONE = 1;
const bit<32> EGRESS_CLONE = 2;
const bit<32> RECIRCULATED = 4;
const bit<32> REPLICATED = 5;
const bit<32> RESUBMITTED = 6;

const bit<32> CLONE_LENGTH = 20;    // bytes of a mirrored packet

enum bit<8> Operation {
    CLONE_INGRESS = 1,
    CLONE_EGRESS  = 2,
    RESUBMIT      = 3,
    RECIRCULATE   = 4,
    MULTICAST     = 5
}

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

header order_t {
    Operation operation;
    bit<8>    passes;
    bit<8>    port;         // or multicast group
    bit<8>    mark;
}

struct headers_t {
    ethernet_t ethernet;
    order_t    order;
}

enum bit<8> FieldList {
    MARK   = 1,
    PASSES = 2
}

struct metadata_t {
    @field_list(FieldList.MARK)
    bit<8> mark;
    @field_list(FieldList.MARK, FieldList.PASSES)
    bit<8> passes;
    bit<8> forgotten;       // in no field list: 0 after every trip
}

parser MirrorParser(packet_in packet,
                    out headers_t hdr,
                    inout metadata_t meta,
                    inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        packet.extract(hdr.order);
        transition accept;
    }
}

control MirrorVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control MirrorIngress(inout headers_t hdr,
                      inout metadata_t meta,
                      inout standard_metadata_t standard_metadata) {
    apply {
        if (!hdr.order.isValid()) {
            mark_to_drop(standard_metadata);
            return;
        }
        standard_metadata.egress_spec = (bit<9>) hdr.order.port;

        switch (hdr.order.operation) {
            Operation.CLONE_INGRESS: {
                clone_preserving_field_list(CloneType.I2E, INGRESS_SESSION, FieldList.MARK);
                // The clone has the packet as it came, but these fields as ingress leaves them.
                hdr.order.mark = 0x11;
                meta.mark = 0xaa;
                meta.forgotten = 0xff;
            }
            Operation.RESUBMIT: {
                if (standard_metadata.instance_type == RESUBMITTED) {
                    hdr.order.passes = meta.passes;
                    hdr.order.mark = hdr.order.mark + meta.mark + meta.forgotten;
                } else {
                    hdr.order.mark = 0x33;      // in vain: the packet comes back as it came
                    meta.mark = 0x44;           // not in the list
                    meta.passes = 1;
                    meta.forgotten = 0xff;
                    resubmit_preserving_field_list(FieldList.PASSES);
                }
            }
            Operation.MULTICAST: {
                standard_metadata.mcast_grp = (bit<16>) hdr.order.port;
            }
            Operation.CLONE_EGRESS:
            Operation.RECIRCULATE: {}
            default: {
                mark_to_drop(standard_metadata);
            }
        }
    }
}

control MirrorEgress(inout headers_t hdr,
                     inout metadata_t meta,
                     inout standard_metadata_t standard_metadata) {
    apply {
        if (standard_metadata.instance_type == INGRESS_CLONE) {
            hdr.order.mark = meta.mark;
            hdr.order.passes = meta.forgotten;
            truncate(CLONE_LENGTH);
        } else if (standard_metadata.instance_type == EGRESS_CLONE) {
            hdr.order.passes = hdr.order.passes + meta.passes;
        } else if (standard_metadata.instance_type == REPLICATED) {
            hdr.order.mark = (bit<8>) standard_metadata.egress_rid;
        } else if (hdr.order.operation == Operation.CLONE_EGRESS) {
            clone_preserving_field_list(CloneType.E2E, EGRESS_SESSION, FieldList.MARK);
            // This clone has the packet as egress leaves it.
            hdr.order.mark = 0x22;
            meta.passes = 5;
        } else if (hdr.order.operation == Operation.RECIRCULATE) {
            if (standard_metadata.instance_type == NORMAL || meta.passes < 3) {
                hdr.order.passes = hdr.order.passes + 1;
                meta.passes = meta.passes + 1;
                meta.forgotten = 0xff;
                recirculate_preserving_field_list(FieldList.PASSES);
            } else {
                hdr.order.mark = meta.passes + meta.forgotten;
            }
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
