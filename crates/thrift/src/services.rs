//! What the server answers: a module for each service, from its list of calls.

use crate::answer::answers;
use millrace_thrift_api::*;

/// Tables, counters, meters, registers, ports and the switch itself.
pub(crate) mod standard {
    use super::*;

    standard_calls!(answers);
}

/// Multicast groups, their nodes, and link aggregation groups.
pub(crate) mod simple_pre_lag {
    use super::*;

    simple_pre_lag_calls!(answers);
}

/// Clone sessions, queues and time.
pub(crate) mod simple_switch {
    use super::*;

    simple_switch_calls!(answers);
}

/// What bmv2 has no call for.
pub(crate) mod millrace {
    use super::*;

    millrace_calls!(answers);
}
