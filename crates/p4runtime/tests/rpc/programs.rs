//! Programs that come from somebody other than a controller.

use crate::common::{ALL, Client, DEVICE, Device, frame, leaving};
use millrace_p4runtime::client::{self, swap};
use millrace_p4runtime::proto::v1::entity::Entity;
use millrace_p4runtime::proto::v1::get_forwarding_pipeline_config_request::ResponseType;
use millrace_p4runtime::proto::v1::*;
use millrace_p4runtime::{Candidate, Programs, Report};
use millrace_switch::Keep;

/// Lets a program take over, from outside of the runtime as others do.
async fn start(programs: &Programs, candidate: Candidate, keep: Option<Keep>) -> Result<Report, String> {
    let programs = programs.clone();
    tokio::task::spawn_blocking(move || programs.start(candidate, keep)).await.unwrap()
}

#[tokio::test]
async fn controllers_find_a_program_that_another_brought() {
    let mut device = Device::start();
    let mut client = device.ready().await;
    client.insert(Entity::TableEntry(client.route([10, 1, 0, 0], 16, 2))).await.unwrap();
    let table_id = client.table("route");
    let routes = vec![Entity::TableEntry(TableEntry { table_id, ..TableEntry::default() })];
    let programs = device.server.as_ref().unwrap().programs();
    assert!(programs.prepare(b"control c() {").unwrap_err().contains("device_config.p4:1"));

    let renamed = format!("{ALL}// Another.\n");
    let candidate = programs.prepare(renamed.as_bytes()).unwrap();
    let report = start(&programs, candidate, Some(Keep::Everything)).await.unwrap();
    assert!(report.dropped.is_empty(), "{report:?}");
    assert!(report.kept.iter().any(|item| item.name == "In.route" && item.count == 1), "{report:?}");
    let config = client.config(ResponseType::All).await.unwrap();
    assert_eq!(config.p4_device_config, renamed.as_bytes());
    assert_eq!(config.cookie, None);
    assert_eq!(client.read_all(routes.clone()).await.unwrap().len(), 1);
    device.ports[0].send(frame(1, [10, 1, 2, 3])).unwrap();
    assert_eq!(leaving(&mut device, 1).await, frame(1, [10, 1, 2, 3]));

    // With what was written to it before, and nothing else.
    let mut candidate = programs.prepare(ALL.as_bytes()).unwrap();
    let value = millrace_pipeline::Bits::new(32, 9);
    let register = candidate.switch.state().register_named("In.last").unwrap();
    candidate.switch.state_mut().set_register(register, 1, &value).unwrap();
    assert_eq!(start(&programs, candidate, None).await, Ok(Report::default()));
    assert_eq!(client.read_all(routes.clone()).await.unwrap().len(), 0);
    let found = device.control.call(move |switch| switch.state().register_read(register, 1)).unwrap();
    assert_eq!(found, value);

    let candidate = programs.prepare(ALL.as_bytes()).unwrap();
    device.server = None;
    let refused = start(&programs, candidate, None).await.unwrap_err();
    assert!(refused.contains("not running"), "{refused}");
}

#[tokio::test]
async fn the_client_swaps_alone_or_in_the_place_of_a_controller() {
    let device = Device::start();
    let address = device.server.as_ref().unwrap().address();
    let to = |election_id| client::Device { address, device_id: DEVICE, election_id, tls: None };
    let swap = |to: client::Device, keep: &'static str| async move {
        tokio::task::spawn_blocking(move || swap(&to, ALL.as_bytes().to_vec(), keep)).await.unwrap()
    };
    assert_eq!(swap(to(None), "everything").await, Ok(Report::default()));

    let mut controller = Client::primary(&device, 7).await;
    controller.set(set_forwarding_pipeline_config_request::Action::VerifyAndCommit, ALL).await.unwrap();
    controller.insert(Entity::TableEntry(controller.route([10, 1, 0, 0], 16, 2))).await.unwrap();
    let refused = swap(to(None), "everything").await.unwrap_err();
    assert!(refused.contains("--election-id 7"), "{refused}");
    let refused = swap(to(Some(6)), "everything").await.unwrap_err();
    assert!(refused.contains("only the primary client may write"), "{refused}");
    let report = swap(to(Some(7)), "everything").await.unwrap();
    assert_eq!(report.kept.iter().find(|item| item.name == "In.route").map(|item| item.count), Some(1));
    assert!(swap(to(Some(7)), "all").await.unwrap_err().contains("`everything`, `compatible` or `nothing`"));
    assert_eq!(swap(to(Some(7)), "nothing").await, Ok(Report::default()));
    let elsewhere = client::Device { device_id: DEVICE + 1, ..to(Some(7)) };
    assert!(swap(elsewhere, "nothing").await.unwrap_err().contains("no device"));
}
