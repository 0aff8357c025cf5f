// Timers, meters, registers, queues and packets that start again, for a switch that runs for hours: each frame leaves by the other port
// or a counter says why not. The lowest byte of the source address is the flow.
#include <core.p4>
#include <v1model.p4>

header ethernet_t {
    bit<48> dst;
    bit<40> src;
    bit<8> flow;
    bit<16> type;
}
struct headers_t { ethernet_t eth; }
struct metadata_t {
    bit<2> colour;
    @field_list(1) bit<1> again;
}

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.eth);
        transition accept;
    }
}
control V(inout headers_t hdr, inout metadata_t meta) { apply {} }

control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    // When a frame of the flow came last, plus one, and how often none came for a minute before one did.
    register<bit<48>>(256) last;
    register<bit<32>>(256) expired;
    meter(256, MeterType.packets) rate;
    counter(256, CounterType.packets) frames;

    apply {
        if (!hdr.eth.isValid()) {
            mark_to_drop(standard);
            return;
        }
        bit<32> flow = (bit<32>) hdr.eth.flow;
        standard.egress_spec = standard.ingress_port ^ 1;
        standard.priority = (bit<3>) hdr.eth.flow[1:0];
        if (meta.again == 1) {
            return;
        }
        frames.count(flow);
        bit<48> before;
        bit<32> count;
        @atomic {
            last.read(before, flow);
            if (before != 0 && standard.ingress_global_timestamp + 1 - before > 60000000) {
                expired.read(count, flow);
                expired.write(flow, count + 1);
            }
            last.write(flow, standard.ingress_global_timestamp + 1);
        }
        rate.execute_meter(flow, meta.colour);
        if (meta.colour == 2) {
            mark_to_drop(standard);
            return;
        }
        if (hdr.eth.flow == 7) {
            meta.again = 1;
            resubmit_preserving_field_list(1);
        }
    }
}
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) { apply {} }
control C(inout headers_t hdr, inout metadata_t meta) { apply {} }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.eth); } }

V1Switch(P(), V(), I(), E(), C(), D()) main;
