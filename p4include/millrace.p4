// SPDX-License-Identifier: Apache-2.0
//
// What Millrace has beyond the architectures. Include it after v1model.p4, psa.p4 or pna.p4.

#ifndef __MILLRACE_P4__
#define __MILLRACE_P4__

#include <core.p4>

/// Credit accounts: the traffic policing of virtual links in ARINC 664 part 7 (AFDX).
///
/// A virtual link may send a frame of up to Smax bytes each bandwidth allocation gap (BAG), late by a jitter J at most. Its account
/// starts full with Smax (1 + J / BAG) bytes and grows by Smax / BAG bytes a nanosecond up to that. A frame passes when the account
/// holds its cost, which is then taken: its length, or Smax, or each of the two in a credit of its own. The time is the arrival of
/// the packet. Nothing is rounded.
///
/// The control plane gives each account its parameters: `account_set ACCOUNT INDEX BAG JITTER SMAX bytes|frames|both`. An account
/// without parameters lets every frame pass.
extern account {
    /// So many accounts. Links may share one: give them the same index.
    account(bit<32> size);
    /// Whether a frame of so many bytes passes. An index outside passes. Count the frame check sequence where your lengths do.
    bool admit(in bit<32> index, in bit<32> bytes);
}

/// An account in each entry of the table whose property `account` names it.
extern direct_account {
    direct_account();
    /// As above, with the account of the entry that the table hit last. After a miss every frame passes. Only for the actions of the
    /// table, and for what comes after it in the same control.
    bool admit(in bit<32> bytes);
}

#endif
