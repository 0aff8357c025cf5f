//! What signals did, as a file of value changes (VCD, IEEE 1364-2005 chapter 18), which gtkwave and others show.

use super::{SignalId, Simulator};
use std::io::{self, Write};

/// Nanoseconds of a cycle in the file; the clock falls in the middle.
const PERIOD: u64 = 10;

/// Writes value changes of some signals of a simulator. Each call of [`Vcd::sample`] is one cycle.
pub struct Vcd<W> {
    out: W,
    signals: Vec<(SignalId, String)>,
    last: Vec<u64>,
    time: u64,
}

impl<W: Write> Vcd<W> {
    /// Starts a file with its list of signals. Names of parts in instances become scopes.
    ///
    /// # Errors
    /// Writing fails.
    pub fn new(mut out: W, sim: &Simulator, signals: &[SignalId]) -> io::Result<Vcd<W>> {
        writeln!(out, "$timescale 1ns $end")?;
        writeln!(out, "$scope module top $end")?;
        writeln!(out, "$var wire 1 {} clk $end", code(0))?;
        // Sorted by scope, so that each is opened once.
        let mut sorted: Vec<(Vec<&str>, SignalId)> = Vec::new();
        for signal in signals {
            let (name, _, _) = sim.describe(*signal);
            sorted.push((name.split('.').collect(), *signal));
        }
        sorted.sort_by(|(a, _), (b, _)| a[..a.len() - 1].cmp(&b[..b.len() - 1]).then_with(|| a.cmp(b)));
        let mut open: &[&str] = &[];
        let mut named = Vec::new();
        for (path, signal) in &sorted {
            let (name, scope) = path.split_last().unwrap_or((&"", &[]));
            let common = open.iter().zip(scope).take_while(|(a, b)| a == b).count();
            for _ in common..open.len() {
                writeln!(out, "$upscope $end")?;
            }
            for scope in &scope[common..] {
                writeln!(out, "$scope module {} $end", legal(scope))?;
            }
            open = scope;
            let (_, _, width) = sim.describe(*signal);
            let range = if width > 1 { format!(" [{}:0]", width - 1) } else { String::new() };
            let code = code(named.len() + 1);
            writeln!(out, "$var wire {width} {code} {}{range} $end", legal(name))?;
            named.push((*signal, code));
        }
        for _ in 0..=open.len() {
            writeln!(out, "$upscope $end")?;
        }
        writeln!(out, "$enddefinitions $end")?;
        Ok(Vcd { out, signals: named, last: Vec::new(), time: 0 })
    }

    /// Writes what the signals are in this cycle, as far as it is not what they were.
    ///
    /// # Errors
    /// Writing fails.
    pub fn sample(&mut self, sim: &mut Simulator) -> io::Result<()> {
        sim.settle();
        writeln!(self.out, "#{}\n1{}", self.time, code(0))?;
        let first = self.last.is_empty();
        let mut at = 0;
        for (signal, code) in &self.signals {
            let (_, _, width) = sim.describe(*signal);
            let mut changed = first;
            let start = at;
            for limb in sim.limbs(*signal) {
                if first {
                    self.last.push(limb);
                }
                changed |= self.last[at] != limb;
                self.last[at] = limb;
                at += 1;
            }
            if changed && width == 1 {
                writeln!(self.out, "{}{code}", self.last[start])?;
            } else if changed {
                write!(self.out, "b")?;
                for bit in (0..width).rev() {
                    write!(self.out, "{}", self.last[start + bit as usize / 64] >> (bit % 64) & 1)?;
                }
                writeln!(self.out, " {code}")?;
            }
        }
        writeln!(self.out, "#{}\n0{}", self.time + PERIOD / 2, code(0))?;
        self.time += PERIOD;
        Ok(())
    }

    /// Ends the file.
    ///
    /// # Errors
    /// Writing fails.
    pub fn finish(mut self) -> io::Result<W> {
        writeln!(self.out, "#{}", self.time)?;
        self.out.flush()?;
        Ok(self.out)
    }
}

/// The short name of a signal in the file: digits of a number to the base 94, printable ones.
fn code(mut number: usize) -> String {
    let mut code = String::new();
    loop {
        code.push((b'!' + (number % 94) as u8) as char);
        number /= 94;
        if number == 0 {
            return code;
        }
    }
}

/// A name without blanks and what the format gives a meaning.
fn legal(name: &str) -> String {
    let plain = |c: char| c.is_ascii_graphic() && !matches!(c, '$' | '[' | ']');
    name.chars().map(|c| if plain(c) { c } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text;

    const DESIGN: &str = "
        module inner {
            input x: 1
            output y: 1 = n1
            register r: 1 next n0
            n0: 1 = input x
            n1: 1 = register r
        }
        module m {
            output value: 2 = n0
            register \"a[b\": 2 reset 2w2 next n2
            instance u: inner (n3)
            n0: 2 = register \"a[b\"
            n1: 2 = 2w1
            n2: 2 = add n0, n1
            n3: 1 = slice n0 from 1
        }";

    /// Changes alone are written; instances are scopes; what the format has signs for becomes `_` in names.
    #[test]
    fn changes() {
        let mut sim = Simulator::new(&text::parse(DESIGN).unwrap()).unwrap();
        let signals: Vec<SignalId> = sim.signals().collect();
        let mut vcd = Vcd::new(Vec::new(), &sim, &signals).unwrap();
        for _ in 0..3 {
            vcd.sample(&mut sim).unwrap();
            sim.step();
        }
        let text = String::from_utf8(vcd.finish().unwrap()).unwrap();
        let wanted = "$timescale 1ns $end\n$scope module top $end\n$var wire 1 ! clk $end\n$var wire 2 \" a_b [1:0] $end\n\
                      $var wire 2 # value [1:0] $end\n$scope module u $end\n$var wire 1 $ r $end\n$upscope $end\n$upscope $end\n\
                      $enddefinitions $end\n#0\n1!\nb10 \"\nb10 #\n0$\n#5\n0!\n#10\n1!\nb11 \"\nb11 #\n1$\n#15\n0!\n#20\n1!\n\
                      b00 \"\nb00 #\n#25\n0!\n#30\n";
        assert_eq!(text, wanted);
    }

    #[test]
    fn codes() {
        assert_eq!([0, 93, 94, 94 * 94].map(code), ["!", "~", "!\"", "!!\""]);
    }
}
