//! Quotas of a switch as controllers meet them.

use crate::common::{ALL, Device};
use crate::replication::{multicast, replica};
use millrace_dataplane::Quotas;
use millrace_p4runtime_api::v1::entity::Entity;
use millrace_p4runtime_api::v1::set_forwarding_pipeline_config_request::Action;
use tonic::Code;

#[tokio::test]
async fn writes_and_programs_beyond_a_quota_are_refused_and_what_runs_goes_on() {
    let device = Device::start();
    let mut client = device.ready().await;
    let (_, held) = device.control.quotas().unwrap();
    let limit = held.entries + 2;
    device.control.set_quotas(Quotas { entries: Some(limit), ..Quotas::default() }).unwrap();
    let routes = [1, 2, 3].map(|net| Entity::TableEntry(client.route([10, net, 0, 0], 16, 1)));
    client.insert(routes[0].clone()).await.unwrap();
    client.insert(routes[1].clone()).await.unwrap();
    let refused = client.insert(routes[2].clone()).await.unwrap_err();
    let said = format!("the switch would have {} entries, its quota `entries` is {limit}", limit + 1);
    assert_eq!(refused.code, Code::ResourceExhausted);
    assert!(refused.message.contains(&said), "{}", refused.message);
    let group = || multicast(3, vec![replica(1, 1)]);
    assert_eq!(client.insert(group()).await.unwrap_err().code, Code::ResourceExhausted);
    assert_eq!(client.insert(routes[1].clone()).await.unwrap_err().code, Code::AlreadyExists);
    client.delete(routes[1].clone()).await.unwrap();
    client.insert(group()).await.unwrap();

    // Whoever brings a program that takes more memory than there may be hears which object it is.
    let (_, held) = device.control.quotas().unwrap();
    device.control.set_quotas(Quotas { memory: Some(held.bytes), ..Quotas::default() }).unwrap();
    let larger = ALL.replace("register<bit<32>>(8) last", "register<bit<32>>(20000000) last");
    assert_ne!(larger, ALL);
    for action in [Action::VerifyAndCommit, Action::VerifyAndSave, Action::ReconcileAndCommit] {
        let refused = client.set(action, &larger).await.unwrap_err();
        assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
        assert!(refused.message().contains("the quota `memory` of the switch"), "{refused}");
        assert!(refused.message().contains("register `"), "{refused}");
    }
    assert_eq!(device.control.quotas().unwrap().1, held);
    assert_eq!(client.read(routes[0].clone()).await.len(), 1);
    client.set(Action::ReconcileAndCommit, &format!("{ALL}// The same.\n")).await.unwrap();
    assert_eq!(client.read(routes[0].clone()).await.len(), 1);
}
