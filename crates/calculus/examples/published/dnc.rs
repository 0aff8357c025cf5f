//! NetCal/DNC: the networks of its functional tests, which are Java, and the bounds that the tests expect.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fs;

use millrace_calculus::{
    Arrival, Cross, Flow, FlowId, Link, Network, RateLatency, Route, RouteId, Scheduler, Server, ServerId,
    Time, TokenBucket, Transfer, pmoo, separated_flow, total_flow_separated,
};

/// Some tests have half a unit of data.
const SCALE: f64 = 2.0;

/// What stands in the brackets of a call of `function`, split at commas, and what stands before it.
fn call<'a>(line: &'a str, function: &str) -> Option<(&'a str, Vec<&'a str>)> {
    let at = line.find(&format!("{function}("))?;
    let inside = line[at + function.len() + 1..].rsplit_once(");")?.0;
    Some((line[..at].trim(), inside.split(',').map(str::trim).collect()))
}

/// The variable to which the line assigns, without a type before it.
fn assigned(before: &str) -> Option<&str> {
    before.split_once('=')?.0.split_whitespace().last()
}

#[derive(Default)]
struct Source {
    numbers: HashMap<String, f64>,
    /// Rate and latency, or rate and burst.
    curves: HashMap<String, (f64, f64)>,
    /// The name and the curve of each server.
    servers: Vec<(String, String)>,
    turns: HashMap<String, (usize, usize)>,
    steps: Vec<(usize, usize)>,
    paths: HashMap<String, Vec<usize>>,
    /// The curve and the servers of each flow.
    flows: Vec<(String, Vec<usize>)>,
}

impl Source {
    fn read(text: &str) -> Option<Source> {
        let mut source = Source::default();
        for line in text.lines().map(str::trim) {
            // A loop over what is made: not worth a reader.
            if line.starts_with("for (int") {
                return None;
            }
            source.line(line)?;
        }
        Some(source)
    }

    fn line(&mut self, line: &str) -> Option<()> {
        if line.starts_with("private final") {
            let (name, value) = line.trim_end_matches(';').split_once('=')?;
            self.numbers.insert(name.split_whitespace().last()?.to_owned(), value.trim().parse().ok()?);
        }
        for function in ["createRateLatency", "createTokenBucket"] {
            if let Some((before, words)) = call(line, function) {
                let number = |at: usize| self.numbers.get(*words.get(at)?).copied();
                self.curves.insert(assigned(before)?.to_owned(), (number(0)?, number(1)?));
            }
        }
        if let Some((before, words)) = call(line, "addServer") {
            self.servers.push((assigned(before)?.to_owned(), (*words.last()?).to_owned()));
        }
        if let Some((before, words)) = call(line, "addTurn") {
            let step = (self.server(words[words.len() - 2])?, self.server(words[words.len() - 1])?);
            self.steps.push(step);
            if let Some(name) = assigned(before) {
                self.turns.insert(name.to_owned(), step);
            }
        }
        if let Some((path, words)) = call(line, ".add").filter(|(path, _)| path.ends_with("_path")) {
            let (from, to) = *self.turns.get(words[0])?;
            let servers = self.paths.entry(path.to_owned()).or_insert_with(|| vec![from]);
            servers.push(to);
        }
        if let Some((_, words)) = call(line.split("//").next()?.trim(), "addFlow") {
            let words = words.into_iter().filter(|word| !word.starts_with('"')).collect::<Vec<_>>();
            let servers = match (self.paths.get(words[1]), words.get(2)) {
                (Some(path), _) => path.clone(),
                (None, None) => vec![self.server(words[1])?],
                (None, Some(sink)) => self.shortest(self.server(words[1])?, self.server(sink)?)?,
            };
            self.flows.push((words[0].to_owned(), servers));
        }
        Some(())
    }

    fn server(&self, name: &str) -> Option<usize> {
        self.servers.iter().position(|(it, _)| it == name)
    }

    fn shortest(&self, from: usize, to: usize) -> Option<Vec<usize>> {
        let mut before = HashMap::from([(from, from)]);
        let mut queue = VecDeque::from([from]);
        while let Some(at) = queue.pop_front() {
            for &(_, next) in self.steps.iter().filter(|step| step.0 == at) {
                if let Entry::Vacant(unknown) = before.entry(next) {
                    unknown.insert(at);
                    queue.push_back(next);
                }
            }
        }
        let mut path = vec![to];
        while *path.last()? != from {
            path.push(*before.get(path.last()?)?);
        }
        path.reverse();
        Some(path)
    }

    /// The network with the unit of time as a microsecond, and that of data as [`SCALE`] bits.
    fn network(&self, scheduler: &Scheduler) -> Option<Network> {
        let rate = |rate: f64| (rate * 1e6 * SCALE).round() as u64;
        let server = |(name, curve): &(String, String)| {
            let &(per_unit, latency) = self.curves.get(curve)?;
            let service = vec![RateLatency {
                rate: rate(per_unit),
                latency: Time::from_ps((latency * 1e6).round() as u64),
            }];
            let link = Link { rate: None, propagation: Time::ZERO };
            Some(Server { service, link, scheduler: scheduler.clone(), ..Server::port(name, 1) })
        };
        let servers = self.servers.iter().map(server).collect::<Option<Vec<_>>>()?;
        let flow = |(curve, servers): &(String, Vec<usize>)| {
            let &(per_unit, burst) = self.curves.get(curve)?;
            let buckets = vec![TokenBucket { burst: (burst * SCALE).round() as u64, rate: rate(per_unit) }];
            let servers = servers.iter().map(|&at| ServerId(at)).collect();
            Some(Flow {
                name: curve.clone(),
                arrival: Arrival::Buckets { buckets, largest_frame: 1, smallest_frame: 1 },
                level: 0,
                routes: vec![Route { destination: "sink".to_owned(), servers }],
            })
        };
        let flows = self.flows.iter().map(flow).collect::<Option<Vec<_>>>()?;
        Network::new(servers, flows, Transfer::Fluid).ok()
    }
}

/// A number of Java, `create(3, 2)` or `create(1.5)`.
fn number(words: &[&str]) -> Option<f64> {
    let digits = |word: &str| word.trim_matches(|it: char| !it.is_ascii_digit()).parse::<f64>().ok();
    match words {
        [one] => digits(one),
        [above, below] => Some(digits(above)? / digits(below)?),
        _ => None,
    }
}

/// An expected delay: flow, analysis, order of service, delay. Sink trees are another analysis, of backlogs only.
fn expected(line: &str) -> Option<(usize, &str, &str, f64)> {
    let (_, words) = call(line, "addBounds")?;
    if words[2].ends_with("sinktree") {
        return None;
    }
    let delay = match words[4] {
        infinite if infinite.contains("Infinity") => f64::INFINITY,
        _ => {
            let create = line.split("num_factory.create(").nth(1)?.split(')').next()?;
            number(&create.split(',').map(str::trim).collect::<Vec<_>>())?
        }
    };
    Some((words[0].parse().ok()?, words[1].rsplit('.').next()?, words[3].rsplit('.').next()?, delay))
}

pub(crate) fn compare(folder: &str) -> Result<(), String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{folder}: {error}"))?;
    let mut names =
        entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect::<Vec<_>>();
    names.sort();
    let (mut equal, mut all) = (0, 0);
    for name in names.iter().filter_map(|name| name.strip_suffix("_ServerGraph.java")) {
        let read = |kind: &str| {
            let path = format!("{folder}/{name}_{kind}.java");
            fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))
        };
        let Some(source) = Source::read(&read("ServerGraph")?) else {
            println!("{name}: not read");
            continue;
        };
        let results = read("Results")?;
        // A test can expect several delays, one for each method to find arrival curves.
        let mut delays: BTreeMap<_, Vec<f64>> = BTreeMap::new();
        for (flow, analysis, order, delay) in results.lines().filter_map(expected) {
            delays.entry((analysis, order, flow)).or_default().push(delay);
        }
        for ((analysis, order, flow), delays) in delays {
            let scheduler = if order == "FIFO" { Scheduler::Fifo } else { Scheduler::Arbitrary };
            let network = source.network(&scheduler).ok_or_else(|| format!("{name}: no network"))?;
            let outcome = match analysis {
                "TFA" => total_flow_separated(&network),
                "SFA" => separated_flow(&network, Cross::Separated),
                _ => pmoo(&network, Cross::Separated),
            };
            let found = outcome
                .path(&network, RouteId { flow: FlowId(flow), route: 0 })
                .map(|bound| bound.delay.us());
            all += 1;
            let close = |found: f64| delays.iter().any(|delay| (found / delay - 1.0).abs() < 1e-3);
            match found {
                Ok(found) if close(found) => equal += 1,
                Err(_) if delays.iter().any(|delay| delay.is_infinite()) => equal += 1,
                Ok(found) => println!("{name} f{flow} {analysis} {order}: {delays:?} expected, {found} here"),
                Err(refusal) => println!(
                    "{name} f{flow} {analysis} {order}: {delays:?} expected, {}",
                    refusal.describe(&network)
                ),
            }
        }
    }
    println!("{equal} of {all} delays are within 0.1 % of an expected one");
    Ok(())
}
