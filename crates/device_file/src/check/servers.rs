//! Servers: their addresses, who reaches them, their certificates.

use super::Once;
use crate::parse::Draft;
use crate::problem::{Finding, Findings, Kind};
use crate::reader::Table;
use millrace_listen::{Address, METRICS, P4RUNTIME, Service, THRIFT, is_local};
use std::net::IpAddr;

pub(super) fn check(draft: &Draft<'_>, findings: &mut Findings) {
    let table = &draft.device.table;
    certificates(table, findings);
    let device = &draft.device.is;
    let has_tls = device.grpc_cert.is_some();
    let mut served = vec![
        (&P4RUNTIME, &device.grpc, table, "grpc", has_tls || device.grpc_allow_plaintext),
        (&METRICS, &device.http, table, "http", device.http_allow_remote),
    ];
    for switch in &draft.switches {
        served.push((&THRIFT, &switch.is.thrift, &switch.table, "thrift", switch.is.thrift_allow_remote));
    }
    let mut known = Once::new();
    for (service, written, table, key, is_open) in served {
        let Some(address) = written.as_ref().and_then(|text| text.parse::<Address>().ok()) else { continue };
        let at = table.at(key);
        let port = address.port().unwrap_or(service.default_port);
        // Port 0 is any that is free.
        let host = match address.host() {
            host if host.eq_ignore_ascii_case("localhost") => "127.0.0.1".to_owned(),
            host => host,
        };
        // Other names are looked up when the server starts, and refused then.
        let reached = host.parse::<IpAddr>().is_ok_and(|host| !is_local((host, port).into()));
        if port != 0
            && let Some(first) = known.add((host.clone(), port), at.clone())
        {
            let message = format!("two servers listen on {host}:{port}");
            findings.push(Finding::new(Kind::Duplicate, at.clone(), message).also(first, "first here"));
        }
        if reached && !is_open {
            exposed(service, key, at, findings);
        }
    }
}

fn exposed(service: &Service, key: &str, at: std::ops::Range<usize>, findings: &mut Findings) {
    let message = format!("other machines reach `{key}`, and anyone there could {}", service.harm);
    let finding = Finding::new(Kind::Conflict, at, message);
    findings.push(match key {
        "grpc" => finding.help(
            "`grpc-cert` and `grpc-key` encrypt, `grpc-client-ca` asks for certificates; \
             `grpc-allow-plaintext = true` allows it as it is",
        ),
        key => finding.help(format!("`{key}-allow-remote = true` allows it")),
    });
}

fn certificates(table: &Table<'_>, findings: &mut Findings) {
    for (key, needed) in [
        ("grpc-cert", "grpc-key"),
        ("grpc-key", "grpc-cert"),
        ("grpc-client-ca", "grpc-cert"),
        ("grpc-cert", "grpc"),
    ] {
        if table.has(key) && !table.has(needed) {
            let message = format!("`{key}` needs `{needed}`");
            findings.push(Finding::new(Kind::Conflict, table.at(key), message));
        }
    }
}
