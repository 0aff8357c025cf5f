// Sends frames through ingress again, clones them, and copies them to a group.
#include <core.p4>
#include <v1model.p4>

header start_t {
    bit<8> first;
    bit<8> second;
}

struct headers_t {
    start_t start;
}

struct metadata_t {
    @field_list(1)
    bit<8> seen;
}

parser Start(packet_in packet, out headers_t headers, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(headers.start);
        transition accept;
    }
}

control Verify(inout headers_t headers, inout metadata_t meta) {
    apply { }
}

control In(inout headers_t headers, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        if (standard.instance_type == 0 && headers.start.second == 2) {
            meta.seen = 5;
            resubmit_preserving_field_list(1);
        } else if (standard.instance_type == 0 && headers.start.first == 1) {
            standard.mcast_grp = 1;
        } else {
            standard.egress_spec = (bit<9>)(headers.start.first & 1);
        }
        if (standard.instance_type == 0 && headers.start.second == 1) {
            clone(CloneType.I2E, 5);
        }
        headers.start.second = headers.start.second | meta.seen;
    }
}

control Out(inout headers_t headers, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        if (standard.instance_type == 0 && headers.start.first == 2) {
            headers.start.first = 0x80;
            recirculate_preserving_field_list(1);
        }
    }
}

control Compute(inout headers_t headers, inout metadata_t meta) {
    apply { }
}

control Emit(packet_out packet, in headers_t headers) {
    apply {
        packet.emit(headers.start);
    }
}

V1Switch(Start(), Verify(), In(), Out(), Compute(), Emit()) main;
