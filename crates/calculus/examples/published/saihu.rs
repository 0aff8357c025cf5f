//! Saihu: networks of output ports as JSON, and the bounds that xTFA, DNC and panco found.

use std::collections::HashMap;
use std::fs;

use millrace_calculus::{
    Arrival, Cross, Flow, FlowId, LinearPrograms, Link, Network, RateLatency, Route, RouteId, Scheduler,
    Server, ServerId, Time, TokenBucket, TotalFlow, Transfer, pmoo, separated_flow, total_flow,
};
use serde_json::Value;

/// A number with its unit, in bits, bit/s or seconds; the unit of the first of these objects that has one if it has none.
fn measure(value: &Value, unit: &str, objects: &[&Value]) -> Result<f64, String> {
    let (number, suffix) = match value {
        Value::Number(number) => (number.as_f64().unwrap_or(0.0), None),
        Value::String(text) => {
            let (digits, suffix) =
                text.split_at(text.find(|it: char| it.is_ascii_alphabetic()).unwrap_or(text.len()));
            (
                digits.trim().parse().map_err(|_| format!("number {text}"))?,
                (!suffix.is_empty()).then_some(suffix),
            )
        }
        _ => return Err(format!("number {value}")),
    };
    let suffix = suffix
        .or_else(|| objects.iter().find_map(|it| it[unit].as_str()))
        .ok_or_else(|| format!("{unit} of {value}"))?;
    let by = match suffix {
        "s" | "bps" | "b" => 1.0,
        "ms" => 1e-3,
        "us" => 1e-6,
        "ns" => 1e-9,
        "kbps" | "kb" => 1e3,
        "Mbps" | "Mb" => 1e6,
        "Gbps" | "Gb" => 1e9,
        "Tbps" => 1e12,
        "B" => 8.0,
        "kB" => 8e3,
        "MB" => 8e6,
        _ => return Err(format!("unit {suffix}")),
    };
    Ok(number * by)
}

fn json(path: &str) -> Result<Value, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    serde_json::from_str(&text).map_err(|error| format!("{path}: {error}"))
}

fn list<'a>(value: &'a Value, what: &str) -> Result<&'a Vec<Value>, String> {
    value.as_array().ok_or_else(|| format!("no list: {what}"))
}

/// Reads a network; `multicast` routes only if asked for.
fn read(path: &str, multicast: bool) -> Result<Network, String> {
    let root = json(path)?;
    let info = &root["network"];
    let mut names = HashMap::new();
    let mut servers = Vec::new();
    let arbitrary = info["multiplexing"].as_str() == Some("ARBITRARY");
    for (at, server) in list(&root["servers"], "servers")?.iter().enumerate() {
        let name = server["name"].as_str().unwrap_or("");
        names.insert(name.to_owned(), at);
        let units = [server, info];
        let curve = &server["service_curve"];
        let pairs = list(&curve["rates"], "rates")?.iter().zip(list(&curve["latencies"], "latencies")?);
        let service = pairs.map(|(rate, latency)| {
            let (rate, latency) =
                (measure(rate, "rate_unit", &units)?, measure(latency, "time_unit", &units)?);
            Ok(RateLatency {
                rate: rate.round() as u64,
                latency: Time::from_ps((latency * 1e12).round() as u64),
            })
        });
        let service = service.collect::<Result<Vec<_>, String>>()?;
        let capacity = (!server["capacity"].is_null())
            .then(|| measure(&server["capacity"], "rate_unit", &units))
            .transpose()?;
        servers.push(Server {
            service,
            link: Link { rate: capacity.map(|it| it.round() as u64), propagation: Time::ZERO },
            scheduler: if arbitrary { Scheduler::Arbitrary } else { Scheduler::Fifo },
            ..Server::port(name, 1)
        });
    }
    let mut flows = Vec::new();
    for flow in list(&root["flows"], "flows")? {
        let units = [flow, info];
        let curve = &flow["arrival_curve"];
        let pairs = list(&curve["rates"], "rates")?.iter().zip(list(&curve["bursts"], "bursts")?);
        let buckets = pairs.map(|(rate, burst)| {
            let (rate, burst) = (measure(rate, "rate_unit", &units)?, measure(burst, "data_unit", &units)?);
            Ok(TokenBucket { burst: burst.round() as u64, rate: rate.round() as u64 })
        });
        let buckets = buckets.collect::<Result<Vec<_>, String>>()?;
        let path = |value: &Value| {
            let ids = list(value, "path")?
                .iter()
                .map(|it| names.get(it.as_str().unwrap_or("")).copied().map(ServerId));
            ids.collect::<Option<Vec<_>>>().ok_or_else(|| "a path through an unknown server".to_owned())
        };
        let mut routes = vec![Route { destination: "0".to_owned(), servers: path(&flow["path"])? }];
        for other in flow["multicast"].as_array().into_iter().flatten().filter(|_| multicast) {
            routes.push(Route { destination: routes.len().to_string(), servers: path(&other["path"])? });
        }
        let arrival = Arrival::Buckets { buckets, largest_frame: 8, smallest_frame: 8 };
        flows.push(Flow { name: flow["name"].as_str().unwrap_or("").to_owned(), arrival, level: 0, routes });
    }
    Network::new(servers, flows, Transfer::Fluid).map_err(|error| format!("{path}: {error}"))
}

pub(crate) fn compare(path: &str, results: Option<&str>) -> Result<(), String> {
    // Saihu's published figures are from before it had multicast.
    let network = read(path, false)?;
    let known = results.map(json).transpose()?.unwrap_or(Value::Null);
    let unit = measure(&Value::from(1.0), "flow_delay", &[&known["units"]]).unwrap_or(1e-6);
    let grouped = TotalFlow { grouping: true, ..TotalFlow::AFFINE };
    let programs = LinearPrograms::new(&network);
    let analyses = [
        ("xTFA_TFA", total_flow(&network, grouped).paths),
        ("DNC_TFA", total_flow(&network, TotalFlow::AFFINE).paths),
        ("DNC_SFA", separated_flow(&network, Cross::Separated).paths),
        ("DNC_PMOO", pmoo(&network, Cross::Separated).paths),
        ("Panco_PLP", network.routes().map(|route| programs.bound(route)).collect()),
    ];
    println!("{:12} {:12} {:>16} {:>16} {:>10}", "flow", "analysis", "published us", "here us", "more");
    for (at, flow) in network.flows().iter().enumerate() {
        let route =
            network.routes().position(|route| route == RouteId { flow: FlowId(at), route: 0 }).unwrap_or(0);
        for (analysis, paths) in &analyses {
            let published = known["flow_e2e_delay"][&flow.name][analysis].as_f64().map(|it| it * unit * 1e6);
            let text = published.map_or("-".to_owned(), |it| format!("{it:.6}"));
            match &paths[route] {
                Ok(bound) => {
                    let here = bound.delay.us();
                    let more =
                        published.map_or("-".to_owned(), |it| format!("{:+.4} %", 100.0 * (here / it - 1.0)));
                    println!("{:12} {analysis:12} {text:>16} {here:>16.6} {more:>10}", flow.name);
                }
                Err(refusal) => {
                    println!("{:12} {analysis:12} {text:>16} {}", flow.name, refusal.describe(&network))
                }
            }
        }
    }
    Ok(())
}
