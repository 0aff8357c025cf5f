//! Plans of all shapes are read as they were printed.

use millrace_traffic::gates::{GateEntry, GateList};
use millrace_traffic::words::{PortPlan, parse};
use millrace_traffic::{
    Among, Asynchronous, Curve, Flows, Gated, Handle, Kind, Node, Plan, Port, Queue, Red, Share,
};
use proptest::prelude::*;

/// A tree without handles and classes.
fn kind() -> impl Strategy<Value = Kind> {
    queue().prop_recursive(5, 24, 4, |below| {
        let node = below.prop_map(|kind| Node { handle: Handle(0), kind });
        let nodes = || prop::collection::vec(node.clone(), 1..4);
        let share = |shares: std::ops::Range<u32>| {
            prop::collection::vec(
                (shares, node.clone()).prop_map(|(share, node)| Share { share, node }),
                1..4,
            )
        };
        prop_oneof![
            nodes().prop_map(Kind::Priority),
            nodes().prop_map(Kind::RoundRobin),
            share(9100..20_000).prop_map(Kind::Deficit),
            share(1..65_535).prop_map(Kind::Fair),
            (1u32..4, among(), node.clone()).prop_map(|(count, among, node)| {
                Kind::Flows(Flows { count, among, each: Box::new(node) })
            }),
            (1_000_000u64..10_000_000_000, 9100u64..1 << 30, node.clone())
                .prop_map(|(rate, burst, node)| Kind::Shaper { rate, burst, node: Box::new(node) }),
            (1u64..1_000_000_000, 0u64..100_000, 0u64..100_000, node.clone()).prop_map(
                |(idle_slope, hi_credit, lo_credit, node)| Kind::Credit {
                    idle_slope,
                    hi_credit,
                    lo_credit,
                    node: Box::new(node)
                }
            ),
            (gate_list(), any::<u8>(), prop::collection::vec((0u8..8, node), 1..4)).prop_map(
                |(list, initial, gated)| {
                    let gated = gated.into_iter().map(|(gate, node)| Gated { gate, node }).collect();
                    Kind::Gates { list: Box::new(list), initial, gated }
                }
            ),
        ]
    })
}

fn among() -> impl Strategy<Value = Among> {
    prop_oneof![
        Just(Among::Priority),
        Just(Among::RoundRobin),
        (9100u32..20_000).prop_map(|quantum| Among::Deficit(vec![quantum])),
        (1u32..65_535).prop_map(|weight| Among::Fair(vec![weight])),
    ]
}

fn gate_list() -> impl Strategy<Value = GateList> {
    let entry =
        (any::<u8>(), 20_000u64..1_000_000).prop_map(|(open, interval_ns)| GateEntry { open, interval_ns });
    (any::<u32>(), any::<bool>(), 0u64..1000, prop::collection::vec(entry, 1..6)).prop_map(
        |(base, cycle, extension_ns, mut entries)| {
            // All gates are open in one entry, so that none never opens.
            entries[0].open = 0xff;
            let cycle_ns = if cycle { 6_000_000 } else { 0 };
            GateList { base_ns: base.into(), cycle_ns, extension_ns, entries }
        },
    )
}

fn queue() -> impl Strategy<Value = Kind> {
    let curve = |classes: u8| {
        (1u64..1 << 20, 1u64..1 << 20, 1u32..1_000_000, any::<bool>()).prop_map(
            move |(min, more, probability, ecn)| Curve { classes, min, max: min + more, probability, ecn },
        )
    };
    let curves = prop_oneof![
        Just(Vec::new()).boxed(),
        curve(0xff).prop_map(|curve| vec![curve]).boxed(),
        (curve(0x81), curve(0x3c)).prop_map(|(first, second)| vec![first, second]).boxed(),
    ];
    let red = (0u8..=16, curves).prop_map(|(average, curves)| Red { average, curves });
    let shaping = (1u64..1_000_000, 9100u64..1 << 20, 1u64..1_000_000_000, 1u32..9, 1u32..3).prop_map(
        |(rate, burst, residence_ns, streams, groups)| Asynchronous {
            rate,
            burst,
            residence_ns,
            streams,
            groups: groups.min(streams),
        },
    );
    let packets = prop_oneof![Just(1000u32), Just(1u32 << 22), 1u32..1 << 22];
    let bytes = prop_oneof![Just(1u64 << 36), 9018u64..1 << 30];
    let first = (packets, bytes, prop::option::of(red), prop_oneof![Just(0u64), 1u64..1000]);
    let second = (
        prop::option::of(1u32..65_536),
        prop::option::of(1u64..1_000_000_000_000),
        prop_oneof![Just(0u64), 1u64..1 << 20],
        prop::option::of(shaping),
    );
    (first, second).prop_map(|((packets, bytes, red, reserved), (alpha, age_ns, overflow, asynchronous))| {
        Kind::Queue(Box::new(Queue {
            classes: 0,
            packets,
            bytes,
            red,
            reserved,
            alpha,
            age_ns,
            overflow,
            asynchronous,
        }))
    })
}

/// Gives each node a handle and each queue a class; the last has the rest. More than 8 queues are no plan.
fn complete(node: &mut Node, next: &mut u16, queues: &mut Vec<u8>) {
    *next += 1;
    node.handle = Handle::new(*next, 0);
    match &mut node.kind {
        Kind::Queue(queue) => {
            queue.classes = queues.pop().unwrap_or(0);
        }
        Kind::Priority(nodes) | Kind::RoundRobin(nodes) => {
            nodes.iter_mut().for_each(|node| complete(node, next, queues));
        }
        Kind::Deficit(shares) | Kind::Fair(shares) => {
            shares.iter_mut().for_each(|share| complete(&mut share.node, next, queues));
        }
        Kind::Flows(flows) => complete(&mut flows.each, next, queues),
        Kind::Shaper { node, .. } | Kind::Credit { node, .. } => complete(node, next, queues),
        Kind::Gates { gated, .. } => {
            gated.iter_mut().for_each(|gated| complete(&mut gated.node, next, queues))
        }
    }
}

fn count(node: &Node) -> usize {
    match &node.kind {
        Kind::Queue(_) => 1,
        Kind::Priority(nodes) | Kind::RoundRobin(nodes) => nodes.iter().map(count).sum(),
        Kind::Deficit(shares) | Kind::Fair(shares) => shares.iter().map(|share| count(&share.node)).sum(),
        Kind::Flows(flows) => count(&flows.each),
        Kind::Shaper { node, .. } | Kind::Credit { node, .. } => count(node),
        Kind::Gates { gated, .. } => gated.iter().map(|gated| count(&gated.node)).sum(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, max_global_rejects: 100_000, ..ProptestConfig::default() })]
    #[test]
    fn a_plan_is_read_as_it_was_printed(
        kind in kind(),
        number in any::<u32>(),
        seed in any::<u64>(),
        catch_up_ns in prop_oneof![Just(0), Just(100_000), 0u64..1_000_000_000],
    ) {
        let mut root = Node { handle: Handle(0), kind };
        let queues = count(&root);
        prop_assume!(queues <= 8);
        let mut classes: Vec<u8> = (0..queues).map(|class| 1 << class).collect();
        classes[queues - 1] |= 0xff << (queues - 1);
        complete(&mut root, &mut 0, &mut classes);
        let port = Port {
            rate: Some(10_000_000_000),
            longest: 9018,
            bytes: 1 << 30,
            overflow: 1 << 20,
            seed,
            // Under gates a port makes up for no time.
            catch_up_ns: if format!("{root:?}").contains("Gates") { 0 } else { catch_up_ns },
            ..Port::default()
        };
        let plan = Plan::new(port, root);
        // Rates and slopes may be too many for the link.
        prop_assume!(plan.is_ok());
        let plan = PortPlan { port: number, plan: plan.unwrap() };
        let text = plan.to_string();
        let again = parse(&text).map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
        prop_assert_eq!(again, vec![plan], "{}", text);
    }
}
