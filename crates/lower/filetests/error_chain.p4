// A chain is a text.
// test lower
// error: `@input` takes a text: ports and a chain of plugins
#include "../tests/common.p4"
@input(0)
V1Switch(NoParser(), NoVerify(), NoIngress(), NoEgress(), NoCompute(), NoDeparser()) main;
