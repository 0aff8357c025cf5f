// SPDX-License-Identifier: Apache-2.0
//
// XDP: a packet filter in the driver that may rewrite, send back or redirect.

#ifndef _XDP_MODEL_P4
#define _XDP_MODEL_P4

#include <core.p4>
#include <ebpf_model.p4>

enum xdp_action {
    XDP_ABORTED,
    XDP_DROP,
    XDP_PASS,       // to the kernel's network stack
    XDP_TX,         // back where it came from
    XDP_REDIRECT    // to output_port
}

struct xdp_input {
    bit<32> input_port;
}

struct xdp_output {
    xdp_action output_action;
    bit<32>    output_port;
}

/// The checksum of an IPv4 header without options.
extern bit<16> ebpf_ipv4_checksum(in bit<4> version, in bit<4> ihl, in bit<8> diffserv,
                                  in bit<16> totalLen, in bit<16> identification, in bit<3> flags,
                                  in bit<13> fragOffset, in bit<8> ttl, in bit<8> protocol,
                                  in bit<32> srcAddr, in bit<32> dstAddr);

/// Incremental update (RFC 1624) for a field of two or four bytes.
extern bit<16> csum_replace2(in bit<16> csum, in bit<16> old, in bit<16> new);
extern bit<16> csum_replace4(in bit<16> csum, in bit<32> old, in bit<32> new);

extern bit<32> BPF_PERF_EVENT_OUTPUT();
extern bit<32> BPF_KTIME_GET_NS();

parser xdp_parse<H>(packet_in packet, out H headers);

control xdp_switch<H>(inout H headers, in xdp_input imd, out xdp_output omd);

control xdp_deparse<H>(in H headers, packet_out packet);

package xdp<H>(xdp_parse<H> p, xdp_switch<H> s, xdp_deparse<H> d);

#endif
