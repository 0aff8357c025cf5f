// SPDX-License-Identifier: Apache-2.0
//
// PSA under the name that programs for bmv2's psa_switch include.

#include <psa.p4>
