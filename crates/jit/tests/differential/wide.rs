//! Operations on numbers of more than one limb, up to the widest: each by itself, on fields of the packet and on values
//! that lie in the context, with operands at the ends of their range, near them, and random.

use crate::bench::{Bench, in_both_ways};
use millrace_midend::Start;
use millrace_pipeline::arbitrary::Rng;
use millrace_pipeline::{limits, text};

/// Below and above the widths of one, two and many limbs, in bits.
const WIDTHS: [u32; 7] = [65, 100, 127, 128, 129, 513, 2000];

/// Expressions over `X` and `Y` of W bits and `N` of 16, with the width of their value; 0: a truth value.
fn expressions(width: u32) -> Vec<(String, u32)> {
    const SAME: [&str; 12] = [
        "add",
        "sub",
        "mul",
        "div",
        "mod",
        "add_sat",
        "sub_sat",
        "add_sat_signed",
        "sub_sat_signed",
        "and",
        "or",
        "xor",
    ];
    const COMPARE: [&str; 6] = ["eq", "ne", "lt", "le", "lt_signed", "le_signed"];
    const SHIFT: [&str; 3] = ["shl", "shr", "shr_signed"];
    let mut all: Vec<(String, u32)> = Vec::new();
    all.extend(SAME.iter().map(|op| (format!("{op}(X, Y)"), width)));
    all.extend(COMPARE.iter().map(|op| (format!("{op}(X, Y)"), 0)));
    for op in SHIFT {
        all.push((format!("{op}(X, N)"), width));
        let amounts = [1, 63, 64, 65, width - 1, width];
        all.extend(amounts.iter().map(|by| (format!("{op}(X, 32w{by})"), width)));
    }
    all.extend(["neg(X)", "bit_not(X)", "mux(lt(X, Y), X, Y)"].map(|text| (text.to_owned(), width)));
    for (high, low) in [(width - 1, width - 1), (width - 1, 1), (width - 2, 63), (64, 0), (64, 64)] {
        all.push((format!("X[{high}:{low}]"), high - low + 1));
    }
    if width < limits::MAX_WIDTH {
        let more = (width + 77).min(limits::MAX_WIDTH);
        all.push((format!("zext(X, {more})"), more));
        all.push((format!("sext(X, {more})"), more));
        all.push(("concat(X, N)".to_owned(), width + 16));
        all.push(("concat(N, X)".to_owned(), width + 16));
        all.push(("concat(X, Y)".to_owned(), 2 * width));
    }
    all.push(("zext(X, 33)".to_owned(), 33));
    all.push(("sext(X, 64)".to_owned(), 64));
    all
}

/// A program whose packets hold the operands, and that computes this of them: once where they lie, once from the context.
fn program(width: u32, expression: &str, result: u32) -> String {
    let ty = if result == 0 { "bool".to_owned() } else { format!("bit<{result}>") };
    let pad = 8 - width * 2 % 8;
    let in_packet = expression.replace('X', "h.x").replace('Y', "h.y").replace('N', "h.by");
    let in_context = expression.replace('X', "x").replace('Y', "y").replace('N', "by");
    format!(
        "program wide
         errors (NoError, PacketTooShort, HeaderTooShort, ParserInvalidArgument, ParserTimeout)
         intrinsic parser_error = perr
         ingress (p, c)
         header h: h_t {{ x: bit<{width}> y: bit<{width}> pad: bit<{pad}> by: bit<16> }}
         metadata perr: bit<16>
         metadata x: bit<{width}>
         metadata y: bit<{width}>
         metadata by: bit<16>
         metadata r: {ty}
         metadata s: {ty}
         body parser p {{ block0: extract h end }}
         body control c {{ block0: x = h.x y = h.y by = h.by r = {in_packet} s = {in_context} end }}"
    )
}

/// A packet of these operands.
fn packet(width: u32, x: &[u8], y: &[u8], by: u16) -> Vec<u8> {
    let bit = |bytes: &[u8], at: u32| bytes[(at / 8) as usize] >> (7 - at % 8) & 1;
    let mut bits: Vec<u8> = Vec::new();
    bits.extend((0..width).map(|at| bit(x, at)));
    bits.extend((0..width).map(|at| bit(y, at)));
    bits.resize(bits.len() + (8 - width as usize * 2 % 8), 0);
    bits.extend((0..16).map(|at| (by >> (15 - at) & 1) as u8));
    bits.chunks(8).map(|byte| byte.iter().fold(0, |all, bit| all << 1 | bit)).collect()
}

#[test]
fn wide_operations() {
    let mut rng = Rng::new(65);
    for width in WIDTHS {
        let bytes = width.div_ceil(8) as usize;
        let mut low = vec![0; bytes];
        // The lowest bit of a number of W bits in whole bytes, the highest first.
        low[(width as usize - 1) / 8] |= 1 << (7 - (width - 1) % 8);
        let mut sign = vec![0; bytes];
        sign[0] = 0x80;
        let random: Vec<Vec<u8>> =
            (0..3).map(|_| (0..bytes).map(|_| rng.next_u64() as u8).collect()).collect();
        let mut near = random[0].clone();
        near[bytes / 2] ^= 1;
        let few: Vec<u8> = (0..bytes).map(|at| if at + 9 < bytes { 0 } else { random[1][at] }).collect();
        let pairs = [
            (vec![0; bytes], vec![0xff; bytes]),
            (vec![0xff; bytes], low.clone()),
            (sign.clone(), low.clone()),
            (sign.clone(), sign.clone()),
            (random[0].clone(), random[1].clone()),
            (random[0].clone(), near),
            (random[2].clone(), few),
            (random[1].clone(), vec![0; bytes]),
        ];
        let amounts = [0, 1, 64, 65, width as u16, (width - 1) as u16, 130, 0xffff];
        let batch: Vec<Vec<u8>> =
            pairs.iter().zip(amounts).map(|((x, y), by)| packet(width, x, y, by)).collect();
        for (expression, result) in expressions(width) {
            let source = program(width, &expression, result);
            let program = text::parse(&source).unwrap_or_else(|error| panic!("{error}\n{source}"));
            for (start, effort) in in_both_ways([Start::Arrival]) {
                let mut bench =
                    Bench::new(program.clone(), start, &[], effort).expect("a program with a state");
                bench.packets(&batch);
                let failures = bench.failures();
                assert!(failures.is_empty(), "{expression} of {width} bits: {}", failures.join("\n"));
            }
        }
    }
}
