//! Requests and answers as JSON: each is read as it was written, and what is none is refused.

use millrace_ctl_api::{
    Answer, Changed, GraphStatus, Hello, LinkStatus, PhysicalStatus, PortStatus, Probation, Problem,
    RefusalKind, Refused, Request, ShadowStatus, Stats, SwitchStats, SwitchStatus, VERSION,
};
use millrace_ctl_api::{MAX_REQUEST, read_line, write_line};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fmt::Debug;

/// Texts with what JSON, TOML and terminals treat in a special way.
fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z][a-z0-9]{0,8}", "[\\PC\\n\\r\\t\"\\\\\u{0}\u{7f}]{0,20}", any::<String>()]
}

fn hello() -> impl Strategy<Value = Hello> {
    (any::<u32>(), option::of(text())).prop_map(|(version, token)| Hello { version, token })
}

fn probation() -> impl Strategy<Value = Probation> {
    (any::<u32>(), any::<u32>()).prop_map(|(seconds, max_drops)| Probation { seconds, max_drops })
}

fn files() -> impl Strategy<Value = BTreeMap<String, String>> {
    btree_map(text(), text(), 0..3)
}

fn request() -> impl Strategy<Value = Request> {
    prop_oneof![
        Just(Request::List),
        Just(Request::Graph),
        Just(Request::Show),
        option::of(text()).prop_map(|switch| Request::Stats { switch }),
        (text(), text(), files(), any::<bool>()).prop_map(|(text, folder, files, dry_run)| Request::Apply {
            text,
            folder,
            files,
            dry_run
        }),
        (text(), text(), files()).prop_map(|(text, folder, files)| Request::Load { text, folder, files }),
        text().prop_map(|switch| Request::Remove { switch }),
        text().prop_map(|switch| Request::Start { switch }),
        text().prop_map(|switch| Request::Stop { switch }),
        [text(), text()].prop_map(|between| Request::Unlink { between }),
        (text(), text(), any::<bool>(), option::of(probation())).prop_map(
            |(switch, program, keep_everything, probation)| Request::Swap {
                switch,
                program,
                keep_everything,
                probation
            }
        ),
        text().prop_map(|switch| Request::Rollback { switch }),
        text().prop_map(|switch| Request::Snapshot { switch }),
        (text(), text()).prop_map(|(switch, snapshot)| Request::Restore { switch, snapshot }),
        (text(), option::of(text()), any::<bool>()).prop_map(|(switch, program, end)| Request::Shadow {
            switch,
            program,
            end
        }),
    ]
}

fn switch() -> impl Strategy<Value = SwitchStatus> {
    let names = (text(), option::of(text()), text(), text());
    let ports = btree_map(any::<u32>(), text(), 0..4);
    let values = any::<(u64, bool, usize, bool, bool)>();
    (names, values, ports, option::of(text())).prop_map(|(names, values, ports, silent)| {
        let (name, tenant, program, engine) = names;
        let (device_id, is_running, worker, can_roll_back, has_shadow) = values;
        SwitchStatus {
            name,
            device_id,
            tenant,
            program,
            engine,
            is_running,
            worker,
            ports,
            can_roll_back,
            has_shadow,
            silent,
        }
    })
}

fn physical() -> impl Strategy<Value = PhysicalStatus> {
    (text(), text(), any::<[u64; 6]>(), option::of(text())).prop_map(|(name, device, counts, failure)| {
        let [rx_packets, rx_bytes, tx_packets, tx_bytes, tx_refused, rx_missed] = counts;
        PhysicalStatus {
            name,
            device,
            rx_packets,
            rx_bytes,
            tx_packets,
            tx_bytes,
            tx_refused,
            rx_missed,
            failure,
        }
    })
}

fn port() -> impl Strategy<Value = PortStatus> {
    (any::<u32>(), any::<[u64; 4]>()).prop_map(|(port, [rx_packets, rx_bytes, tx_packets, tx_bytes])| {
        PortStatus { port, rx_packets, rx_bytes, tx_packets, tx_bytes }
    })
}

fn counted() -> impl Strategy<Value = SwitchStats> {
    let reasons = || btree_map(text(), any::<u64>(), 0..3);
    (text(), vec(port(), 0..3), reasons(), reasons(), any::<[u64; 4]>(), option::of(text())).prop_map(
        |(name, ports, drops, losses, [used_ns, requests, refused_requests, lost_notices], silent)| {
            SwitchStats {
                name,
                silent,
                ports,
                drops,
                losses,
                used_ns,
                requests,
                refused_requests,
                lost_notices,
            }
        },
    )
}

fn link() -> impl Strategy<Value = LinkStatus> {
    ((text(), any::<u32>()), (text(), option::of(any::<u32>())), text())
        .prop_map(|(from, to, label)| LinkStatus { from, to, label })
}

fn refused() -> impl Strategy<Value = Refused> {
    let kinds = [
        RefusalKind::Malformed,
        RefusalKind::Unknown,
        RefusalKind::Forbidden,
        RefusalKind::NotFound,
        RefusalKind::Invalid,
        RefusalKind::Failed,
        RefusalKind::Limit,
    ];
    let problem = (any::<usize>(), any::<usize>(), text(), text())
        .prop_map(|(line, column, message, shown)| Problem { line, column, message, shown });
    (proptest::sample::select(kinds.to_vec()), text(), vec(problem, 0..3))
        .prop_map(|(kind, message, problems)| Refused { kind, message, problems })
}

fn shadow() -> impl Strategy<Value = ShadowStatus> {
    (text(), any::<[u64; 4]>(), vec(text(), 0..3)).prop_map(
        |(program, [compared, same, different, left_out], differences)| ShadowStatus {
            program,
            compared,
            same,
            different,
            left_out,
            differences,
        },
    )
}

fn answer() -> impl Strategy<Value = Answer> {
    let pairs = || vec((text(), text()), 0..3);
    prop_oneof![
        text().prop_map(|device| Answer::Ready { device }),
        vec(switch(), 0..3).prop_map(Answer::Switches),
        (vec(physical(), 0..3), option::of(any::<u64>()), vec(counted(), 0..3)).prop_map(
            |(physical, unclassified, switches)| Answer::Stats(Stats { physical, unclassified, switches })
        ),
        (pairs(), pairs(), vec(link(), 0..3))
            .prop_map(|(physical, switches, links)| Answer::Graph(GraphStatus { physical, switches, links })),
        text().prop_map(Answer::Text),
        (vec(text(), 0..3), vec(text(), 0..3), any::<bool>())
            .prop_map(|(done, kept, is_dry_run)| Answer::Changed(Changed { done, kept, is_dry_run })),
        shadow().prop_map(Answer::Shadow),
        refused().prop_map(Answer::Refused),
    ]
}

/// A value as a line, which is one line, read as the same value.
fn survives<T>(value: &T) -> Result<(), TestCaseError>
where
    T: serde::Serialize + serde::de::DeserializeOwned + PartialEq + Debug,
{
    let mut line = Vec::new();
    write_line(&mut line, value, MAX_REQUEST).unwrap();
    prop_assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
    let read = read_line(&mut line.as_slice(), MAX_REQUEST).unwrap().unwrap();
    prop_assert_eq!(&serde_json::from_slice::<T>(&read).unwrap(), value);
    Ok(())
}

proptest! {
    #[test]
    fn requests_survive(request in request(), hello in hello()) {
        survives(&request)?;
        survives(&hello)?;
    }

    #[test]
    fn answers_survive(answer in answer()) {
        survives(&answer)?;
    }

    /// Arbitrary bytes, and requests of which some bytes are others: a request or an error, without a panic.
    #[test]
    fn bytes_are_a_request_or_none(
        bytes in vec(any::<u8>(), 0..200),
        request in request(),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        let _ = serde_json::from_slice::<Request>(&bytes);
        let mut line = serde_json::to_vec(&request).unwrap();
        for (at, byte) in changes {
            let at = at.index(line.len());
            line[at] = byte;
        }
        if let Ok(request) = serde_json::from_slice::<Request>(&line) {
            survives(&request)?;
        }
    }
}

/// The lines that a client writes in another language, and what is left out in them.
#[test]
fn requests_are_written_like_this() {
    let read = |line: &str| serde_json::from_str::<Request>(line).map_err(|error| error.to_string());
    assert_eq!(read("\"list\""), Ok(Request::List));
    assert_eq!(read(r#"{"stats":{}}"#), Ok(Request::Stats { switch: None }));
    let apply =
        Request::Apply { text: "a".into(), folder: "/b".into(), files: BTreeMap::new(), dry_run: false };
    assert_eq!(read(r#"{"apply":{"text":"a","folder":"/b"}}"#), Ok(apply));
    let swap = Request::Swap {
        switch: "l2".into(),
        program: "p".into(),
        keep_everything: true,
        probation: Some(Probation { seconds: 30, max_drops: 10_000 }),
    };
    let line = r#"{"swap":{"switch":"l2","program":"p","keep_everything":true,"probation":{"seconds":30,"max_drops":10000}}}"#;
    assert_eq!(read(line), Ok(swap.clone()));
    assert_eq!(serde_json::to_string(&swap).unwrap(), line);
    let unlink = Request::Unlink { between: ["a:1".into(), "b:2".into()] };
    assert_eq!(read(r#"{"unlink":{"between":["a:1","b:2"]}}"#), Ok(unlink));
    assert_eq!(serde_json::to_string(&Hello { version: VERSION, token: None }).unwrap(), r#"{"version":1}"#);
}

#[test]
fn what_is_no_request_is_refused_with_its_reason() {
    for (line, reason) in [
        ("", "EOF"),
        ("null", "expected"),
        ("\"lists\"", "unknown variant `lists`"),
        (r#"{"remove":{}}"#, "missing field `switch`"),
        (r#"{"remove":{"switch":"a","force":true}}"#, "unknown field `force`"),
        (r#"{"remove":{"switch":"a","switch":"b"}}"#, "duplicate field `switch`"),
        (r#"{"remove":{"switch":"a"},"list":null}"#, "expected"),
        (r#"{"remove":{"switch":"a"}} {}"#, "trailing characters"),
        (r#"{"unlink":{"between":["a:1"]}}"#, "invalid length 1"),
        (
            r#"{"swap":{"switch":"a","program":"p","probation":{"seconds":-1,"max_drops":0}}}"#,
            "invalid value: integer `-1`",
        ),
    ] {
        let error = serde_json::from_str::<Request>(line).unwrap_err().to_string();
        assert!(error.contains(reason), "{line}: {error}");
    }
    let deep = "[".repeat(1 << 20);
    assert!(serde_json::from_str::<Request>(&deep).is_err());
    assert!(serde_json::from_str::<Request>(&format!("{{\"remove\":{{\"switch\":{deep}")).is_err());
    assert!(serde_json::from_str::<Hello>(r#"{"version":1,"user":"root"}"#).is_err());
}

#[test]
fn a_token_is_not_shown() {
    let hello = Hello { version: VERSION, token: Some("secret".into()) };
    let shown = format!("{hello:?}");
    assert!(shown.contains("token") && !shown.contains("secret"), "{shown}");
}
