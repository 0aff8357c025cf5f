//! Servers: their addresses, who reaches them, their certificates.

use super::Once;
use crate::model::OPERATOR;
use crate::parse::{Draft, Read, SwitchDraft};
use millrace_listen::{Address, METRICS, P4RUNTIME, Service, THRIFT, is_local};
use millrace_toml_sections::Table;
use millrace_toml_sections::{Finding, Findings, Kind, quoted};
use std::net::IpAddr;

pub(super) fn check(draft: &Draft<'_>, findings: &mut Findings) {
    let table = &draft.device.table;
    certificates(table, findings);
    remote_ctl(draft, findings);
    draft.switches.iter().for_each(|switch| thrift(draft, switch, findings));
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

/// Whether the file says who its clients are.
fn knows_clients(draft: &Draft<'_>) -> bool {
    let device = &draft.device.table;
    !draft.tenants.is_empty() || device.has("operator-certificate") || device.has("operator-token-file")
}

/// Whoever changes the device from another machine is known, and is not listened to.
fn remote_ctl(draft: &Draft<'_>, findings: &mut Findings) {
    let Read { is: device, table } = &draft.device;
    if table.has("uploads") && !device.grpc_ctl {
        let message = "`uploads` needs `grpc-ctl = true`: nobody else sends files";
        findings.push(Finding::new(Kind::Conflict, table.at("uploads"), message));
    }
    if !device.grpc_ctl {
        return;
    }
    let mut conflict = |message: &str, help: &str| {
        findings.push(Finding::new(Kind::Conflict, table.at("grpc-ctl"), message).help(help.to_owned()));
    };
    if device.grpc.is_none() {
        conflict("`grpc-ctl` needs `grpc`", "`grpc` says where the server listens");
    }
    if !knows_clients(draft) {
        conflict(
            "`grpc-ctl` is for clients whom the file names, and it names none",
            "`operator-certificate` or `operator-token-file` is for the operator, [[tenant]] for tenants",
        );
    }
    if device.grpc_allow_plaintext {
        conflict(
            "`grpc-ctl` and `grpc-allow-plaintext` contradict each other: others could listen to tokens",
            "`grpc-cert` and `grpc-key` encrypt",
        );
    }
}

/// Clients of Thrift show nothing to be known by: where it matters who somebody is, the file says whom they act as, and they are on this
/// machine.
fn thrift(
    draft: &Draft<'_>,
    SwitchDraft { is: switch, table, .. }: &SwitchDraft<'_>,
    findings: &mut Findings,
) {
    let mut conflict = |key: &str, message: String, help: &str| {
        findings.push(Finding::new(Kind::Conflict, table.at(key), message).help(help.to_owned()));
    };
    let own = switch.tenant.as_deref().unwrap_or(OPERATOR);
    match (&switch.thrift, &switch.thrift_as, knows_clients(draft)) {
        (Some(_), None, true) => conflict(
            "thrift",
            "the file says who may do what, and clients of Thrift show nothing to be known by".into(),
            &format!("`thrift-as = \"{own}\"` has whoever reaches the server act as that"),
        ),
        (None, Some(_), _) => conflict(
            "thrift-as",
            "`thrift-as` needs `thrift`".into(),
            "`thrift` says where the server listens",
        ),
        (Some(_), Some(_), false) => conflict(
            "thrift-as",
            "`thrift-as` names a client of the file, and the file has none".into(),
            "without tenants and credentials of the operator everybody may use the server who reaches it",
        ),
        (Some(_), Some(acts_as), true) if acts_as != own && acts_as != OPERATOR => conflict(
            "thrift-as",
            format!("{} does not see the switch", quoted(acts_as)),
            &match own {
                OPERATOR => format!("its clients act as `{OPERATOR}`"),
                own => format!("its clients act as `{own}`, or as `{OPERATOR}`"),
            },
        ),
        _ => {}
    }
    if switch.thrift_allow_remote && knows_clients(draft) {
        conflict(
            "thrift-allow-remote",
            "Thrift has neither TLS nor credentials: where the file says who may do what, other machines do not reach it".into(),
            "`grpc` and `grpc-ctl` are for other machines",
        );
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
