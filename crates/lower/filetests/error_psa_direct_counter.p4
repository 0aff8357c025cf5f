// test lower
// error: `ingress.dc` belongs to no table here
#include <core.p4>
#include <psa.p4>
header h_t { bit<8> x; }
struct headers_t { h_t h; }
struct empty_t { }
struct note_t { bit<8> n; }
parser IngressParserImpl(packet_in packet, out headers_t hdr, inout empty_t meta,
                         in psa_ingress_parser_input_metadata_t istd, in note_t resubmitted, in empty_t recirculated) {
    state start { packet.extract(hdr.h); transition accept; }
}
control ingress(inout headers_t hdr, inout empty_t meta, in psa_ingress_input_metadata_t istd,
                inout psa_ingress_output_metadata_t ostd) {
    DirectCounter<bit<32>>(PSA_CounterType_t.PACKETS) dc;
    DirectMeter(PSA_MeterType_t.PACKETS) dm;
    Register<bit<8>, bit<2>>(4, 8w9) r;
    PSA_MeterColor_t colour = PSA_MeterColor_t.GREEN;
    action a() {
        dc.count();
        colour = dm.execute(colour);
    }
    table t {
        key = { hdr.h.x: exact; }
        actions = { a; NoAction; }
        psa_direct_counter = dc;
        psa_direct_meter = dm;
    }
    apply {
        dc.count();
        t.apply();
        r.write(1, 2);
        if (colour == PSA_MeterColor_t.RED) { send_to_port(ostd, istd.ingress_port); }
    }
}
control IngressDeparserImpl(packet_out packet, out empty_t cloned, out note_t resubmitted, out empty_t normal,
                            inout headers_t hdr, in empty_t meta, in psa_ingress_output_metadata_t ostd) {
    apply { packet.emit(hdr); }
}
parser EgressParserImpl(packet_in packet, out headers_t hdr, inout empty_t meta,
                        in psa_egress_parser_input_metadata_t istd, in empty_t normal, in empty_t c1, in empty_t c2) {
    state start { transition accept; }
}
control egress(inout headers_t hdr, inout empty_t meta, in psa_egress_input_metadata_t istd,
               inout psa_egress_output_metadata_t ostd) {
    apply { }
}
control EgressDeparserImpl(packet_out packet, out empty_t c2, out empty_t recirculated, inout headers_t hdr,
                           in empty_t meta, in psa_egress_output_metadata_t ostd,
                           in psa_egress_deparser_input_metadata_t edstd) {
    apply { }
}
IngressPipeline(IngressParserImpl(), ingress(), IngressDeparserImpl()) ip;
EgressPipeline(EgressParserImpl(), egress(), EgressDeparserImpl()) ep;
PSA_Switch(ip, PacketReplicationEngine(), ep, BufferingQueueingEngine()) main;
