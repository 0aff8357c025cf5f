// What the program asks for around it goes into the IR as text; a text may be made of several.
// test lower
// check: input "0:filter 'udp port 53' | sample 1/10"
// check: output "*:filter \"not arp\""
// check: input "1-3:filter 'tcp'"
#include "../tests/common.p4"
@input("0:filter 'udp port 53' | sample 1/10")
@output("*:filter \"not arp\"")
@name("switch") @input("1-3:" "filter 'tcp'")
V1Switch(NoParser(), NoVerify(), NoIngress(), NoEgress(), NoCompute(), NoDeparser()) main;
