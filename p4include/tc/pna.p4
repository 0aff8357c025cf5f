// SPDX-License-Identifier: Apache-2.0
//
// PNA as Linux tc has it: fields of the socket buffer, and what its control path sees of each extern.

#define PNA_TC
#include <bmv2/pna.p4>
