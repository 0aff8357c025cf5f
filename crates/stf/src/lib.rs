//! STF, the simple test framework of p4c: tests of P4 programs as text.
//!
//! ```text
//! add ipv4_lpm hdr.ipv4.dst:0x0a000000/8 set_nhop(dmac:0x060000000001, port:1)
//! packet 0 0600000000ff 060000000002 0800 ...
//! expect 1 060000000001 ************ 0800 ... $
//! ```
//!
//! [`parse`] reads a test, [`run`] runs it on a switch of its own and tells how it went ([`Report`]).
//!
//! What a test may say, one statement a line, `#` begins a comment:
//! - `packet PORT HEX...`: a packet comes in. `wait`: time passes.
//! - `expect PORT HEX...`: the next packet that leaves by that port begins with these bytes; `*` is any digit, a `$` at
//!   the end means that nothing may follow. `expect PORT` alone: at least one packet leaves by that port, whatever it is.
//!   Packets on a port are expected in order, and there must be no others; ports that the test never names are not
//!   looked at.
//! - `no_packet`: the packet before made nothing leave.
//! - `add TABLE [PRIORITY] KEY:VALUE... ACTION(PARAM:VALUE, ...) [= LABEL]`: an entry. Of entries that match at once
//!   the **largest** priority wins (p4c's runner subtracts it from 10000 before it tells bmv2). `*` in a value is any
//!   digit, `/LENGTH` a prefix, and addresses are numbers too (`10.0.0.0/8`); a key that is left out matches anything, an
//!   exact one 0.
//! - `setdefault TABLE ACTION(...)`, `remove all`.
//! - `check_counter NAME(INDEX or $LABEL) [packets|bytes == N]`, with any comparison.
//! - every runtime command of bmv2 (`mc_mgrp_create`, `mirroring_add`, `register_write`, ...), as
//!   [`millrace_control::commands`] has them.
//!
//! Names are those of the control plane, or the end of one, or one mangled as the backends of p4c for eBPF do
//! (`pipe_Check_src_ip`, `key.field0`). An entry with such a key is a C structure there: parameters that it leaves out are
//! 0, and a prefix counts from its lowest byte on.

mod ast;
mod names;
mod parse;
mod pattern;
mod report;
mod run;

pub use ast::{Comparison, Counted, Index, MatchValue, Named, Statement, Test, Word};
pub use parse::{MAX_STATEMENTS, STATEMENTS, parse};
pub use pattern::Pattern;
pub use report::{Difference, Failure, FailureKind, Report};
pub use run::{run, run_on};
