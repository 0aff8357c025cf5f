//! Several devices in one server: each is found by its id, and they come and go while the server runs.

use crate::common::{ALL, Stream, election};
use millrace_chassis::{Configuration, Listener, Making, Modes, empty_program};
use millrace_dataplane::{Control, Mode, Summary, Switch, SwitchConfig, Worker};
use millrace_p4runtime::{AddError, DeviceConfig, Listen, Policy, Served, Share, SharedServer};
use millrace_p4runtime_api::v1::p4_runtime_client::P4RuntimeClient;
use millrace_p4runtime_api::v1::set_forwarding_pipeline_config_request::Action;
use millrace_p4runtime_api::v1::*;
use millrace_quiet::engine;
use std::num::NonZeroU32;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tonic::transport::Channel;
use tonic::{Code, Status};

/// Switches of one server. They stop when this is dropped.
pub(crate) struct House {
    pub(crate) server: SharedServer,
    switches: Vec<(Control, JoinHandle<Summary>)>,
}

impl House {
    pub(crate) fn start(listen: Listen, policy: Policy) -> House {
        House { server: SharedServer::start(&listen, policy).unwrap(), switches: Vec::new() }
    }

    fn plain() -> House {
        let listen = Listen { address: ([127, 0, 0, 1], 0).into(), tls: None, allow_plaintext: false };
        House::start(listen, Policy::default())
    }

    /// Starts a switch without ports and serves it.
    pub(crate) fn add(&mut self, device_id: u64, share: Share) -> Result<Served, AddError> {
        self.add_with(device_id, share, None)
    }

    /// Starts a switch without ports, with modes or without, and serves it.
    fn add_with(&mut self, device_id: u64, share: Share, modes: Option<Modes>) -> Result<Served, AddError> {
        let config = SwitchConfig { engine: engine(), ..SwitchConfig::default() };
        let nothing = Switch::new(empty_program().unwrap(), config).unwrap();
        let worker = Worker::new(nothing, Vec::new()).unwrap();
        let control = worker.control();
        let device = DeviceConfig {
            device_id,
            making: Making { engine: engine(), modes, ..Making::default() },
            ports: Default::default(),
            links: Default::default(),
            cpu_port: None,
            pipeline: None,
        };
        let served = self.server.devices().add(device, control.clone(), share);
        self.switches.push((control, std::thread::spawn(move || worker.run())));
        served
    }

    pub(crate) async fn connect(&self) -> P4RuntimeClient<Channel> {
        let address = format!("http://{}", self.server.address());
        P4RuntimeClient::connect(address).await.unwrap()
    }
}

impl Drop for House {
    fn drop(&mut self) {
        for (control, worker) in self.switches.drain(..) {
            control.stop();
            worker.join().unwrap();
        }
    }
}

/// Says who it is to a device.
pub(crate) async fn arbitrate(
    stream: &mut Stream,
    device_id: u64,
    id: Option<u64>,
) -> Result<MasterArbitrationUpdate, Status> {
    let update = MasterArbitrationUpdate { device_id, election_id: id.map(election), ..Default::default() };
    stream.tell(stream_message_request::Update::Arbitration(update)).await;
    stream.arbitration().await
}

/// Opens a stream that is the primary of a device.
async fn primary(calls: &mut P4RuntimeClient<Channel>, device_id: u64) -> Stream {
    let mut stream = Stream::open(calls).await;
    let told = arbitrate(&mut stream, device_id, Some(1)).await.unwrap();
    assert_eq!((told.device_id, told.status.unwrap().code), (device_id, Code::Ok as i32));
    stream
}

pub(crate) fn program(device_id: u64, source: &str) -> SetForwardingPipelineConfigRequest {
    SetForwardingPipelineConfigRequest {
        device_id,
        election_id: Some(election(1)),
        action: Action::VerifyAndCommit as i32,
        config: Some(ForwardingPipelineConfig {
            p4_device_config: source.as_bytes().to_vec().into(),
            cookie: Some(forwarding_pipeline_config::Cookie { cookie: device_id }),
            ..Default::default()
        }),
        ..Default::default()
    }
}

pub(crate) fn nothing_written(device_id: u64) -> WriteRequest {
    WriteRequest { device_id, election_id: Some(election(1)), ..WriteRequest::default() }
}

/// The cookie of the program that a device has.
async fn cookie(calls: &mut P4RuntimeClient<Channel>, device_id: u64) -> Result<Option<u64>, Status> {
    let request = GetForwardingPipelineConfigRequest { device_id, response_type: 0 };
    let answer = calls.get_forwarding_pipeline_config(request).await?.into_inner();
    Ok(answer.config.and_then(|config| config.cookie).map(|cookie| cookie.cookie))
}

/// Entries and programs are the configuration: in modes that do not load one they stay.
#[tokio::test]
async fn a_switch_is_written_to_in_modes_that_load() {
    let mut house = House::plain();
    let modes = Modes::new(Mode::Maintenance, true, Configuration::default()).unwrap();
    house.add_with(1, Share::default(), Some(modes.clone())).unwrap();
    let mut calls = house.connect().await;
    let _stream = primary(&mut calls, 1).await;
    calls.set_forwarding_pipeline_config(program(1, ALL)).await.unwrap();
    calls.write(nothing_written(1)).await.unwrap();
    modes.set(Mode::Operational).unwrap();
    let refused = calls.write(nothing_written(1)).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition);
    assert!(refused.message().starts_with("the switch is operational and keeps its entries"), "{refused}");
    let refused = calls.set_forwarding_pipeline_config(program(1, ALL)).await.unwrap_err();
    assert!(refused.message().contains("operational and takes no program"), "{refused}");
    assert_eq!(cookie(&mut calls, 1).await.unwrap(), Some(1));
    modes.set(Mode::Maintenance).unwrap();
    calls.write(nothing_written(1)).await.unwrap();
}

#[tokio::test]
async fn requests_go_to_the_device_that_they_name() {
    let mut house = House::plain();
    let mut calls = house.connect().await;
    assert_eq!(cookie(&mut calls, 1).await.unwrap_err().code(), Code::NotFound);
    for id in [1, 2, u64::MAX] {
        house.add(id, Share::default()).unwrap();
    }
    assert_eq!(house.add(2, Share::default()).unwrap_err(), AddError::Taken(2));
    let _one = primary(&mut calls, 1).await;
    calls.set_forwarding_pipeline_config(program(1, ALL)).await.unwrap();
    assert_eq!(cookie(&mut calls, 1).await.unwrap(), Some(1));
    assert_eq!(cookie(&mut calls, 2).await.unwrap(), None);
    // Who is the primary of one is not the primary of another.
    let refused = calls.write(nothing_written(2)).await.unwrap_err();
    assert_eq!(
        (refused.code(), refused.message()),
        (Code::PermissionDenied, "only the primary client may write")
    );
    calls.write(nothing_written(1)).await.unwrap();
    let _last = primary(&mut calls, u64::MAX).await;
    calls.set_forwarding_pipeline_config(program(u64::MAX, ALL)).await.unwrap();
    assert_eq!(cookie(&mut calls, u64::MAX).await.unwrap(), Some(u64::MAX));
    for id in [0, 3] {
        let refused = cookie(&mut calls, id).await.unwrap_err();
        assert_eq!((refused.code(), refused.message()), (Code::NotFound, &*format!("no device {id}")));
    }
    // A capability request of no device is for the server.
    for (device_id, is_there) in [(0, true), (1, true), (2, true), (3, false)] {
        let asked = calls.capabilities(CapabilitiesRequest { device_id }).await;
        assert_eq!(asked.is_ok(), is_there, "{device_id}");
    }
}

#[tokio::test]
async fn a_stream_is_for_the_device_of_its_first_message() {
    let mut house = House::plain();
    for id in [1, 2] {
        house.add(id, Share::default()).unwrap();
    }
    let mut calls = house.connect().await;
    // One connection may have a stream for each device.
    let mut one = primary(&mut calls, 1).await;
    let mut two = primary(&mut calls, 2).await;
    let unknown = arbitrate(&mut Stream::open(&mut calls).await, 3, Some(1)).await.unwrap_err();
    assert_eq!((unknown.code(), unknown.message()), (Code::NotFound, "no device 3"));
    // Whether or not there is a device of the other id.
    for other in [2, 3] {
        let mut stream = Stream::open(&mut calls).await;
        arbitrate(&mut stream, 1, None).await.unwrap();
        let refused = arbitrate(&mut stream, other, Some(9)).await.unwrap_err();
        assert_eq!(refused.code(), Code::FailedPrecondition, "{refused}");
    }
    assert!(one.is_silent().await && two.is_silent().await);
}

#[tokio::test]
async fn a_removed_device_ends_its_streams_and_no_other() {
    let mut house = House::plain();
    let served = house.add(1, Share::default()).unwrap();
    house.add(2, Share::default()).unwrap();
    let mut calls = house.connect().await;
    let mut one = primary(&mut calls, 1).await;
    let mut backup = Stream::open(&mut calls).await;
    arbitrate(&mut backup, 1, None).await.unwrap();
    let mut two = primary(&mut calls, 2).await;
    assert!(house.server.devices().remove(1) && !house.server.devices().remove(1));
    for stream in [&mut one, &mut backup] {
        let ended = loop {
            match stream.next().await {
                Ok(_) => continue,
                Err(status) => break status,
            }
        };
        assert_eq!((ended.code(), ended.message()), (Code::NotFound, "device 1 was removed"));
    }
    assert_eq!(calls.write(nothing_written(1)).await.unwrap_err().code(), Code::NotFound);
    assert!(two.is_silent().await);
    calls.set_forwarding_pipeline_config(program(2, ALL)).await.unwrap();
    // What the switch still tells is told to nobody, and nobody waits.
    let told = tokio::task::spawn_blocking(move || {
        (0..10_000).for_each(|port| served.feed.link(port, true));
        served.programs.prepare(ALL.as_bytes()).and_then(|made| served.programs.start(made, None)).is_err()
    });
    assert!(told.await.unwrap());
    // Another one may have its id.
    house.add(1, Share::default()).unwrap();
    let _again = primary(&mut calls, 1).await;
    assert_eq!(cookie(&mut calls, 1).await.unwrap(), None);
}

#[tokio::test]
async fn devices_come_and_go_under_load() {
    let mut house = House::plain();
    house.add(1, Share::default()).unwrap();
    let mut calls = house.connect().await;
    let _one = primary(&mut calls, 1).await;
    calls.set_forwarding_pipeline_config(program(1, ALL)).await.unwrap();
    let mut busy = calls.clone();
    let writer = tokio::spawn(async move {
        for _ in 0..500 {
            busy.write(nothing_written(1)).await.unwrap();
        }
    });
    for round in 0..50u64 {
        let id = 2 + round % 3;
        house.add(id, Share::default()).unwrap();
        let mut stream = primary(&mut calls, id).await;
        assert!(house.server.devices().remove(id));
        assert_eq!(stream.next().await.unwrap_err().code(), Code::NotFound);
    }
    writer.await.unwrap();
    assert_eq!(format!("{:?}", house.server.devices()), "[1]");
}

#[tokio::test]
async fn the_quota_of_requests_of_one_device_leaves_the_others_alone() {
    let mut house = House::plain();
    // One a second: also a machine that is busy with other tests sends faster than there is room again.
    let share = Share { tenant: None, requests_per_second: NonZeroU32::new(1) };
    house.add(1, share).unwrap();
    house.add(2, Share::default()).unwrap();
    let mut calls = house.connect().await;
    let begun = Instant::now();
    let mut one = primary(&mut calls, 1).await;
    let mut refused = 0;
    for _ in 0..20 {
        if let Err(status) = calls.capabilities(CapabilitiesRequest { device_id: 1 }).await {
            let said = "the quota `requests-per-second` of device 1 is used up: 1 requests a second";
            assert_eq!((status.code(), status.message()), (Code::ResourceExhausted, said));
            refused += 1;
        }
        calls.capabilities(CapabilitiesRequest { device_id: 2 }).await.unwrap();
    }
    // The first request was the stream's.
    let most = || begun.elapsed().as_secs() + 1;
    assert!(1 + 20 - refused <= most(), "{refused}");
    // A message of a stream is a request too, and its refusal does not end the stream. Of several that are sent at
    // once one at least comes while there is no room; one that comes in time is answered otherwise or not at all.
    const AT_ONCE: u64 = 8;
    for _ in 0..AT_ONCE {
        one.tell(stream_message_request::Update::Packet(PacketOut::default())).await;
    }
    loop {
        let stream_message_response::Update::Error(error) = one.next().await.unwrap() else {
            panic!("an error")
        };
        if error.canonical_code == Code::ResourceExhausted as i32 {
            break;
        }
    }
    let usage = house.server.devices().usage(1).unwrap();
    assert!((refused + 1..=refused + AT_ONCE).contains(&usage.refused), "{usage:?}, {refused} calls");
    // The one that was there at once, and one a second.
    assert!((1..=most()).contains(&usage.requests), "{usage:?}");
    assert!(house.server.devices().usage(2).unwrap().requests == 20);
    assert_eq!(house.server.devices().usage(3), None);
    // After a while there is room again.
    tokio::time::sleep(Duration::from_millis(1200)).await;
    calls.capabilities(CapabilitiesRequest { device_id: 1 }).await.unwrap();
}

/// gNMI names no device, so a server of several has none; all else is listed as it is.
#[tokio::test]
async fn what_a_server_of_several_devices_lists() {
    use tonic_health::pb::health_client::HealthClient;
    let house = House::plain();
    let channel =
        Channel::from_shared(format!("http://{}", house.server.address())).unwrap().connect().await.unwrap();
    let mut health = HealthClient::new(channel);
    for (service, code) in [("", None), ("p4.v1.P4Runtime", None), ("gnmi.gNMI", Some(Code::NotFound))] {
        let request = tonic_health::pb::HealthCheckRequest { service: service.into() };
        let answer = health.check(request).await;
        assert_eq!(answer.err().map(|status| status.code()), code, "{service}");
    }
}
