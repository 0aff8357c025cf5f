// SPDX-License-Identifier: Apache-2.0
//
// PNA as the DPDK software switch has it: hash algorithms, counters and meters that are told the packet
// length, and an IPsec accelerator.

#define PNA_DPDK
#include <pna.p4>
