//! A pattern matcher: which of the patterns is in the payload first, with Aho-Corasick. The time depends on the bytes, not on the
//! number of patterns.
//!
//! `@plugin("find", passes) extern bit<16> find(out bit<32> at);` gives the number of the pattern, from 1 on, and where it starts;
//! 0 where there is none.

use aho_corasick::{AhoCorasick, MatchKind};
use millrace_plugin::{Call, plugin};
use std::sync::OnceLock;

/// What is looked for, by number.
const PATTERNS: [&[u8]; 5] =
    [b"/etc/passwd", b"<script>", b"' OR '1'='1", b"\x90\x90\x90\x90\x90\x90\x90\x90", b"cmd.exe"];

plugin! { payload: 2048, reply: 0, call: find }

fn find(call: &mut Call<'_>) {
    static FINDER: OnceLock<Option<AhoCorasick>> = OnceLock::new();
    let made = || AhoCorasick::builder().match_kind(MatchKind::LeftmostFirst).build(PATTERNS).ok();
    let Some(finder) = FINDER.get_or_init(made) else { return };
    let Some(found) = finder.find(call.payload()) else { return };
    let (pattern, start) = (found.pattern().as_usize(), found.start());
    call.give(0, pattern as u64 + 1);
    call.give(1, start as u64);
}
