// What the cases share: types, and blocks that do nothing.
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<8> b; }
header wide_t { bit<4> hi; bit<12> lo; int<16> s; bool f; bit<7> pad; }
header var_t { bit<8> len; varbit<320> data; }
header_union u_t { h_t x; wide_t y; }
struct inner_t { bit<8> p; bit<16> q; }
struct headers_t { h_t h; h_t g; h_t[3] st; wide_t w; var_t v; u_t u; u_t[2] us; }
struct meta_t { bit<8> x; bit<8> y; bit<16> z; bool c; inner_t in1; inner_t in2; }

parser NoParser(packet_in p, out headers_t hdr, inout meta_t m, inout standard_metadata_t sm) {
    state start { transition accept; }
}
control NoVerify(inout headers_t hdr, inout meta_t m) { apply {} }
control NoIngress(inout headers_t hdr, inout meta_t m, inout standard_metadata_t sm) { apply {} }
control NoEgress(inout headers_t hdr, inout meta_t m, inout standard_metadata_t sm) { apply {} }
control NoCompute(inout headers_t hdr, inout meta_t m) { apply {} }
control NoDeparser(packet_out p, in headers_t hdr) { apply {} }

#define INGRESS(name) control name(inout headers_t hdr, inout meta_t m, inout standard_metadata_t sm)
#define MAIN(ingress) V1Switch(NoParser(), NoVerify(), ingress(), NoEgress(), NoCompute(), NoDeparser()) main
#define PARSER(name) parser name(packet_in p, out headers_t hdr, inout meta_t m, inout standard_metadata_t sm)
#define MAIN_PARSER(parser) V1Switch(parser(), NoVerify(), NoIngress(), NoEgress(), NoCompute(), NoDeparser()) main
