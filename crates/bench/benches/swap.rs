//! Another program takes over under full load: how many frames are lost, and how long it takes from the request to the first
//! frame that the new program forwards. Every frame is compared with what the old and what the new program make of it.
//!
//!     cargo bench -p millrace-bench --bench swap [-- PROGRAM...]
//!
//! The worker has one processor, server and client share another.

mod lab;

use lab::{Client, Lab, Traffic, compile, files, frames, image, switch};
use millrace_p4runtime_api::v1::set_forwarding_pipeline_config_request::Action;
use millrace_p4runtime_api::{KEEP_KEY, REPORT_KEY};
use millrace_swap_report::Report;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use tonic::Request;

const ROUNDS: usize = 10;

/// So long after a change the rate is looked at.
const AFTER: Duration = Duration::from_millis(50);

/// Each program with a change that every frame shows.
const TTL: (&str, &str) = ("hdr.ipv4.ttl = hdr.ipv4.ttl - 1;", "hdr.ipv4.ttl = hdr.ipv4.ttl - 2;");
const CASES: [(&str, (&str, &str)); 7] = [
    ("router", TTL),
    (
        "l2_switch",
        ("// Who shares the port", "hdr.ethernet.src = hdr.ethernet.src ^ 1;\n// Who shares the port"),
    ),
    ("firewall", ("        forward.apply();", "forward.apply();\nhdr.ethernet.src = hdr.ethernet.src ^ 1;")),
    ("nat", TTL),
    ("l3_gateway_pppoe", TTL),
    ("l3_gateway_vxlan", TTL),
    ("l3_gateway_gtp", TTL),
];

/// What a change is asked for with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The text of the program (RECONCILE_AND_COMMIT).
    Source,
    /// What `millrace compile` makes of it (RECONCILE_AND_COMMIT).
    Image,
    /// Nothing: the program was saved before (COMMIT).
    Saved,
}

const KINDS: [Kind; 3] = [Kind::Source, Kind::Image, Kind::Saved];

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Source => "from source",
            Kind::Image => "from an image",
            Kind::Saved => "saved",
        }
    }
}

/// What a change has to keep.
const ROUTES: usize = 100_000;

fn main() {
    println!(
        "{ROUNDS} changes each; ms from the request to the first frame of the new program: median (worst)"
    );
    println!("and Mpps in the {} ms after it: least", AFTER.as_millis());
    print!("{:28} {:>7} {:>6} {:>5}", "", "frames", "", "");
    KINDS.iter().for_each(|kind| print!(" {:>15} {:>5}", kind.name(), ""));
    println!(" {:>11}", "longest gap");
    print!("{:28} {:>7} {:>6} {:>5}", "program", "million", "Mpps", "lost");
    KINDS.iter().for_each(|_| print!(" {:>15} {:>5}", "ms", "Mpps"));
    println!(" {:>11}", "ms");
    let wanted: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|word| word == name);
    for (name, (from, to)) in CASES.into_iter().filter(|(name, _)| is_wanted(name)) {
        let (source, entries, packets) = files(name);
        let changed = source.replacen(from, to, 1);
        assert_ne!(source, changed, "{name}");
        measure(name, &source, &changed, &entries, &packets);
    }
    if !is_wanted("routes") {
        return;
    }
    let (source, entries, packets) = files("router");
    let changed = source.replacen(TTL.0, TTL.1, 1);
    let entries = entries + &routes();
    measure("router, 100k routes moved", &source, &changed, &entries, &packets);
    // The actions in another order: no entry means the same as it lies.
    let from = "actions = { set_nhop; drop; }";
    assert!(changed.contains(from), "the actions of ipv4_lpm");
    let copied = changed.replacen(from, "actions = { drop; set_nhop; }", 1);
    measure("router, 100k routes copied", &source, &copied, &entries, &packets);
}

/// Routes that none of the frames takes.
fn routes() -> String {
    let route = |number: usize| {
        let [_, a, b, c] = (number as u32).to_be_bytes();
        format!(
            "table_add ipv4_lpm set_nhop 100.{a}.{b}.{c}/32 => 02:00:00:00:00:{:02x} {}\n",
            number % 8,
            number % 8
        )
    };
    (0..ROUTES).map(route).collect()
}

fn measure(name: &str, source: &str, changed: &str, entries: &str, packets: &str) {
    let (old, new) = (compile(source), compile(changed));
    let traffic = Traffic::new(&frames(packets), switch(&old, entries), switch(&new, entries));
    let running = switch(&old, entries);
    let lab = Lab::start(old, running, &traffic);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let images = [source, changed].map(|source| image(source).to_string());
    let images = images.each_ref().map(String::as_str);
    let (rate, all, gap) = runtime.block_on(change(&lab, [source, changed], images));
    let frames = lab.received();
    let lost = lab.stop();
    print!("{name:28} {:>7.1} {rate:>6.1} {lost:>5}", frames as f64 / 1e6);
    for changes in all {
        let mut times = changes.times;
        times.sort();
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        let shown = format!("{:.2} ({:.2})", ms(times[times.len() / 2]), ms(times[times.len() - 1]));
        print!(" {shown:>15} {:>5.1}", changes.least);
    }
    println!(" {:>11.2}", gap * 1e3);
    assert_eq!(lost, 0, "{name}: frames were lost");
}

/// What was measured of changes.
struct Changes {
    times: Vec<Duration>,
    /// The least rate after one, in Mpps.
    least: f64,
}

/// Changes to and fro; gives the rate before, the changes of each of [`KINDS`], and the longest time in which no frame left.
async fn change(lab: &Lab, sources: [&str; 2], images: [&str; 2]) -> (f64, [Changes; 3], f64) {
    let mut client = Client::primary(lab).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    let rate = rate(lab, Duration::from_millis(500)).await;
    let mut all = KINDS.map(|_| Changes { times: Vec::new(), least: f64::MAX });
    lab.seen.longest.store(0, Relaxed);
    for round in 0..KINDS.len() * ROUNDS {
        let (kind, next) = (round / ROUNDS, (round + 1) % 2);
        let request = match KINDS[kind] {
            Kind::Source => client.request(Action::ReconcileAndCommit, Some(sources[next])),
            Kind::Image => client.request(Action::ReconcileAndCommit, Some(images[next])),
            Kind::Saved => {
                let save = client.request(Action::VerifyAndSave, Some(sources[next]));
                client.calls.set_forwarding_pipeline_config(save).await.unwrap();
                client.request(Action::Commit, None)
            }
        };
        let mut request = Request::new(request);
        request.metadata_mut().insert(KEEP_KEY, "compatible".parse().unwrap());
        let start = Instant::now();
        let answer = client.calls.set_forwarding_pipeline_config(request).await.unwrap();
        let report = answer.metadata().get_bin(REPORT_KEY).unwrap().to_bytes().unwrap();
        let report: Report = serde_json::from_slice(&report).unwrap();
        assert!(report.dropped.is_empty(), "{report:?}");
        // All ports that packets leave by show it soon.
        while lab.seen.changed.lock().unwrap().len() < lab.outputs {
            assert!(start.elapsed() < Duration::from_secs(10), "the new program does not forward");
            tokio::time::sleep(Duration::from_micros(100)).await;
        }
        let changed = std::mem::take(&mut *lab.seen.changed.lock().unwrap());
        let changes = &mut all[kind];
        changes.times.push(changed.into_iter().min().unwrap().saturating_duration_since(start));
        // The better code of large programs comes meanwhile.
        changes.least = changes.least.min(self::rate(lab, AFTER).await);
    }
    (rate, all, lab.seen.longest.load(Relaxed) as f64 / 1e9)
}

/// Mpps for a time.
async fn rate(lab: &Lab, time: Duration) -> f64 {
    let (before, start) = (lab.received(), Instant::now());
    tokio::time::sleep(time).await;
    (lab.received() - before) as f64 / start.elapsed().as_secs_f64() / 1e6
}
