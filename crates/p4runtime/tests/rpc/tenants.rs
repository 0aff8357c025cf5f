//! Tenants: who may do what with which device, by certificate and by token, and what the log of changes says of it.

use crate::common::{ALL, election};
use crate::devices::{House, nothing_written, program};
use millrace_access::{AccessList, AuditLog, Credential, Entry, Right, Rights, Scope, Tenant, Token};
use millrace_p4runtime::{Listen, Policy, Share, Tls};
use millrace_p4runtime_api::v1::p4_runtime_client::P4RuntimeClient;
use millrace_p4runtime_api::v1::*;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Identity};
use tonic::{Code, Request, Status};

/// The devices: of `red`, of `blue`, of the operator alone, and one that there is not.
const DEVICES: [(u64, Option<&str>); 4] = [(1, Some("red")), (2, Some("blue")), (3, None), (9, None)];
const SECRET: &str = "a secret of many letters, ";

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority() -> Authority {
    let mut params = CertificateParams::new(vec![]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A certificate and its key.
fn signed(common_name: &str, authority: &Authority) -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    params.distinguished_name.push(DnType::CommonName, common_name);
    (params.signed_by(&key, authority).unwrap().pem(), key.serialize_pem())
}

/// A server with the devices, which knows the clients of a list.
fn house(authority: &Authority, access: AccessList, audit: Option<AuditLog>) -> House {
    let (certificate, key) = signed("server", authority);
    let tls = Tls {
        certificate: certificate.into(),
        key: key.into(),
        client_authority: Some(authority.pem().into()),
    };
    let listen = Listen { address: ([127, 0, 0, 1], 0).into(), tls: Some(tls), allow_plaintext: false };
    let mut house = House::start(listen, Policy { access: Some(Arc::new(access)), audit });
    for (id, tenant) in &DEVICES[..3] {
        let tenant = tenant.map(|name| name.parse().unwrap());
        house.add(*id, Share { tenant, requests_per_second: None }).unwrap();
    }
    house
}

/// A client of a server: what it shows to be known by.
struct Client {
    calls: P4RuntimeClient<Channel>,
    token: Option<String>,
}

impl Client {
    async fn connect(
        house: &House,
        authority: &Authority,
        certificate: Option<&str>,
        token: Option<String>,
    ) -> Client {
        let mut tls = ClientTlsConfig::new()
            .ca_certificate(Certificate::from_pem(authority.pem()))
            .domain_name("localhost");
        if let Some(name) = certificate {
            let (certificate, key) = signed(name, authority);
            tls = tls.identity(Identity::from_pem(certificate, key));
        }
        let endpoint = Channel::from_shared(format!("https://{}", house.server.address())).unwrap();
        let channel = endpoint.tls_config(tls).unwrap().connect().await.unwrap();
        Client { calls: P4RuntimeClient::new(channel), token }
    }

    fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        if let Some(token) = &self.token {
            request.metadata_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
        }
        request
    }

    /// Asks for something that needs a right.
    async fn ask(&mut self, asked: Asked, device_id: u64) -> Result<(), Status> {
        match asked {
            Asked::Capabilities => {
                let request = self.request(CapabilitiesRequest { device_id });
                self.calls.capabilities(request).await.map(drop)
            }
            Asked::Program => {
                let request =
                    self.request(GetForwardingPipelineConfigRequest { device_id, response_type: 0 });
                self.calls.get_forwarding_pipeline_config(request).await.map(drop)
            }
            Asked::Read => {
                let request = self.request(ReadRequest { device_id, ..ReadRequest::default() });
                self.calls.read(request).await.map(drop)
            }
            Asked::Write => {
                let request = self.request(nothing_written(device_id));
                self.calls.write(request).await.map(drop)
            }
            Asked::Swap => {
                let request = self.request(program(device_id, ALL));
                self.calls.set_forwarding_pipeline_config(request).await.map(drop)
            }
            Asked::Backup => self.arbitrate(device_id, None).await.map(drop),
            Asked::Primary => self.arbitrate(device_id, Some(election(1))).await.map(drop),
        }
    }

    /// Opens a stream that says who it is.
    async fn arbitrate(
        &mut self,
        device_id: u64,
        election_id: Option<Uint128>,
    ) -> Result<tonic::Streaming<StreamMessageResponse>, Status> {
        let update = MasterArbitrationUpdate { device_id, election_id, ..Default::default() };
        let update = Some(stream_message_request::Update::Arbitration(update));
        let (say, said) = tokio::sync::mpsc::channel(1);
        say.send(StreamMessageRequest { update }).await.unwrap();
        let request = self.request(tokio_stream::wrappers::ReceiverStream::new(said));
        let mut hear = self.calls.stream_channel(request).await?.into_inner();
        let told = tokio::time::timeout(Duration::from_secs(10), hear.message()).await;
        told.expect("a message of the stream")?;
        // The stream is open for as long as somebody may say something.
        tokio::spawn(async move {
            say.closed().await;
        });
        Ok(hear)
    }
}

/// What a client can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Capabilities,
    Program,
    Read,
    Write,
    Swap,
    Backup,
    Primary,
}

/// With the rights of which one is needed.
const ASKED: [(Asked, &[Right]); 7] = [
    (Asked::Capabilities, &[Right::Read]),
    (Asked::Program, &[Right::Read]),
    (Asked::Read, &[Right::Read]),
    (Asked::Write, &[Right::Write]),
    (Asked::Swap, &[Right::Swap]),
    (Asked::Backup, &[Right::Read]),
    (Asked::Primary, &[Right::Write, Right::Swap]),
];

/// What the access list answers: none, or it lets the request pass.
fn refused(asked: &Result<(), Status>, device_id: u64) -> Option<Code> {
    let status = asked.as_ref().err()?;
    match status.code() {
        Code::NotFound => {
            assert_eq!(status.message(), format!("no device {device_id}"));
            Some(Code::NotFound)
        }
        Code::PermissionDenied if status.message().starts_with("the access list") => {
            Some(Code::PermissionDenied)
        }
        Code::Unauthenticated => Some(Code::Unauthenticated),
        _ => None,
    }
}

#[tokio::test]
async fn every_right_for_every_device_by_every_credential() {
    let authority = authority();
    let mut access = AccessList::default();
    let mut clients: Vec<(String, bool, Option<&str>, Option<Right>)> = Vec::new();
    for given in Right::ALL.map(Some).into_iter().chain([None]) {
        for scope in [None, Some("red"), Some("blue")] {
            for is_token in [false, true] {
                let name = format!("client {}", clients.len());
                let secret = format!("{SECRET}{name}").replace(' ', "-");
                let credential = match is_token {
                    true => Credential::Token(Token::new(secret.as_bytes()).unwrap()),
                    false => Credential::Certificate(name.clone()),
                };
                let rights: Rights = given.into_iter().collect();
                let scope_of = |name: &str| Scope::Tenant(name.parse::<Tenant>().unwrap());
                let of = scope.map_or(Scope::Operator, scope_of);
                access.add(Entry { name: name.clone(), credential, scope: of, rights }).unwrap();
                clients.push((if is_token { secret } else { name }, is_token, scope, given));
            }
        }
    }
    let house = house(&authority, access, None);
    for (known_by, is_token, scope, given) in clients {
        let mut client = match is_token {
            true => Client::connect(&house, &authority, None, Some(known_by)).await,
            false => Client::connect(&house, &authority, Some(&known_by), None).await,
        };
        for (asked, rights) in ASKED {
            for (device, tenant) in DEVICES {
                let is_seen = device != 9 && (scope.is_none() || scope == tenant);
                let expected = match is_seen {
                    false => Some(Code::NotFound),
                    true if given.is_some_and(|given| rights.contains(&given)) => None,
                    true => Some(Code::PermissionDenied),
                };
                let answer = refused(&client.ask(asked, device).await, device);
                assert_eq!(answer, expected, "{asked:?} of {device} by {scope:?} with {given:?}");
            }
        }
    }
}

#[tokio::test]
async fn whoever_is_not_on_the_list_learns_nothing() {
    let authority = authority();
    let mut access = AccessList::default();
    let red = Scope::Tenant("red".parse().unwrap());
    let known = Credential::Certificate("known".into());
    access.add(Entry { name: "red".into(), credential: known, scope: red, rights: Rights::all() }).unwrap();
    let house = house(&authority, access, None);
    let wrong = || Some(format!("{SECRET}wrong").replace(' ', "-"));
    for (certificate, token) in
        [(None, None), (Some("unknown"), None), (None, wrong()), (Some("known"), wrong())]
    {
        let mut client = Client::connect(&house, &authority, certificate, token.clone()).await;
        for (asked, _) in ASKED {
            for (device, _) in DEVICES {
                let answer = refused(&client.ask(asked, device).await, device);
                assert_eq!(answer, Some(Code::Unauthenticated), "{asked:?} by {certificate:?} {token:?}");
            }
        }
        // The version of the interface is no secret.
        client.ask(Asked::Capabilities, 0).await.unwrap();
    }
    // A certificate of somebody else does not even get so far.
    let tls = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(authority.pem()));
    let (certificate, key) = signed("known", &self::authority());
    let tls = tls.domain_name("localhost").identity(Identity::from_pem(certificate, key));
    let endpoint = Channel::from_shared(format!("https://{}", house.server.address())).unwrap();
    let refused = match endpoint.tls_config(tls).unwrap().connect().await {
        Ok(channel) => {
            P4RuntimeClient::new(channel).capabilities(CapabilitiesRequest::default()).await.is_err()
        }
        Err(_) => true,
    };
    assert!(refused);
}

#[tokio::test]
async fn another_list_counts_at_once_for_open_streams_too() {
    let authority = authority();
    let list = |rights: &str| {
        let mut access = AccessList::default();
        let credential = Credential::Certificate("one".into());
        let scope = Scope::Tenant("red".parse().unwrap());
        let rights = rights.parse().unwrap();
        access.add(Entry { name: "one".into(), credential, scope, rights }).unwrap();
        access
    };
    let house = house(&authority, list("all"), None);
    let mut client = Client::connect(&house, &authority, Some("one"), None).await;
    let mut stream = client.arbitrate(1, Some(election(1))).await.unwrap();
    client.ask(Asked::Swap, 1).await.unwrap();
    client.ask(Asked::Write, 1).await.unwrap();
    house.server.devices().set_access(Arc::new(list("read")));
    assert_eq!(refused(&client.ask(Asked::Write, 1).await, 1), Some(Code::PermissionDenied));
    client.ask(Asked::Read, 1).await.unwrap();
    assert!(tokio::time::timeout(Duration::from_millis(200), stream.message()).await.is_err());
    house.server.devices().set_access(Arc::new(list("capture")));
    let ended = tokio::time::timeout(Duration::from_secs(10), stream.message()).await.unwrap();
    assert_eq!(ended.unwrap_err().code(), Code::PermissionDenied);
}

#[tokio::test]
async fn changes_and_refused_requests_are_in_the_log() {
    let authority = authority();
    let mut access = AccessList::default();
    for (name, scope, rights) in
        [("red", Scope::Tenant("red".parse().unwrap()), "all"), ("watcher", Scope::Operator, "read")]
    {
        let credential = Credential::Certificate(name.into());
        let rights = rights.parse().unwrap();
        access.add(Entry { name: name.into(), credential, scope, rights }).unwrap();
    }
    let path: PathBuf = std::env::temp_dir().join(format!("millrace-audit-rpc-{}", std::process::id()));
    let house = house(&authority, access, Some(AuditLog::open(&path).unwrap()));
    let mut red = Client::connect(&house, &authority, Some("red"), None).await;
    let _stream = red.arbitrate(1, Some(election(1))).await.unwrap();
    red.ask(Asked::Swap, 1).await.unwrap();
    red.ask(Asked::Write, 1).await.unwrap();
    red.ask(Asked::Read, 1).await.unwrap();
    red.ask(Asked::Read, 2).await.unwrap_err();
    red.ask(Asked::Write, 2).await.unwrap_err();
    let mut watcher = Client::connect(&house, &authority, Some("watcher"), None).await;
    watcher.ask(Asked::Read, 1).await.unwrap();
    watcher.ask(Asked::Swap, 1).await.unwrap_err();
    watcher.ask(Asked::Primary, 1).await.unwrap_err();
    Client::connect(&house, &authority, None, None).await.ask(Asked::Write, 9).await.unwrap_err();
    drop((red, watcher));
    drop(house);
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told: Vec<(Option<&str>, u64, &str, bool)> = lines
        .iter()
        .map(|line| {
            assert_eq!(line["from"], "127.0.0.1");
            let is_done = line["result"] == "ok";
            (line["who"].as_str(), line["device"].as_u64().unwrap(), line["what"].as_str().unwrap(), is_done)
        })
        .collect();
    let expected = [
        (Some("red"), 1, "set pipeline VERIFY_AND_COMMIT", true),
        (Some("red"), 1, "write of 0 updates", true),
        (Some("red"), 2, "read", false),
        (Some("red"), 2, "write of 0 updates", false),
        (Some("watcher"), 1, "set pipeline VERIFY_AND_COMMIT", false),
        (Some("watcher"), 1, "arbitration", false),
        (None, 9, "write of 0 updates", false),
    ];
    assert_eq!(told, expected);
}
