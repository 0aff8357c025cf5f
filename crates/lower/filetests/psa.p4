// The end of ingress folds the drop into resubmission and multicast; direct objects belong to the table that names
// them; colours and packet paths are numbered as their enumerations are.
// test lower
// check: deparse_at_ingress
// check: field_list 3 (parser.istd.ingress_port, resubmitted.n)
// check: field_list 4 ()
// check: field_list 1 ()
// check: field_list 2 ()
// in: register ingress.r
// check: register ingress.r: bit<8> size 4 initial 8w9
// in: table ingress.t {
// check: direct_counter ingress.dc packets
// check: direct_meter ingress.dm packets
// in: table ingress.g {
// check: selector_input istd.ingress_port
// check: empty_group ingress.set(8w9)
// in: table ingress.nothing {
// check: action NoAction default_only
// check: empty_group NoAction()
// in: body parser IngressParserImpl
// check: parser.istd.ingress_port = mux(eq(switch.packet_path, 32w6), parser.istd.ingress_port, mux(eq(switch.packet_path, 32w4), 32w0xfffffffa, switch.ingress_port))
// in: body action ingress.a
// check: count_direct ingress.t
// check: meter_direct ingress.a.tmp$1, ingress.t, color mux(eq(ingress.a.tmp, 32w1), 8w0, mux(eq(ingress.a.tmp, 32w2), 8w1, 8w2))
// check: ingress.colour = mux(eq(ingress.a.tmp$1, 8w0), 32w1, mux(eq(ingress.a.tmp$1, 8w1), 32w2, 32w0))
// in: body control ingress
// check: ostd.drop = true
// in: body deparser IngressDeparserImpl
// check: resubmitted.n = 8w0
// check: switch.clone = ostd.clone
// check: switch.clone_list = 32w1
// check: switch.resubmit = bool_and(ostd.resubmit, not(ostd.drop))
// check: switch.multicast_group = mux(ostd.drop, 32w0, ostd.multicast_group)
// check: switch.drop = ostd.drop
// in: body deparser EgressDeparserImpl
// check: switch.clone_list = 32w2
// check: switch.recirculate = bool_and(eq(switch.egress_port, 32w0xfffffffa), not(egress.ostd.drop))
// check: switch.drop = egress.ostd.drop
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
    ActionSelector(PSA_HashAlgorithm_t.CRC16, 32w64, 32w8) members;
    action set(bit<8> v) { hdr.h.x = v; }
    table g {
        key = { hdr.h.x: exact; istd.ingress_port: selector; }
        actions = { set; }
        psa_implementation = members;
        psa_empty_group_action = set(9);
    }
    table nothing {
        key = { hdr.h.x: exact; istd.ingress_port: selector; }
        actions = { set; }
        psa_implementation = members;
    }
    apply {
        t.apply();
        g.apply();
        nothing.apply();
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
