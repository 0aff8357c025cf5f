// SPDX-License-Identifier: Apache-2.0
//
// PSA as the DPDK software switch has it: counters and meters that are told the packet length.

#define PSA_DPDK
#include <psa.p4>
