//! The story of one packet, as text and as JSON.

use millrace_dataplane::{Replica, Session, Switch, SwitchConfig};
use millrace_pipeline::{ActionCall, Bits, EntryMatch, text, verify};
use millrace_state::{EntryWrite, Target};
use std::sync::Arc;

const ROUTER: &str = r#"
program router
errors (NoError, PacketTooShort, HeaderTooShort, ParserInvalidArgument, ParserTimeout)
intrinsic parser_error = perr
intrinsic drop = to_drop
intrinsic egress_spec = spec
ingress (parser_impl, ingress_impl)
egress (deparser_impl)
header hdr.ip: ip_t {
    dst: bit<32>
    ttl: bit<8>
}
header hdr.kind: kind_t {
    kind: bit<8>
}
metadata perr: bit<16>
metadata to_drop: bool
metadata spec: bit<32>
local hop.port: bit<9>
action ingress.hop (hop.port) = hop
action ingress.deny () = deny
counter ingress.seen size 4 packets
register ingress.last: bit<32> size 1
table ingress.routes {
    key hdr.ip.dst: lpm = hdr.ip.dst
    action ingress.hop
    action ingress.deny
    default ingress.deny()
    size 16
}
body action hop {
block0:
    spec = zext(hop.port, 32)
    hdr.ip.ttl = sub(hdr.ip.ttl, 8w1)
    end
}
body action deny {
block0:
    to_drop = true
    exit
}
body parser parser_impl {
block0 state start:
    extract hdr.kind
    select (hdr.kind.kind) {
        8w4 => block1
        default => block2
    }
block1 state ip:
    extract hdr.ip
    end
block2 state other:
    end
}
body control ingress_impl {
block0:
    apply ingress.routes, next = block1, exit = block2
block1:
    count ingress.seen, 2w1
    register_write ingress.last, 1w0, hdr.ip.dst
    end
block2:
    end
}
body deparser deparser_impl {
block0:
    emit hdr.kind
    emit hdr.ip
    end
}
"#;

fn router() -> Switch {
    let program = text::parse(ROUTER).unwrap();
    verify::verify(&program).unwrap();
    let switch = Switch::new(Arc::new(program), SwitchConfig::default()).unwrap();
    let routes = switch.state().table_named("routes").unwrap();
    let entry = EntryWrite {
        matches: vec![EntryMatch::Lpm(Bits::new(32, 0x0a000000), 8)],
        priority: 0,
        target: Target::Action(ActionCall { action: 0, args: vec![Bits::new(9, 2)] }),
        idle_timeout_ns: 0,
    };
    switch.state().tables().insert(routes, &entry, 0).unwrap();
    switch
}

#[test]
fn forwarded() {
    let (outcome, trace) = router().inject_traced(1, &[4, 10, 0, 0, 7, 64, 0xff], 5);
    assert_eq!(outcome.sent.len(), 1);
    let expected = "\
packet of 7 bytes on port 1 at 5 ns
    0000: 04 0a 00 00 07 40 ff

#0 ingress, port 1, normal, 7 bytes
  parser_impl
    state start
      extract hdr.kind (kind_t, 8 bits)
        kind = 0x04
      select (hdr.kind.kind = 0x04): case 1
    state ip
      extract hdr.ip (ip_t, 40 bits)
        dst = 0x0a000007
        ttl = 0x40
  ingress_impl
    table ingress.routes
      key hdr.ip.dst = 0x0a000007 in 0x0a000000/8
      hit entry 1
      action ingress.hop(port = 0x002)
      spec = 0x00000002 (was 0x00000000)
      hdr.ip.ttl = 0x3f (was 0x40)
      count ingress.seen[1]
      write ingress.last[0] = 0x0a000007
  to port 2, as #1

#1 egress, port 2, normal, from #0, 7 bytes
  deparser_impl
    emit hdr.kind
    emit hdr.ip
  sent on port 2, 7 bytes
    0000: 04 0a 00 00 07 3f ff
";
    assert_eq!(trace.to_string(), expected);
}

#[test]
fn dropped_by_a_miss() {
    let (_, trace) = router().inject_traced(1, &[4, 11, 0, 0, 7, 64], 5);
    let text = trace.to_string();
    let end = text.split("table ingress.routes\n").nth(1).unwrap();
    let expected = "      key hdr.ip.dst = 0x0b000007
      miss
      action ingress.deny()
      to_drop = true (was false)
      exit
  dropped: ingress_drop
";
    assert_eq!(end, expected);
}

#[test]
fn rejected() {
    let (_, trace) = router().inject_traced(1, &[4, 11], 5);
    assert!(
        trace.to_string().contains("    state ip\n      reject: PacketTooShort\n  ingress_impl\n"),
        "{trace}"
    );
}

#[test]
fn as_json() {
    let (_, trace) = router().inject_traced(1, &[4, 10, 0, 0, 7, 64], 5);
    let json = serde_json::to_value(&trace).unwrap();
    let steps = json["journeys"][0]["steps"].as_array().unwrap();
    let table = steps.iter().find(|step| step["step"] == "table").unwrap();
    let expected = serde_json::json!({
        "step": "table",
        "table": "ingress.routes",
        "keys": [{"name": "hdr.ip.dst", "value": "0x0a000007", "matched": "0x0a000000/8"}],
        "hit": true,
        "entry": 1,
        "action": "ingress.hop",
        "args": [{"name": "port", "value": "0x002"}],
    });
    assert_eq!(table, &expected);
    assert_eq!(json["journeys"][1]["fates"][0]["fate"], "sent");
    assert_eq!(json["journeys"][1]["fates"][0]["bytes"], "040a0000073f");
    assert_eq!(json["bytes"], "040a00000740");
}

/// Every copy has its journey, also through clones and recirculation.
#[test]
fn through_copies() {
    let program = text::parse(include_str!("programs/through.mir")).unwrap();
    let mut switch = Switch::new(Arc::new(program), SwitchConfig::default()).unwrap();
    let groups = switch.replication_mut();
    groups.create_group(6).unwrap();
    groups.set_copies(6, vec![Replica { port: 1, rid: 0 }, Replica { port: 2, rid: 5 }]).unwrap();
    groups.set_session(5, Session::to_port(8)).unwrap();

    let fates = |switch: &mut Switch, bytes: &[u8]| -> Vec<String> {
        let (_, trace) = switch.inject_traced(4, bytes, 0);
        let lines = trace.journeys.iter().flat_map(|journey| {
            journey.fates.iter().map(|fate| {
                let text = fate.to_string();
                format!("#{} {}", journey.id, text.lines().next().unwrap_or("").trim())
            })
        });
        lines.collect()
    };
    assert_eq!(
        fates(&mut switch, &[3, 6]),
        [
            "#0 to multicast group 6: 2 copies",
            "#0 to port 1, as #1",
            "#0 to port 2 with replica number 5, as #2",
            "#1 sent on port 1, 8 bytes",
            "#2 sent on port 2, 8 bytes",
        ]
    );
    assert_eq!(
        fates(&mut switch, &[4, 5]),
        [
            "#0 cloned by session 5, as #1",
            "#0 to port 1, as #3",
            "#1 to port 8, as #2",
            "#2 sent on port 8, 8 bytes",
            "#3 sent on port 1, 8 bytes",
        ]
    );
    assert_eq!(
        fates(&mut switch, &[4, 6]),
        ["#0 not cloned: there is no clone session 6", "#0 to port 1, as #1", "#1 sent on port 1, 8 bytes"]
    );
    assert_eq!(
        fates(&mut switch, &[6, 9]),
        [
            "#0 to port 9, as #1",
            "#1 recirculated, as #2",
            "#2 to port 9, as #3",
            "#3 sent on port 9, 8 bytes",
        ]
    );
    assert_eq!(
        fates(&mut switch, &[5, 7])[..2],
        ["#0 resubmitted, as #1", "#1 to port 8, as #2"].map(str::to_owned)
    );
}
