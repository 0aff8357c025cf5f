//! Table entries: what is written comes back, what does not fit is refused with the code of the specification.

use crate::common::{Client, Device, election, exact, frame, lpm, ternary};
use millrace_p4runtime_api::v1::entity::Entity;
use millrace_p4runtime_api::v1::*;
use tonic::Code;

fn wildcard(table_id: u32) -> TableEntry {
    TableEntry { table_id, ..TableEntry::default() }
}

#[tokio::test]
async fn entries_come_back_as_they_were_written() {
    let device = Device::start();
    let mut client = device.ready().await;
    let route = TableEntry { metadata: vec![7; 9].into(), ..client.route([10, 1, 2, 0], 24, 2) };
    client.insert(Entity::TableEntry(route.clone())).await.unwrap();
    // An entry that matches everything has no match field at all.
    let default_route =
        TableEntry { r#match: vec![], action: client.run("to_cpu", &[&[3]]), ..route.clone() };
    client.insert(Entity::TableEntry(default_route.clone())).await.unwrap();
    let mut all = client.read(Entity::TableEntry(wildcard(route.table_id))).await;
    all.sort_by_key(|entity| format!("{entity:?}").len());
    assert_eq!(all, [Entity::TableEntry(default_route.clone()), Entity::TableEntry(route.clone())]);

    // The key finds the one entry, filters find those that fit.
    let by_key = TableEntry { r#match: route.r#match.clone(), ..wildcard(route.table_id) };
    assert_eq!(client.read(Entity::TableEntry(by_key.clone())).await, [Entity::TableEntry(route.clone())]);
    let id = client.action("to_cpu");
    let action = Action { action_id: id, params: vec![] };
    let by_action = TableEntry {
        action: Some(TableAction { r#type: Some(table_action::Type::Action(action)) }),
        ..wildcard(route.table_id)
    };
    assert_eq!(client.read(Entity::TableEntry(by_action)).await, [Entity::TableEntry(default_route)]);
    let by_metadata = TableEntry { metadata: vec![7; 8].into(), ..wildcard(route.table_id) };
    assert_eq!(client.read(Entity::TableEntry(by_metadata)).await, []);

    // All tables: the entries of the const table too.
    let all = client.read(Entity::TableEntry(wildcard(0))).await;
    assert_eq!(all.len(), 4);
    let is_const = |entity: &&Entity| matches!(entity, Entity::TableEntry(entry) if entry.is_const);
    assert_eq!(all.iter().filter(is_const).count(), 2);

    let modified = TableEntry { metadata: vec![1].into(), action: client.run("drop", &[]), ..route.clone() };
    client.modify(Entity::TableEntry(modified.clone())).await.unwrap();
    assert_eq!(client.read(Entity::TableEntry(by_key.clone())).await, [Entity::TableEntry(modified)]);
    client.delete(Entity::TableEntry(TableEntry { action: None, ..route.clone() })).await.unwrap();
    assert_eq!(client.read(Entity::TableEntry(by_key)).await, []);
    let again = client.delete(Entity::TableEntry(route.clone())).await.unwrap_err();
    assert_eq!(again.code, Code::NotFound);
    assert_eq!(client.modify(Entity::TableEntry(route)).await.unwrap_err().code, Code::NotFound);
}

#[tokio::test]
async fn every_match_kind_comes_back() {
    let device = Device::start();
    let mut client = device.ready().await;
    let range = |low: u8, high: u8| FieldMatch {
        field_id: 2,
        field_match_type: Some(field_match::FieldMatchType::Range(field_match::Range {
            low: vec![low].into(),
            high: vec![high].into(),
        })),
    };
    let optional = |value: &[u8]| FieldMatch {
        field_id: 3,
        field_match_type: Some(field_match::FieldMatchType::Optional(field_match::Optional {
            value: value.to_vec().into(),
        })),
    };
    let rule = TableEntry {
        table_id: client.table("acl"),
        r#match: vec![ternary(1, &[10, 0, 0, 0], &[255, 0, 0, 0]), range(6, 17), optional(&[8, 0])],
        action: client.run("drop", &[]),
        priority: 10,
        ..TableEntry::default()
    };
    client.insert(Entity::TableEntry(rule.clone())).await.unwrap();
    let open = TableEntry { r#match: vec![], priority: 1, ..rule.clone() };
    client.insert(Entity::TableEntry(open.clone())).await.unwrap();
    let by_priority = TableEntry { priority: 10, ..wildcard(rule.table_id) };
    assert_eq!(client.read(Entity::TableEntry(by_priority)).await, [Entity::TableEntry(rule.clone())]);
    let by_match = TableEntry { r#match: rule.r#match.clone(), ..wildcard(rule.table_id) };
    assert_eq!(client.read(Entity::TableEntry(by_match)).await, [Entity::TableEntry(rule.clone())]);

    for (wrong, why) in [
        (TableEntry { priority: 0, ..rule.clone() }, "priority"),
        (TableEntry { priority: -1, ..rule.clone() }, "negative"),
        (TableEntry { r#match: vec![ternary(1, &[1], &[0])], ..rule.clone() }, "mask of 0"),
        (TableEntry { r#match: vec![ternary(1, &[3], &[1])], ..rule.clone() }, "outside of the mask"),
        (TableEntry { r#match: vec![range(7, 6)], ..rule.clone() }, "above the high end"),
        (TableEntry { r#match: vec![range(0, 255)], ..rule.clone() }, "all values"),
        (TableEntry { r#match: vec![optional(&[1, 0, 0])], ..rule.clone() }, "the number takes 17 bits"),
        (TableEntry { r#match: vec![optional(&[])], ..rule.clone() }, "empty"),
        (TableEntry { r#match: vec![range(1, 2), range(1, 2)], ..rule.clone() }, "twice"),
        (TableEntry { r#match: vec![exact(1, &[1])], ..rule.clone() }, "matched as ternary"),
        (TableEntry { r#match: vec![exact(9, &[1])], ..rule.clone() }, "no match field with id 9"),
        (
            TableEntry { r#match: vec![FieldMatch { field_id: 1, field_match_type: None }], ..rule.clone() },
            "no value",
        ),
    ] {
        let refused = client.insert(Entity::TableEntry(wrong)).await.unwrap_err();
        assert_eq!(refused.code, Code::InvalidArgument, "{refused:?}");
        assert!(refused.message.contains(why), "{why}: {refused:?}");
    }
    assert_eq!(client.read(Entity::TableEntry(wildcard(rule.table_id))).await.len(), 2);
}

#[tokio::test]
async fn what_does_not_fit_is_refused_with_its_code() {
    let device = Device::start();
    let mut client = device.ready().await;
    let route = client.route([10, 0, 0, 0], 8, 1);
    client.insert(Entity::TableEntry(route.clone())).await.unwrap();
    let with = |entry: TableEntry| Entity::TableEntry(entry);
    let param = |name: &str, values: &[&[u8]]| client.run(name, values);
    let fixed = |kind: u8| TableEntry {
        table_id: client.table("fixed"),
        r#match: vec![exact(1, &[0x86, kind])],
        ..TableEntry::default()
    };
    use update::Type::{Delete, Insert, Modify};
    let cases = [
        (Insert, with(route.clone()), Code::AlreadyExists, "already"),
        (
            Insert,
            with(TableEntry { table_id: 0, ..route.clone() }),
            Code::InvalidArgument,
            "id of the table is missing",
        ),
        (Insert, with(TableEntry { table_id: 0x02ff_ffff, ..route.clone() }), Code::NotFound, "no table"),
        (
            Insert,
            with(TableEntry { action: None, ..route.clone() }),
            Code::InvalidArgument,
            "action is missing",
        ),
        (
            Insert,
            with(TableEntry { r#match: vec![lpm(1, &[10, 0, 0, 1], 8)], ..route.clone() }),
            Code::InvalidArgument,
            "after the prefix",
        ),
        (
            Insert,
            with(TableEntry { r#match: vec![lpm(1, &[0], 0)], ..route.clone() }),
            Code::InvalidArgument,
            "left out",
        ),
        (
            Insert,
            with(TableEntry { r#match: vec![lpm(1, &[1], 33)], ..route.clone() }),
            Code::InvalidArgument,
            "1 to 32 bits",
        ),
        (Insert, with(TableEntry { priority: 3, ..route.clone() }), Code::InvalidArgument, "no priority"),
        (Insert, with(TableEntry { is_const: true, ..route.clone() }), Code::InvalidArgument, "is_const"),
        (
            Insert,
            with(TableEntry { idle_timeout_ns: 5, ..route.clone() }),
            Code::InvalidArgument,
            "no idle timeouts",
        ),
        (
            Insert,
            with(TableEntry { meter_config: Some(MeterConfig::default()), ..route.clone() }),
            Code::InvalidArgument,
            "no direct meter",
        ),
        (
            Insert,
            with(TableEntry { meter_counter_data: Some(MeterCounterData::default()), ..route.clone() }),
            Code::InvalidArgument,
            "no direct meter",
        ),
        (
            Modify,
            with(TableEntry { action: param("forward", &[&[2, 0]]), ..route.clone() }),
            Code::InvalidArgument,
            "`port`: the number takes 10 bits",
        ),
        (
            Modify,
            with(TableEntry { action: param("forward", &[]), ..route.clone() }),
            Code::InvalidArgument,
            "missing",
        ),
        (
            Modify,
            with(TableEntry { action: param("forward", &[&[1], &[1]]), ..route.clone() }),
            Code::InvalidArgument,
            "1 parameter",
        ),
        (
            Modify,
            with(TableEntry { action: param("learn", &[]), ..route.clone() }),
            Code::InvalidArgument,
            "no action with id",
        ),
        (
            Modify,
            with(TableEntry { action: param("NoAction", &[]), ..route.clone() }),
            Code::PermissionDenied,
            "default action only",
        ),
        (
            Modify,
            with(TableEntry {
                action: Some(TableAction { r#type: Some(table_action::Type::ActionProfileMemberId(1)) }),
                ..route.clone()
            }),
            Code::InvalidArgument,
            "no action profile",
        ),
        (Delete, with(TableEntry { is_const: true, ..route.clone() }), Code::InvalidArgument, "is_const"),
        (Delete, with(fixed(0xdd)), Code::PermissionDenied, "const"),
        (
            Insert,
            with(TableEntry { action: param("drop", &[]), ..fixed(1) }),
            Code::PermissionDenied,
            "const",
        ),
        (
            Modify,
            with(TableEntry { action: param("drop", &[]), ..fixed(0xdd) }),
            Code::PermissionDenied,
            "const",
        ),
        (
            Insert,
            Entity::ExternEntry(ExternEntry { extern_type_id: 0x81, ..Default::default() }),
            Code::NotFound,
            "extern",
        ),
    ];
    for (kind, entity, code, why) in cases {
        let refused = client.write(kind, entity).await.unwrap_err();
        assert_eq!(refused.code, code, "{refused:?}");
        assert!(refused.message.contains(why), "{why}: {refused:?}");
    }
    let missing = Update { r#type: 0, entity: None };
    let status = client.write_with(Default::default(), vec![missing]).await.unwrap_err();
    assert_eq!(crate::common::errors(&status)[0].code, Code::InvalidArgument);
    assert_eq!(client.read(Entity::TableEntry(wildcard(route.table_id))).await, [Entity::TableEntry(route)]);
}

#[tokio::test]
async fn a_full_table_is_exhausted() {
    let device = Device::start();
    let mut client = device.ready().await;
    let entry = |number: u32| TableEntry {
        table_id: client.table("acl"),
        priority: 1,
        r#match: vec![ternary(1, &number.to_be_bytes(), &[255; 4])],
        action: client.run("drop", &[]),
        ..TableEntry::default()
    };
    let updates: Vec<Update> = (0..130)
        .map(|number| crate::common::update(update::Type::Insert, Entity::TableEntry(entry(number))))
        .collect();
    let status = client.write_with(Default::default(), updates).await.unwrap_err();
    let errors = crate::common::errors(&status);
    let refused: Vec<usize> = (0..130).filter(|at| errors[*at].code != Code::Ok).collect();
    assert_eq!(refused, [128, 129]);
    assert_eq!(errors[128].code, Code::ResourceExhausted);
}

#[tokio::test]
async fn the_default_entry_is_modified_and_reset() {
    let device = Device::start();
    let mut client = device.ready().await;
    let table_id = client.table("route");
    let default = TableEntry { is_default_action: true, ..wildcard(table_id) };
    let flood = TableEntry { action: client.run("flood", &[&[1]]), ..default.clone() };
    assert_eq!(client.modify(Entity::TableEntry(flood)).await.unwrap_err().code, Code::PermissionDenied);
    let drop = TableEntry { action: client.run("drop", &[]), metadata: vec![5].into(), ..default.clone() };
    for kind in [update::Type::Insert, update::Type::Delete] {
        let refused = client.write(kind, Entity::TableEntry(drop.clone())).await.unwrap_err();
        assert_eq!(refused.code, Code::InvalidArgument);
    }
    client.modify(Entity::TableEntry(drop.clone())).await.unwrap();
    assert_eq!(client.read(Entity::TableEntry(default.clone())).await, [Entity::TableEntry(drop)]);
    // Filters leave it out as they do others, and it has no match, no priority and no timeout.
    for filter in [
        TableEntry { metadata: vec![6].into(), ..default.clone() },
        TableEntry { action: client.run("to_cpu", &[]), ..default.clone() },
    ] {
        assert_eq!(client.read(Entity::TableEntry(filter)).await, []);
    }
    for wrong in [
        TableEntry { priority: 1, ..default.clone() },
        TableEntry { r#match: vec![lpm(1, &[10, 0, 0, 0], 8)], ..default.clone() },
        TableEntry { time_since_last_hit: Some(Default::default()), ..default.clone() },
    ] {
        let counter = DirectCounterEntry { table_entry: Some(wrong.clone()), ..Default::default() };
        for entity in [Entity::TableEntry(wrong), Entity::DirectCounterEntry(counter)] {
            let status = client.read_all(vec![entity]).await.unwrap_err();
            assert_eq!(crate::common::errors(&status)[0].code, Code::InvalidArgument);
        }
    }
    client.modify(Entity::TableEntry(default.clone())).await.unwrap();
    let reset = TableEntry { action: client.run("NoAction", &[]), ..default.clone() };
    assert_eq!(client.read(Entity::TableEntry(default.clone())).await, [Entity::TableEntry(reset)]);
    let fixed = TableEntry { table_id: client.table("fixed"), action: client.run("drop", &[]), ..default };
    assert_eq!(client.modify(Entity::TableEntry(fixed)).await.unwrap_err().code, Code::PermissionDenied);
}

#[tokio::test]
async fn direct_counters_and_meters_go_with_their_entries() {
    let device = Device::start();
    let mut client = device.ready().await;
    let counted = |packets, bytes| Some(CounterData { packet_count: packets, byte_count: bytes });
    let route = TableEntry { counter_data: counted(5, 500), ..client.route([10, 1, 0, 0], 16, 2) };
    client.insert(Entity::TableEntry(route.clone())).await.unwrap();
    device.ports[0].send(frame(1, [10, 1, 0, 1])).unwrap();
    let key = TableEntry { r#match: route.r#match.clone(), ..wildcard(route.table_id) };
    let counter =
        |data| Entity::DirectCounterEntry(DirectCounterEntry { table_entry: Some(key.clone()), data });
    let mut read = client.read(counter(None)).await;
    for _ in 0..200 {
        if read == [counter(counted(6, 560))] {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        read = client.read(counter(None)).await;
    }
    assert_eq!(read, [counter(counted(6, 560))]);
    client.modify(counter(counted(1, 1))).await.unwrap();
    client.modify(counter(None)).await.unwrap();
    let asked = TableEntry { counter_data: counted(0, 0), ..key.clone() };
    let read = client.read(Entity::TableEntry(asked)).await;
    assert_eq!(read, [Entity::TableEntry(TableEntry { counter_data: counted(1, 1), ..route.clone() })]);
    let all = Entity::DirectCounterEntry(DirectCounterEntry::default());
    assert_eq!(client.read(all).await, [counter(counted(1, 1))]);
    assert_eq!(client.insert(counter(counted(1, 1))).await.unwrap_err().code, Code::InvalidArgument);

    let config = MeterConfig { cir: 10, cburst: 20, pir: 30, pburst: 40, eburst: 0 };
    let rule = TableEntry {
        table_id: client.table("acl"),
        priority: 1,
        action: client.run("NoAction", &[]),
        meter_config: Some(config),
        ..TableEntry::default()
    };
    client.insert(Entity::TableEntry(rule.clone())).await.unwrap();
    let key = TableEntry { priority: 1, ..wildcard(rule.table_id) };
    let meter = |config| {
        Entity::DirectMeterEntry(DirectMeterEntry {
            table_entry: Some(key.clone()),
            config,
            counter_data: None,
        })
    };
    // The priority tells which of the entries that match anything is meant; all of them without one.
    client.insert(Entity::TableEntry(TableEntry { priority: 2, ..rule.clone() })).await.unwrap();
    assert_eq!(client.read(meter(None)).await, [meter(Some(config))]);
    let of = |priority| {
        let entry = TableEntry { priority, ..wildcard(rule.table_id) };
        Entity::DirectMeterEntry(DirectMeterEntry { table_entry: Some(entry), ..Default::default() })
    };
    assert_eq!(client.read(of(0)).await.len(), 2);
    assert_eq!(client.read(of(3)).await, []);
    for wrong in [
        MeterConfig { eburst: 1, ..config },
        MeterConfig { cir: -1, ..config },
        MeterConfig { pir: 9, ..config },
    ] {
        assert_eq!(client.modify(meter(Some(wrong))).await.unwrap_err().code, Code::InvalidArgument);
    }
    client.modify(meter(None)).await.unwrap();
    assert_eq!(client.read(meter(None)).await, [meter(None)]);
}

#[tokio::test]
async fn reads_of_many_entries_come_in_bounded_messages_and_stop_for_nobody() {
    let device = Device::start();
    let mut client = device.ready().await;
    let updates: Vec<Update> = (0..2000u32)
        .map(|number| {
            let [_, _, high, low] = number.to_be_bytes();
            let entry = client.route([10, high, low, 0], 24, 1);
            crate::common::update(update::Type::Insert, Entity::TableEntry(entry))
        })
        .collect();
    client.write_with(Default::default(), updates).await.unwrap();
    let request = ReadRequest {
        device_id: crate::common::DEVICE,
        entities: vec![Entity_ { entity: Some(Entity::TableEntry(wildcard(client.table("route")))) }],
        ..Default::default()
    };
    let mut answers = client.calls.read(request.clone()).await.unwrap().into_inner();
    let mut sizes = Vec::new();
    while let Some(answer) = answers.message().await.unwrap() {
        sizes.push(answer.entities.len());
    }
    assert_eq!(sizes.iter().sum::<usize>(), 2000);
    assert!(sizes.iter().all(|size| *size <= 256), "{sizes:?}");

    // A wrong request among others is told of after their answers.
    let wrong = TableEntry { table_id: 0x02ff_ffff, ..TableEntry::default() };
    let both = vec![Entity::TableEntry(wrong), Entity::TableEntry(wildcard(client.table("fixed")))];
    let status = client.read_all(both).await.unwrap_err();
    let errors = crate::common::errors(&status);
    assert_eq!((errors[0].code, errors[1].code), (Code::NotFound, Code::Ok));
    let empty =
        client.calls.read(ReadRequest { entities: vec![Default::default()], ..request.clone() }).await;
    let status = empty.unwrap().into_inner().message().await.unwrap_err();
    assert_eq!(crate::common::errors(&status)[0].code, Code::InvalidArgument);
    let elsewhere = ReadRequest { device_id: 99, ..request };
    assert_eq!(client.calls.read(elsewhere).await.unwrap_err().code(), Code::NotFound);
}

use millrace_p4runtime_api::v1::Entity as Entity_;

#[tokio::test]
async fn tables_may_belong_to_a_role() {
    let device = Device::start();
    let mut everything = Client::primary(&device, 1).await;
    let program =
        crate::common::ALL.replace("    table acl {", "    @p4runtime_role(\"security\")\n    table acl {");
    let action = set_forwarding_pipeline_config_request::Action::VerifyAndCommit;
    everything.set(action, &program).await.unwrap();
    let rule = TableEntry {
        table_id: everything.table("acl"),
        priority: 1,
        action: everything.run("drop", &[]),
        ..TableEntry::default()
    };
    let mut other = Client::connect(&device).await;
    other.role = "routing".into();
    other.arbitrate(Some(1)).await.unwrap();
    let refused = other.insert(Entity::TableEntry(rule.clone())).await.unwrap_err();
    assert_eq!(refused.code, Code::PermissionDenied);
    let mut security = Client::connect(&device).await;
    security.role = "security".into();
    security.arbitrate(Some(1)).await.unwrap();
    security.insert(Entity::TableEntry(rule.clone())).await.unwrap();
    assert_eq!(security.election, Some(election(1)));
    assert_eq!(other.read(Entity::TableEntry(wildcard(rule.table_id))).await, []);
    assert_eq!(
        everything.read(Entity::TableEntry(wildcard(rule.table_id))).await,
        [Entity::TableEntry(rule)]
    );
}
