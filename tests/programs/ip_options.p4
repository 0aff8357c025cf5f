// SPDX-License-Identifier: Apache-2.0
//
// Decides by the first IPv4 option: strips all options, forwards them, or drops; bad headers go to a port for
// inspection with the reason in the source address.
//
// Uses: varbit, verify with errors of its own, lookahead of a header, a local parser variable, isValid() as a key,
// a subparser, checksums over a varbit.

#include <core.p4>
#include <v1model.p4>

const bit<9> INSPECTION = 7;

error {
    BadVersion,
    HeaderLengthTooSmall,
    LengthsDisagree
}

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

header ipv4_t {
    bit<4>  version;
    bit<4>  ihl;
    bit<8>  tos;
    bit<16> total_length;
    bit<16> identification;
    bit<16> fragment;
    bit<8>  ttl;
    bit<8>  protocol;
    bit<16> checksum;
    bit<32> src;
    bit<32> dst;
}

header options_t {
    varbit<320> all;
}

// The beginning of an option (RFC 791).
header option_t {
    bit<1> copied;
    bit<2> class;
    bit<5> number;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t     ipv4;
    options_t  options;
}

struct metadata_t {
    bit<5> first_option;
    bool   stripped;
}

parser Options(packet_in packet, in bit<4> ihl, out options_t options, out bit<5> first) {
    state start {
        first = 0;
        transition select(ihl) {
            5: accept;
            default: some;
        }
    }

    state some {
        option_t option = packet.lookahead<option_t>();
        first = option.number;
        packet.extract(options, ((bit<32>) ihl - 5) * 32);
        transition accept;
    }
}

parser OptionsParser(packet_in packet,
                     out headers_t hdr,
                     inout metadata_t meta,
                     inout standard_metadata_t standard_metadata) {
    Options() options;

    state start {
        meta.first_option = 0;
        meta.stripped = false;
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            0x0800: ipv4;
            default: accept;
        }
    }

    state ipv4 {
        packet.extract(hdr.ipv4);
        bit<16> header_length = (bit<16>) hdr.ipv4.ihl << 2;
        verify(hdr.ipv4.version == 4, error.BadVersion);
        verify(hdr.ipv4.ihl >= 5, error.HeaderLengthTooSmall);
        verify(hdr.ipv4.total_length >= header_length, error.LengthsDisagree);
        options.apply(packet, hdr.ipv4.ihl, hdr.options, meta.first_option);
        transition accept;
    }
}

control OptionsVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid() && !hdr.options.isValid(),
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.total_length,
              hdr.ipv4.identification, hdr.ipv4.fragment, hdr.ipv4.ttl, hdr.ipv4.protocol,
              hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
        verify_checksum(hdr.options.isValid(),
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.total_length,
              hdr.ipv4.identification, hdr.ipv4.fragment, hdr.ipv4.ttl, hdr.ipv4.protocol,
              hdr.ipv4.src, hdr.ipv4.dst, hdr.options.all },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control OptionsIngress(inout headers_t hdr,
                       inout metadata_t meta,
                       inout standard_metadata_t standard_metadata) {
    action drop() {
        mark_to_drop(standard_metadata);
    }

    action forward(bit<9> port) {
        standard_metadata.egress_spec = port;
    }

    action strip(bit<9> port) {
        hdr.ipv4.total_length = hdr.ipv4.total_length - (((bit<16>) hdr.ipv4.ihl - 5) << 2);
        hdr.ipv4.ihl = 5;
        hdr.options.setInvalid();
        meta.stripped = true;
        forward(port);
    }

    table policy {
        key = {
            hdr.options.isValid(): exact @name("has_options");
            meta.first_option:     exact @name("first_option");
        }
        actions = { forward; strip; drop; }
        default_action = drop();
    }

    action inspect(bit<8> reason) {
        hdr.ethernet.src = (bit<48>) reason;
        forward(INSPECTION);
    }

    apply {
        if (standard_metadata.parser_error == error.BadVersion) {
            inspect(1);
        } else if (standard_metadata.parser_error == error.HeaderLengthTooSmall) {
            inspect(2);
        } else if (standard_metadata.parser_error == error.LengthsDisagree) {
            inspect(3);
        } else if (standard_metadata.parser_error == error.PacketTooShort) {
            inspect(4);
        } else if (standard_metadata.checksum_error == 1) {
            inspect(5);
        } else if (hdr.ipv4.isValid()) {
            policy.apply();
        } else {
            drop();
        }
    }
}

control OptionsEgress(inout headers_t hdr,
                      inout metadata_t meta,
                      inout standard_metadata_t standard_metadata) {
    apply {}
}

control OptionsComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        // What is sent for inspection keeps the checksum it came with.
        update_checksum(meta.stripped,
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.total_length,
              hdr.ipv4.identification, hdr.ipv4.fragment, hdr.ipv4.ttl, hdr.ipv4.protocol,
              hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control OptionsDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.options);
    }
}

V1Switch(OptionsParser(), OptionsVerifyChecksum(), OptionsIngress(), OptionsEgress(), OptionsComputeChecksum(),
         OptionsDeparser()) main;
