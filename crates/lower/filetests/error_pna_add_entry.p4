// test lower
// error: `add_entry` is for actions of a table with `add_on_miss = true`
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
        add_entry("a", 8w1, (ExpireTimeProfileId_t) 8w0);
        if (istd.direction == PNA_Direction_t.HOST_TO_NET && (bit<3>) (PassNumberUint_t) istd.pass == 0) { recirculate(); }
        mirror_packet((MirrorSlotId_t) 8w0, (MirrorSessionId_t) 16w2);
    }
}
control MainDeparser(packet_out packet, in headers_t hdr, in metadata_t meta, in pna_main_output_metadata_t ostd) {
    apply { packet.emit(hdr); }
}
PNA_NIC(MainParser(), Pre(), Main(), MainDeparser()) main;
