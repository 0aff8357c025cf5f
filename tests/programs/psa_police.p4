// SPDX-License-Identifier: Apache-2.0
//
// A policer on PSA that says what it thinks of a packet of the length that the packet itself tells.
//
// Uses: accounts of millrace.p4, indexed and of entries; meters of DPDK's edition that are told a length, indexed and direct.

#include <core.p4>
#include <dpdk/psa.p4>
#include <millrace.p4>

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

header told_t {
    bit<8>  link;
    bit<16> length;
    bit<8>  account;    // whether the account of the link lets it pass
    bit<8>  own;        // and that of its entry
    bit<8>  meter;      // colours
    bit<8>  of_entry;
}

struct headers_t {
    ethernet_t ethernet;
    told_t     told;
}

struct metadata_t { }
struct empty_t { }

bit<8> number(in PSA_MeterColor_t colour) {
    if (colour == PSA_MeterColor_t.GREEN) { return 1; }
    if (colour == PSA_MeterColor_t.YELLOW) { return 2; }
    return 3;
}

parser IngressParserImpl(packet_in packet, out headers_t hdr, inout metadata_t meta,
                         in psa_ingress_parser_input_metadata_t istd, in empty_t resubmitted, in empty_t recirculated) {
    state start {
        packet.extract(hdr.ethernet);
        packet.extract(hdr.told);
        transition accept;
    }
}

control ingress(inout headers_t hdr, inout metadata_t meta, in psa_ingress_input_metadata_t istd,
                inout psa_ingress_output_metadata_t ostd) {
    account(4) accounts;
    direct_account() own;
    Meter<bit<8>>(4, PSA_MeterType_t.BYTES) meter;
    DirectMeter(PSA_MeterType_t.BYTES) of_entry;

    action police() {
        if (own.admit((bit<32>)hdr.told.length)) { hdr.told.own = 1; }
    }
    table links {
        key = { hdr.told.link: exact; }
        actions = { police; NoAction; }
        default_action = NoAction();
        account = own;
    }

    action measure() {
        hdr.told.of_entry = number(of_entry.dpdk_execute(PSA_MeterColor_t.YELLOW, (bit<32>)hdr.told.length));
    }
    table measured {
        key = { hdr.told.link: exact; }
        actions = { measure; NoAction; }
        default_action = NoAction();
        psa_direct_meter = of_entry;
    }

    apply {
        if (accounts.admit((bit<32>)hdr.told.link, (bit<32>)hdr.told.length)) { hdr.told.account = 1; }
        links.apply();
        hdr.told.meter = number(meter.dpdk_execute(hdr.told.link, (bit<32>)hdr.told.length));
        measured.apply();
        send_to_port(ostd, (PortId_t)1);
    }
}

control IngressDeparserImpl(packet_out packet, out empty_t cloned, out empty_t resubmitted, out empty_t normal,
                            inout headers_t hdr, in metadata_t meta, in psa_ingress_output_metadata_t ostd) {
    apply { packet.emit(hdr); }
}

parser EgressParserImpl(packet_in packet, out empty_t hdr, inout empty_t meta, in psa_egress_parser_input_metadata_t istd,
                        in empty_t normal, in empty_t cloned_in_ingress, in empty_t cloned_in_egress) {
    state start { transition accept; }
}

control egress(inout empty_t hdr, inout empty_t meta, in psa_egress_input_metadata_t istd,
               inout psa_egress_output_metadata_t ostd) {
    apply { }
}

control EgressDeparserImpl(packet_out packet, out empty_t cloned, out empty_t recirculated, inout empty_t hdr,
                           in empty_t meta, in psa_egress_output_metadata_t ostd,
                           in psa_egress_deparser_input_metadata_t edstd) {
    apply { }
}

IngressPipeline(IngressParserImpl(), ingress(), IngressDeparserImpl()) ip;
EgressPipeline(EgressParserImpl(), egress(), EgressDeparserImpl()) ep;

PSA_Switch(ip, PacketReplicationEngine(), ep, BufferingQueueingEngine()) main;
