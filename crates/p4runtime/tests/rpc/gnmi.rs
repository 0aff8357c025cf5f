//! gNMI on the port of P4Runtime: the interfaces of a switch that forwards.

use crate::common::{Client, Device, frame, leaving};
use millrace_chassis::Listener;
use millrace_gnmi::proto::g_nmi_client::GNmiClient;
use millrace_gnmi::proto::subscribe_request::Request as Asked;
use millrace_gnmi::proto::subscribe_response::Response as Told;
use millrace_gnmi::proto::subscription_list::Mode;
use millrace_gnmi::proto::typed_value::Value;
use millrace_gnmi::proto::*;
use millrace_p4runtime_api::v1::entity::Entity;
use millrace_p4runtime_api::v1::{TableEntry, table_action};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Code, Status, Streaming};

/// A path as people write it.
fn path(text: &str) -> Path {
    let elem = text.split('/').filter(|part| !part.is_empty()).map(|part| {
        let (name, keys) = part.split_once('[').unwrap_or((part, ""));
        let pairs = keys.trim_end_matches(']').split("][").filter_map(|key| key.split_once('='));
        PathElem { name: name.into(), key: pairs.map(|(key, value)| (key.into(), value.into())).collect() }
    });
    Path { elem: elem.collect(), ..Path::default() }
}

fn text(path: &Path) -> String {
    let elem = path.elem.iter().map(|elem| {
        let keys: String = elem.key.iter().map(|(key, value)| format!("[{key}={value}]")).collect();
        format!("/{}{keys}", elem.name)
    });
    elem.collect()
}

/// The values of notifications, by path.
fn values(notifications: &[Notification]) -> BTreeMap<String, Value> {
    let updates = notifications.iter().flat_map(|notification| &notification.update);
    let value =
        |update: &Update| (text(update.path.as_ref().unwrap()), update.val.clone().unwrap().value.unwrap());
    updates.map(value).collect()
}

async fn client(device: &Device) -> GNmiClient<Channel> {
    GNmiClient::connect(device.address()).await.unwrap()
}

async fn get(client: &mut GNmiClient<Channel>, what: &str) -> BTreeMap<String, Value> {
    let request =
        GetRequest { path: vec![path(what)], encoding: Encoding::Proto as i32, ..GetRequest::default() };
    values(&client.get(request).await.unwrap().into_inner().notification)
}

async fn get_one(client: &mut GNmiClient<Channel>, what: &str) -> Value {
    get(client, what).await.remove(what).unwrap()
}

async fn set(client: &mut GNmiClient<Channel>, what: &str, value: Value) -> Result<SetResponse, Status> {
    let update =
        Update { path: Some(path(what)), val: Some(TypedValue { value: Some(value) }), ..Update::default() };
    let request = SetRequest { update: vec![update], ..SetRequest::default() };
    client.set(request).await.map(tonic::Response::into_inner)
}

struct Subscriber {
    say: mpsc::Sender<SubscribeRequest>,
    hear: Streaming<SubscribeResponse>,
}

impl Subscriber {
    async fn new(client: &mut GNmiClient<Channel>, list: SubscriptionList) -> Subscriber {
        let (say, said) = mpsc::channel(4);
        say.send(SubscribeRequest { request: Some(Asked::Subscribe(list)), ..Default::default() })
            .await
            .unwrap();
        let hear = client.subscribe(ReceiverStream::new(said)).await.unwrap().into_inner();
        Subscriber { say, hear }
    }

    async fn next(&mut self) -> Result<Option<Told>, Status> {
        let next = tokio::time::timeout(Duration::from_secs(10), self.hear.message()).await;
        Ok(next.expect("a message")?.and_then(|message| message.response))
    }

    /// All values until those that there were have been sent.
    async fn synced(&mut self) -> BTreeMap<String, Value> {
        let mut told = Vec::new();
        loop {
            match self.next().await.unwrap() {
                Some(Told::Update(notification)) => told.push(notification),
                Some(Told::SyncResponse(true)) => return values(&told),
                other => panic!("{other:?}"),
            }
        }
    }

    async fn update(&mut self) -> BTreeMap<String, Value> {
        match self.next().await.unwrap() {
            Some(Told::Update(notification)) => values(&[notification]),
            other => panic!("{other:?}"),
        }
    }
}

fn list(mode: Mode, subscription: Vec<Subscription>) -> SubscriptionList {
    SubscriptionList { mode: mode as i32, subscription, ..SubscriptionList::default() }
}

fn subscription(what: &str, mode: SubscriptionMode) -> Subscription {
    Subscription { path: Some(path(what)), mode: mode as i32, ..Subscription::default() }
}

fn string(text: &str) -> Value {
    Value::StringVal(text.into())
}

#[tokio::test]
async fn capabilities_and_values() {
    let device = Device::start();
    let mut client = client(&device).await;
    let said = client.capabilities(CapabilityRequest::default()).await.unwrap().into_inner();
    assert_eq!(said.g_nmi_version, "0.10.0");
    assert!(said.supported_models.iter().any(|model| model.name == "openconfig-interfaces"));
    assert_eq!(
        said.supported_encodings,
        [Encoding::Json as i32, Encoding::JsonIetf as i32, Encoding::Proto as i32]
    );
    // Those of ports 1 and 2, as ONOS asks for them, without the CPU port.
    let found = get(&mut client, "/interfaces/interface[name=*]/state/ifindex").await;
    let numbers = [("port1", 1), ("port2", 2)].map(|(name, port)| {
        (format!("/interfaces/interface[name={name}]/state/ifindex"), Value::UintVal(port))
    });
    assert_eq!(found, numbers.into());
    let node = "/components/component[name=switch]/integrated-circuit/state/node-id";
    assert_eq!(get_one(&mut client, node).await, Value::UintVal(crate::common::DEVICE));
    let all = get(&mut client, "/").await;
    assert_eq!(get(&mut client, "/...").await, all);
    assert!(all.len() > 2 * 20, "{}", all.len());
}

#[tokio::test]
async fn a_port_that_is_switched_off_is_down_for_all() {
    let mut device = Device::start();
    let mut controller: Client = device.ready().await;
    let route = controller.route([10, 0, 0, 0], 8, 2);
    controller.insert(Entity::TableEntry(route)).await.unwrap();
    // A one-shot group whose members watch ports 1 and 2.
    let watched = |port: u8| millrace_p4runtime_api::v1::ActionProfileAction {
        action: Some(controller.call("forward", &[&[port]])),
        weight: 1,
        watch_kind: Some(millrace_p4runtime_api::v1::action_profile_action::WatchKind::WatchPort(
            vec![port].into(),
        )),
    };
    let group = millrace_p4runtime_api::v1::ActionProfileActionSet {
        action_profile_actions: vec![watched(1), watched(2)],
        ..Default::default()
    };
    let ecmp = TableEntry {
        table_id: controller.table("ecmp"),
        r#match: vec![crate::common::lpm(1, &[40, 0, 0, 0], 8)],
        action: Some(millrace_p4runtime_api::v1::TableAction {
            r#type: Some(table_action::Type::ActionProfileActionSet(group)),
        }),
        ..TableEntry::default()
    };
    controller.insert(Entity::TableEntry(ecmp)).await.unwrap();

    let mut client = client(&device).await;
    let enabled = "/interfaces/interface[name=port2]/config/enabled";
    let oper = "/interfaces/interface[name=port2]/state/oper-status";
    let mut follower = Subscriber::new(
        &mut client,
        list(Mode::Stream, vec![subscription(oper, SubscriptionMode::OnChange)]),
    )
    .await;
    assert_eq!(follower.synced().await, [(oper.to_owned(), string("UP"))].into());
    let done = set(&mut client, enabled, Value::BoolVal(false)).await.unwrap();
    assert_eq!(done.response[0].op, update_result::Operation::Update as i32);
    assert_eq!(follower.update().await, [(oper.to_owned(), string("DOWN"))].into());
    assert_eq!(get_one(&mut client, enabled).await, Value::BoolVal(false));

    // Frames to it are dropped, and flows of the group leave by the other port.
    let discards = "/interfaces/interface[name=port2]/state/counters/out-discards";
    device.ports[0].send(frame(1, [10, 0, 0, 1])).unwrap();
    while get_one(&mut client, discards).await != Value::UintVal(1) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    for source in 1..17 {
        let flow = frame(source, [40, 0, 0, 1]);
        device.ports[0].send(flow.clone()).unwrap();
        assert_eq!(leaving(&mut device, 0).await, flow);
    }
    // The link may come up again as often as it likes.
    let feed = device.server.as_ref().unwrap().feed();
    tokio::task::spawn_blocking(move || [false, true].map(|is_up| feed.link(2, is_up))).await.unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(get_one(&mut client, oper).await, string("DOWN"));
    set(&mut client, enabled, Value::JsonIetfVal(b"true".to_vec())).await.unwrap();
    assert_eq!(follower.update().await, [(oper.to_owned(), string("UP"))].into());
    device.ports[0].send(frame(1, [10, 0, 0, 1])).unwrap();
    assert_eq!(leaving(&mut device, 1).await, frame(1, [10, 0, 0, 1]));
}

#[tokio::test]
async fn subscriptions_once_by_poll_and_by_time() {
    let device = Device::start();
    let mut client = client(&device).await;
    let pkts = "/interfaces/interface[name=port1]/state/counters/in-pkts";
    let zero: BTreeMap<_, _> = [(pkts.to_owned(), Value::UintVal(0))].into();
    let wanted = || vec![subscription(pkts, SubscriptionMode::Sample)];
    let mut once = Subscriber::new(&mut client, list(Mode::Once, wanted())).await;
    assert_eq!(once.synced().await, zero);
    assert_eq!(once.next().await.unwrap(), None);
    let mut polled = Subscriber::new(&mut client, list(Mode::Poll, wanted())).await;
    assert_eq!(polled.synced().await, zero);
    device.ports[0].send(frame(1, [1, 1, 1, 1])).unwrap();
    while get_one(&mut client, pkts).await == Value::UintVal(0) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let poll = SubscribeRequest { request: Some(Asked::Poll(Poll {})), ..SubscribeRequest::default() };
    polled.say.send(poll.clone()).await.unwrap();
    assert_eq!(polled.synced().await, [(pkts.to_owned(), Value::UintVal(1))].into());
    // Samples come again and again, though nothing changes; with only what changed, a heartbeat does.
    let every = |suppress_redundant, heartbeat_interval| Subscription {
        sample_interval: 5000,
        suppress_redundant,
        heartbeat_interval,
        ..subscription(pkts, SubscriptionMode::Sample)
    };
    let mut sampled = Subscriber::new(&mut client, list(Mode::Stream, vec![every(false, 0)])).await;
    let one: BTreeMap<_, _> = [(pkts.to_owned(), Value::UintVal(1))].into();
    assert_eq!(sampled.synced().await, one);
    let begun = std::time::Instant::now();
    assert_eq!(sampled.update().await, one);
    assert_eq!(sampled.update().await, one);
    assert!(begun.elapsed() >= Duration::from_millis(150), "{:?}", begun.elapsed());
    let mut beating = Subscriber::new(&mut client, list(Mode::Stream, vec![every(true, 500_000_000)])).await;
    assert_eq!(beating.synced().await, one);
    let begun = std::time::Instant::now();
    assert_eq!(beating.update().await, one);
    assert!(begun.elapsed() >= Duration::from_millis(400), "{:?}", begun.elapsed());
    // Only what comes.
    let silent = SubscriptionList { updates_only: true, ..list(Mode::Stream, vec![every(true, 0)]) };
    let mut silent = Subscriber::new(&mut client, silent).await;
    assert!(silent.synced().await.is_empty());
    device.ports[0].send(frame(1, [1, 1, 1, 1])).unwrap();
    assert_eq!(silent.update().await, [(pkts.to_owned(), Value::UintVal(2))].into());
    // A second list, or a poll of a stream, ends it.
    silent.say.send(poll).await.unwrap();
    let ended = loop {
        match silent.next().await {
            Ok(Some(_)) => {}
            Ok(None) => panic!("no reason"),
            Err(status) => break status.code(),
        }
    };
    assert_eq!(ended, Code::InvalidArgument);
}

#[tokio::test]
async fn ports_that_come_and_go() {
    let device = Device::start();
    let mut client = client(&device).await;
    let names = "/interfaces/interface[name=*]/name";
    let mut follower = Subscriber::new(
        &mut client,
        list(Mode::Stream, vec![subscription(names, SubscriptionMode::TargetDefined)]),
    )
    .await;
    assert_eq!(follower.synced().await.len(), 2);
    let feed = device.server.as_ref().unwrap().feed();
    let again = feed.clone();
    tokio::task::spawn_blocking(move || feed.port_removed(1)).await.unwrap();
    let Some(Told::Update(gone)) = follower.next().await.unwrap() else { panic!() };
    assert_eq!(gone.delete, [path("/interfaces/interface[name=port1]/name")]);
    tokio::task::spawn_blocking(move || again.port_added(1)).await.unwrap();
    assert_eq!(follower.update().await.len(), 1);
}

/// A subscription may be there before what it is about.
#[tokio::test]
async fn ports_that_are_not_there_yet_are_followed() {
    let device = Device::start();
    let mut client = client(&device).await;
    let name = "/interfaces/interface[name=port7]/name";
    let wanted = || vec![subscription(name, SubscriptionMode::OnChange)];
    let mut once = Subscriber::new(&mut client, list(Mode::Once, wanted())).await;
    assert!(once.synced().await.is_empty());
    assert_eq!(once.next().await.unwrap(), None);
    let mut follower = Subscriber::new(&mut client, list(Mode::Stream, wanted())).await;
    assert!(follower.synced().await.is_empty());
    let feed = device.server.as_ref().unwrap().feed();
    tokio::task::spawn_blocking(move || feed.port_added(7)).await.unwrap();
    assert_eq!(follower.update().await, [(name.to_owned(), string("port7"))].into());
}

#[tokio::test]
async fn answers_to_set_have_the_paths_of_the_request() {
    let device = Device::start();
    let mut client = client(&device).await;
    let prefix = || Some(Path { target: "leaf1".into(), ..path("/interfaces/interface[name=port1]") });
    let value = |json: &[u8]| Some(TypedValue { value: Some(Value::JsonVal(json.to_vec())) });
    let update =
        |what: &str, json: &[u8]| Update { path: Some(path(what)), val: value(json), ..Update::default() };
    let request = SetRequest {
        prefix: prefix(),
        delete: vec![path("/config/health-indicator")],
        update: vec![update("/config/enabled", b"false")],
        ..SetRequest::default()
    };
    let answer = client.set(request).await.unwrap().into_inner();
    assert_eq!(answer.prefix, prefix());
    let paths: Vec<_> = answer.response.into_iter().map(|result| result.path.unwrap()).collect();
    assert_eq!(paths, [path("/config/health-indicator"), path("/config/enabled")]);

    // What is not there can be deleted, and nothing is deleted by putting nothing in its place.
    let delete = |what: &str| SetRequest { delete: vec![path(what)], ..SetRequest::default() };
    for what in ["/interfaces/interface[name=nowhere]", "/interfaces/interface[name=nowhere]/config/*"] {
        client.set(delete(what)).await.unwrap();
    }
    for (request, code) in [
        (delete("/interfaces/interface[name=port1]/config/mtu"), Code::Unimplemented),
        (delete("/interfaces/interface[name=port1]/state"), Code::InvalidArgument),
        (
            SetRequest {
                replace: vec![update("/interfaces/interface[name=port1]", b"{}")],
                ..SetRequest::default()
            },
            Code::InvalidArgument,
        ),
    ] {
        assert_eq!(client.set(request).await.unwrap_err().code(), code);
    }
    let enabled = "/interfaces/interface[name=port1]/config/enabled";
    assert_eq!(get_one(&mut client, enabled).await, Value::BoolVal(false));
}

#[tokio::test]
async fn what_is_refused() {
    let device = Device::start();
    let mut client = client(&device).await;
    let request = |what: &str, encoding: Encoding| GetRequest {
        path: vec![path(what)],
        encoding: encoding as i32,
        ..GetRequest::default()
    };
    for (request, code) in [
        (request("/interfaces/interface[name=nowhere]/state", Encoding::Proto), Code::NotFound),
        (request("/qos", Encoding::Json), Code::Unimplemented),
        (request("/interfaces/interface/state/mtu", Encoding::Json), Code::Unimplemented),
        (request("/.../mtu", Encoding::Json), Code::Unimplemented),
        (request("/", Encoding::Ascii), Code::Unimplemented),
        (GetRequest { path: vec![Path::default(); 257], ..GetRequest::default() }, Code::ResourceExhausted),
        (GetRequest { r#type: 9, ..GetRequest::default() }, Code::InvalidArgument),
    ] {
        assert_eq!(client.get(request).await.unwrap_err().code(), code);
    }
    for (what, value, code) in [
        ("/interfaces/interface[name=port1]/state/oper-status", string("UP"), Code::InvalidArgument),
        ("/interfaces/interface[name=port1]/config/enabled", string("yes"), Code::InvalidArgument),
        ("/interfaces/interface[name=port1]/config/name", string("other"), Code::Unimplemented),
        ("/interfaces/interface[name=port1]/config/health-indicator", string("FINE"), Code::InvalidArgument),
        ("/interfaces/interface[name=nowhere]/config/enabled", Value::BoolVal(false), Code::NotFound),
        ("/interfaces/interface[name=*]/config/enabled", Value::BoolVal(false), Code::InvalidArgument),
        ("/interfaces/interface[name=port1]/config", Value::JsonVal(b"{".to_vec()), Code::InvalidArgument),
    ] {
        assert_eq!(set(&mut client, what, value).await.unwrap_err().code(), code, "{what}");
    }
    // Nothing of a request is done when a part of it is refused.
    let part = |what: &str, json: &[u8]| Update {
        path: Some(path(what)),
        val: Some(TypedValue { value: Some(Value::JsonVal(json.to_vec())) }),
        ..Update::default()
    };
    let update = vec![
        part("/interfaces/interface[name=port1]/config", b"{\"enabled\": false}"),
        part("/interfaces/interface[name=port1]/config", b"{\"mtu\": 9000}"),
    ];
    let both = SetRequest { update, ..SetRequest::default() };
    assert_eq!(client.set(both).await.unwrap_err().code(), Code::NotFound);
    let enabled = "/interfaces/interface[name=port1]/config/enabled";
    assert_eq!(get_one(&mut client, enabled).await, Value::BoolVal(true));
    let mut ends = async |list: SubscriptionList| {
        let mut subscriber = Subscriber::new(&mut client, list).await;
        subscriber.next().await.unwrap_err().code()
    };
    let many = vec![subscription("/", SubscriptionMode::OnChange); 65];
    assert_eq!(ends(list(Mode::Stream, many)).await, Code::ResourceExhausted);
    let nowhere = vec![subscription("/nowhere", SubscriptionMode::OnChange)];
    assert_eq!(ends(list(Mode::Once, nowhere)).await, Code::Unimplemented);
    assert_eq!(ends(list(Mode::Stream, vec![])).await, Code::InvalidArgument);
    let models = SubscriptionList {
        use_models: vec![ModelData { name: "openconfig-bgp".into(), ..ModelData::default() }],
        ..list(Mode::Once, vec![subscription("/", SubscriptionMode::Sample)])
    };
    assert_eq!(ends(models).await, Code::Unimplemented);
    let bytes = SubscriptionList { encoding: Encoding::Bytes as i32, ..list(Mode::Once, vec![]) };
    assert_eq!(ends(bytes).await, Code::Unimplemented);
    // There are only so many streams.
    let mut streams = Vec::new();
    for _ in 0..millrace_gnmi::MAX_SUBSCRIBERS {
        let mut other = crate::gnmi::client(&device).await;
        let wanted = vec![subscription("/interfaces/interface[name=port1]/name", SubscriptionMode::OnChange)];
        let mut stream = Subscriber::new(&mut other, list(Mode::Stream, wanted)).await;
        stream.synced().await;
        streams.push(stream);
    }
    let (_say, said) = mpsc::channel(1);
    let refused = client.subscribe(ReceiverStream::new(said)).await.unwrap_err();
    assert_eq!(
        (refused.code(), refused.message()),
        (Code::ResourceExhausted, "there are at most 64 subscribers")
    );
}

#[tokio::test]
async fn subtrees_are_json() {
    let device = Device::start();
    let mut client = client(&device).await;
    let mut json = async |what: &str, encoding: Encoding, kind: get_request::DataType| {
        let request = GetRequest {
            path: vec![path(what)],
            encoding: encoding as i32,
            r#type: kind as i32,
            ..GetRequest::default()
        };
        let mut answer = client.get(request).await.unwrap().into_inner().notification.remove(0);
        assert_eq!(answer.update.len(), 1);
        match answer.update.remove(0).val.unwrap().value.unwrap() {
            Value::JsonVal(bytes) | Value::JsonIetfVal(bytes) => {
                serde_json::from_slice::<serde_json::Value>(&bytes).unwrap()
            }
            other => panic!("{other:?}"),
        }
    };
    use get_request::DataType;
    let config = json("/interfaces", Encoding::Json, DataType::Config).await;
    let entry = |port: u32| {
        let name = format!("port{port}");
        serde_json::json!({"name": name, "config": {"name": name, "enabled": true, "health-indicator": "UNKNOWN"}})
    };
    assert_eq!(config, serde_json::json!({"interface": [entry(1), entry(2)]}));
    let state =
        json("/interfaces/interface[name=port2]/state/counters", Encoding::JsonIetf, DataType::All).await;
    assert_eq!(state["openconfig-interfaces:in-octets"], "0");
    let component =
        json("/components/component[name=switch]/integrated-circuit", Encoding::JsonIetf, DataType::State)
            .await;
    let id = crate::common::DEVICE.to_string();
    assert_eq!(component, serde_json::json!({"openconfig-platform:state": {"openconfig-p4rt:node-id": id}}));
    let leaf = json("/interfaces/interface[name=port2]/state/ifindex", Encoding::Json, DataType::State).await;
    assert_eq!(leaf, 2);
    let operational =
        json("/interfaces/interface[name=port2]/state", Encoding::Json, DataType::Operational).await;
    assert_eq!(
        (&operational["oper-status"], &operational["enabled"]),
        (&"UP".into(), &serde_json::Value::Null)
    );
}
