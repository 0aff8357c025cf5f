//! Counters, meters, registers and value sets.

use crate::common::{Client, Device, exact, frame, id, leaving, ternary, update};
use millrace_p4runtime_api::v1::entity::Entity;
use millrace_p4runtime_api::v1::*;
use tonic::Code;

fn at(index: i64) -> Option<Index> {
    Some(Index { index })
}

#[tokio::test]
async fn counters_are_read_and_set() {
    let device = Device::start();
    let mut client = device.ready().await;
    let counter_id = id(client.info.counters.iter().map(|known| &known.preamble), "ports");
    let counter = |index, data| Entity::CounterEntry(CounterEntry { counter_id, index, data });
    let some = Some(CounterData { byte_count: 100, packet_count: 1 });
    client.modify(counter(at(2), some)).await.unwrap();
    client.modify(counter(at(2), None)).await.unwrap();
    assert_eq!(client.read(counter(at(2), None)).await, [counter(at(2), some)]);
    assert_eq!(client.read(counter(None, None)).await.len(), 16);
    assert_eq!(client.read(Entity::CounterEntry(CounterEntry::default())).await.len(), 16);
    client.modify(counter(None, some)).await.unwrap();
    assert_eq!(client.read(counter(at(15), None)).await, [counter(at(15), some)]);
    for (index, code) in [(-1, Code::InvalidArgument), (16, Code::OutOfRange)] {
        assert_eq!(client.modify(counter(at(index), some)).await.unwrap_err().code, code);
        let status = client.read_all(vec![counter(at(index), None)]).await.unwrap_err();
        assert_eq!(crate::common::errors(&status)[0].code, code);
    }
    for kind in [update::Type::Insert, update::Type::Delete] {
        assert_eq!(client.write(kind, counter(at(1), some)).await.unwrap_err().code, Code::InvalidArgument);
    }
    let negative = Some(CounterData { byte_count: -1, packet_count: 0 });
    assert_eq!(client.modify(counter(at(1), negative)).await.unwrap_err().code, Code::InvalidArgument);
}

#[tokio::test]
async fn meters_are_configured_and_reset() {
    let device = Device::start();
    let mut client = device.ready().await;
    let meter_id = id(client.info.meters.iter().map(|known| &known.preamble), "limits");
    let meter =
        |index, config| Entity::MeterEntry(MeterEntry { meter_id, index, config, counter_data: None });
    let config = Some(MeterConfig { cir: 1_000_000, cburst: 1500, pir: 2_000_000, pburst: 3000, eburst: 0 });
    client.modify(meter(at(4), config)).await.unwrap();
    assert_eq!(client.read(meter(at(4), None)).await, [meter(at(4), config)]);
    assert_eq!(client.read(meter(at(5), None)).await, [meter(at(5), None)]);
    client.modify(meter(None, None)).await.unwrap();
    assert_eq!(client.read(meter(at(4), None)).await, [meter(at(4), None)]);
}

/// What a configuration may be says the program, or the P4Info that the controller goes by.
#[tokio::test]
async fn meters_of_a_single_rate_have_no_other() {
    use millrace_p4runtime_api::config::meter_spec::Type;
    let device = Device::start();
    let mut client = Client::primary(&device, 1).await;
    let action = set_forwarding_pipeline_config_request::Action::VerifyAndCommit;
    let source = crate::common::ALL
        .replace("meter(16, MeterType.bytes)", "@single_rate_two_color meter(16, MeterType.bytes)")
        .replace("direct_meter<bit<2>>", "@single_rate_three_color direct_meter<bit<2>>");
    client.set(action, &source).await.unwrap();
    assert_eq!(client.info.meters[0].spec.unwrap().r#type(), Type::SingleRateTwoColor);
    let config = |cir, pir, eburst| Some(MeterConfig { cir, cburst: 5, pir, pburst: 5, eburst });
    let (two, peak) = (config(10, 20, 0), config(10, 10, 0));
    let meter_id = id(client.info.meters.iter().map(|known| &known.preamble), "limits");
    let meter =
        |config| Entity::MeterEntry(MeterEntry { meter_id, index: at(1), config, counter_data: None });
    let rule = |meter_config| {
        Entity::TableEntry(TableEntry {
            table_id: client.table("acl"),
            priority: 1,
            action: client.run("NoAction", &[]),
            meter_config,
            ..TableEntry::default()
        })
    };
    let (wrong, right, excess) = (rule(two), rule(peak), rule(config(10, 10, 1)));
    for (entity, code) in [
        (meter(two), Code::InvalidArgument),
        (meter(config(10, 10, 1)), Code::InvalidArgument),
        (wrong, Code::InvalidArgument),
        (excess, Code::Unimplemented),
    ] {
        let kind =
            if matches!(entity, Entity::TableEntry(_)) { update::Type::Insert } else { update::Type::Modify };
        assert_eq!(client.write(kind, entity).await.unwrap_err().code, code);
    }
    client.modify(meter(peak)).await.unwrap();
    client.insert(right).await.unwrap();
    // The same program for a controller to which it has two rates.
    let mut p4info = client.info.clone();
    p4info.meters[0].spec.iter_mut().for_each(|spec| spec.set_type(Type::TwoRateThreeColor));
    let config = ForwardingPipelineConfig {
        p4info: Some(p4info),
        p4_device_config: source.into_bytes().into(),
        cookie: None,
    };
    let request = SetForwardingPipelineConfigRequest {
        device_id: crate::common::DEVICE,
        election_id: client.election,
        action: action as i32,
        config: Some(config),
        ..Default::default()
    };
    client.calls.set_forwarding_pipeline_config(request).await.unwrap();
    client.modify(meter(two)).await.unwrap();
}

fn colours(counts: [(i64, i64); 3]) -> Option<MeterCounterData> {
    let [green, yellow, red] =
        counts.map(|(packet_count, byte_count)| Some(CounterData { byte_count, packet_count }));
    Some(MeterCounterData { green, yellow, red })
}

/// One packet of 60 bytes is within the committed burst, one more within the peak burst; a byte comes back in a second.
const TWO_PACKETS: MeterConfig = MeterConfig { cir: 1, cburst: 60, pir: 1, pburst: 120, eburst: 0 };

#[tokio::test]
async fn meters_count_packets_by_their_colours() {
    let mut device = Device::start();
    let mut client = device.ready().await;
    let meter_id = id(client.info.meters.iter().map(|known| &known.preamble), "limits");
    let meter = |index, config, counter_data| {
        Entity::MeterEntry(MeterEntry { meter_id, index: at(index), config, counter_data })
    };
    let config = Some(TWO_PACKETS);
    client.modify(meter(1, config, None)).await.unwrap();
    client.insert(Entity::TableEntry(client.route([10, 0, 0, 0], 8, 2))).await.unwrap();
    for source in 0..4 {
        device.ports[0].send(frame(source, [10, 0, 0, 1])).unwrap();
        leaving(&mut device, 1).await;
    }
    device.ports[1].send(frame(9, [10, 0, 0, 1])).unwrap();
    leaving(&mut device, 1).await;
    let asked = Some(MeterCounterData::default());
    let counted = colours([(1, 60), (1, 60), (2, 120)]);
    assert_eq!(client.read(meter(1, None, asked)).await, [meter(1, config, counted)]);
    assert_eq!(client.read(meter(1, None, None)).await, [meter(1, config, None)]);
    // A meter without a configuration is green.
    let green = colours([(1, 60), (0, 0), (0, 0)]);
    assert_eq!(client.read(meter(2, None, asked)).await, [meter(2, None, green)]);

    // Counts can be set to 0, and to nothing else.
    let refused = client.modify(meter(1, config, green)).await.unwrap_err();
    assert_eq!(refused.code, Code::InvalidArgument, "{refused:?}");
    client.modify(meter(1, config, None)).await.unwrap();
    assert_eq!(client.read(meter(1, None, asked)).await, [meter(1, config, counted)]);
    let failing = vec![
        update(update::Type::Modify, meter(1, config, asked)),
        update(update::Type::Modify, meter(99, None, None)),
    ];
    let rolled_back = client.write_with(write_request::Atomicity::RollbackOnError, failing).await;
    rolled_back.unwrap_err();
    assert_eq!(client.read(meter(1, None, asked)).await, [meter(1, config, counted)]);
    client.modify(meter(1, config, asked)).await.unwrap();
    assert_eq!(client.read(meter(1, None, asked)).await, [meter(1, config, colours([(0, 0); 3]))]);
}

#[tokio::test]
async fn direct_meters_count_packets_by_their_colours() {
    let mut device = Device::start();
    let mut client = device.ready().await;
    client.insert(Entity::TableEntry(client.route([10, 0, 0, 0], 8, 2))).await.unwrap();
    // One packet a burst: this meter counts packets.
    let config = Some(MeterConfig { cir: 1, cburst: 1, pir: 1, pburst: 2, eburst: 0 });
    let entry = TableEntry {
        table_id: client.table("acl"),
        r#match: vec![ternary(1, &[10, 0, 0, 0], &[255, 0, 0, 0])],
        action: client.run("NoAction", &[]),
        priority: 1,
        meter_config: config,
        ..TableEntry::default()
    };
    client.insert(Entity::TableEntry(entry.clone())).await.unwrap();
    for source in 0..4 {
        device.ports[0].send(frame(source, [10, 0, 0, 1])).unwrap();
        leaving(&mut device, 1).await;
    }
    let asked = Some(MeterCounterData::default());
    let with = |counts| TableEntry { meter_counter_data: counts, ..entry.clone() };
    let counted = colours([(1, 60), (1, 60), (2, 120)]);
    assert_eq!(client.read(Entity::TableEntry(with(asked))).await, [Entity::TableEntry(with(counted))]);
    assert_eq!(client.read(Entity::TableEntry(with(None))).await, [Entity::TableEntry(with(None))]);
    let key = TableEntry { action: None, meter_config: None, ..entry.clone() };
    let direct = |config, counter_data| {
        Entity::DirectMeterEntry(DirectMeterEntry { table_entry: Some(key.clone()), config, counter_data })
    };
    assert_eq!(client.read(direct(None, asked)).await, [direct(config, counted)]);
    assert_eq!(client.read(direct(None, None)).await, [direct(config, None)]);
    assert_eq!(client.modify(direct(config, counted)).await.unwrap_err().code, Code::InvalidArgument);
    client.modify(direct(config, asked)).await.unwrap();
    let none = colours([(0, 0); 3]);
    assert_eq!(client.read(direct(None, asked)).await, [direct(config, none)]);
    device.ports[0].send(frame(7, [10, 0, 0, 1])).unwrap();
    leaving(&mut device, 1).await;
    assert_eq!(client.read(direct(None, asked)).await, [direct(config, colours([(1, 60), (0, 0), (0, 0)]))]);
    client.modify(Entity::TableEntry(with(asked))).await.unwrap();
    assert_eq!(client.read(direct(None, asked)).await, [direct(config, none)]);
    // What an entry counted goes with it.
    device.ports[0].send(frame(7, [10, 0, 0, 1])).unwrap();
    leaving(&mut device, 1).await;
    client.delete(Entity::TableEntry(entry.clone())).await.unwrap();
    client.insert(Entity::TableEntry(entry.clone())).await.unwrap();
    assert_eq!(client.read(direct(None, asked)).await, [direct(config, none)]);
}

#[tokio::test]
async fn registers_hold_data_of_their_type() {
    let device = Device::start();
    let mut client = device.ready().await;
    let register_id = id(client.info.registers.iter().map(|known| &known.preamble), "last");
    let bits = |bytes: &[u8]| Some(P4Data { data: Some(p4_data::Data::Bitstring(bytes.to_vec().into())) });
    let register = |index, data| Entity::RegisterEntry(RegisterEntry { register_id, index, data });
    client.modify(register(at(3), bits(&[0xde, 0xad, 0xbe, 0xef]))).await.unwrap();
    let wanted = register(at(3), bits(&[0xde, 0xad, 0xbe, 0xef]));
    assert_eq!(client.read(register(at(3), None)).await, [wanted]);
    assert_eq!(client.read(register(at(0), None)).await, [register(at(0), bits(&[0]))]);
    // The program writes it too.
    device.ports[1].send(frame(1, [1, 1, 1, 1])).unwrap();
    for _ in 0..200 {
        if client.read(register(at(0), None)).await == [register(at(0), bits(&[2]))] {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert_eq!(client.read(register(at(0), None)).await, [register(at(0), bits(&[2]))]);
    let wrong = Some(P4Data { data: Some(p4_data::Data::Bool(true)) });
    for (data, code) in [
        (wrong, Code::InvalidArgument),
        (None, Code::InvalidArgument),
        (bits(&[1, 0, 0, 0, 0]), Code::OutOfRange),
    ] {
        assert_eq!(client.modify(register(at(1), data)).await.unwrap_err().code, code);
    }
}

#[tokio::test]
async fn value_sets_are_replaced_as_a_whole() {
    let device = Device::start();
    let mut client = device.ready().await;
    let value_set_id = client.info.value_sets[0].preamble.as_ref().unwrap().id;
    let set = |values: &[u8]| {
        let members =
            values.iter().map(|value| ValueSetMember { r#match: vec![exact(1, &[0x80 | value, 0])] });
        Entity::ValueSetEntry(ValueSetEntry { value_set_id, members: members.collect() })
    };
    client.modify(set(&[1, 2])).await.unwrap();
    assert_eq!(client.read(set(&[])).await, [set(&[1, 2])]);
    assert_eq!(client.modify(set(&[1, 1])).await.unwrap_err().code, Code::AlreadyExists);
    assert_eq!(client.modify(set(&[1, 2, 3, 4, 5])).await.unwrap_err().code, Code::ResourceExhausted);
    assert_eq!(client.insert(set(&[3])).await.unwrap_err().code, Code::InvalidArgument);
    assert_eq!(client.read(set(&[])).await, [set(&[1, 2])]);
    client.modify(set(&[])).await.unwrap();
    assert_eq!(client.read(set(&[])).await, [set(&[])]);
}

#[tokio::test]
async fn digests_are_enabled_and_disabled() {
    let device = Device::start();
    let mut client: Client = device.ready().await;
    let digest_id = client.info.digests[0].preamble.as_ref().unwrap().id;
    let digest = |max_list_size| {
        let config = digest_entry::Config { max_timeout_ns: 5, max_list_size, ack_timeout_ns: 7 };
        Entity::DigestEntry(DigestEntry { digest_id, config: Some(config) })
    };
    assert_eq!(client.modify(digest(1)).await.unwrap_err().code, Code::NotFound);
    client.insert(digest(1)).await.unwrap();
    assert_eq!(client.insert(digest(1)).await.unwrap_err().code, Code::AlreadyExists);
    client.modify(digest(2)).await.unwrap();
    assert_eq!(client.read(Entity::DigestEntry(DigestEntry::default())).await, [digest(2)]);
    assert_eq!(client.modify(digest(-1)).await.unwrap_err().code, Code::InvalidArgument);
    client.delete(digest(0)).await.unwrap();
    assert_eq!(client.read(Entity::DigestEntry(DigestEntry::default())).await, []);
}
