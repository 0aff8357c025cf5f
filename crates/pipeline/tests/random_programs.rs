//! Random programs print and parse back, and optimising keeps what they do.

mod machine;

use machine::run;
use millrace_pipeline::arbitrary::{self, Rng};
use millrace_pipeline::{passes, text, verify};

/// More with `MILLRACE_SEEDS=100000` in the environment.
fn seeds() -> u64 {
    std::env::var("MILLRACE_SEEDS").ok().and_then(|n| n.parse().ok()).unwrap_or(300)
}

fn size(seed: u64) -> usize {
    1 + (seed % 9) as usize
}

#[test]
fn print_and_parse() {
    for seed in 0..seeds() {
        let program = arbitrary::program(seed, size(seed));
        let printed = text::print(&program);
        let parsed = text::parse(&printed);
        assert_eq!(parsed.as_ref(), Ok(&program), "seed {seed}\n{printed}");
    }
}

#[test]
fn optimised_programs_do_the_same() {
    let mut long = 0;
    let mut ended = 0;
    for seed in 0..seeds() {
        let program = arbitrary::program(seed, size(seed));
        let mut optimised = program.clone();
        passes::optimize(&mut optimised);
        assert_eq!(verify(&optimised), Ok(()), "seed {seed}");
        let mut rng = Rng::new(!seed);
        for _ in 0..20 {
            let packet: Vec<u8> = (0..rng.below(120)).map(|_| rng.next_u64() as u8).collect();
            let Some(wanted) = run(&program, &packet) else {
                long += 1;
                continue;
            };
            ended += u64::from(wanted.ended.is_some());
            let got = run(&optimised, &packet);
            assert_eq!(
                got.as_ref(),
                Some(&wanted),
                "seed {seed}, packet {packet:02x?}\n{program}\n{optimised}"
            );
        }
    }
    // Most runs come to their end, so that the comparison means something.
    assert!(long < seeds(), "{long} runs are too long");
    assert!(ended < seeds() * 10, "{ended} runs end early");
}
