//! Graphs of small programs, worked out by hand from their sources.

use millrace_compile::{Checked, Options, Source, Standard, check};
use millrace_graphs::{Graph, GraphsError, MAX_EDGES, MAX_NODES, NodeKind, graphs, json, whole};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

const PROGRAM: &str = r#"#include <core.p4>
#include <v1model.p4>
const bit<16> TYPE_IPV4 = 0x800;
header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }
header ipv4_t { bit<8> ttl; bit<32> dst; }
struct headers { ethernet_t ethernet; ipv4_t ipv4; }
struct metadata { bit<1> seen; }
parser MyParser(packet_in p, out headers hdr, inout metadata m, inout standard_metadata_t s) {
    state start { p.extract(hdr.ethernet); transition select(hdr.ethernet.type, m.seen) {
        (TYPE_IPV4, 0): ipv4; (0x86dd &&& 0xfffe, _): reject; } }
    state ipv4 { p.extract(hdr.ipv4); transition accept; }
}
control Check(inout headers hdr, inout metadata m) { apply { } }
control Count(inout metadata m) { apply { if (m.seen == 1) { return; } m.seen = 1; } }
control MyIngress(inout headers hdr, inout metadata m, inout standard_metadata_t s) {
    Count() count;
    action drop() { mark_to_drop(s); exit; }
    action forward(bit<9> port) { s.egress_spec = port; hdr.ipv4.ttl = hdr.ipv4.ttl - 1; }
    table routes {
        key = { hdr.ipv4.dst: lpm; s.ingress_port: exact @name("in"); }
        actions = { forward; drop; NoAction; }
    }
    apply {
        if (hdr.ipv4.isValid()) {
            switch (routes.apply().action_run) { forward: { count.apply(m); } drop: { return; } }
        } else { m.seen = 0; hdr.ethernet.dst = 1; hdr.ethernet.src = 0xffffffffffff; }
    }
}
control MyEgress(inout headers hdr, inout metadata m, inout standard_metadata_t s) { apply { } }
control MyDeparser(packet_out p, in headers hdr) { apply { p.emit(hdr.ethernet); p.emit(hdr.ipv4); } }
V1Switch(MyParser(), Check(), MyIngress(), MyEgress(), Check(), MyDeparser()) main;
"#;

fn checked(text: &str) -> Checked {
    let checked = check(Source::Text("program.p4", text), Standard::P4_16, &Options::default());
    assert!(!checked.has_errors(), "{:?}", checked.findings);
    checked
}

fn all(text: &str) -> Result<Vec<Graph>, GraphsError> {
    let checked = checked(text);
    graphs(&checked.typed, &checked.sources)
}

/// What a text in dot says: labels of nodes by their names, labels of clusters, edges with their labels.
#[derive(Debug, Default)]
struct Read {
    nodes: BTreeMap<String, String>,
    clusters: Vec<String>,
    edges: Vec<(String, String, String)>,
}

/// Reads dot as its grammar is (graphviz.org/doc/info/lang.html), of which graphs here have a part. It fails for all else.
fn read(text: &str) -> Read {
    let tokens = tokens(text);
    let mut at = tokens.iter().map(String::as_str);
    assert_eq!(at.next(), Some("digraph"));
    at.next().unwrap();
    assert_eq!(at.next(), Some("{"));
    let (mut read, mut depth) = (Read::default(), 1);
    while depth > 0 {
        match at.next().expect("a brace is open") {
            "}" => depth -= 1,
            "subgraph" => {
                assert!(at.next().unwrap().starts_with("\"cluster"));
                assert_eq!(at.next(), Some("{"));
                depth += 1;
            }
            first => {
                let mut second = at.next().unwrap();
                let mut to = None;
                if second == "->" {
                    to = at.next();
                    second = at.next().unwrap();
                }
                assert_eq!(second, "[", "{first}");
                let mut label = None;
                loop {
                    let (name, equals, value) = (at.next().unwrap(), at.next(), at.next().unwrap());
                    assert_eq!(equals, Some("="), "{name}");
                    if name == "label" {
                        label = Some(value.trim_matches('"').to_owned());
                    }
                    match at.next().unwrap() {
                        "," => {}
                        "]" => break,
                        other => panic!("{other}"),
                    }
                }
                assert_eq!(at.next(), Some(";"));
                match (first, to, label) {
                    ("graph", None, Some(label)) => read.clusters.push(label),
                    ("graph", None, None) => {}
                    (node, None, Some(label)) => {
                        assert!(read.nodes.insert(node.to_owned(), label).is_none(), "{node} twice");
                    }
                    (from, Some(to), Some(label)) => {
                        read.edges.push((from.to_owned(), to.to_owned(), label));
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
    }
    assert_eq!(at.next(), None);
    for (from, to, _) in &read.edges {
        assert!(read.nodes.contains_key(from) && read.nodes.contains_key(to), "{from} -> {to}");
    }
    read
}

fn tokens(text: &str) -> Vec<String> {
    let (mut tokens, mut rest) = (Vec::new(), text.trim_start());
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => {
                let mut escaped = false;
                let end = rest[1..].char_indices().find(|(_, c)| {
                    let ends = *c == '"' && !escaped;
                    escaped = *c == '\\' && !escaped;
                    ends
                });
                end.expect("a string is open").0 + 2
            }
            '-' => {
                assert!(rest.starts_with("->"));
                2
            }
            c if c.is_ascii_alphanumeric() || c == '_' => {
                rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap()
            }
            '{' | '}' | '[' | ']' | '=' | ',' | ';' => 1,
            other => panic!("{other:?} in {rest}"),
        };
        tokens.push(rest[..length].to_owned());
        rest = rest[length..].trim_start();
    }
    tokens
}

/// The edges of a graph by labels of nodes, which are unique in these programs.
fn edges(read: &Read) -> BTreeSet<(&str, &str, &str)> {
    assert_eq!(read.nodes.values().collect::<BTreeSet<_>>().len(), read.nodes.len(), "{:?}", read.nodes);
    read.edges.iter().map(|(from, to, label)| (&*read.nodes[from], &*read.nodes[to], &**label)).collect()
}

#[test]
fn a_parser_has_states_and_transitions() {
    let all = all(PROGRAM).unwrap();
    let names: Vec<_> = all.iter().map(|graph| graph.name.as_str()).collect();
    assert_eq!(names, ["MyParser", "Check", "MyIngress", "MyEgress", "MyDeparser"]);
    let start = "start\\n(hdr.ethernet.type, m.seen)";
    let read = read(&all[0].to_string());
    assert_eq!(read.clusters, ["MyParser"]);
    let expected = BTreeSet::from([
        (start, "ipv4", "(TYPE_IPV4, 0)"),
        (start, "reject", "(0x86dd &&& 0xfffe, default)"),
        (start, "reject", "fallthrough"),
        ("ipv4", "accept", "always"),
    ]);
    assert_eq!(edges(&read), expected);
}

#[test]
fn a_control_has_tables_conditions_and_the_controls_in_it() {
    let all = all(PROGRAM).unwrap();
    let ingress = &all[2];
    let read = read(&ingress.to_string());
    assert_eq!(read.clusters, ["MyIngress", "MyIngress.count"]);
    let key = "lpm: hdr.ipv4.dst\\nexact: in\\n";
    let (dropped, forwarded) = ("mark_to_drop(s);", "s.egress_spec = port;\\nhdr.ipv4.ttl = hdr.ipv4.t...");
    let other = "m.seen = 0;\\n...\\nhdr.ethernet.src = 0xffff...";
    let (run, valid, seen) = ("switch: action_run", "hdr.ipv4.isValid()", "m.seen == 1");
    let expected = BTreeSet::from([
        ("__START__", valid, ""),
        (valid, "routes", "TRUE"),
        (valid, other, "FALSE"),
        ("routes", key, ""),
        (key, "forward", ""),
        (key, "drop", ""),
        (key, "NoAction", ""),
        ("forward", forwarded, ""),
        ("drop", dropped, ""),
        (dropped, "__EXIT__", ""),
        (forwarded, run, ""),
        ("NoAction", run, ""),
        (run, seen, "forward"),
        (seen, "m.seen = 1;", "FALSE"),
        (seen, "__EXIT__", "TRUE"),
        ("m.seen = 1;", "__EXIT__", ""),
        (run, "__EXIT__", "drop"),
        (run, "__EXIT__", "default"),
        (other, "__EXIT__", ""),
    ]);
    assert_eq!(edges(&read), expected);
    let of = |kind| ingress.nodes.iter().filter(|node| node.kind == kind).count();
    assert_eq!([NodeKind::Table, NodeKind::Key, NodeKind::Action].map(of), [1, 1, 3]);
    let inner = ingress.nodes.iter().find(|node| node.label == seen).unwrap();
    assert_eq!(ingress.clusters[inner.cluster].name, "count");
    assert_eq!(edges(&self::read(&all[3].to_string())), BTreeSet::from([("__START__", "__EXIT__", "")]));
}

#[test]
fn all_graphs_are_one_and_json() {
    let all = all(PROGRAM).unwrap();
    let one = read(&whole(&all));
    let (nodes, edges) =
        all.iter().fold((0, 0), |sum, graph| (sum.0 + graph.nodes.len(), sum.1 + graph.edges.len()));
    // One from each to the next.
    assert_eq!((one.nodes.len(), one.edges.len()), (nodes, edges + 4));
    assert_eq!(one.clusters, ["MyParser", "Check", "MyIngress", "MyIngress.count", "MyEgress", "MyDeparser"]);
    assert!(
        one.edges.iter().any(|(from, to, _)| one.nodes[from] == "accept" && one.nodes[to] == "__START__")
    );
    let json = json("program", &all);
    assert_eq!((&json["name"], &json["nodes"][0]["type"]), (&"program".into(), &"parser".into()));
    let block = &json["nodes"][2];
    assert_eq!((&block["type"], &block["name"]), (&"control".into(), &"MyIngress".into()));
    assert_eq!(block["nodes"][2]["name"], "hdr.ipv4.isValid()");
    assert_eq!(
        (&block["nodes"][2]["type"], &block["nodes"][2]["type_enum"]),
        (&"condition".into(), &3.into())
    );
    assert_eq!(block["transitions"][0]["from"], 0);
}

/// A control around `apply`, with what is in it.
fn control(locals: &str, apply: &str) -> String {
    PROGRAM.replace(
        "control MyEgress(inout headers hdr, inout metadata m, inout standard_metadata_t s) { apply { } }",
        &format!(
            "{locals} control MyEgress(inout headers hdr, inout metadata m, inout standard_metadata_t s) {{ \
             action a() {{ }} table t {{ actions = {{ a; }} const default_action = a; }} {apply} }}"
        ),
    )
}

fn egress(text: &str) -> BTreeSet<(String, String, String)> {
    let read = read(&all(text).unwrap()[3].to_string());
    edges(&read).into_iter().map(|(a, b, c)| (a.into(), b.into(), c.into())).collect()
}

fn owned(edges: &[(&str, &str, &str)]) -> BTreeSet<(String, String, String)> {
    edges.iter().map(|(a, b, c)| ((*a).into(), (*b).into(), (*c).into())).collect()
}

#[test]
fn a_table_within_a_condition_comes_before_it() {
    let text = control("", "apply { if (m.seen == 0 || t.apply().hit) { m.seen = 1; } }");
    let condition = "m.seen == 0 || t.apply().hit";
    let expected = [
        ("__START__", "t", ""),
        ("t", "a", ""),
        ("a", condition, ""),
        (condition, "m.seen = 1;", "TRUE"),
        (condition, "__EXIT__", "FALSE"),
        ("m.seen = 1;", "__EXIT__", ""),
    ];
    assert_eq!(egress(&text), owned(&expected));
}

#[test]
fn a_loop_goes_back_to_its_condition() {
    let body = "if (i == 3) { break; } if (i == 2) { continue; } m.seen = 1;";
    let text = control("", &format!("apply {{ for (bit<8> i = 0; i < 5; i = i + 1) {{ {body} }} }}"));
    let expected = [
        ("__START__", "bit<8> i = 0", ""),
        ("bit<8> i = 0", "i < 5", ""),
        ("i < 5", "i == 3", "TRUE"),
        ("i == 3", "__EXIT__", "TRUE"),
        ("i == 3", "i == 2", "FALSE"),
        ("i == 2", "i = i + 1", "TRUE"),
        ("i == 2", "m.seen = 1;", "FALSE"),
        ("m.seen = 1;", "i = i + 1", ""),
        ("i = i + 1", "i < 5", ""),
        ("i < 5", "__EXIT__", "FALSE"),
    ];
    assert_eq!(egress(&text), owned(&expected));
}

/// Names and words of a program cannot be anything but labels.
#[test]
fn words_of_the_source_stay_within_strings() {
    let text = control("", "apply { log_msg(\"a \\\"quoted\\\" \\\\ text\"); }");
    let expected = ["__START__", "__EXIT__"].map(String::from);
    let found = egress(&text);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found.iter().any(|(from, to, _)| *from == expected[0] && to.contains("\\\"quoted")), "{found:?}");
}

/// A chain of controls each of which applies the one before twice is small until it is drawn.
#[test]
fn what_would_be_too_large_is_refused_by_name() {
    let mut chain = String::from("control C0(inout metadata m) { apply { m.seen = 1; } }\n");
    for number in 1..=14 {
        let before = number - 1;
        chain += &format!(
            "control C{number}(inout metadata m) {{ C{before}() c; apply {{ {} }} }}\n",
            "c.apply(m); ".repeat(8)
        );
    }
    let begun = Instant::now();
    let text = PROGRAM.replace("control MyIngress(", &format!("{chain} control MyIngress("));
    let text =
        text.replace("Count() count;", "Count() count; C14() big;").replace("m.seen = 0;", "big.apply(m);");
    assert_eq!(all(&text), Err(GraphsError::TooLarge("nodes", MAX_NODES)));
    assert!(GraphsError::TooLarge("edges", MAX_EDGES).to_string().contains("262144 edges"));
    assert!(begun.elapsed() < Duration::from_secs(20));
    let many = "else if (m.seen == 1) { m.seen = 0; } ".repeat(2900);
    let text = control("", &format!("apply {{ if (m.seen == 0) {{ }} {many} }}"));
    assert!(all(&text).unwrap()[3].nodes.len() > 5800);
    assert_eq!(all("#include <core.p4>\n"), Err(GraphsError::NoMain));
}
