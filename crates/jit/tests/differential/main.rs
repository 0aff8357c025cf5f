//! Compiled code against the interpreter: the same programs, packets and states give the same storage, packets, verdicts,
//! effects and states.

mod bench;
mod exact;
mod times;
mod wide;

use bench::{Bench, in_both_ways};
use millrace_filetests::{Folder, Kind, Outcome, Test, files};
use millrace_midend::Start;
use millrace_pipeline::arbitrary::{self, Rng};
use millrace_pipeline::*;
use std::fs;
use std::path::Path;

/// The directives of the interpreter's file tests.
const WORDS: &[&str] = &["packet", "time", "meter", "value", "member", "group", "entry", "default", "expect"];
const RUN: &[Kind] = &[Kind { name: "run", words: WORDS, run: same_as_the_interpreter }];

/// Every file test of the interpreter, with its state directives and packets.
#[test]
fn file_tests_of_the_interpreter() {
    let folder = Folder {
        path: Path::new(env!("CARGO_MANIFEST_DIR")).join("../interp/filetests"),
        extension: "mir",
        sign: ";",
        kinds: RUN,
    };
    let failures: Vec<String> = files(&folder.path, folder.extension)
        .iter()
        .filter_map(|file| {
            let source = fs::read_to_string(file).expect("a file that was just listed");
            folder.check(file, &source).err()
        })
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn same_as_the_interpreter(test: &Test<'_>) -> Result<Outcome, String> {
    let program = text::parse(test.source).map_err(|error| error.to_string())?;
    if !test.script.iter().any(|directive| directive.word == "packet") {
        return Err("there is no packet".into());
    }
    for (start, effort) in in_both_ways([Start::Context, Start::Unparsed, Start::Arrival]) {
        let mut bench = Bench::new(program.clone(), start, &[], effort).ok_or("no state for it")?;
        for directive in test.script {
            match directive.word.as_str() {
                "packet" => bench.packets(&[bench::unhex(&directive.text)]),
                word => bench.obey(word, &directive.text),
            }
        }
        let failures = bench.failures();
        if !failures.is_empty() {
            return Err(failures.join("\n"));
        }
    }
    Ok(Outcome::Holds)
}

/// Random programs with random packets.
#[test]
fn random_programs() {
    let programs = std::env::var("JIT_PROGRAMS").ok().and_then(|n| n.parse().ok()).unwrap_or(150);
    let first = std::env::var("JIT_FIRST").ok().and_then(|n| n.parse().ok()).unwrap_or(0);
    for seed in first..first + programs {
        // Large ones get few clones of their blocks, so that headers are joined that are valid on one way only.
        let size = if seed % 10 == 9 { 40 } else { 2 + seed as usize % 6 };
        let program = arbitrary::program(seed, size);
        let mut rng = Rng::new(seed);
        let staged: Vec<TableId> = program.tables.keys().collect();
        let plans = [
            (Start::Context, &[][..]),
            (Start::Unparsed, &[][..]),
            (Start::Arrival, &[][..]),
            (Start::Arrival, &staged[..]),
        ];
        for ((start, staged), effort) in in_both_ways(plans) {
            let program =
                if staged.is_empty() { program.clone() } else { bench::without_memory(program.clone()) };
            let Some(mut bench) = Bench::new(program.clone(), start, staged, effort) else { continue };
            bench.set_apart(seed * 1_000_003);
            for _ in 0..6 {
                let batch: Vec<Vec<u8>> = (0..rng.below(9)).map(|_| packet(&mut rng)).collect();
                bench.packets(&batch);
            }
            let failures = bench.failures();
            assert!(
                failures.is_empty(),
                "program {seed} of size {size}, {start:?}, staged {}:\n{}\n{}",
                staged.len(),
                text::print(&program),
                failures.join("\n")
            );
        }
    }
}

/// What a packet that waits for its lookup takes along: also what would be written after it, were the packet longer.
#[test]
fn a_lookahead_beyond_the_packet_leaves_its_slot_as_it_was() {
    let program = text::parse(
        "program lookahead
         errors (NoError, PacketTooShort, HeaderTooShort, ParserInvalidArgument, ParserTimeout)
         intrinsic parser_error = perr
         ingress (p, c, q)
         header h: h_t { a: bit<24> }
         metadata perr: bit<16>
         metadata m: bit<16>
         action nop () = nop
         table t { key a: exact = h.a action nop default nop() size 4 }
         body action nop { block0: end }
         body parser p { block0: extract h m = h.a[15:0] end }
         body control c { block0: apply t, next = block1, exit = block1 block1: end }
         body parser q { block0: lookahead m, skip 16 end }",
    );
    let program = program.unwrap_or_else(|error| panic!("{error}"));
    let staged: Vec<TableId> = program.tables.keys().collect();
    for (start, effort) in in_both_ways([Start::Arrival]) {
        let mut bench = Bench::new(program.clone(), start, &staged, effort).expect("a program with a state");
        bench.packets(&[vec![1, 2, 3], vec![4, 5, 6, 7], vec![8, 9, 10, 11, 12, 13, 14, 15]]);
        assert_eq!(bench.failures(), [""; 0]);
    }
}

/// Where only the packet shows how far its headers reach: what goes before the payload is read from wherever it was,
/// in any order, and with a header that is new.
#[test]
fn headers_behind_options_are_put_in_front_of_the_payload() {
    for emitted in ["emit h emit g", "emit g emit h", "emit n emit h emit g", "emit g"] {
        let program = text::parse(&format!(
            "program after
             errors (NoError, PacketTooShort, HeaderTooShort, ParserInvalidArgument, ParserTimeout)
             intrinsic parser_error = perr
             ingress (p, c, d)
             header h: h_t {{ a: bit<48> b: bit<48> len: bit<8> c: bit<24> }}
             header g: g_t {{ a: bit<4> b: bit<4> c: bit<8> d: bit<16> e: bit<48> }}
             header n: n_t {{ a: bit<16> b: bit<64> }}
             metadata perr: bit<16>
             body parser p {{
             block0: extract h branch lt(h.len, 8w6), block1, block2
             block1: advance concat(21w0, concat(h.len, 3w0)) goto block2
             block2: extract g end }}
             body control c {{
             block0: h.b = h.a g.c = add(g.c, 8w1) set_valid n n.a = 16w0x1234 n.b = concat(h.a, g.d) end }}
             body deparser d {{ block0: {emitted} end }}"
        ));
        let program = program.unwrap_or_else(|error| panic!("{error}"));
        let starts = [Start::Arrival, Start::Unparsed];
        for (start, effort) in in_both_ways(starts) {
            let mut bench = Bench::new(program.clone(), start, &[], effort).expect("a program with a state");
            let packet = |len: u8| -> Vec<u8> {
                (0..60u8).map(|at| if at == 12 { len } else { at.wrapping_mul(7) ^ len }).collect()
            };
            let mut packets: Vec<Vec<u8>> = (0..8).map(packet).collect();
            packets.extend((16..32).map(|cut| packet(5)[..cut].to_vec()));
            packets.chunks(8).for_each(|batch| bench.packets(batch));
            assert_eq!(bench.failures(), [""; 0], "{emitted} {start:?}");
        }
    }
}

fn packet(rng: &mut Rng) -> Vec<u8> {
    let len = match rng.below(4) {
        0 => rng.below(12),
        1 => rng.below(64),
        _ => 60 + rng.below(100),
    };
    let narrow = rng.one_in(2);
    (0..len).map(|_| if narrow { rng.below(3) as u8 } else { rng.next_u64() as u8 }).collect()
}
