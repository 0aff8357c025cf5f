//! Hostile peers of all servers of a switch, concurrently, for as long as is asked for.

use crate::lab::peers::{Addresses, Peers};
use crate::lab::{Client, Lab, resident};
use crate::{BATCH, Ids, LEAST, batch, ids, rate_of};
use millrace_chassis::{Making, Programs};
use millrace_dataplane::EngineKind;
use millrace_p4runtime_api::v1::{CapabilitiesRequest, update};
use std::net::TcpListener;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

/// One look at the switch.
const ROUND: Duration = Duration::from_secs(1);
/// Entries of the table that readers ask for.
const NETWORKS: u8 = 20;
/// What memory may grow by, with that of the peers, which are in the same process: what requests and answers of P4Runtime
/// and of Thrift may take, and as much for all else.
const MOST_MEMORY: u64 = 1 << 30;
/// What it may grow by in the second half.
const MOST_DRIFT: u64 = 128 << 20;
/// How long a controller may wait for a write, or a newcomer to become primary.
const MOST_WAIT: Duration = Duration::from_secs(10);

/// Times that were waited.
#[derive(Default)]
struct Waits(Vec<Duration>);

impl Waits {
    fn show(&mut self, what: &str) -> bool {
        self.0.sort();
        let at = |part: f64| self.0[((self.0.len() - 1) as f64 * part) as usize].as_secs_f64() * 1e3;
        let (count, most) = (self.0.len(), at(1.0));
        println!("{what:44} {count:>7} {:>9.1} {:>9.1} {most:>9.1}", at(0.5), at(0.99));
        most <= MOST_WAIT.as_secs_f64() * 1e3
    }
}

/// Runs a switch under hostile peers; says whether it held up.
pub(crate) async fn hostile(lab: &Lab, seconds: u64) -> bool {
    let (server, observed) = servers(lab);
    let at = Addresses { grpc: lab.server.address(), thrift: server.address(), metrics: observed.address() };
    let mut client = Client::primary(lab).await;
    let ids = ids(&mut client).await;
    for network in 100..100 + NETWORKS {
        client.calls.write(batch(&client, &ids, update::Type::Insert, network)).await.unwrap();
    }
    let (mut quiet, mut waits) = (Vec::new(), [Waits::default(), Waits::default()]);
    for _ in 0..(seconds / 6).clamp(5, 60) {
        quiet.push(rate_of(lab, write_on(&mut client, &ids, &mut waits[0])).await);
    }
    let busy = beside_work(lab).await;
    let before = resident();
    let peers = Peers::start(at);
    let begun = Instant::now();
    let (mut attacked, mut newcomers, mut others) = (Vec::new(), Waits::default(), Waits::default());
    let (mut most, mut half, mut last) = (0, 0, 0);
    while begun.elapsed() < Duration::from_secs(seconds) {
        attacked.push(rate_of(lab, write_on(&mut client, &ids, &mut waits[1])).await);
        // A newcomer with a higher election id takes over.
        let came = Instant::now();
        client =
            tokio::time::timeout(10 * MOST_WAIT, Client::primary(lab)).await.expect("a newcomer gets in");
        newcomers.0.push(came.elapsed());
        let came = Instant::now();
        // Nothing else runs here meanwhile; the servers have threads of their own.
        ask_others(at);
        others.0.push(came.elapsed());
        last = resident().saturating_sub(before);
        most = most.max(last);
        if begun.elapsed() < Duration::from_secs(seconds) / 2 {
            half = half.max(last);
        }
    }
    let connections = peers.stop();
    let median = |rates: &mut Vec<f64>| {
        rates.sort_by(f64::total_cmp);
        rates[rates.len() / 2]
    };
    let (quiet, attacked) = (median(&mut quiet), median(&mut attacked));
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    println!("{seconds} s, {connections} connections of hostile peers");
    println!(
        "Mpps by the worker's CPU time, median: quiet {quiet:.2}, attacked {attacked:.2}, ratio {:.3}",
        attacked / quiet
    );
    println!(
        "the other processor at work for nobody: {:.2} in registers, {:.2} in memory, ratios {:.3} and {:.3}",
        busy[0],
        busy[1],
        busy[0] / quiet,
        busy[1] / quiet
    );
    println!(
        "memory grew by {:.0} MiB at most, {:.0} MiB in the first half, {:.0} MiB at the end",
        mib(most),
        mib(half),
        mib(last)
    );
    println!("{:44} {:>7} {:>9} {:>9} {:>9}", "times in ms", "count", "median", "99 %", "most");
    let [mut before, mut under] = waits;
    let mut is_right = before.show(&format!("a controller's write of {BATCH}, quiet"));
    is_right &= under.show(&format!("a controller's write of {BATCH}, attacked"));
    is_right &= newcomers.show("a newcomer becomes primary, attacked");
    is_right &= others.show("a call over Thrift and a scrape, attacked");
    is_right && attacked / quiet >= LEAST && most <= MOST_MEMORY && most <= half + MOST_DRIFT
}

/// The rate while the processor of server and peers is busy with work that has nothing to do with the switch: in registers
/// alone, and copying through memory. What it loses then is the machine's (the clock of processors that share a budget, the
/// cache and the memory that they share), and bounds what a switch can hold under peers that keep that processor busy.
async fn beside_work(lab: &Lab) -> [f64; 2] {
    let mut rates = [0.0; 2];
    for (rate, copied) in rates.iter_mut().zip([0, 64 << 20]) {
        let (stop, stopped) = mpsc::channel::<()>();
        let work = std::thread::spawn(move || {
            let (from, mut to) = (vec![1u8; copied], vec![0u8; copied]);
            let mut sum = 0u64;
            while stopped.try_recv() == Err(mpsc::TryRecvError::Empty) {
                to.copy_from_slice(std::hint::black_box(&from));
                sum = (0..1 << 16).fold(sum, |sum, n| std::hint::black_box(sum.rotate_left(7) ^ n));
            }
        });
        let mut seen = Vec::new();
        for _ in 0..5 {
            seen.push(rate_of(lab, async { tokio::time::sleep(ROUND).await }).await);
        }
        drop(stop);
        work.join().unwrap();
        seen.sort_by(f64::total_cmp);
        *rate = seen[seen.len() / 2];
    }
    rates
}

/// The other servers of the same switch.
fn servers(lab: &Lab) -> (millrace_thrift::Server, millrace_observe::Server) {
    let making = Making { engine: EngineKind::Fastest, ..Making::default() };
    let programs = Programs::new(making, lab.control.clone());
    let device = millrace_thrift::DeviceConfig {
        programs,
        device_id: 1,
        ports: Vec::new(),
        maker: None,
        made_from: None,
        notifications: None,
        guard: None,
    };
    let server = millrace_thrift::serve(TcpListener::bind("127.0.0.1:0").unwrap(), device).unwrap();
    let captures =
        Arc::new(millrace_drivers::Captures::new(None, millrace_drivers::DEFAULT_CAPTURE_FILE).unwrap());
    let listen = millrace_observe::Listen {
        address: ([127, 0, 0, 1], 0).into(),
        allow_remote: false,
        hosts: Vec::new(),
    };
    let observed =
        millrace_observe::Server::start(listen, millrace_observe::Shown::new(lab.control.clone(), captures))
            .unwrap();
    (server, observed)
}

/// A controller that inserts and deletes for a while.
async fn write_on(client: &mut Client, ids: &Ids, waits: &mut Waits) {
    let begun = Instant::now();
    while begun.elapsed() < ROUND {
        for kind in [update::Type::Insert, update::Type::Delete] {
            let request = batch(client, ids, kind, 200);
            let asked = Instant::now();
            client.calls.write(request).await.unwrap();
            waits.0.push(asked.elapsed());
        }
        client.calls.capabilities(CapabilitiesRequest::default()).await.unwrap();
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A client of bmv2 and a scrape, which find a place each. All peers have one address here, so a connection of theirs can take the
/// place of one that has not asked yet; who is closed comes again, as clients do, and the time that takes is what counts.
fn ask_others(at: Addresses) {
    let begun = Instant::now();
    let again = |result: std::io::Result<()>| match result {
        Ok(()) => false,
        Err(error) => {
            assert!(begun.elapsed() < 2 * MOST_WAIT, "no place since {:?}: {error}", begun.elapsed());
            std::thread::sleep(Duration::from_millis(10));
            true
        }
    };
    let call = || {
        let answer = millrace_thrift_api::Client::connect(at.thrift)?.bm_get_config_md5();
        answer.map(drop).map_err(|error| std::io::Error::other(error.to_string()))
    };
    while again(call()) {}
    while again(scrape(at)) {}
}

fn scrape(at: Addresses) -> std::io::Result<()> {
    use std::io::{Error, Read, Write};
    let mut stream = std::net::TcpStream::connect(at.metrics)?;
    let mut answer = String::new();
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
    stream.read_to_string(&mut answer)?;
    match answer.starts_with("HTTP/1.1 200") {
        true => Ok(()),
        false => Err(Error::other(answer)),
    }
}
