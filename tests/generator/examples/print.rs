//! Prints the program of a seed and size, as [`generate`] makes it: `print SEED SIZE`.

use millrace_generator::generate;

fn main() {
    let number = |at: usize| std::env::args().nth(at).and_then(|text| text.parse().ok());
    let (Some(seed), Some(size)) = (number(1), number(2)) else {
        eprintln!("usage: print SEED SIZE");
        std::process::exit(2);
    };
    print!("{}", generate(seed, size as usize).source);
}
