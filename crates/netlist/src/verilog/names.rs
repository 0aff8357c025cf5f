//! Names that the language allows.
//!
//! A character that an identifier cannot have becomes `_`, and so does each further one of a group; what starts with a digit or is a
//! word of SystemVerilog gets a `_`. Of equal names in one module the second gets `_1`, and so on. Ports are named first, so that
//! what others connect to does not depend on what is inside.

use rustc_hash::{FxHashMap, FxHashSet};

/// The reserved words of IEEE 1800-2017, annex B.
const RESERVED: &str = "accept_on alias always always_comb always_ff always_latch and assert assign assume automatic before begin bind \
bins binsof bit break buf bufif0 bufif1 byte case casex casez cell chandle checker class clocking cmos config const constraint \
context continue cover covergroup coverpoint cross deassign default defparam design disable dist do edge else end endcase \
endchecker endclass endclocking endconfig endfunction endgenerate endgroup endinterface endmodule endpackage endprimitive \
endprogram endproperty endsequence endspecify endtable endtask enum event eventually expect export extends extern final \
first_match for force foreach forever fork forkjoin function generate genvar global highz0 highz1 if iff ifnone ignore_bins \
illegal_bins implements implies import incdir include initial inout input inside instance int integer interconnect interface \
intersect join join_any join_none large let liblist library local localparam logic longint macromodule matches medium modport \
module nand negedge nettype new nexttime nmos nor noshowcancelled not notif0 notif1 null or output package packed parameter pmos \
posedge primitive priority program property protected pull0 pull1 pulldown pullup pulsestyle_ondetect pulsestyle_onevent pure \
rand randc randcase randsequence rcmos real realtime ref reg reject_on release repeat restrict return rnmos rpmos rtran rtranif0 \
rtranif1 s_always s_eventually s_nexttime s_until s_until_with scalared sequence shortint shortreal showcancelled signed small \
soft solve specify specparam static string strong strong0 strong1 struct super supply0 supply1 sync_accept_on sync_reject_on \
table tagged task this throughout time timeprecision timeunit tran tranif0 tranif1 tri tri0 tri1 triand trior trireg type \
typedef union unique unique0 unsigned until until_with untyped use uwire var vectored virtual void wait wait_order wand weak \
weak0 weak1 while wildcard wire with within wor xnor xor";

/// Names that tools keep for themselves: classes and methods of the language's own package, and what is a word of C++ or SystemC, which
/// models of designs are written in. Verilator warns of these.
const OF_TOOLS: &str = "std process mailbox semaphore randomize \
NULL abort alignas alignof and_eq asm atomic_cancel atomic_commit atomic_noexcept auto bit_vector bitand bitor bool catch cdecl char \
char16_t char32_t compl complex concept const_cast const_iterator const_reference constexpr consteval constinit co_await co_return \
co_yield decltype delete deque double dynamic_cast explicit false far float friend goto huge inline interrupt iterator list long map \
multimap multiset mutable namespace near noexcept not_eq nullptr operator or_eq pair pascal private protected public queue reference \
register reinterpret_cast requires set short sizeof stack static_assert static_cast switch synchronized template thread_local throw \
transaction_safe transaction_safe_dynamic true try type_info typeid typename uint8_t uint16_t uint32_t uint64_t using vector volatile \
wchar_t xor_eq sc_clock sc_in sc_inout sc_out sc_signal sensitive sensitive_neg sensitive_pos";

/// A name as an identifier, which may be a reserved word still.
pub(super) fn legal(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for c in name.chars() {
        let plain = c.is_ascii_alphanumeric() || c == '_';
        match plain {
            true => out.push(c),
            // `reg[1].a` is `reg_1_a`.
            false if !out.ends_with('_') => out.push('_'),
            false => (),
        }
    }
    while out.len() > 1 && out.ends_with('_') && !name.ends_with('_') {
        out.pop();
    }
    if out.is_empty() || out.starts_with(|c: char| c.is_ascii_digit()) {
        out.insert(0, '_');
    }
    out
}

/// The names of one scope.
#[derive(Clone, Default)]
pub(super) struct Names {
    taken: FxHashSet<String>,
    /// The last number that a name got, so that a thousand equal names do not look for one a thousand times each.
    numbers: FxHashMap<String, u32>,
}

impl Names {
    /// A scope in which reserved words, those of tools and some others are taken.
    pub(super) fn new(others: &[&str]) -> Names {
        let words = RESERVED.split_ascii_whitespace().chain(OF_TOOLS.split_ascii_whitespace());
        let taken = words.chain(others.iter().copied()).map(String::from);
        Names { taken: taken.collect(), numbers: FxHashMap::default() }
    }

    /// An identifier that is not taken, and now is.
    pub(super) fn take(&mut self, wanted: &str) -> String {
        self.take_beside(wanted, &Names::default())
    }

    /// The same, and not taken in another scope either: an instance has another name than what its module declares, which would hide it.
    pub(super) fn take_beside(&mut self, wanted: &str, inner: &Names) -> String {
        let is_free = |name: &str| !inner.taken.contains(name);
        if is_free(wanted) && self.taken.insert(wanted.to_owned()) {
            return wanted.to_owned();
        }
        let number = self.numbers.entry(wanted.to_owned()).or_default();
        loop {
            *number += 1;
            let name = format!("{wanted}_{number}");
            if is_free(&name) && self.taken.insert(name.clone()) {
                return name;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn legal_names() {
        let cases = [
            ("hdr.ipv4.ttl", "hdr_ipv4_ttl"),
            ("reg[1].a", "reg_1_a"),
            ("stack[3]", "stack_3"),
            ("8bit", "_8bit"),
            ("größe", "gr_e"),
            ("x_", "x_"),
            ("\"", "_"),
            ("", "_"),
        ];
        for (name, wanted) in cases {
            assert_eq!(legal(name), wanted, "{name}");
        }
    }

    #[test]
    fn names_are_unique() {
        let mut names = Names::new(&["clk"]);
        let got = ["a", "a", "a_1", "a", "wire", "clk"].map(|name| names.take(name));
        assert_eq!(got, ["a", "a_1", "a_1_1", "a_2", "wire_1", "clk_1"]);
        let mut outer = Names::new(&[]);
        let got = ["b", "a", "a_3", "a"].map(|name| outer.take_beside(name, &names));
        assert_eq!(got, ["b", "a_3", "a_3_1", "a_4"]);
    }
}
