// SPDX-License-Identifier: Apache-2.0
//
// SimpleSumeSwitch, the architecture of P4->NetFPGA: one parser, one pipeline, one deparser.
//
// Ports are sets, one bit each: bit 2n is network port n, bit 2n+1 its DMA queue to the host.

#ifndef _SUME_SWITCH_P4_
#define _SUME_SWITCH_P4_

#include <core.p4>

typedef bit<8> port_t;

struct sume_metadata_t {
    // Output queues, in 32-byte words rounded up.
    bit<16> dma_q_size;
    bit<16> nf3_q_size;
    bit<16> nf2_q_size;
    bit<16> nf1_q_size;
    bit<16> nf0_q_size;
    bit<8>  send_dig_to_cpu;    // bit 0: deliver digest_data to the host
    bit<8>  drop;               // bit 0: drop; a dst_port of 0 drops too
    port_t  dst_port;           // every port to send a copy to
    port_t  src_port;
    bit<16> pkt_len;            // bytes, without preamble and FCS
}

parser Parser<H, M, D>(packet_in b,
                       out H parsedHeaders,
                       out M user_metadata,
                       out D digest_data,
                       inout sume_metadata_t sume_metadata);

control Pipe<H, M, D>(inout H parsedHeaders,
                      inout M user_metadata,
                      inout D digest_data,
                      inout sume_metadata_t sume_metadata);

control Deparser<H, M, D>(packet_out b,
                          in H parsedHeaders,
                          in M user_metadata,
                          inout D digest_data,
                          inout sume_metadata_t sume_metadata);

package SimpleSumeSwitch<H, M, D>(Parser<H, M, D> p, Pipe<H, M, D> map, Deparser<H, M, D> d);

#endif
