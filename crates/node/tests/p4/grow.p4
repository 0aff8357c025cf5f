// Puts a header before the frame that tells its input, its length and its output, and takes two bytes away at the end of egress from what
// leaves by output 1.
#include <core.p4>
#include <v1model.p4>

header told_t {
    bit<8> from;
    bit<16> length;
    bit<8> to;
}

header rest_t {
    bit<16> bytes;
}

struct headers_t {
    told_t told;
    rest_t rest;
}

struct metadata_t {
}

parser Start(packet_in packet, out headers_t headers, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(headers.rest);
        transition accept;
    }
}

control Verify(inout headers_t headers, inout metadata_t meta) {
    apply { }
}

control In(inout headers_t headers, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        headers.told.setValid();
        headers.told.from = (bit<8>)standard.ingress_port;
        headers.told.length = (bit<16>)standard.packet_length;
        standard.egress_spec = (bit<9>)(headers.rest.bytes & 1);
    }
}

control Out(inout headers_t headers, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        headers.told.to = (bit<8>)standard.egress_port;
        if (standard.egress_port == 1) {
            headers.rest.setInvalid();
        }
    }
}

control Compute(inout headers_t headers, inout metadata_t meta) {
    apply { }
}

control Emit(packet_out packet, in headers_t headers) {
    apply {
        packet.emit(headers.told);
        packet.emit(headers.rest);
    }
}

V1Switch(Start(), Verify(), In(), Out(), Compute(), Emit()) main;
