//! What controllers that misbehave, or work as fast as they can, cost the packets: the rate alternately without and with them, by
//! the CPU time of the worker, which has one processor; server and clients share another.
//!
//!     cargo bench -p millrace-bench --bench faults
//!
//! It ends with an error where the rate with a fault is below 95 % of the quiet one, memory grows, or a batch is left half
//! applied.
//!
//!     cargo bench -p millrace-bench --bench faults -- --seconds 1800
//!
//! is for peers that are hostile, all of them concurrently and for so long: of P4Runtime, of Thrift and of the metrics. A
//! controller goes on writing, and others come and go; how long they wait is told, and that nobody is kept out.

mod lab;
#[path = "lab/soak.rs"]
mod soak;

use lab::{Client, DEVICE, Lab, Traffic, compile, frames, next_election, programs, resident, switch};
use millrace_p4runtime_api::v1::*;
use std::cell::Cell;
use std::time::{Duration, Instant};

/// Pairs of rounds.
const ROUNDS: usize = 9;
const LENGTH: Duration = Duration::from_millis(400);
/// What the rate may fall to, in parts of the quiet one.
const LEAST: f64 = 0.95;
/// What memory may grow by, with that of the clients, in bytes.
const MOST_MEMORY: u64 = 256 << 20;
const BATCH: u32 = 1000;
const INVALID_PER_MS: usize = 10;

/// The objects of the program that requests name.
struct Ids {
    table: u32,
    action: u32,
}

fn main() {
    let read = |name: &str| std::fs::read_to_string(programs().join(name)).unwrap();
    let (source, entries, packets) = (read("router.p4"), read("router.entries"), read("router.stf"));
    let changed = source.replacen("hdr.ipv4.ttl = hdr.ipv4.ttl - 1;", "hdr.ipv4.ttl = hdr.ipv4.ttl - 2;", 1);
    let (old, new) = (compile(&source), compile(&changed));
    let traffic = Traffic::new(&frames(&packets), switch(&old, &entries), switch(&new, &entries));
    let running = switch(&old, &entries);
    let lab = Lab::start(old, running, &traffic);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let arguments: Vec<String> = std::env::args().collect();
    let seconds = arguments.iter().position(|one| one == "--seconds").and_then(|at| arguments.get(at + 1));
    let is_right = match seconds.map(|seconds| seconds.parse().expect("a number of seconds")) {
        Some(seconds) => runtime.block_on(soak::hostile(&lab, seconds)),
        None => runtime.block_on(measure(&lab)),
    };
    assert_eq!(lab.stop(), 0, "frames were lost");
    assert!(is_right, "see above");
}

async fn measure(lab: &Lab) -> bool {
    let mut client = Client::primary(lab).await;
    let ids = ids(&mut client).await;
    println!("{ROUNDS} pairs of rounds of {} ms; Mpps by the worker's CPU time, median", LENGTH.as_millis());
    println!("{:44} {:>7} {:>7} {:>6} {:>12} {:>8}", "", "quiet", "then", "ratio", "a second", "MiB");
    let mut is_right = true;
    let count = Cell::new(0u64);
    for name in [
        "10 000 invalid requests a second",
        "two controllers fight, one does not listen",
        "readers that take nothing",
        "clients that go in the middle of a batch",
        "a controller writes at full rate",
    ] {
        let (mut quiet, mut busy, mut seconds) = (Vec::new(), Vec::new(), 0.0);
        let memory = resident();
        count.set(0);
        for round in 0..ROUNDS {
            quiet.push(rate_of(lab, async { tokio::time::sleep(LENGTH).await }).await);
            let start = Instant::now();
            let fault = async {
                match name.as_bytes()[0] {
                    b'1' => flood(&client, &count).await,
                    b't' => fight(lab, &count).await,
                    b'r' => readers(lab, &count).await,
                    b'c' => killed(lab, &ids, &count).await,
                    _ => writes(&client, &ids, 200 + round as u8, &count).await,
                }
            };
            busy.push(rate_of(lab, async { drop(tokio::time::timeout(LENGTH, fault).await) }).await);
            seconds += start.elapsed().as_secs_f64();
            // Whoever fought for it gives it back.
            client = Client::primary(lab).await;
        }
        let median = |mut rates: Vec<f64>| {
            rates.sort_by(f64::total_cmp);
            rates[rates.len() / 2]
        };
        let ratios: Vec<f64> = quiet.iter().zip(&busy).map(|(quiet, busy)| busy / quiet).collect();
        let (ratio, grown) = (median(ratios), resident().saturating_sub(memory));
        println!(
            "{name:44} {:>7.1} {:>7.1} {ratio:>6.3} {:>12.0} {:>8.1}",
            median(quiet),
            median(busy),
            count.get() as f64 / seconds,
            grown as f64 / f64::from(1 << 20)
        );
        is_right &= ratio >= LEAST && grown <= MOST_MEMORY;
        is_right &= whole_batches(&mut client, &ids).await;
    }
    is_right
}

/// Millions of packets a second of the worker's CPU time, while something is done.
async fn rate_of(lab: &Lab, work: impl Future<Output = ()>) -> f64 {
    let (before, start) = (lab.received(), lab.worker_cpu());
    work.await;
    (lab.received() - before) as f64 / (lab.worker_cpu() - start).as_secs_f64() / 1e6
}

async fn ids(client: &mut Client) -> Ids {
    let request = GetForwardingPipelineConfigRequest { device_id: DEVICE, ..Default::default() };
    let answer = client.calls.get_forwarding_pipeline_config(request).await.unwrap().into_inner();
    let info = answer.config.unwrap().p4info.unwrap();
    let tables = info.tables.into_iter().filter_map(|table| table.preamble);
    let actions = info.actions.into_iter().filter_map(|action| action.preamble);
    Ids {
        table: tables.into_iter().find(|found| found.alias == "ipv4_lpm").unwrap().id,
        action: actions.into_iter().find(|found| found.alias == "set_nhop").unwrap().id,
    }
}

/// A batch of routes in a network of its own, 100.N.0.0/16.
fn batch(client: &Client, ids: &Ids, kind: update::Type, network: u8) -> WriteRequest {
    let route = |number: u32| {
        let address = ((100 << 24) | (u32::from(network) << 16) | number).to_be_bytes().to_vec();
        let lpm = field_match::Lpm { value: address.into(), prefix_len: 32 };
        let one = FieldMatch { field_id: 1, field_match_type: Some(field_match::FieldMatchType::Lpm(lpm)) };
        let params = vec![
            action::Param { param_id: 1, value: vec![2, 0, 0, 0, 0, 1].into() },
            action::Param { param_id: 2, value: vec![1].into() },
        ];
        let action = Action { action_id: ids.action, params };
        let entry = TableEntry {
            table_id: ids.table,
            r#match: vec![one],
            action: Some(TableAction { r#type: Some(table_action::Type::Action(action)) }),
            ..TableEntry::default()
        };
        Update {
            r#type: kind as i32,
            entity: Some(Entity { entity: Some(entity::Entity::TableEntry(entry)) }),
        }
    };
    WriteRequest {
        device_id: DEVICE,
        election_id: client.election_id,
        updates: (0..BATCH).map(route).collect(),
        ..WriteRequest::default()
    }
}

/// Writes to a table that there is not, as many a second as were announced.
async fn flood(client: &Client, count: &Cell<u64>) {
    let mut ticks = tokio::time::interval(Duration::from_millis(1));
    let mut calls = Vec::new();
    loop {
        ticks.tick().await;
        for _ in 0..INVALID_PER_MS {
            let entry = TableEntry { table_id: 1, ..TableEntry::default() };
            let entity = Some(Entity { entity: Some(entity::Entity::TableEntry(entry)) });
            let request = WriteRequest {
                device_id: DEVICE,
                election_id: client.election_id,
                updates: vec![Update { r#type: update::Type::Insert as i32, entity }],
                ..WriteRequest::default()
            };
            let mut writer = client.calls.clone();
            calls.push(tokio::spawn(async move { writer.write(request).await.is_err() }));
        }
        for call in calls.drain(..) {
            assert!(call.await.unwrap(), "it is refused");
            count.set(count.get() + 1);
        }
    }
}

/// Two clients that become primary alternately, before a third one whose stream nobody reads.
async fn fight(lab: &Lab, count: &Cell<u64>) {
    let _stuck = Client::primary(lab).await;
    let mut fighters = [Client::primary(lab).await, Client::primary(lab).await];
    loop {
        for fighter in &mut fighters {
            fighter.election_id = Some(next_election());
            fighter.arbitrate().await;
            // It hears of the other one too.
            while !is_primary(&fighter.hear.message().await.unwrap().expect("a stream"), fighter.election_id)
            {
            }
            count.set(count.get() + 1);
        }
    }
}

/// Whether a message says that this is the primary's.
fn is_primary(message: &StreamMessageResponse, election_id: Option<Uint128>) -> bool {
    use stream_message_response::Update;
    matches!(&message.update, Some(Update::Arbitration(update)) if update.election_id == election_id)
}

/// Clients that read all there is, and take none of it.
async fn readers(lab: &Lab, count: &Cell<u64>) {
    let mut held = Vec::new();
    loop {
        let mut client = Client::primary(lab).await;
        let entity = Entity { entity: Some(entity::Entity::TableEntry(TableEntry::default())) };
        let request = ReadRequest { device_id: DEVICE, entities: vec![entity; 64], ..ReadRequest::default() };
        held.push(client.calls.read(request).await.unwrap());
        count.set(count.get() + 1);
        if held.len() == 64 {
            std::future::pending::<()>().await;
        }
    }
}

/// Clients that write, and go before there is an answer.
async fn killed(lab: &Lab, ids: &Ids, count: &Cell<u64>) {
    loop {
        let client = Client::primary(lab).await;
        let network = (count.get() % 100) as u8;
        let kind =
            if (count.get() / 100).is_multiple_of(2) { update::Type::Insert } else { update::Type::Delete };
        let mut calls = client.calls.clone();
        let request = batch(&client, ids, kind, network);
        let wait = Duration::from_micros(500 + count.get() % 20 * 200);
        let _ = tokio::time::timeout(wait, calls.write(request)).await;
        count.set(count.get() + 1);
    }
}

/// Batches, one after the other. The last one may stay, so each round has a network of its own.
async fn writes(client: &Client, ids: &Ids, network: u8, count: &Cell<u64>) {
    let mut calls = client.calls.clone();
    loop {
        for kind in [update::Type::Insert, update::Type::Delete] {
            calls.write(batch(client, ids, kind, network)).await.unwrap();
            count.set(count.get() + u64::from(BATCH));
        }
    }
}

/// Whether every batch is there with all its entries or none. Takes them away.
async fn whole_batches(client: &mut Client, ids: &Ids) -> bool {
    let entry = TableEntry { table_id: ids.table, ..TableEntry::default() };
    let entity = Entity { entity: Some(entity::Entity::TableEntry(entry)) };
    let request = ReadRequest { device_id: DEVICE, entities: vec![entity], ..ReadRequest::default() };
    let mut answers = client.calls.read(request).await.unwrap().into_inner();
    let mut networks = [0; 256];
    while let Some(answer) = answers.message().await.unwrap() {
        for entity in answer.entities {
            let Some(entity::Entity::TableEntry(entry)) = entity.entity else { continue };
            // The default entry matches nothing.
            let Some(field_match::FieldMatchType::Lpm(lpm)) =
                entry.r#match.first().and_then(|one| one.field_match_type.as_ref())
            else {
                continue;
            };
            if lpm.value.len() == 4 && lpm.value[0] == 100 {
                networks[usize::from(lpm.value[1])] += 1;
            }
        }
    }
    let is_whole = networks.iter().all(|count| [0, BATCH].contains(count));
    if !is_whole {
        println!("half a batch: {networks:?}");
    }
    for network in (0..=255u8).filter(|network| networks[usize::from(*network)] > 0) {
        let request = batch(client, ids, update::Type::Delete, network);
        client.calls.write(request).await.unwrap();
    }
    is_whole
}
