//! What code calls never executes more instructions than its contract says, in an optimised build.
//!
//!     cargo test --release -p millrace-counted-bounds --test contracts -- --nocapture
//!
//! `CONTRACTS_ALL=1` prints each count, which shows how a figure grows.
//!
//! Each case is a program that was written for one helper or one match engine, with entries that bring it to what its contract
//! depends on: probes, limbs, bytes, units.
#![cfg(all(target_os = "linux", target_arch = "x86_64", not(debug_assertions)))]

use millrace_compile::Standard;
use millrace_counted_bounds::{Counted, Random};
use millrace_frames::MAX_BATCH;
use millrace_midend::machine::Callee;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Numbers of packets in a batch, and how many batches. What a helper takes does not depend on the packets around its own.
const OF_HELPERS: [(usize, usize); 2] = [(1, 8), (24, 1)];
const OF_LOOKUPS: [(usize, usize); 4] = [(1, 16), (2, 2), (9, 1), (MAX_BATCH, 1)];
const OF_PAYLOADS: [(usize, usize); 1] = [(3, 3)];

/// What was counted of a call next to what its contract says: the largest ratio of the two, with the numbers.
#[derive(Default)]
struct Seen(BTreeMap<String, (u64, u64, usize)>);

impl Seen {
    fn note(&mut self, callee: String, counted: u64, most: u64, packets: usize) {
        let known = self.0.entry(callee.clone()).or_insert((counted, most, packets));
        if std::env::var_os("CONTRACTS_ALL").is_some() {
            println!("    {callee} {counted} {packets}");
        }
        if u128::from(counted) * u128::from(known.1) > u128::from(known.0) * u128::from(most) {
            *known = (counted, most, packets);
        }
    }
}

/// Counts batches of frames, and holds what each call took against its contract.
fn hold(
    counted: &mut Counted,
    mut frame: impl FnMut() -> Vec<u8>,
    seen: &mut Seen,
    (label, batches): (&str, &[(usize, usize)]),
) {
    let mut time = 0;
    for (packets, rounds) in batches.iter().copied() {
        for round in 0..rounds {
            let frames: Vec<Vec<u8>> = (0..packets).map(|_| frame()).collect();
            let frames: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
            time += 1 + round as u64 * 1_000_003;
            let steps = counted.count(0, 1, &frames, (time, 0));
            let (mut allocating, mut names) = ((0, 0), BTreeSet::new());
            for (at, of_one) in &steps.most_called {
                let (callee, contract) = counted.call_at(0, *at).expect("a call");
                let (name, keys) = match callee {
                    Callee::Helper { name, .. } => (name.to_owned(), 0),
                    Callee::Lookup(_) => (format!("lookup {:?}", counted.engine(&callee)), 0),
                    Callee::LookupOfAll(_) => {
                        (format!("lookup of all {:?}", counted.engine(&callee)), packets as u64)
                    }
                };
                let contract = contract.unwrap_or_default();
                let most = contract.of_keys(keys).instructions;
                if let Some(code) = steps.code_called.get(at) {
                    let waits = contract.of_keys(keys).waits;
                    seen.note(
                        format!("{name} {label}: lines of code that jumps lead to"),
                        code.jumps,
                        waits.jumps,
                        packets,
                    );
                    seen.note(
                        format!("{name} {label}: lines of code after others"),
                        code.follows,
                        waits.follows,
                        packets,
                    );
                }
                if contract.allocates {
                    // Room is made now and then for many calls: they are bounded together.
                    let calls = steps.in_code[at];
                    if std::env::var_os("CONTRACTS_ALL").is_some() {
                        println!("    {name} {label} {of_one} of {most}");
                    }
                    allocating = (allocating.0 + steps.called[at], allocating.1 + most * calls);
                    names.insert(name);
                } else {
                    seen.note(format!("{name} {label}"), *of_one, most, packets);
                }
            }
            if allocating.1 > 0 {
                let names: Vec<String> = names.into_iter().collect();
                seen.note(format!("{} {label}", names.join(", ")), allocating.0, allocating.1, packets);
            }
        }
    }
}

/// A program of v1model with some declarations and an ingress, over a header `h` of these fields.
fn program(fields: &str, locals: &str, apply: &str) -> String {
    format!(
        "#include <core.p4>\n#include <v1model.p4>\n\
         header h_t {{ {fields} }}\nstruct headers_t {{ h_t h; }}\nstruct metadata_t {{ }}\n\
         parser P(packet_in p, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t s) {{\n\
           state start {{ p.extract(hdr.h); transition accept; }}\n}}\n\
         control V(inout headers_t hdr, inout metadata_t meta) {{ apply {{ }} }}\n\
         control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t s) {{\n{locals}\napply {{\n{apply}\n s.egress_spec = 1; }}\n}}\n\
         control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t s) {{ apply {{ }} }}\n\
         control C(inout headers_t hdr, inout metadata_t meta) {{ apply {{ }} }}\n\
         control D(packet_out p, in headers_t hdr) {{ apply {{ p.emit(hdr.h); }} }}\n\
         V1Switch(P(), V(), I(), E(), C(), D()) main;\n"
    )
}

fn compiled(name: &str, source: &str, entries: &str) -> Counted {
    Counted::new(name, source, Standard::P4_16, entries)
}

/// Fails where a contract is less than what was counted, or none.
fn check(seen: &Seen) {
    let mut failed = Vec::new();
    for (callee, (counted, most, packets)) in &seen.0 {
        println!("{callee:70} {counted:>7} of {most:>7} in a batch of {packets}");
        if counted > most {
            failed.push(callee.clone());
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn helpers() {
    let mut seen = Seen::default();
    let mut random = Random::new(7);
    let fields = "bit<32> i; bit<64> a; bit<128> b; bit<192> c; bit<512> d; bit<8> k;";
    let bytes = 4 + 8 + 16 + 24 + 64 + 1;
    let mut frame = || {
        let mut frame: Vec<u8> = (0..bytes + random.below(64)).map(|_| random.below(256) as u8).collect();
        // Most indices are inside.
        frame[..3].fill(0);
        match random.below(8) {
            0 => frame[..4].fill(0xff),
            1 => frame[3] = 0,
            _ => frame[3] &= 0x3f,
        }
        frame
    };
    let cases: Vec<(&str, String, String, String)> = vec![
        ("", "counter(64, CounterType.packets_and_bytes) c;".into(), "c.count(hdr.h.i);".into(), String::new()),
        (
            "direct",
            "direct_counter(CounterType.bytes) c; action n() { c.count(); } table t { key = { hdr.h.k : exact; } \
             actions = { n; NoAction; } counters = c; size = 256; default_action = NoAction(); }"
                .into(),
            "t.apply();".into(),
            (0..200).map(|k| format!("table_add t n {k} =>\n")).collect(),
        ),
        ("packets", meter("packets"), "m.execute_meter(hdr.h.i, color); hdr.h.k = (bit<8>) color;".into(), rates("m", false)),
        ("bytes", meter("bytes"), "m.execute_meter(hdr.h.i, color); hdr.h.k = (bit<8>) color;".into(), rates("m", true)),
        ("direct packets", direct_meter("packets"), "t.apply();".into(), direct_rates(false)),
        ("direct bytes", direct_meter("bytes"), "t.apply();".into(), direct_rates(true)),
        ("zero", String::new(), "hdr.h.setInvalid(); hdr.h.setValid(); hdr.h.i = 1;".into(), String::new()),
    ];
    for (label, locals, apply, entries) in cases {
        let mut counted = compiled(label, &program(fields, &locals, &apply), &entries);
        hold(&mut counted, &mut frame, &mut seen, (label, &OF_HELPERS));
    }
    // Messages of few words, of as many as are handed over at once, of more, and of the longest that is sent and one that is not.
    for members in [0, 1, 2, 7, 15, 16, 17, 32, 60, 3000, 5000] {
        let fields_of: String = (0..members).map(|at| format!("bit<{}> m{at}; ", [9, 64][at % 2])).collect();
        let values: Vec<&str> = (0..members).map(|at| ["s.ingress_port", "hdr.h.a"][at % 2]).collect();
        let types = format!("struct m_t {{ bool is; {fields_of} }}\n");
        let apply = format!("digest<m_t>(1, {{ hdr.h.k == 7, {} }});", values.join(", "));
        let apply = apply.replace(", }", " }");
        let label = format!("{members} members");
        let mut counted = compiled(&label, &(types + &program(fields, "", &apply)), "");
        let batches: &[(usize, usize)] = if members < 100 { &OF_HELPERS } else { &[(1, 2)] };
        hold(&mut counted, &mut frame, &mut seen, (&label, batches));
        // Where messages have no room any more.
        counted.has_room = false;
        hold(&mut counted, &mut frame, &mut seen, (&label, &batches[..1]));
    }
    for (width, field) in [(8, "k"), (32, "i"), (64, "a"), (128, "b"), (192, "c"), (512, "d")] {
        let locals = format!("register<bit<{width}>>(64) r; bit<{width}> v;");
        let apply = format!("r.read(v, hdr.h.i); r.write(hdr.h.i, hdr.h.{field}); hdr.h.{field} = v;");
        let label = format!("{width} bits");
        hold(
            &mut compiled(&label, &program(fields, &locals, &apply), ""),
            &mut frame,
            &mut seen,
            (&label, &OF_HELPERS),
        );
        let locals = format!("bit<{width}> v;");
        let apply = format!("random(v, (bit<{width}>) 0, hdr.h.{field}); hdr.h.{field} = v;");
        hold(
            &mut compiled(&label, &program(fields, &locals, &apply), ""),
            &mut frame,
            &mut seen,
            (&label, &OF_HELPERS),
        );
        let apply = format!("digest<bit<{width}>>(1, hdr.h.{field});");
        hold(
            &mut compiled(&label, &program(fields, "", &apply), ""),
            &mut frame,
            &mut seen,
            (&label, &OF_HELPERS),
        );
        for algorithm in ["crc16", "crc32", "identity", "xor16"] {
            let locals = "bit<32> v;";
            let apply = format!(
                "hash(v, HashAlgorithm.{algorithm}, 32w0, {{ hdr.h.{field}, hdr.h.k }}, 32w65536); hdr.h.i = v;"
            );
            let label = format!("{algorithm} of {} bits", width + 8);
            hold(
                &mut compiled(&label, &program(fields, locals, &apply), ""),
                &mut frame,
                &mut seen,
                (&label, &OF_HELPERS),
            );
        }
    }
    for (number, op) in ["*", "|+|", "|-|", "<<", ">>"].iter().enumerate() {
        for (width, field) in [(128, "b"), (192, "c"), (512, "d")] {
            let right = if number < 3 { format!("hdr.h.{field}") } else { "hdr.h.k".to_owned() };
            let apply = format!("hdr.h.{field} = hdr.h.{field} {op} {right};");
            let label = format!("{op} {width}");
            hold(
                &mut compiled(&label, &program(fields, "", &apply), ""),
                &mut frame,
                &mut seen,
                (&label, &OF_HELPERS),
            );
        }
    }
    for most in [8, 64, 320, 1024] {
        for around in [(8, 24), (3, 29), (5, 24)] {
            varbits(most, around, &mut seen);
        }
    }
    check(&seen);
}

/// A header of varying length that is read, compared, copied, hashed with the payload, and written, with so many bits before its number
/// of varying length, and after it. If they are not whole bytes, the payload does not begin at one.
fn varbits(most: u32, (before, after): (u32, u32), seen: &mut Seen) {
    let source = format!(
        "#include <core.p4>\n#include <v1model.p4>\n\
         header a_t {{ bit<16> bytes; bit<8> kind; }}\nheader v_t {{ bit<{before}> x; varbit<{most}> v; bit<{after}> y; }}\n\
         struct headers_t {{ a_t a; v_t v; v_t w; }}\nstruct metadata_t {{ bit<16> sum; }}\n\
         parser P(packet_in p, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t s) {{\n\
           state start {{ p.extract(hdr.a); p.extract(hdr.v, (bit<32>) hdr.a.bytes * 8); transition accept; }}\n}}\n\
         control V(inout headers_t hdr, inout metadata_t meta) {{ apply {{\n\
           verify_checksum_with_payload(hdr.v.isValid(), {{ hdr.v.x, hdr.v.v, hdr.v.y }}, meta.sum, HashAlgorithm.csum16); }} }}\n\
         control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t s) {{ apply {{\n\
           if (hdr.a.kind > 128) {{ hdr.w = hdr.v; }}\n if (hdr.w.v == hdr.v.v) {{ s.egress_spec = 1; }} else {{ s.egress_spec = 2; }}\n\
           if (hdr.a.kind < 64) {{ hdr.a.setInvalid(); }} }} }}\n\
         control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t s) {{ apply {{ }} }}\n\
         control C(inout headers_t hdr, inout metadata_t meta) {{ apply {{ }} }}\n\
         control D(packet_out p, in headers_t hdr) {{ apply {{ p.emit(hdr.a); p.emit(hdr.v); p.emit(hdr.w); }} }}\n\
         V1Switch(P(), V(), I(), E(), C(), D()) main;\n"
    );
    let mut random = Random::new(u64::from(most));
    let mut frame = || {
        let bytes = random.below(most as usize / 8 + 1);
        let bytes = if random.below(2) == 0 { most as usize / 8 } else { bytes };
        let more = [0, 1, 64, 1400, 14_000][random.below(5)];
        let mut frame: Vec<u8> = (0..7 + bytes + more).map(|_| random.below(256) as u8).collect();
        frame[..2].copy_from_slice(&(bytes as u16).to_be_bytes());
        frame
    };
    let label = format!("varbit<{most}> between {before} and {after} bits");
    hold(&mut compiled(&label, &source, ""), &mut frame, seen, (&label, &OF_PAYLOADS));
}

/// A packet stays where it is as long as the headers of its path fit the headroom, and its contract is that of a copy only where they may not.
#[test]
fn packets_that_grow() {
    let program = |apply: &str| {
        format!(
            "#include <core.p4>\n#include <v1model.p4>\n\
             header h_t {{ bit<8> k; bit<8> units; varbit<800> v; }}\nheader a_t {{ bit<1600> x; }}\nheader b_t {{ bit<448> x; }}\n\
             struct headers_t {{ a_t a; a_t b; b_t c; h_t h; }}\nstruct metadata_t {{ }}\n\
             parser P(packet_in p, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t s) {{\n\
               state start {{ p.extract(hdr.h, (bit<32>) p.lookahead<bit<16>>()[7:0] * 8); transition accept; }}\n}}\n\
             control V(inout headers_t hdr, inout metadata_t meta) {{ apply {{ }} }}\n\
             control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t s) {{ apply {{ {apply} s.egress_spec = 1; }} }}\n\
             control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t s) {{ apply {{ }} }}\n\
             control C(inout headers_t hdr, inout metadata_t meta) {{ apply {{ }} }}\n\
             control D(packet_out p, in headers_t hdr) {{ apply {{ p.emit(hdr); }} }}\n\
             V1Switch(P(), V(), I(), E(), C(), D()) main;\n"
        )
    };
    let mut random = Random::new(3);
    let mut frame = || {
        let bytes = random.below(101);
        let more = [0, 60, 1400, 9000][random.below(4)];
        let mut frame: Vec<u8> = (0..2 + bytes + more).map(|_| random.below(256) as u8).collect();
        frame[1] = bytes as u8;
        frame
    };
    let mut seen = Seen::default();
    for (label, apply, stays) in [
        ("one of two", "if (hdr.h.k < 128) { hdr.a.setValid(); } else { hdr.b.setValid(); }", true),
        ("256 bytes", "hdr.a.setValid(); if (hdr.h.k < 128) { hdr.c.setValid(); }", true),
        ("400 bytes", "hdr.a.setValid(); if (hdr.h.k < 128) { hdr.b.setValid(); }", false),
    ] {
        let mut counted = compiled(label, &program(apply), "");
        hold(&mut counted, &mut frame, &mut seen, (label, &OF_PAYLOADS));
        let most =
            seen.0.iter().filter(|(callee, _)| callee.ends_with(label) && callee.contains("writer_finish"));
        let most: Vec<u64> = most.map(|(_, (_, most, _))| *most).collect();
        assert!(!most.is_empty() && most.iter().all(|most| (*most < 1000) == stays), "{label}: {most:?}");
    }
    check(&seen);
}

fn meter(unit: &str) -> String {
    format!("meter(64, MeterType.{unit}) m; bit<2> color = 0;")
}

fn direct_meter(unit: &str) -> String {
    format!(
        "direct_meter<bit<2>>(MeterType.{unit}) m; bit<2> color = 0; action n() {{ m.read(color); hdr.h.a = (bit<64>) color; }} \
         table t {{ key = {{ hdr.h.k : exact; }} actions = {{ n; NoAction; }} meters = m; size = 256; default_action = NoAction(); }}"
    )
}

/// Meters that give all colours, some without rates.
fn rates(name: &str, bytes: bool) -> String {
    let mut text = String::new();
    for index in 0..60 {
        let burst = if bytes { 200 } else { 2 };
        writeln!(text, "meter_set_rates {name} {index} 0.0{}:{burst} 0.1:{}", 1 + index, 2 * burst).unwrap();
    }
    text
}

fn direct_rates(bytes: bool) -> String {
    let mut text = String::new();
    for key in 0..200 {
        writeln!(text, "table_add t n {key} =>").unwrap();
    }
    for handle in 0..180 {
        let burst = if bytes { 200 } else { 2 };
        writeln!(text, "meter_set_rates m {handle} 0.00{}:{burst} 1:{}", 1 + handle % 9, 2 * burst).unwrap();
    }
    text
}

/// A table of these keys, with `count` entries made of random values; some packets have the key of an entry.
struct TableCase {
    label: String,
    kinds: Vec<(&'static str, u32)>,
    count: usize,
    direct: bool,
}

#[test]
fn lookups() {
    let mut seen = Seen::default();
    let mut cases = Vec::new();
    let mut case = |kinds: &[(&'static str, u32)], count: usize, direct: bool| {
        let label = kinds.iter().map(|(kind, width)| format!("{kind}{width}")).collect::<Vec<_>>().join(",");
        let label = format!("{label} x{count}{}", if direct { " direct" } else { "" });
        cases.push(TableCase { label, kinds: kinds.to_vec(), count, direct });
    };
    for direct in [false, true] {
        for width in [48, 64, 128, 130, 192, 320] {
            for count in [0, 1, 40, 5000] {
                case(&[("exact", width)], count, direct);
            }
        }
        for width in [64, 128, 160] {
            for count in [0, 1, 8, 300, 5000] {
                case(&[("lpm", width)], count, direct);
            }
        }
        for count in [0, 1, 8, 60, 500] {
            case(&[("ternary", 32)], count, direct);
            case(&[("ternary", 32), ("ternary", 16)], count, direct);
            case(
                &[("ternary", 32), ("ternary", 32), ("range", 16), ("range", 16), ("ternary", 8)],
                count,
                direct,
            );
            case(&[("ternary", 128), ("ternary", 128), ("exact", 8)], count, direct);
            case(&[("range", 16)], count, direct);
            case(&[("lpm", 32), ("ternary", 9)], count, direct);
            case(&[("exact", 9), ("ternary", 48)], count, direct);
        }
    }
    for case in &cases {
        lookup(case, &mut seen);
    }
    check(&seen);
}

fn lookup(case: &TableCase, seen: &mut Seen) {
    let mut random = Random::new(case.count as u64 + 1);
    let mut fields = String::new();
    let mut keys = String::new();
    for (at, (kind, width)) in case.kinds.iter().enumerate() {
        write!(fields, "bit<{width}> f{at}; ").unwrap();
        write!(keys, "hdr.h.f{at} : {kind}; ").unwrap();
    }
    let bits: u32 = case.kinds.iter().map(|(_, width)| width).sum();
    let fill = (8 - bits % 8) % 8;
    if fill > 0 {
        write!(fields, "bit<{fill}> fill;").unwrap();
    }
    let direct = if case.direct { "direct_counter(CounterType.packets) c;" } else { "" };
    let counters = if case.direct { "counters = c;" } else { "" };
    let locals = format!(
        "{direct} action n(bit<9> port) {{ s.egress_spec = port; }}\n\
         table t {{ key = {{ {keys} }} actions = {{ n; NoAction; }} {counters} size = 65536; default_action = NoAction(); }}"
    );
    let needs_priority = case.kinds.iter().any(|(kind, _)| matches!(*kind, "ternary" | "range"));
    // Values, the highest bit first, of each entry.
    let mut entries = String::new();
    let mut hits: Vec<Vec<bool>> = Vec::new();
    for number in 0..case.count {
        let mut hit = Vec::new();
        write!(entries, "table_add t n").unwrap();
        for (kind, width) in &case.kinds {
            let mut value: Vec<bool> = (0..*width).map(|_| random.below(2) == 1).collect();
            // Clusters make trees deep and buckets long.
            if random.below(2) == 1 {
                value.iter_mut().take(*width as usize * 3 / 4).for_each(|bit| *bit = false);
            }
            let text = hex(&value);
            match *kind {
                "exact" => write!(entries, " {text}").unwrap(),
                "lpm" => {
                    let len = random.below(*width as usize + 1);
                    value.iter_mut().skip(len).for_each(|bit| *bit = false);
                    write!(entries, " {}/{len}", hex(&value)).unwrap();
                }
                "ternary" => {
                    let mask: Vec<bool> = match random.below(4) {
                        0 => vec![false; *width as usize],
                        1 => vec![true; *width as usize],
                        2 => (0..*width as usize).map(|at| at < random.below(*width as usize)).collect(),
                        _ => (0..*width).map(|_| random.below(2) == 1).collect(),
                    };
                    value.iter_mut().zip(&mask).for_each(|(bit, mask)| *bit &= *mask);
                    write!(entries, " {}&&&{}", hex(&value), hex(&mask)).unwrap();
                }
                _ => {
                    let mut high = value.clone();
                    let cut = random.below(*width as usize);
                    high.iter_mut().skip(cut).for_each(|bit| *bit = true);
                    value.iter_mut().skip(cut).for_each(|bit| *bit = false);
                    write!(entries, " {}->{}", hex(&value), hex(&high)).unwrap();
                }
            }
            hit.extend(value);
        }
        writeln!(
            entries,
            " => {}{}",
            number % 300,
            if needs_priority { format!(" {}", 1 + number) } else { String::new() }
        )
        .unwrap();
        hits.push(hit);
    }
    let mut counted =
        compiled(&case.label, &program(&fields, &locals, "t.apply();"), &without_twins(&entries));
    let frame = || {
        let mut key: Vec<bool> = match random.below(4) {
            0 => (0..bits).map(|_| random.below(2) == 1).collect(),
            _ => match hits.len() {
                0 => vec![false; bits as usize],
                count => hits[random.below(count)].clone(),
            },
        };
        // Near misses.
        if random.below(4) == 0 {
            let at = random.below(bits as usize);
            key[at] = !key[at];
        }
        key.resize((bits + fill) as usize, false);
        let mut frame: Vec<u8> =
            key.chunks(8).map(|bits| bits.iter().fold(0, |byte, bit| byte << 1 | u8::from(*bit))).collect();
        frame.resize(frame.len().max(64), 0);
        frame
    };
    hold(&mut counted, frame, seen, (&case.label, &OF_LOOKUPS));
}

/// Commands of which no two have the same key.
fn without_twins(entries: &str) -> String {
    let mut seen = BTreeSet::new();
    let own = entries.lines().filter(|line| seen.insert(line.split("=>").next().unwrap_or(line).to_owned()));
    own.fold(String::new(), |text, line| text + line + "\n")
}

fn hex(bits: &[bool]) -> String {
    let mut padded = vec![false; (4 - bits.len() % 4) % 4];
    padded.extend(bits);
    let digits = padded.chunks(4).map(|bits| bits.iter().fold(0, |digit, bit| digit << 1 | u32::from(*bit)));
    digits.fold("0x".to_owned(), |text, digit| text + &format!("{digit:x}"))
}
