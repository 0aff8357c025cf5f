// SPDX-License-Identifier: Apache-2.0
//
// A load balancer for UDP on PSA: it checks IPv4 headers, chooses a server for a flow, rewrites the address with
// incremental checksums, and marks each packet with hashes that its neighbours compare.
//
// Uses: InternetChecksum with add, subtract and states carried between blocks; Checksum in several updates; Hash with and
// without a range; ActionSelector; Counter, DirectCounter, Meter, DirectMeter; Register with an initial value; Random;
// Digest.

#include <core.p4>
#include <psa.p4>

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

header ipv4_t {
    bit<4>  version;
    bit<4>  ihl;
    bit<8>  tos;
    bit<16> length;
    bit<16> ident;
    bit<3>  flags;
    bit<13> offset;
    bit<8>  ttl;
    bit<8>  protocol;
    bit<16> checksum;
    bit<32> src;
    bit<32> dst;
}

header udp_t {
    bit<16> sport;
    bit<16> dport;
    bit<16> length;
    bit<16> checksum;
}

header mark_t {
    bit<32> crc32;          // of the addresses, in two updates
    bit<32> crc32_ports;    // and then of the ports
    bit<16> crc16;
    bit<64> first_bytes;
    bit<16> ranged;         // 100 + CRC16 mod 10
    bit<16> odd;            // CRC16 of 12 bits
    bit<16> sequence;
    bit<8>  drawn;
    bit<8>  colours;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t     ipv4;
    udp_t      udp;
    mark_t     mark;
}

struct metadata_t {
    bit<16> udp_state;      // the UDP checksum without the address
}

struct empty_t { }

struct flow_t {
    bit<32> src;
    bit<32> server;
}

error { BadChecksum }

bit<8> number(in PSA_MeterColor_t colour) {
    if (colour == PSA_MeterColor_t.GREEN) { return 1; }
    if (colour == PSA_MeterColor_t.YELLOW) { return 2; }
    return 3;
}

parser IngressParserImpl(packet_in packet, out headers_t hdr, inout metadata_t meta,
                         in psa_ingress_parser_input_metadata_t istd, in empty_t resubmitted, in empty_t recirculated) {
    InternetChecksum() ip_sum;
    InternetChecksum() udp_sum;

    state start {
        packet.extract(hdr.ethernet);
        packet.extract(hdr.ipv4);
        ip_sum.clear();
        ip_sum.add(hdr.ipv4);
        verify(ip_sum.get() == 0, error.BadChecksum);
        packet.extract(hdr.udp);
        // The checksum is the complement of the sum, so taking it out leaves the sum.
        udp_sum.clear();
        udp_sum.subtract(hdr.udp.checksum);
        udp_sum.subtract({ hdr.ipv4.src, hdr.ipv4.dst });
        meta.udp_state = udp_sum.get_state();
        transition accept;
    }
}

control ingress(inout headers_t hdr, inout metadata_t meta, in psa_ingress_input_metadata_t istd,
                inout psa_ingress_output_metadata_t ostd) {
    ActionSelector(PSA_HashAlgorithm_t.CRC16, 64, 32w16) servers;
    DirectCounter<bit<32>>(PSA_CounterType_t.PACKETS_AND_BYTES) per_service;
    DirectMeter(PSA_MeterType_t.PACKETS) service_rate;
    Counter<bit<32>, bit<4>>(16, PSA_CounterType_t.PACKETS) by_port;
    Meter<bit<4>>(16, PSA_MeterType_t.PACKETS) rate;
    Register<bit<16>, bit<4>>(16, 16w1000) sequence;
    Random<bit<8>>(8w5, 8w5) five;
    Hash<bit<16>>(PSA_HashAlgorithm_t.CRC16) hash;
    Checksum<bit<32>>(PSA_HashAlgorithm_t.CRC32) crc32;
    Checksum<bit<16>>(PSA_HashAlgorithm_t.CRC16) crc16;
    Checksum<bit<64>>(PSA_HashAlgorithm_t.IDENTITY) first_bytes;

    PSA_MeterColor_t service_colour = PSA_MeterColor_t.RED;

    action forward(bit<32> server, PortId_t port) {
        hdr.ipv4.dst = server;
        send_to_port(ostd, port);
    }
    table balance {
        key = {
            hdr.ipv4.dst: exact;
            hdr.ipv4.src: selector;
            hdr.udp.sport: selector;
        }
        actions = { forward; NoAction; }
        psa_implementation = servers;
    }

    action known() {
        per_service.count();
        service_colour = service_rate.execute(PSA_MeterColor_t.GREEN);
    }
    action quiet() { }
    table services {
        key = { hdr.udp.dport: exact; }
        actions = { known; quiet; }
        default_action = quiet();
        psa_direct_counter = per_service;
        psa_direct_meter = service_rate;
    }

    apply {
        if (istd.parser_error != error.NoError || !hdr.udp.isValid()) {
            ingress_drop(ostd);
            return;
        }
        bit<4> port = ((PortIdUint_t) istd.ingress_port)[3:0];
        hdr.mark.setValid();
        crc32.clear();
        crc32.update(hdr.ipv4.src);
        crc32.update(hdr.ipv4.dst);
        hdr.mark.crc32 = crc32.get();
        crc32.update({ hdr.udp.sport });
        crc32.update({ hdr.udp.dport });
        hdr.mark.crc32_ports = crc32.get();
        crc16.clear();
        crc16.update(hdr.udp.sport[15:8]);
        crc16.update({ hdr.udp.sport[7:0], hdr.udp.dport });
        hdr.mark.crc16 = crc16.get();
        first_bytes.clear();
        first_bytes.update(hdr.ipv4.src);
        first_bytes.update({ hdr.udp.sport, hdr.ipv4.dst });
        hdr.mark.first_bytes = first_bytes.get();
        hdr.mark.ranged = hash.get_hash(16w100, { hdr.ipv4.src, hdr.ipv4.dst }, 16w10);
        hdr.mark.odd = hash.get_hash({ hdr.udp.sport[11:0] });

        bit<16> next = sequence.read(port);
        hdr.mark.sequence = next;
        sequence.write(port, next + 1);
        hdr.mark.drawn = five.read();
        by_port.count(port);

        services.apply();
        PSA_MeterColor_t port_colour = rate.execute(port);
        hdr.mark.colours = number(service_colour) << 4 | number(port_colour);
        balance.apply();
    }
}

control IngressDeparserImpl(packet_out packet, out empty_t cloned, out empty_t resubmitted, out empty_t normal,
                            inout headers_t hdr, in metadata_t meta, in psa_ingress_output_metadata_t ostd) {
    InternetChecksum() ip_sum;
    InternetChecksum() udp_sum;
    Digest<flow_t>() flows;

    apply {
        if (psa_normal(ostd)) {
            flows.pack({ hdr.ipv4.src, hdr.ipv4.dst });
        }
        hdr.ipv4.checksum = 0;
        ip_sum.clear();
        ip_sum.add(hdr.ipv4);
        hdr.ipv4.checksum = ip_sum.get();
        udp_sum.set_state(meta.udp_state);
        udp_sum.add({ hdr.ipv4.src, hdr.ipv4.dst });
        hdr.udp.checksum = udp_sum.get();
        packet.emit(hdr);
    }
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
