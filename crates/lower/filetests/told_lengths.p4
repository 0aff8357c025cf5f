// PNA's direct meter takes a length or none.
// test lower
// in: body action Main.told
// check: meter_direct Main.told.tmp, Main.t, length 32w7
// in: body action Main.not_told
// check: meter_direct Main.not_told.tmp, Main.t
#include <core.p4>
#include <pna.p4>
header h_t { bit<8> x; }
struct headers_t { h_t h; }
struct metadata_t { PNA_MeterColor_t c; }
control Pre(in headers_t hdr, inout metadata_t meta, in pna_pre_input_metadata_t istd,
            inout pna_pre_output_metadata_t ostd) {
    apply { }
}
parser MainParser(packet_in packet, out headers_t hdr, inout metadata_t meta, in pna_main_parser_input_metadata_t istd) {
    state start { packet.extract(hdr.h); transition accept; }
}
control Main(inout headers_t hdr, inout metadata_t meta, in pna_main_input_metadata_t istd,
             inout pna_main_output_metadata_t ostd) {
    DirectMeter(PNA_MeterType_t.BYTES) m;
    action told() { meta.c = m.execute(32w7); }
    action not_told() { meta.c = m.execute(); }
    table t {
        key = { hdr.h.x: exact; }
        actions = { told; not_told; NoAction; }
        pna_direct_meter = m;
    }
    apply { t.apply(); }
}
control MainDeparser(packet_out packet, in headers_t hdr, in metadata_t meta, in pna_main_output_metadata_t ostd) {
    apply { packet.emit(hdr); }
}
PNA_NIC(MainParser(), Pre(), Main(), MainDeparser()) main;
