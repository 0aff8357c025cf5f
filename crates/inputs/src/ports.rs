//! Which ports a chain is of: `PORTS:CHAIN`, as in `0,2-5:filter "tcp"` and `*:sample 1/100`; and which chain a port has.

use crate::chain::{Chain, MAX_CHAIN};
use crate::error::{InputError, TextError};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// Most numbers and ranges that name the ports of a chain.
pub const MAX_PORT_RANGES: usize = 256;

/// The ports of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ports {
    /// All that no other chain of the direction names.
    Others,
    /// These.
    Named(Vec<RangeInclusive<u32>>),
}

/// A chain and where it stands: `0:filter "tcp"`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortChain {
    ports: Ports,
    is_output: bool,
    chain: Chain,
}

impl FromStr for Ports {
    type Err = ();

    fn from_str(text: &str) -> Result<Ports, ()> {
        if text.trim() == "*" {
            return Ok(Ports::Others);
        }
        // A plus sign would parse as a number too.
        let number = |text: &str| -> Result<u32, ()> {
            let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse().ok().filter(|_| is_number).ok_or(())
        };
        let range = |text: &str| {
            let (first, last) = text.split_once('-').unwrap_or((text, text));
            let (first, last) = (number(first.trim())?, number(last.trim())?);
            if first <= last { Ok(first..=last) } else { Err(()) }
        };
        let ranges: Vec<_> =
            text.split(',').take(MAX_PORT_RANGES + 1).map(range).collect::<Result<_, ()>>()?;
        if ranges.len() > MAX_PORT_RANGES { Err(()) } else { Ok(Ports::Named(ranges)) }
    }
}

impl PortChain {
    /// Reads `PORTS:CHAIN`. PORTS is numbers and ranges with commas, or `*`: the ports that no other chain of the direction names.
    ///
    /// # Errors
    /// [`TextError`], with the place.
    pub fn parse(text: &str, is_output: bool) -> Result<PortChain, TextError> {
        let wrong = |end: usize| {
            let most = format!("with at most {MAX_PORT_RANGES} numbers and ranges");
            let wanted = format!(
                "`PORTS:CHAIN` was expected, as in 0,2-5:filter \"udp port 53\" or *:sample 1/100, {most}"
            );
            TextError::new(text, 0..end, wanted)
        };
        if text.len() > MAX_CHAIN {
            return Err(TextError::new("", 0..0, format!("a chain has at most {MAX_CHAIN} bytes")));
        }
        let (ports, chain) = text.split_once(':').ok_or_else(|| wrong(0))?;
        let length = ports.len();
        let ports = ports.parse().map_err(|()| wrong(length))?;
        let chain = chain.parse().map_err(|error: TextError| error.within(text, length + 1))?;
        Ok(PortChain { ports, is_output, chain })
    }

    /// The chain.
    pub fn chain(&self) -> &Chain {
        &self.chain
    }

    fn direction(&self) -> &'static str {
        if self.is_output { "output" } else { "input" }
    }

    /// What it names and these ports have not: the first number or range without any of them.
    pub fn names_in_vain(&self, ports: &[u32]) -> Option<RangeInclusive<u32>> {
        let Ports::Named(ranges) = &self.ports else { return None };
        ranges.iter().find(|range| !ports.iter().any(|port| range.contains(port))).cloned()
    }
}

/// `0,2-5`, or `*`.
impl fmt::Display for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ports::Named(ranges) = self else { return f.write_str("*") };
        for (at, range) in ranges.iter().enumerate() {
            let (first, last) = (range.start(), range.end());
            f.write_str(if at > 0 { "," } else { "" })?;
            write!(f, "{first}")?;
            if first != last {
                write!(f, "-{last}")?;
            }
        }
        Ok(())
    }
}

/// The chain of each port and direction; those of the operator stay under all programs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan(pub(crate) BTreeMap<(u32, bool), Planned>);

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Planned {
    pub(crate) chain: Chain,
    pub(crate) is_of_program: bool,
}

impl Plan {
    /// The chains of these ports: those that the operator gives, and where there is none those that the program asks for.
    ///
    /// # Errors
    /// [`InputError::Port`]: a port has two chains of the operator, or two of the program, in one direction.
    pub fn new(ports: &[u32], given: &[PortChain], of_program: &[PortChain]) -> Result<Plan, InputError> {
        let mut plan = by_port(ports, of_program, true)?;
        plan.extend(by_port(ports, given, false)?);
        Ok(Plan(plan))
    }

    /// The ports and directions whose chain comes from the program, with `input` and `output` for the directions.
    pub fn of_program(&self) -> impl Iterator<Item = (u32, &'static str)> {
        let of_program = self.0.iter().filter(|(_, planned)| planned.is_of_program);
        of_program.map(|((port, is_output), _)| (*port, if *is_output { "output" } else { "input" }))
    }
}

fn by_port(
    ports: &[u32],
    chains: &[PortChain],
    is_of_program: bool,
) -> Result<BTreeMap<(u32, bool), Planned>, InputError> {
    let two = |what: String, chain: &PortChain| {
        let whose = if is_of_program { " that the program asks for" } else { "" };
        InputError::Port(format!("{what} two chains for its {}{whose}", chain.direction()))
    };
    let planned = |chain: &PortChain| Planned { chain: chain.chain.clone(), is_of_program };
    let mut plan = BTreeMap::new();
    let mut others: [Option<&PortChain>; 2] = [None, None];
    for chain in chains {
        let Ports::Named(ranges) = &chain.ports else {
            if others[usize::from(chain.is_output)].replace(chain).is_some() {
                return Err(two("every other port (*) has".to_owned(), chain));
            }
            continue;
        };
        for port in ports.iter().filter(|port| ranges.iter().any(|range| range.contains(port))) {
            if plan.insert((*port, chain.is_output), planned(chain)).is_some() {
                return Err(two(format!("port {port} has"), chain));
            }
        }
    }
    for chain in others.into_iter().flatten() {
        for port in ports {
            plan.entry((*port, chain.is_output)).or_insert_with(|| planned(chain));
        }
    }
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(text: &str) -> PortChain {
        PortChain::parse(text, false).unwrap()
    }

    /// N of the chain `sample 1/N` of each port.
    fn planned(plan: &Plan) -> Vec<(u32, String)> {
        let shown = |planned: &Planned| format!("{:?}", planned.chain);
        let number = |text: String| text.chars().filter(char::is_ascii_digit).collect();
        plan.0.iter().map(|((port, _), planned)| (*port, number(shown(planned)))).collect()
    }

    #[test]
    fn ports_are_numbers_ranges_or_all_others() {
        for (text, wanted) in [("0", "0"), (" 0, 2-5 ", "0,2-5"), ("*", "*"), ("7-7", "7")] {
            assert_eq!(text.parse::<Ports>().map(|ports| ports.to_string()), Ok(wanted.to_owned()));
        }
        for wrong in ["", "+1", "5-2", "1-", "-1", "a", "1;2", "4294967296", "*,1"] {
            assert_eq!(wrong.parse::<Ports>(), Err(()), "{wrong}");
        }
        let many = vec!["1"; MAX_PORT_RANGES].join(",");
        assert!(many.parse::<Ports>().is_ok() && format!("{many},1").parse::<Ports>().is_err());
        let refusal = PortChain::parse("1-:sample 1/2", false).unwrap_err();
        assert!(refusal.message.starts_with("`PORTS:CHAIN` was expected") && refusal.at == (0..2));
        let refusal = PortChain::parse("1,2:sample 2", false).unwrap_err();
        assert_eq!(refusal.at, 11..12);
        assert_eq!(chain("0-3,7:sample 1/2").names_in_vain(&[3, 5]), Some(7..=7));
        assert_eq!(chain("*:sample 1/2").names_in_vain(&[]), None);
    }

    #[test]
    fn the_operator_comes_before_the_program_and_names_before_a_star() {
        let ports = [0, 1, 2, 3];
        let program = [chain("*:sample 1/10"), chain("1-2:sample 1/11"), chain("9:sample 1/19")];
        let plan = Plan::new(&ports, &[], &program).unwrap();
        let of = |numbers: [&str; 4]| ports.into_iter().zip(numbers.map(str::to_owned)).collect::<Vec<_>>();
        assert_eq!(planned(&plan), of(["10", "11", "11", "10"]));
        assert_eq!(plan.of_program().count(), 4);
        let plan = Plan::new(&ports, &[chain("2-3:sample 1/20")], &program).unwrap();
        assert_eq!(planned(&plan), of(["10", "11", "20", "20"]));
        assert_eq!(plan.of_program().collect::<Vec<_>>(), [(0, "input"), (1, "input")]);
        let both = Plan::new(&[0], &[PortChain::parse("0:sample 1/2", true).unwrap()], &program).unwrap();
        assert_eq!(both.0.len(), 2, "each direction has its own");
    }

    #[test]
    fn a_port_has_one_chain_in_a_direction() {
        let refusal = |chains: &[PortChain]| Plan::new(&[0, 1], &[], chains).unwrap_err().to_string();
        let two = refusal(&[chain("0-1:sample 1/2"), chain("1:sample 1/2")]);
        assert_eq!(two, "port 1 has two chains for its input that the program asks for");
        assert!(refusal(&[chain("*:sample 1/2"), chain("*:sample 1/2")]).starts_with("every other port"));
        // A port that there is not may be named often.
        assert!(Plan::new(&[0], &[], &[chain("5:sample 1/2"), chain("5:sample 1/2")]).is_ok());
    }
}
