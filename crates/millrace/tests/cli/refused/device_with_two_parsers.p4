// rtl --device
// refused: a parser in egress, in device: Second (device_with_two_parsers.p4:16)
#include <core.p4>
#include <psa.p4>
header h_t { bit<8> a; }
struct headers { h_t h; }
struct meta_t { }
struct none_t { }
parser First(packet_in p, out headers hdr, inout meta_t m, in psa_ingress_parser_input_metadata_t i,
             in none_t resubmitted, in none_t recirculated) {
    state start { p.extract(hdr.h); transition accept; }
}
control I(inout headers hdr, inout meta_t m, in psa_ingress_input_metadata_t i, inout psa_ingress_output_metadata_t o) {
    apply { send_to_port(o, (PortId_t)1); }
}
parser Second(packet_in p, out headers hdr, inout meta_t m, in psa_egress_parser_input_metadata_t i, in none_t normal,
              in none_t cloned_in_ingress, in none_t cloned_in_egress) {
    state start { p.extract(hdr.h); transition accept; }
}
control E(inout headers hdr, inout meta_t m, in psa_egress_input_metadata_t i, inout psa_egress_output_metadata_t o) {
    apply { }
}
control DI(packet_out p, out none_t cloned, out none_t resubmitted, out none_t normal, inout headers hdr, in meta_t m,
           in psa_ingress_output_metadata_t o) {
    apply { p.emit(hdr.h); }
}
control DE(packet_out p, out none_t cloned, out none_t recirculated, inout headers hdr, in meta_t m,
           in psa_egress_output_metadata_t o, in psa_egress_deparser_input_metadata_t d) {
    apply { p.emit(hdr.h); }
}
IngressPipeline(First(), I(), DI()) ip;
EgressPipeline(Second(), E(), DE()) ep;
PSA_Switch(ip, PacketReplicationEngine(), ep, BufferingQueueingEngine()) main;
