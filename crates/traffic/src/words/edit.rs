//! Lines of plans in the place of others: what `millrace tc set` does.

use std::fmt;

/// Why lines cannot be put into plans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EditError {
    /// The line does not begin with `port`, `qdisc` or `class`, or has not the name of what it is about.
    Nameless(String),
    /// No line says which port is meant, and there is not just one.
    NoPort,
}

impl fmt::Display for EditError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EditError::Nameless(line) => write!(
                f,
                "`{line}`: a line has `port NUMBER`, `qdisc` with a `handle`, or `class` with a `classid`"
            ),
            EditError::NoPort => f.write_str("say the port: there is not just one with a plan"),
        }
    }
}

impl std::error::Error for EditError {}

/// A port of a text: its number, and its lines, the first of which begins with `port`.
struct Section {
    port: String,
    lines: Vec<String>,
}

/// The text of plans after a change, which has lines as a plan has: each takes the place of the line with its name, or is new. A line
/// `port NUMBER` says which port is meant; with more words it takes the place of that port's first line.
///
/// # Errors
/// [`EditError`]. Whether the text is sound, [`super::parse`] says.
pub fn edited(present: &str, change: &str) -> Result<String, EditError> {
    let mut sections: Vec<Section> = Vec::new();
    for line in lines(present) {
        match (port(&line), sections.last_mut()) {
            (Some(port), _) => sections.push(Section { port: port.to_owned(), lines: vec![line] }),
            (None, Some(section)) => section.lines.push(line),
            (None, None) => return Err(EditError::Nameless(line)),
        }
    }
    let mut at = (sections.len() == 1).then_some(0);
    for line in lines(change) {
        if let Some(port) = port(&line) {
            let known = sections.iter().position(|section| section.port == port).unwrap_or(sections.len());
            match sections.get_mut(known) {
                None => sections.push(Section { port: port.to_owned(), lines: vec![line] }),
                Some(section) if line.split_whitespace().count() > 2 => section.lines[0] = line,
                Some(_) => {}
            }
            at = Some(known);
            continue;
        }
        let Some(name) = name(&line) else { return Err(EditError::Nameless(line)) };
        let section = at.and_then(|at| sections.get_mut(at)).ok_or(EditError::NoPort)?;
        match section.lines.iter_mut().find(|known| self::name(known) == Some(name)) {
            Some(known) => *known = line.clone(),
            None => section.lines.push(line.clone()),
        }
    }
    let all = sections.into_iter().flat_map(|section| section.lines);
    Ok(all.map(|line| line + "\n").collect())
}

/// The lines of a text, without comments, those that go on in the next one as one.
fn lines(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or_default().trim();
        let (line, goes_on) = line.strip_suffix('\\').map_or((line, false), |line| (line, true));
        if let Some(last) = lines.last_mut() {
            last.push_str(line);
        }
        if !goes_on {
            lines.push(String::new());
        }
    }
    lines.retain(|line| !line.trim().is_empty());
    lines
}

/// The number of the port that a line begins.
fn port(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace();
    (words.next() == Some("port")).then(|| words.next()).flatten()
}

/// What a line is about: a discipline or queue, or a class, with its handle.
fn name(line: &str) -> Option<(&str, &str)> {
    let kind = line.split_whitespace().next()?;
    let before = match kind {
        "qdisc" => "handle",
        "class" => "classid",
        _ => return None,
    };
    let mut words = line.split_whitespace().skip_while(|word| *word != before);
    Some((kind, words.nth(1)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRESENT: &str = "port 1 rate 1gbit
qdisc add root handle 1: drr
class add parent 1: classid 1:1 drr quantum 1600b
qdisc add parent 1:1 handle 10: pfifo limit 100
port 2
qdisc add root handle 1: pfifo limit 5
";

    #[test]
    fn a_line_takes_the_place_of_the_one_with_its_name() {
        let change = "port 1\nclass change parent 1: classid 1:1 drr \\\nquantum 3000b # more\nqdisc add parent 1:2 handle 20: pfifo";
        let wanted = "port 1 rate 1gbit
qdisc add root handle 1: drr
class change parent 1: classid 1:1 drr quantum 3000b
qdisc add parent 1:1 handle 10: pfifo limit 100
qdisc add parent 1:2 handle 20: pfifo
port 2
qdisc add root handle 1: pfifo limit 5
";
        assert_eq!(edited(PRESENT, change).unwrap(), wanted);
        assert_eq!(edited(wanted, "").unwrap(), wanted);
    }

    #[test]
    fn the_first_line_of_a_port_changes_and_ports_come() {
        let text = edited(PRESENT, "port 2 rate 1mbit\nport 3\nqdisc add root handle 1: pfifo").unwrap();
        assert!(text.ends_with("port 2 rate 1mbit\nqdisc add root handle 1: pfifo limit 5\nport 3\nqdisc add root handle 1: pfifo\n"));
        let one = "port 7\nqdisc add root handle 1: pfifo\n";
        let changed = edited(one, "qdisc replace root handle 1: bfifo").unwrap();
        assert_eq!(changed, "port 7\nqdisc replace root handle 1: bfifo\n");
    }

    #[test]
    fn what_has_no_place_is_refused() {
        assert_eq!(edited(PRESENT, "qdisc add root handle 1: pfifo"), Err(EditError::NoPort));
        assert_eq!(edited("", "qdisc add root handle 1: pfifo"), Err(EditError::NoPort));
        for nameless in ["filter add", "qdisc add root", "class add classid", "port"] {
            let change = format!("port 1\n{nameless}");
            assert_eq!(edited(PRESENT, &change), Err(EditError::Nameless(nameless.to_owned())), "{nameless}");
        }
    }
}
