//! Exact tables that are filled until lines go on in others: lookups by loads against the interpreter.

use crate::bench::Bench;
use millrace_jit::{Effort, Shape, shapes};
use millrace_midend::Start;
use millrace_pipeline::arbitrary::Rng;
use millrace_pipeline::{Program, text};
use millrace_state::State;
use std::sync::Arc;

/// So many that among their lines some are full: of five keys at a load of three fifths, every tenth one.
const ENTRIES: usize = 1500;

/// A table of keys of so many bits, with entries that give numbers from 1 on; with a counter for each where it is asked for.
fn program(bits: u32, keys: &[Vec<u8>], counted: bool) -> Program {
    let entries: String = (1..)
        .zip(keys)
        .map(|(number, key)| {
            let key: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("entry ({bits}w0x{key}) => set(32w{number})\n")
        })
        .collect();
    let counter = if counted { "direct_counter hits packets_and_bytes at_hit" } else { "" };
    let size = keys.len();
    let source = format!(
        "program exact
         errors (NoError, PacketTooShort, HeaderTooShort, ParserInvalidArgument, ParserTimeout)
         intrinsic parser_error = perr
         ingress (p, c)
         header h: h_t {{ k: bit<{bits}> }}
         metadata perr: bit<16>
         metadata found: bit<32>
         metadata number: bit<32>
         action miss () = miss
         action set (number) = set
         table t {{ key k: exact = h.k action set action miss default miss() size {size} {entries} {counter} }}
         body action miss {{ block0: end }}
         body action set {{ block0: found = number end }}
         body parser p {{ block0: extract h end }}
         body control c {{ block0: apply t, next = block1, exit = block1 block1: end }}"
    );
    text::parse(&source).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn keys_of_one_and_two_limbs() {
    for (bits, limbs) in [(24, 1), (48, 1), (64, 1), (72, 2), (104, 2), (128, 2)] {
        let mut rng = Rng::new(u64::from(bits));
        let mut random = || -> Vec<u8> { (0..bits / 8).map(|_| rng.next_u64() as u8).collect() };
        let (keys, others): (Vec<_>, Vec<_>) = (0..ENTRIES).map(|_| (random(), random())).unzip();
        for counted in [false, true] {
            let program = program(bits, &keys, counted);
            let mut state = State::new(Arc::new(program.clone())).expect("a state");
            assert_eq!(shapes(&mut state), [Shape::Lines(limbs)], "{bits} bits");
            // By loads, by calls for batches and for one key, and all of a batch together.
            let table = program.tables.keys().next().expect("the table");
            let variants = [
                (Start::Arrival, &[][..], Effort::Speed),
                (Start::Unparsed, &[][..], Effort::Speed),
                (Start::Arrival, &[][..], Effort::Quick),
                (Start::Arrival, &[table][..], Effort::Speed),
            ];
            for (start, staged, effort) in variants {
                let mut bench =
                    Bench::new(program.clone(), start, staged, effort).expect("a program with a state");
                // Every key, one that is not there, and one in which a single bit differs.
                for ((at, key), other) in keys.iter().enumerate().zip(&others) {
                    let mut near = key.clone();
                    near[at % key.len()] ^= 1 << (at % 8);
                    bench.packets(&[key.clone(), other.clone(), near, key.clone()]);
                }
                let failures = bench.failures();
                assert!(failures.is_empty(), "{bits} bits: {}", failures.join("\n"));
            }
        }
    }
}
