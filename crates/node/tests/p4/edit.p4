// Sends by a table on the second byte, with a class, and drops what begins with 3.
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
    direct_counter(CounterType.packets_and_bytes) uses;

    action send(bit<9> port, bit<3> class) {
        standard.egress_spec = port;
        standard.priority = class;
        uses.count();
    }

    table outputs {
        key = {
            headers.start.second: exact;
        }
        actions = {
            send;
        }
        const default_action = send(0, 7);
        counters = uses;
        size = 16;
    }

    apply {
        outputs.apply();
        if (headers.start.first == 3) {
            mark_to_drop(standard);
        }
        headers.start.first = headers.start.first ^ 0x40;
    }
}

control Out(inout headers_t headers, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { }
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
