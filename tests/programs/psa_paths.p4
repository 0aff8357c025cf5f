// SPDX-License-Identifier: Apache-2.0
//
// Packets that say which of PSA's paths they take, and come out with a report of what both pipelines were told.
//
// Uses: all paths of PSA with metadata on each, also headers in metadata; drop against resubmission, multicast and
// clones; parser errors of both parsers; the predicates of the deparsers.

#include <core.p4>
#include <psa.p4>

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

// What to do: bits of `what` are requests, which ingress passes on as they are.
header order_t {
    bit<4>  spare;
    bit<1>  drop;
    bit<1>  clone;
    bit<1>  again;      // resubmit, once
    bit<1>  multicast;
    bit<8>  egress;     // bit 0: clone in egress, bit 1: drop there
    bit<16> session;
    bit<32> port;
}

header report_t {
    bit<32> ingress_port;
    bit<8>  path;
    bit<8>  error_code;
    bit<8>  passes;     // how often ingress began
    bit<8>  note;       // from the deparser that made this copy
}

header egress_report_t {
    bit<32> egress_port;
    bit<8>  path;
    bit<8>  error_code;
    bit<16> instance;
}

struct headers_t {
    ethernet_t      ethernet;
    order_t         order;
    report_t        report;
    egress_report_t egress_report;
}

// Carried between passes and pipelines: a header and a number.
struct carried_t {
    report_t report;
    bit<8>   passes;
}

struct ingress_metadata_t {
    bit<8> passes;
}

struct egress_metadata_t {
    report_t report;
}

error { NoOrder }

parser IngressParserImpl(packet_in packet, out headers_t hdr, inout ingress_metadata_t meta,
                         in psa_ingress_parser_input_metadata_t istd,
                         in carried_t resubmitted, in carried_t recirculated) {
    state start {
        meta.passes = 1;
        transition select(istd.packet_path) {
            PSA_PacketPath_t.RESUBMIT: resubmitted_before;
            PSA_PacketPath_t.RECIRCULATE: recirculated_before;
            default: ethernet;
        }
    }
    state resubmitted_before {
        meta.passes = resubmitted.passes + resubmitted.report.passes;
        transition ethernet;
    }
    state recirculated_before {
        meta.passes = recirculated.passes + recirculated.report.passes;
        transition ethernet;
    }
    state ethernet {
        packet.extract(hdr.ethernet);
        verify(hdr.ethernet.type == 0x88b5, error.NoOrder);
        packet.extract(hdr.order);
        transition accept;
    }
}

control path_number(in PSA_PacketPath_t path, out bit<8> number) {
    apply {
        if (path == PSA_PacketPath_t.NORMAL) { number = 0; }
        else if (path == PSA_PacketPath_t.NORMAL_UNICAST) { number = 1; }
        else if (path == PSA_PacketPath_t.NORMAL_MULTICAST) { number = 2; }
        else if (path == PSA_PacketPath_t.CLONE_I2E) { number = 3; }
        else if (path == PSA_PacketPath_t.CLONE_E2E) { number = 4; }
        else if (path == PSA_PacketPath_t.RESUBMIT) { number = 5; }
        else if (path == PSA_PacketPath_t.RECIRCULATE) { number = 6; }
        else { number = 0xff; }
    }
}

control error_number(in error code, out bit<8> number) {
    apply {
        number = 0xff;
        if (code == error.NoError) { number = 0; }
        else if (code == error.PacketTooShort) { number = 1; }
        else if (code == error.NoOrder) { number = 2; }
    }
}

control ingress(inout headers_t hdr, inout ingress_metadata_t meta, in psa_ingress_input_metadata_t istd,
                inout psa_ingress_output_metadata_t ostd) {
    path_number() path;
    error_number() code;
    apply {
        hdr.report.setValid();
        hdr.report.ingress_port = (bit<32>) (PortIdUint_t) istd.ingress_port;
        path.apply(istd.packet_path, hdr.report.path);
        code.apply(istd.parser_error, hdr.report.error_code);
        hdr.report.passes = meta.passes;
        if (!hdr.order.isValid()) {
            send_to_port(ostd, (PortId_t) 32w9);
            return;
        }
        ostd.drop = hdr.order.drop == 1;
        ostd.clone = hdr.order.clone == 1 && istd.packet_path == PSA_PacketPath_t.NORMAL;
        ostd.clone_session_id = (CloneSessionId_t) hdr.order.session;
        ostd.resubmit = hdr.order.again == 1 && istd.packet_path != PSA_PacketPath_t.RESUBMIT;
        if (hdr.order.multicast == 1) {
            ostd.multicast_group = (MulticastGroup_t) 32w7;
        }
        // Recirculated once, a packet goes to the port in its order without the highest bit.
        if (meta.passes > 1 && istd.packet_path != PSA_PacketPath_t.RESUBMIT
            || (PortIdUint_t) istd.ingress_port == (PortIdUint_t) PSA_PORT_RECIRCULATE) {
            ostd.egress_port = (PortId_t) (hdr.order.port & 0xf);
        } else {
            ostd.egress_port = (PortId_t) hdr.order.port;
        }
    }
}

control IngressDeparserImpl(packet_out packet, out carried_t cloned, out carried_t resubmitted, out carried_t normal,
                            inout headers_t hdr, in ingress_metadata_t meta, in psa_ingress_output_metadata_t ostd) {
    apply {
        if (psa_clone_i2e(ostd)) {
            cloned.report = hdr.report;
            cloned.report.note = 0xc1;
        }
        if (psa_resubmit(ostd)) {
            resubmitted.report = hdr.report;
            resubmitted.passes = 1;
        }
        if (psa_normal(ostd)) {
            normal.report = hdr.report;
            normal.report.note = 0xa0;
        }
        packet.emit(hdr.ethernet);
        packet.emit(hdr.order);
    }
}

parser EgressParserImpl(packet_in packet, out headers_t hdr, inout egress_metadata_t meta,
                        in psa_egress_parser_input_metadata_t istd,
                        in carried_t normal, in carried_t cloned_in_ingress, in carried_t cloned_in_egress) {
    state start {
        transition select(istd.packet_path) {
            PSA_PacketPath_t.CLONE_I2E: clone_i2e;
            PSA_PacketPath_t.CLONE_E2E: clone_e2e;
            default: usual;
        }
    }
    state usual {
        meta.report = normal.report;
        transition ethernet;
    }
    state clone_i2e {
        meta.report = cloned_in_ingress.report;
        transition ethernet;
    }
    state clone_e2e {
        meta.report = cloned_in_egress.report;
        // The report of the first copy is in front of what it was made of.
        packet.advance(128);
        transition ethernet;
    }
    state ethernet {
        packet.extract(hdr.ethernet);
        packet.extract(hdr.order);
        transition accept;
    }
}

control egress(inout headers_t hdr, inout egress_metadata_t meta, in psa_egress_input_metadata_t istd,
               inout psa_egress_output_metadata_t ostd) {
    path_number() path;
    error_number() code;
    apply {
        hdr.report = meta.report;
        hdr.egress_report.setValid();
        hdr.egress_report.egress_port = (bit<32>) (PortIdUint_t) istd.egress_port;
        path.apply(istd.packet_path, hdr.egress_report.path);
        code.apply(istd.parser_error, hdr.egress_report.error_code);
        hdr.egress_report.instance = (bit<16>) (EgressInstanceUint_t) istd.instance;
        if (istd.packet_path == PSA_PacketPath_t.NORMAL_UNICAST) {
            ostd.clone = hdr.order.egress[0:0] == 1;
            ostd.clone_session_id = (CloneSessionId_t) hdr.order.session;
            if (hdr.order.egress[1:1] == 1) {
                egress_drop(ostd);
            }
        }
    }
}

control EgressDeparserImpl(packet_out packet, out carried_t cloned, out carried_t recirculated, inout headers_t hdr,
                           in egress_metadata_t meta, in psa_egress_output_metadata_t ostd,
                           in psa_egress_deparser_input_metadata_t edstd) {
    apply {
        if (psa_clone_e2e(ostd)) {
            cloned.report = hdr.report;
            cloned.report.note = 0xce;
        }
        if (psa_recirculate(ostd, edstd)) {
            recirculated.report = hdr.report;
            recirculated.passes = 1;
        } else {
            packet.emit(hdr.report);
            packet.emit(hdr.egress_report);
        }
        packet.emit(hdr.ethernet);
        packet.emit(hdr.order);
    }
}

IngressPipeline(IngressParserImpl(), ingress(), IngressDeparserImpl()) ip;
EgressPipeline(EgressParserImpl(), egress(), EgressDeparserImpl()) ep;

PSA_Switch(ip, PacketReplicationEngine(), ep, BufferingQueueingEngine()) main;
