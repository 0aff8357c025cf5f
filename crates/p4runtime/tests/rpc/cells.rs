//! Counters, meters, registers and value sets.

use crate::common::{Client, Device, exact, frame, id};
use millrace_p4runtime::proto::v1::entity::Entity;
use millrace_p4runtime::proto::v1::*;
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
    let colours = MeterEntry { meter_id, counter_data: Some(Default::default()), ..Default::default() };
    let refused = client.modify(Entity::MeterEntry(colours)).await.unwrap_err();
    assert_eq!(refused.code, Code::Unimplemented);
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
