//! Batches: their atomicity, and what is said of each update.

use crate::common::{Client, Device, Names, errors, update};
use millrace_p4runtime_api::v1::entity::Entity;
use millrace_p4runtime_api::v1::write_request::Atomicity;
use millrace_p4runtime_api::v1::*;
use tonic::Code;

async fn everything(client: &mut Client) -> Vec<Entity> {
    let all = vec![
        Entity::TableEntry(TableEntry::default()),
        Entity::TableEntry(TableEntry {
            table_id: client.table("route"),
            is_default_action: true,
            ..Default::default()
        }),
        Entity::ActionProfileMember(ActionProfileMember::default()),
        Entity::ActionProfileGroup(ActionProfileGroup::default()),
        Entity::CounterEntry(CounterEntry::default()),
        Entity::MeterEntry(MeterEntry::default()),
        Entity::RegisterEntry(RegisterEntry::default()),
        Entity::ValueSetEntry(ValueSetEntry::default()),
        Entity::DigestEntry(DigestEntry::default()),
        Entity::PacketReplicationEngineEntry(PacketReplicationEngineEntry {
            r#type: Some(packet_replication_engine_entry::Type::MulticastGroupEntry(Default::default())),
        }),
        Entity::PacketReplicationEngineEntry(PacketReplicationEngineEntry {
            r#type: Some(packet_replication_engine_entry::Type::CloneSessionEntry(Default::default())),
        }),
    ];
    let mut found = client.read_all(all).await.unwrap();
    found.sort_by_key(|entity| format!("{entity:?}"));
    found
}

/// Updates of every kind over what [`prepare`] made.
fn updates(client: &Names) -> Vec<Update> {
    use update::Type::{Delete, Insert, Modify};
    let metadata = |entry: TableEntry| TableEntry { metadata: vec![9].into(), ..entry };
    let index = Some(Index { index: 3 });
    let id = |list: &[Option<millrace_p4runtime_api::config::Preamble>], name| {
        crate::common::id(list.iter(), name)
    };
    let info = &client.info;
    let counters: Vec<_> = info.counters.iter().map(|known| known.preamble.clone()).collect();
    let meters: Vec<_> = info.meters.iter().map(|known| known.preamble.clone()).collect();
    let registers: Vec<_> = info.registers.iter().map(|known| known.preamble.clone()).collect();
    let ecmp = client.profile("ecmp_members");
    let set = action_set(client, &[1, 2]);
    let ecmp_entry = TableEntry {
        table_id: client.table("ecmp"),
        r#match: vec![crate::common::lpm(1, &[10, 9, 0, 0], 16)],
        action: Some(TableAction { r#type: Some(table_action::Type::ActionProfileActionSet(set)) }),
        ..Default::default()
    };
    let nexthops = client.profile("nexthops");
    let multicast = |id, port: u8| PacketReplicationEngineEntry {
        r#type: Some(packet_replication_engine_entry::Type::MulticastGroupEntry(MulticastGroupEntry {
            multicast_group_id: id,
            replicas: vec![crate::replication::replica(port, 1)],
            metadata: vec![1].into(),
        })),
    };
    let _ = ecmp;
    vec![
        update(Insert, Entity::TableEntry(metadata(client.route([10, 5, 0, 0], 16, 1)))),
        update(Modify, Entity::TableEntry(metadata(client.route([10, 1, 0, 0], 16, 7)))),
        update(Delete, Entity::TableEntry(client.route([10, 2, 0, 0], 16, 1))),
        update(
            Modify,
            Entity::TableEntry(TableEntry {
                table_id: client.table("route"),
                is_default_action: true,
                action: client.run("drop", &[]),
                ..Default::default()
            }),
        ),
        update(Insert, Entity::TableEntry(ecmp_entry)),
        update(
            Modify,
            Entity::ActionProfileMember(ActionProfileMember {
                action_profile_id: nexthops,
                member_id: 1,
                action: Some(client.call("forward", &[&[9]])),
            }),
        ),
        update(
            Insert,
            Entity::ActionProfileMember(ActionProfileMember {
                action_profile_id: nexthops,
                member_id: 2,
                action: Some(client.call("drop", &[])),
            }),
        ),
        update(
            Modify,
            Entity::CounterEntry(CounterEntry {
                counter_id: id(&counters, "ports"),
                index,
                data: Some(CounterData { byte_count: 1, packet_count: 2 }),
            }),
        ),
        update(
            Modify,
            Entity::MeterEntry(MeterEntry {
                meter_id: id(&meters, "limits"),
                index,
                config: Some(MeterConfig { cir: 1, cburst: 1, pir: 1, pburst: 1, eburst: 0 }),
                counter_data: None,
            }),
        ),
        update(
            Modify,
            Entity::RegisterEntry(RegisterEntry {
                register_id: id(&registers, "last"),
                index: None,
                data: Some(P4Data { data: Some(p4_data::Data::Bitstring(vec![8].into())) }),
            }),
        ),
        update(
            Modify,
            Entity::ValueSetEntry(ValueSetEntry {
                value_set_id: info.value_sets[0].preamble.as_ref().unwrap().id,
                members: vec![ValueSetMember { r#match: vec![crate::common::exact(1, &[0x12, 0x34])] }],
            }),
        ),
        update(
            Insert,
            Entity::DigestEntry(DigestEntry {
                digest_id: info.digests[0].preamble.as_ref().unwrap().id,
                config: Some(Default::default()),
            }),
        ),
        update(Insert, Entity::PacketReplicationEngineEntry(multicast(2, 2))),
        update(Modify, Entity::PacketReplicationEngineEntry(multicast(1, 2))),
        update(
            Insert,
            Entity::PacketReplicationEngineEntry(PacketReplicationEngineEntry {
                r#type: Some(packet_replication_engine_entry::Type::CloneSessionEntry(CloneSessionEntry {
                    session_id: 5,
                    replicas: vec![crate::replication::replica(2, 0)],
                    ..Default::default()
                })),
            }),
        ),
    ]
}

pub(crate) fn action_set(client: &Names, ports: &[u8]) -> ActionProfileActionSet {
    let actions = ports.iter().map(|port| ActionProfileAction {
        action: Some(client.call("forward", &[&[*port]])),
        weight: i32::from(*port),
        watch_kind: Some(action_profile_action::WatchKind::WatchPort(vec![*port].into())),
    });
    ActionProfileActionSet { action_profile_actions: actions.collect(), ..Default::default() }
}

async fn prepare(client: &mut Client) {
    for (address, port) in [([10, 1, 0, 0], 1), ([10, 2, 0, 0], 1)] {
        let route = TableEntry { metadata: vec![port].into(), ..client.route(address, 16, port) };
        client.insert(Entity::TableEntry(route)).await.unwrap();
    }
    let member = ActionProfileMember {
        action_profile_id: client.profile("nexthops"),
        member_id: 1,
        action: Some(client.call("forward", &[&[1]])),
    };
    client.insert(Entity::ActionProfileMember(member)).await.unwrap();
    let group = MulticastGroupEntry {
        multicast_group_id: 1,
        replicas: vec![crate::replication::replica(1, 1)],
        metadata: Default::default(),
    };
    let group = packet_replication_engine_entry::Type::MulticastGroupEntry(group);
    let entry = PacketReplicationEngineEntry { r#type: Some(group) };
    client.insert(Entity::PacketReplicationEngineEntry(entry)).await.unwrap();
}

#[tokio::test]
async fn a_batch_that_fails_leaves_everything_as_it_was() {
    let device = Device::start();
    let mut client = device.ready().await;
    prepare(&mut client).await;
    let before = everything(&mut client).await;
    let wrong = update(update::Type::Delete, Entity::TableEntry(client.route([99, 0, 0, 0], 8, 1)));
    for atomicity in [Atomicity::RollbackOnError, Atomicity::DataplaneAtomic] {
        let mut batch = updates(&client);
        let count = batch.len();
        batch.push(wrong.clone());
        batch.extend(updates(&client));
        let status = client.write_with(atomicity, batch).await.unwrap_err();
        let errors = errors(&status);
        assert_eq!(errors.len(), 2 * count + 1);
        let codes: Vec<Code> = errors.iter().map(|error| error.code).collect();
        assert_eq!(codes[count], Code::NotFound);
        assert!(
            codes.iter().enumerate().all(|(at, code)| at == count || *code == Code::Aborted),
            "{codes:?}"
        );
        assert_eq!(everything(&mut client).await, before, "{atomicity:?}");
    }
    // The same updates without the wrong one.
    client.write_with(Atomicity::DataplaneAtomic, updates(&client)).await.unwrap();
    assert_ne!(everything(&mut client).await, before);
}

#[tokio::test]
async fn all_atomicities_do_the_same_when_nothing_fails() {
    let mut results = Vec::new();
    for atomicity in [Atomicity::ContinueOnError, Atomicity::RollbackOnError, Atomicity::DataplaneAtomic] {
        let device = Device::start();
        let mut client = device.ready().await;
        prepare(&mut client).await;
        client.write_with(atomicity, updates(&client)).await.unwrap();
        results.push(everything(&mut client).await);
    }
    assert_eq!(results[0], results[1]);
    assert_eq!(results[0], results[2]);
}

#[tokio::test]
async fn by_default_each_update_is_tried() {
    let device = Device::start();
    let mut client = device.ready().await;
    let route = |number: u8| {
        update(update::Type::Insert, Entity::TableEntry(client.route([10, number, 0, 0], 16, 1)))
    };
    let batch = vec![route(1), route(1), route(2)];
    let status = client.write_with(Atomicity::ContinueOnError, batch).await.unwrap_err();
    let codes: Vec<Code> = errors(&status).iter().map(|error| error.code).collect();
    assert_eq!(codes, [Code::Ok, Code::AlreadyExists, Code::Ok]);
    let wildcard = TableEntry { table_id: client.table("route"), ..Default::default() };
    assert_eq!(client.read(Entity::TableEntry(wildcard)).await.len(), 2);
}

#[tokio::test]
async fn a_batch_whose_client_goes_is_done_whole() {
    let device = Device::start();
    let mut client = device.ready().await;
    let batch: Vec<Update> = (0..4000u32)
        .map(|number| {
            let [_, _, high, low] = number.to_be_bytes();
            update(update::Type::Insert, Entity::TableEntry(client.route([10, high, low, 0], 24, 1)))
        })
        .collect();
    let request = WriteRequest {
        device_id: crate::common::DEVICE,
        election_id: client.election,
        updates: batch,
        ..Default::default()
    };
    let mut calls = client.calls.clone();
    let call = tokio::spawn(async move { drop(calls.write(request).await) });
    let wildcard = Entity::TableEntry(TableEntry { table_id: client.table("route"), ..Default::default() });
    // As soon as something of it is there, the caller goes.
    while client.read(wildcard.clone()).await.is_empty() {
        tokio::task::yield_now().await;
    }
    call.abort();
    let count = client.read(wildcard).await.len();
    assert_eq!(count, 4000, "a read sees a batch whole or not at all");
}

#[tokio::test]
async fn errors_that_do_not_fit_in_metadata_are_told_in_one() {
    use tonic::transport::Endpoint;
    let device = Device::start();
    let mut client = device.ready().await;
    let routes: Vec<Update> = (0..1000u32)
        .map(|n| {
            let [_, _, high, low] = n.to_be_bytes();
            update(update::Type::Insert, Entity::TableEntry(client.route([10, high, low, 0], 24, 1)))
        })
        .collect();
    let by_default = write_request::Atomicity::ContinueOnError;
    client.write_with(by_default, routes[..990].to_vec()).await.unwrap();
    let status = client.write_with(by_default, routes.clone()).await.unwrap_err();
    assert_eq!((status.code(), status.details().len()), (Code::ResourceExhausted, 0));
    let said = "Write failure. 990 of 1000 refused (1-990), and their errors do not fit in 8192 bytes of metadata. \
                The first is 1, AlreadyExists: ";
    assert!(status.message().starts_with(said), "{}", status.message());
    // The connection lives, the others were done, and fewer errors fit.
    let status = client.write_with(by_default, routes[950..].to_vec()).await.unwrap_err();
    assert_eq!(errors(&status).len(), 50);
    assert!(
        errors(&status).iter().all(|error| error.code == Code::AlreadyExists && !error.message.is_empty())
    );
    let status = client.write_with(by_default, routes[880..].to_vec()).await.unwrap_err();
    assert_eq!(errors(&status).len(), 120);
    assert!(errors(&status)[0].message != errors(&status)[119].message, "the last has no room for a message");

    // A client that takes more is told all.
    let endpoint = Endpoint::from_shared(device.address()).unwrap().http2_max_header_list_size(250_000);
    let mut large = Client::over(endpoint.connect().await.unwrap()).await;
    large.arbitrate(Some(2)).await.unwrap();
    let status = large.write_with(by_default, routes).await.unwrap_err();
    assert_eq!(errors(&status).len(), 1000);
    assert!(errors(&status).iter().all(|error| error.code == Code::AlreadyExists));
}
