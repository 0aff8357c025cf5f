//! WoPANets: networks as XML, and the bounds of each target.

use std::collections::HashMap;
use std::fs;

use millrace_calculus::{
    Arrival, Cross, Flow, LinearPrograms, Network, Outcome, Route, Server, ServerId, Time, TotalFlow,
    Transfer, bounds, pmoo, separated_flow, total_flow,
};

use crate::{name, row};

fn number(text: &str) -> Result<f64, String> {
    let (digits, unit) = text.split_at(text.find(|it: char| it.is_ascii_alphabetic()).unwrap_or(text.len()));
    let by = match unit {
        "" => 1.0,
        "kbps" => 1e3,
        "Mbps" => 1e6,
        "Gbps" => 1e9,
        _ => return Err(format!("unit {unit}")),
    };
    Ok(digits.trim().parse::<f64>().map_err(|_| format!("number {text}"))? * by)
}

fn read(path: &str) -> Result<Network, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    let tree = roxmltree::Document::parse(&text).map_err(|error| format!("{path}: {error}"))?;
    let root = tree.root_element();
    let elements = |tag: &'static str| root.children().filter(move |it| it.has_tag_name(tag));
    let info = elements("network").next().ok_or("no network")?;
    let overhead = number(info.attribute("overhead").unwrap_or("0"))?;
    let rate = number(info.attribute("transmission-capacity").unwrap_or("100Mbps"))? as u64;
    let latency = elements("switch").map(|it| {
        let latency = number(it.attribute("tech-latency").unwrap_or("0"))?;
        Ok((it.attribute("name").unwrap_or("").to_owned(), Time::from_ns((latency * 1e3) as u64)))
    });
    let latency = latency.collect::<Result<HashMap<_, _>, String>>()?;
    let mut ports: HashMap<(String, String), usize> = HashMap::new();
    let mut servers = Vec::new();
    let mut flows = Vec::new();
    for flow in elements("flow") {
        let text = |name: &str| flow.attribute(name).unwrap_or("0");
        let bits = |payload: &str| Ok::<u64, String>(((number(payload)? + overhead) * 8.0) as u64);
        let time = |name: &str| Ok::<Time, String>(Time::from_ns((number(text(name))? * 1e6) as u64));
        let largest = text("max-payload");
        let arrival = Arrival::Periodic {
            largest_frame: bits(largest)?,
            smallest_frame: bits(flow.attribute("min-payload").unwrap_or(largest))?,
            period: time("period")?,
            jitter: time("jitter")?,
        };
        let mut routes = Vec::new();
        for target in flow.children().filter(|it| it.has_tag_name("target")) {
            let steps = target.children().filter_map(|it| it.attribute("node"));
            let nodes = [text("source")].into_iter().chain(steps).collect::<Vec<_>>();
            let hops = nodes.windows(2).map(|pair| {
                let key = (pair[0].to_owned(), pair[1].to_owned());
                ServerId(*ports.entry(key).or_insert_with(|| {
                    let latency = latency.get(pair[0]).copied().unwrap_or(Time::ZERO);
                    servers.push(
                        Server::port(&format!("{}->{}", pair[0], pair[1]), rate)
                            .with_latency(latency, latency),
                    );
                    servers.len() - 1
                }))
            });
            let servers = hops.collect();
            routes.push(Route { destination: target.attribute("name").unwrap_or("").to_owned(), servers });
        }
        flows.push(Flow { name: text("name").to_owned(), arrival, level: 0, routes });
    }
    Network::new(servers, flows, Transfer::Frames).map_err(|error| format!("{path}: {error}"))
}

/// The published delay of each target, in microseconds.
fn published(path: &str) -> Result<HashMap<(String, String), f64>, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    let tree = roxmltree::Document::parse(&text).map_err(|error| format!("{path}: {error}"))?;
    let delays = tree.root_element().children().find(|it| it.has_tag_name("delays")).ok_or("no delays")?;
    let mut found = HashMap::new();
    for flow in delays.children().filter(|it| it.has_tag_name("flow")) {
        for target in flow.children().filter(|it| it.has_tag_name("target")) {
            let key = (
                flow.attribute("name").unwrap_or("").to_owned(),
                target.attribute("name").unwrap_or("").to_owned(),
            );
            found.insert(key, number(target.attribute("value").unwrap_or(""))?);
        }
    }
    Ok(found)
}

pub(crate) fn compare(path: &str, results: Option<&str>) -> Result<(), String> {
    let network = read(path)?;
    println!(
        "{path}: {} ports, {} flows, {} routes",
        network.servers().len(),
        network.flows().len(),
        network.routes().count()
    );
    let known = results.map(published).transpose()?;
    if let Some(known) = &known {
        let mean = known.values().sum::<f64>() / known.len() as f64;
        let largest = known.values().copied().fold(0.0, f64::max);
        println!("{:24} {:5} routes  mean {mean:9.3} us  largest {largest:9.3} us", "published", known.len());
    }
    let show = |outcome: &Outcome| {
        let Some(known) = &known else { return };
        let ratios = network.routes().zip(&outcome.paths).filter_map(|(route, path)| {
            Some(path.as_ref().ok()?.delay.us() / known.get(&name(&network, route))?)
        });
        let ratios = ratios.collect::<Vec<_>>();
        let (least, most) =
            ratios.iter().fold((f64::MAX, 0.0_f64), |(least, most), &it| (least.min(it), most.max(it)));
        println!("{:24} {:.2} to {:.2} % of the published", "", 100.0 * least, 100.0 * most);
    };
    show(&row(&network, || total_flow(&network, TotalFlow::AFFINE)));
    for (staircase, grouping) in [(false, true), (true, false), (true, true)] {
        let setting = TotalFlow { staircase, grouping, least_delay: true };
        show(&row(&network, || total_flow(&network, setting)));
    }
    show(&row(&network, || separated_flow(&network, Cross::Total)));
    show(&row(&network, || pmoo(&network, Cross::Total)));
    show(&row(&network, || best(&network)));
    let programs = LinearPrograms::new(&network);
    let begin = std::time::Instant::now();
    let (mut count, mut better, mut sum, mut sum_of_best) = (0, 0, 0.0, 0.0);
    let all = bounds(&network);
    for route in network.routes().step_by(20) {
        if let (Ok(program), Ok((_, best))) = (programs.bound(route), all.best(&network, route)) {
            count += 1;
            better += usize::from(program.delay < best.delay);
            sum += program.delay.us();
            sum_of_best += best.delay.us();
        }
    }
    if count > 0 {
        let took = begin.elapsed() / count;
        let (mean, mean_of_best) = (sum / f64::from(count), sum_of_best / f64::from(count));
        println!(
            "{:24} {count:5} routes  mean {mean:9.3} us, of the best of the others {mean_of_best:9.3} us, {better} better, {took:?} each",
            "lp"
        );
    }
    Ok(())
}

/// The best of each route, as if it was one analysis.
fn best(network: &Network) -> Outcome {
    let found = bounds(network);
    let paths = network
        .routes()
        .map(|route| found.best(network, route).map(|(_, bound)| bound).map_err(Clone::clone))
        .collect();
    println!("the best of these:");
    Outcome { paths, ..found.outcomes[0].clone() }
}
