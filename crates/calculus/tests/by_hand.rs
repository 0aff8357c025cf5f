//! Networks small enough to calculate by hand. Each test has the calculation.
//!
//! All ports send at 100 Mbit/s unless something else is said: 100 bits in a microsecond.

use millrace_calculus::{
    Arrival, Cross, Flow, FlowId, LinearPrograms, Network, Outcome, RateLatency, Refusal, Route, RouteId,
    Scheduler, Server, ServerId, Time, TokenBucket, TotalFlow, Transfer, bounds, pmoo, separated_flow,
    total_flow,
};

const RATE: u64 = 100_000_000;
const ONE: u64 = 8_000; // bits: 80 us

fn us(us: u64) -> Time {
    Time::from_us(us)
}

fn periodic(bits: u64, period: Time, jitter: Time) -> Arrival {
    Arrival::Periodic { largest_frame: bits, smallest_frame: bits, period, jitter }
}

fn flow(name: &str, arrival: Arrival, level: u8, routes: &[&[usize]]) -> Flow {
    let route = |servers: &&[usize]| Route {
        destination: "d".to_owned(),
        servers: servers.iter().map(|&it| ServerId(it)).collect(),
    };
    Flow { name: name.to_owned(), arrival, level, routes: routes.iter().map(route).collect() }
}

fn ports(count: usize) -> Vec<Server> {
    (0..count).map(|at| Server::port(&format!("p{at}"), RATE)).collect()
}

fn route(flow: usize) -> RouteId {
    RouteId { flow: FlowId(flow), route: 0 }
}

fn delay(network: &Network, outcome: &Outcome, flow: usize) -> Time {
    outcome.path(network, route(flow)).expect("it has a bound").delay
}

/// Equal but for rounding, which is a few picoseconds upwards.
#[track_caller]
fn close(found: Time, exact_ps: f64) {
    let above = found.ps() as f64 - exact_ps;
    assert!((-0.001..50.0).contains(&above), "{} ps, by hand {exact_ps} ps", found.ps());
}

#[test]
fn a_port_sends_all_that_comes_at_once() {
    // Three frames of 80 us at the same moment: the last leaves after 240 us. In the room for them are 24 000 bits.
    let flows = (0..3).map(|at| flow(&at.to_string(), periodic(ONE, us(2000), us(0)), 0, &[&[0]])).collect();
    let network = Network::new(ports(1), flows, Transfer::Frames).unwrap();
    let found = bounds(&network);
    let (_, bound) = found.best(&network, route(0)).unwrap();
    assert_eq!(bound.delay, us(240));
    assert_eq!(bound.lowest, us(80));
    assert_eq!(bound.jitter(), us(160));
    let server = found.servers()[0].as_ref().unwrap();
    assert_eq!((server.backlog, server.buffer, server.frames), (24_000, 24_000, 3));
    // 3 · 8000 bit / 2 ms = 12 Mbit/s.
    assert_eq!(server.load.percent(), 12.0);
}

#[test]
fn jitter_lets_two_frames_come_at_once() {
    // Late by up to 1.5 periods: 2 frames at once, 160 us. The next comes half a period later, when both are gone.
    let network = Network::new(
        ports(1),
        vec![flow("a", periodic(ONE, us(2000), us(3000)), 0, &[&[0]])],
        Transfer::Frames,
    )
    .unwrap();
    assert_eq!(delay(&network, &total_flow(&network, TotalFlow::BEST), 0), us(160));
    // As a token bucket: 8000 · (1 + 1.5) = 20 000 bits, 200 us.
    assert_eq!(delay(&network, &total_flow(&network, TotalFlow::AFFINE), 0), us(200));
}

#[test]
fn no_more_frames_are_in_a_port_than_its_room_holds() {
    // Late by up to 10 s, 10 001 frames come at once at p0. At p1 they come by a link of the same rate: at most Ct + 8000 bits in any t. With
    // a frame whole until its last bit is sent, 16 000 bits are there: two frames.
    let late = |smallest_frame, period, jitter| Arrival::Periodic {
        largest_frame: ONE,
        smallest_frame,
        period,
        jitter,
    };
    let seconds = |count: u64| us(count * 1_000_000);
    let one = |smallest| flow("a", late(smallest, us(1000), seconds(10)), 0, &[&[0, 1]]);
    let frames = |flows| {
        let network = Network::new(ports(2), flows, Transfer::Frames).unwrap();
        let found = total_flow(&network, TotalFlow::BEST);
        let server = found.servers[1].as_ref().unwrap();
        assert_eq!(server.buffer, 16_000);
        (server.levels.iter().map(|level| level.frames).collect::<Vec<_>>(), server.frames)
    };
    assert_eq!(frames(vec![one(8000)]), (vec![2], 2));
    // Frames of 3000 bits: five.
    assert_eq!(frames(vec![one(3000)]), (vec![5], 5));
    // Another flow has frames of 800 bits, one in 100 s, of which one is there: what it leaves, 15 200 bits, has room for one of 8000.
    let rare = |level| flow("b", late(800, seconds(100), us(0)), level, &[&[0, 1]]);
    assert_eq!(frames(vec![one(8000), rare(0)]), (vec![2], 2));
}

#[test]
fn steps_are_found_after_the_first_moment() {
    // Period 100 us, frame 80 us; the other flow has 3 frames ready at once and then one in 1 ms. At 0: 4 frames, 320 us. At 100 us: 5
    // frames came, 400 us of work, 100 us done: 300 us. So 320 us. With lateness of 50 us the second frame comes at 50 us: 400 − 50 = 350 us.
    let three = Arrival::Buckets {
        buckets: vec![TokenBucket { burst: 3 * ONE, rate: 0 }],
        largest_frame: ONE,
        smallest_frame: ONE,
    };
    for (jitter, expected) in [(0, 320), (50, 350)] {
        let flows = vec![
            flow("a", periodic(ONE, us(100), us(jitter)), 0, &[&[0]]),
            flow("b", three.clone(), 0, &[&[0]]),
        ];
        let network = Network::new(ports(1), flows, Transfer::Frames).unwrap();
        assert_eq!(delay(&network, &total_flow(&network, TotalFlow::BEST), 0), us(expected));
    }
}

#[test]
fn frames_of_one_link_come_one_after_the_other() {
    // a and b come from port 0, c from port 1, all meet in port 2. In port 0 two frames wait for each other: 160 us; in port 1 none: 80 us.
    // Port 2, without grouping: three frames at once, 240 us. With it: at 0 one frame of each link, 160 us; at 80 us the second of port 0 is
    // there, 240 us of work less 80 us done: 160 us.
    let arrival = || periodic(ONE, us(2000), us(0));
    let flows = vec![
        flow("a", arrival(), 0, &[&[0, 2]]),
        flow("b", arrival(), 0, &[&[0, 2]]),
        flow("c", arrival(), 0, &[&[1, 2]]),
    ];
    let network = Network::new(ports(3), flows, Transfer::Frames).unwrap();
    let apart = TotalFlow { grouping: false, ..TotalFlow::BEST };
    assert_eq!(delay(&network, &total_flow(&network, apart), 0), us(160 + 240));
    let found = total_flow(&network, TotalFlow::BEST);
    assert_eq!(delay(&network, &found, 0), us(160 + 160));
    assert_eq!(delay(&network, &found, 2), us(80 + 160));
}

#[test]
fn a_fast_link_brings_no_bits_that_nobody_sends() {
    // Port 0 sends 7 bits in a picosecond, so two frames are complete between two picoseconds: 1142 and 6/7 after the first. What has come then are
    // two frames, 1600 us of work of port 1 with 10 Mbit/s, and not one bit more, which would take 100 ns.
    let flows = || ["a", "b"].map(|name| flow(name, periodic(ONE, us(4000), us(0)), 0, &[&[0, 1]])).to_vec();
    let servers = vec![Server::port("p0", 7_000_000_000_000), Server::port("p1", 10_000_000)];
    let network = Network::new(servers, flows(), Transfer::Frames).unwrap();
    let apart = total_flow(&network, TotalFlow { grouping: false, ..TotalFlow::BEST });
    let together = total_flow(&network, TotalFlow::BEST);
    assert!(delay(&network, &together, 0) <= delay(&network, &apart, 0));
    assert!(delay(&network, &together, 0) < us(1600) + Time::from_ps(10_000));
}

#[test]
fn a_switch_that_takes_time_delays_and_one_whose_time_varies_gathers() {
    // 5 us on the link, 10 to 60 us in the switch before port 1. The flow has a frame each 100 us, 80 us long: in port 0 it waits for nothing,
    // so its frames come exactly 100 us apart (jitter 80 − 80 = 0). They can be 50 us closer in the queue of port 1, but 50 < 100: one at once,
    // the next after 50 us, when 30 us of the first are left: 110 us at most there.
    let mut servers = ports(2);
    servers[0].link.propagation = us(5);
    servers[1] = Server::port("p1", RATE).with_latency(us(10), us(60));
    let network = Network::new(
        servers,
        vec![flow("a", periodic(ONE, us(100), us(0)), 0, &[&[0, 1]])],
        Transfer::Frames,
    )
    .unwrap();
    let found = total_flow(&network, TotalFlow { grouping: false, ..TotalFlow::BEST });
    let bound = found.path(&network, route(0)).unwrap();
    assert_eq!(bound.delay, us(80 + 5 + 60 + 110));
    assert_eq!(bound.lowest, us(80 + 5 + 10 + 80));
}

#[test]
fn strict_priority_waits_for_what_has_begun() {
    // High: 1000 bits each ms. Low: 10 000 bits. High waits for one low frame, 100 us, then 10 us: 110 us. Low: one frame of high before
    // it, 10 + 100 us = 110 us; the next of high comes at 1 ms.
    // As token buckets: high the same. Low: high leaves 99 Mbit/s after 1000 bit / 99 Mbit/s; (1000 + 10 000) / 99 = 111.111… us.
    let flows = vec![
        flow("low", periodic(10_000, us(10_000), us(0)), 1, &[&[0]]),
        flow("high", periodic(1_000, us(1000), us(0)), 0, &[&[0]]),
    ];
    let servers = vec![Server::port("p", RATE).with_scheduler(Scheduler::StrictPriority)];
    let network = Network::new(servers, flows, Transfer::Frames).unwrap();
    let found = total_flow(&network, TotalFlow::BEST);
    assert_eq!((delay(&network, &found, 1), delay(&network, &found, 0)), (us(110), us(110)));
    let found = total_flow(&network, TotalFlow::AFFINE);
    assert_eq!(delay(&network, &found, 1), us(110));
    close(delay(&network, &found, 0), 11_000.0 / 99.0 * 1e6);
    let levels = &found.servers[0].as_ref().unwrap().levels;
    assert_eq!(levels.iter().map(|level| level.level).collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn high_priority_that_comes_again_delays_low_again() {
    // High: 5000 bits (50 us) each 100 us. Low: 10 000 bits (100 us). From 0: high to 50, low 50 to 100, high comes again. The curve of
    // what is left reaches 10 000 bits when 200 us are served of which 100 us (2 frames) are high: at 200 us, where the third comes: 200 us.
    let flows = vec![
        flow("low", periodic(10_000, us(10_000), us(0)), 1, &[&[0]]),
        flow("high", periodic(5_000, us(100), us(0)), 0, &[&[0]]),
    ];
    let servers = vec![Server::port("p", RATE).with_scheduler(Scheduler::StrictPriority)];
    let network = Network::new(servers, flows, Transfer::Frames).unwrap();
    assert_eq!(delay(&network, &total_flow(&network, TotalFlow::BEST), 0), us(200));
}

/// Servers of 4 Mbit/s after 10 us, in fluid; a flow over both with 80 bits, one over the first, one over the second, all 10 kbit/s.
fn crossed() -> Network {
    let server = |name: &str| Server {
        service: vec![RateLatency { rate: 4_000_000, latency: us(10) }],
        link: millrace_calculus::Link { rate: Some(RATE), propagation: Time::ZERO },
        ..Server::port(name, RATE)
    };
    let arrival = || Arrival::Buckets {
        buckets: vec![TokenBucket { burst: 80, rate: 10_000 }],
        largest_frame: 80,
        smallest_frame: 80,
    };
    let flows = vec![
        flow("f", arrival(), 0, &[&[0, 1]]),
        flow("g", arrival(), 0, &[&[0]]),
        flow("h", arrival(), 0, &[&[1]]),
    ];
    Network::new(vec![server("a"), server("b")], flows, Transfer::Fluid).unwrap()
}

#[test]
fn total_flow_in_fluid() {
    let network = crossed();
    // a: 10 us + 160 bit / 4 Mbit/s = 50 us. f then has 80 + 0.01 · 50 = 80.5 bits. b: 10 + 160.5 / 4 = 50.125 us.
    let found = total_flow(&network, TotalFlow::AFFINE);
    close(delay(&network, &found, 0), 100_125_000.0);
    // What f brings in time t is also at most 100 t. That is 80.5 + 0.01 t at t = 80.5 / 99.99 us; there, 80.5 + 0.01 t + 80 + 0.01 t came.
    let found = total_flow(&network, TotalFlow { grouping: true, ..TotalFlow::AFFINE });
    let t = 80.5 / 99.99;
    close(delay(&network, &found, 0), (50.0 + 10.0 + (160.5 + 0.02 * t) / 4.0 - t) * 1e6);
}

#[test]
fn separated_flow_in_fluid() {
    let network = crossed();
    // a leaves f 3.99 Mbit/s after 10 + 80 / 4 = 30 us, b the same. Together 60 us and 80 bit / 3.99 Mbit/s.
    close(delay(&network, &separated_flow(&network, Cross::Separated), 0), (60.0 + 80.0 / 3.99) * 1e6);
    // For h, f comes with 80 + 0.01 · 30 bits: 10 + 80.3 / 4 + 80 / 3.99.
    close(
        delay(&network, &separated_flow(&network, Cross::Separated), 2),
        (10.0 + 80.3 / 4.0 + 80.0 / 3.99) * 1e6,
    );
}

#[test]
fn multiplexing_paid_once_in_fluid() {
    let network = crossed();
    // In any order: 20 us; the bursts of g and h, and what they send in 10 us each: 160.2 bits. (160.2 + 80) / 3.99.
    close(delay(&network, &pmoo(&network, Cross::Separated), 0), (20.0 + 240.2 / 3.99) * 1e6);
    // For h: a leaves f with (80 + 40) / 3.99 us of latency.
    let burst = 80.0 + 0.01 * (10.0 + (80.0 + 0.1) / 3.99);
    close(delay(&network, &pmoo(&network, Cross::Separated), 2), (10.0 + (burst + 0.1 + 80.0) / 3.99) * 1e6);
}

#[test]
fn a_flow_over_the_same_servers_is_paid_once() {
    // f and g over two servers with 10 Mbit/s after 5 us and 20 Mbit/s after 7 us, 1000 and 3000 bits: together they are one flow, so
    // 12 us + 4000 / 10 = 412 us. Each server by itself: 405 us, then more.
    let server = |name: &str, mbit: u64, latency| Server {
        service: vec![RateLatency { rate: mbit * 1_000_000, latency: us(latency) }],
        link: millrace_calculus::Link { rate: None, propagation: Time::ZERO },
        ..Server::port(name, RATE)
    };
    let arrival = |burst| Arrival::Buckets {
        buckets: vec![TokenBucket { burst, rate: 1_000_000 }],
        largest_frame: burst,
        smallest_frame: 1,
    };
    let flows = vec![flow("f", arrival(1000), 0, &[&[0, 1]]), flow("g", arrival(3000), 0, &[&[0, 1]])];
    let network = Network::new(vec![server("a", 10, 5), server("b", 20, 7)], flows, Transfer::Fluid).unwrap();
    let found = LinearPrograms::new(&network).bound(route(0)).unwrap();
    let exact = 412e6;
    assert!(
        found.delay.ps() as f64 >= exact && found.delay.ps() as f64 <= exact * 1.000_001,
        "{} ps",
        found.delay.ps()
    );
}

#[test]
fn what_has_no_bound_is_named() {
    // Port 0 has 2 · 80 us of work each 150 us. a goes on to port 1, so port 1 has no bound, nor has c, which goes on to port 3 where d is.
    let slow = || periodic(ONE, us(2000), us(0));
    let flows = vec![
        flow("a", periodic(ONE, us(150), us(0)), 0, &[&[0, 1]]),
        flow("b", periodic(ONE, us(150), us(0)), 0, &[&[0]]),
        flow("c", slow(), 0, &[&[1, 3]]),
        flow("d", slow(), 0, &[&[3]]),
        flow("e", slow(), 0, &[&[2]]),
    ];
    let network = Network::new(ports(4), flows, Transfer::Frames).unwrap();
    let found = bounds(&network);
    let why = |flow| found.best(&network, route(flow)).unwrap_err().clone();
    assert!(matches!(why(0), Refusal::Overload { server: ServerId(0), .. }));
    assert!(matches!(why(1), Refusal::Overload { server: ServerId(0), .. }));
    assert_eq!(why(2), Refusal::DependsOn(ServerId(0)));
    assert_eq!(why(3), Refusal::DependsOn(ServerId(0)));
    assert_eq!(found.best(&network, route(4)).unwrap().1.delay, us(80));
    let text = why(0).describe(&network).to_string();
    assert_eq!(text, "port p0 has a load of 106.7 %: it sends 100000000 bit/s, its flows need 106666667");
}

#[test]
fn a_circle_of_ports_is_named() {
    let arrival = || periodic(ONE, us(2000), us(0));
    let flows = vec![
        flow("a", arrival(), 0, &[&[1, 2]]),
        flow("b", arrival(), 0, &[&[2, 3]]),
        flow("c", arrival(), 0, &[&[3, 1]]),
        flow("d", arrival(), 0, &[&[3, 0]]),
        flow("e", arrival(), 0, &[&[4, 2]]),
    ];
    let network = Network::new(ports(5), flows, Transfer::Frames).unwrap();
    let found = bounds(&network);
    let circle = Refusal::Cycle(vec![ServerId(1), ServerId(2), ServerId(3)]);
    for flow in 0..5 {
        assert_eq!(found.best(&network, route(flow)).unwrap_err(), &circle, "flow {flow}");
    }
    assert_eq!(network.refusal(ServerId(0)), Some(&Refusal::DependsOn(ServerId(3))));
    assert_eq!(network.refusal(ServerId(4)), None);
    assert_eq!(
        circle.describe(&network).to_string(),
        "ports depend on each other in a circle: p1 -> p2 -> p3 -> p1"
    );
}

#[test]
fn a_scheduler_without_an_analysis_is_named() {
    let servers = vec![Server::port("p", RATE).with_scheduler(Scheduler::Unsupported("wrr".to_owned()))];
    let network =
        Network::new(servers, vec![flow("a", periodic(ONE, us(2000), us(0)), 0, &[&[0]])], Transfer::Frames)
            .unwrap();
    let found = bounds(&network);
    let text = found.best(&network, route(0)).unwrap_err().describe(&network).to_string();
    assert_eq!(text, "there is no analysis for the scheduler wrr of port p");
}

#[test]
fn a_port_may_be_fully_loaded() {
    // 80 us each 80 us and nothing else: never more than one frame.
    let network =
        Network::new(ports(1), vec![flow("a", periodic(ONE, us(80), us(0)), 0, &[&[0]])], Transfer::Frames)
            .unwrap();
    assert_eq!(delay(&network, &total_flow(&network, TotalFlow::BEST), 0), us(80));
}

#[test]
fn what_is_no_network_is_refused() {
    let arrival = || periodic(ONE, us(2000), us(0));
    let error = |routes: &[&[usize]]| {
        let flows = vec![flow("a", arrival(), 0, routes)];
        Network::new(ports(4), flows, Transfer::Frames).unwrap_err().to_string()
    };
    assert_eq!(error(&[&[]]), "flow a to d: it passes no server");
    assert_eq!(error(&[&[7]]), "flow a to d: there is no server 7");
    assert_eq!(error(&[&[0, 1, 0]]), "flow a to d: it passes p0 twice");
    let elsewhere = "flow a to d: another route of the flow comes to p2 from elsewhere; the routes of a flow are to be a tree";
    assert_eq!(error(&[&[0, 1, 2], &[0, 3, 2]]), elsewhere);
    let long = (0..65).collect::<Vec<_>>();
    let flows = vec![flow("a", arrival(), 0, &[&long])];
    let error = Network::new(ports(65), flows, Transfer::Frames).unwrap_err().to_string();
    assert_eq!(error, "flow a to d: it passes 65 servers, at most 64 are possible");
    let flows = vec![flow("a", periodic(ONE, Time::from_ns(999), us(0)), 0, &[&[0]])];
    let error = Network::new(ports(1), flows, Transfer::Frames).unwrap_err().to_string();
    assert_eq!(error, "flow a: its period is to be 1 us to 1000 s");
}

#[test]
fn a_curve_without_end_is_cut() {
    // Fully loaded, with periods of 1 us and 1.000001 us that meet again after a second only: what is left is taken as a line. The
    // frames are 60 and 40 bits; two at once take 1 us, and the second flow needs 1 − 10⁻⁶ of its share.
    let flows = vec![
        flow("a", periodic(60, us(1), us(0)), 0, &[&[0]]),
        flow("b", periodic(40, Time::from_ps(1_000_001), us(0)), 0, &[&[0]]),
    ];
    let network = Network::new(ports(1), flows, Transfer::Frames).unwrap();
    let found = delay(&network, &total_flow(&network, TotalFlow::BEST), 0);
    assert_eq!(found, us(1));
}
