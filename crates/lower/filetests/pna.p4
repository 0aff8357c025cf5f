// A packet is dropped unless it is sent somewhere, and the last word counts; what goes round takes its passes along.
// test lower
// check: ingress (Pre, MainParser, Main)
// check: egress (MainDeparser)
// check: field_list 1 (passes)
// in: body control Pre
// check: passes = mux(eq(switch.packet_path, 32w4), add(passes, 32w1), 32w0)
// in: body control Main
// check: istd.direction = mux(lt(switch.ingress_port, 32w0x100), 32w0, 32w1)
// check: istd.pass = zext(passes, 3)
// check: switch.drop = true
// check: switch.drop = false
// check: switch.egress_spec = 32w5
// check: switch.drop = false
// check: recirculate = true
// check: switch.clone_session = 32w2
// in: body deparser MainDeparser
// check: switch.recirculate = recirculate
// check: switch.recirculate_list = 32w1
#include <core.p4>
#include <pna.p4>
header h_t { bit<8> x; }
struct headers_t { h_t h; }
struct metadata_t { }
control Pre(in headers_t hdr, inout metadata_t meta, in pna_pre_input_metadata_t istd,
            inout pna_pre_output_metadata_t ostd) {
    apply { }
}
parser MainParser(packet_in packet, out headers_t hdr, inout metadata_t meta, in pna_main_parser_input_metadata_t istd) {
    state start { packet.extract(hdr.h); transition accept; }
}
control Main(inout headers_t hdr, inout metadata_t meta, in pna_main_input_metadata_t istd,
             inout pna_main_output_metadata_t ostd) {
    apply {
        send_to_port((PortId_t) 32w5);
        if (istd.direction == PNA_Direction_t.HOST_TO_NET && (bit<3>) (PassNumberUint_t) istd.pass == 0) { recirculate(); }
        mirror_packet((MirrorSlotId_t) 8w0, (MirrorSessionId_t) 16w2);
    }
}
control MainDeparser(packet_out packet, in headers_t hdr, in metadata_t meta, in pna_main_output_metadata_t ostd) {
    apply { packet.emit(hdr); }
}
PNA_NIC(MainParser(), Pre(), Main(), MainDeparser()) main;
