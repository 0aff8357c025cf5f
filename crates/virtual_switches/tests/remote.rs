//! `millrace ctl` over gRPC: who may ask what, which files are sent, and clients that keep to nothing.

mod lab;

use lab::{CROSS_FILE, Folder, Lab, PATIENCE, file, switch, wait_for};
use millrace_ctl_api::parts::{MAX_PART, MAX_PART_MESSAGE};
use millrace_ctl_api::proto::{Part, ctl_client::CtlClient};
use millrace_ctl_api::{Answer, Client, ClientError, MAX_REQUEST, RefusalKind, Refused, Request};
use millrace_p4runtime_api::client::{ClientTls, endpoint};
use millrace_virtual_switches::{
    ControlSocket, Device, MAX_CONNECTIONS, MAX_CONNECTIONS_OF_TENANT, MAX_CONNECTIONS_OF_TENANTS, OpenPorts,
};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status};

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

/// A device with a switch of `red`, one of `blue` and one of the operator, each known by a certificate and a token.
struct House {
    lab: Lab,
    authority: Authority,
    address: SocketAddr,
}

const EVERYTHING: &str = "\"read\", \"write\", \"swap\", \"capture\", \"life-cycle\"";
const UPLOADS: &str = "uploads = \"uploads\"";
/// What a client shows to be known by.
#[derive(Clone, Copy, Debug)]
enum Shows<'n> {
    Certificate(&'n str),
    Token(&'n str),
    Both(&'n str, &'n str),
    Nothing,
}

fn token(name: &str) -> String {
    format!("token-of-{name}-with-many-letters")
}

fn switches() -> String {
    [
        switch("r", 10, &format!("{CROSS_FILE}\ntenant = \"red\"")),
        switch("b", 20, &format!("{CROSS_FILE}\ntenant = \"blue\"")),
        switch("o", 30, CROSS_FILE),
        "[[link]]\nbetween = [\"r:2\", \"o:2\"]\n".to_owned(),
    ]
    .concat()
}

fn house(keys: &str) -> House {
    let (folder, authority) = (Folder::new(), authority());
    let (certificate, key) = signed("server", &authority);
    folder.write("cert.pem", &certificate);
    folder.write("key.pem", &key);
    folder.write("ca.pem", &authority.pem());
    let mut text = String::new();
    for name in ["red", "blue"] {
        folder.write(&format!("{name}.token"), &token(name));
        text += &format!(
            "[[tenant]]\nname = \"{name}\"\ntoken-file = \"{name}.token\"\ncertificate = \"{name}\"\nroles = [{EVERYTHING}]\n"
        );
    }
    folder.write("boss.token", &token("boss"));
    let device = format!(
        "grpc = \"127.0.0.1:0\"\ngrpc-cert = \"cert.pem\"\ngrpc-key = \"key.pem\"\ngrpc-client-ca = \"ca.pem\"\ngrpc-ctl = true\n\
         operator-certificate = \"boss\"\noperator-token-file = \"boss.token\"\naudit = \"audit.log\"\n{keys}"
    );
    let lab = Lab::within(folder, &file(&device, &(text + &switches())));
    let address = lab.device.p4runtime().unwrap();
    House { lab, authority, address }
}

impl House {
    fn connect(&self, shows: Shows<'_>) -> Result<Client, ClientError> {
        let (certificate, secret) = match shows {
            Shows::Certificate(name) => (Some(name), None),
            Shows::Token(name) => (None, Some(token(name))),
            Shows::Both(name, secret) => (Some(name), Some(token(secret))),
            Shows::Nothing => (None, None),
        };
        let tls = ClientTls {
            authority: self.authority.pem().into(),
            name: "localhost".into(),
            identity: certificate.map(|name| {
                let (certificate, key) = signed(name, &self.authority);
                (certificate.into(), key.into())
            }),
        };
        Client::connect_grpc(endpoint(self.address, Some(&tls)).unwrap(), secret.as_deref())
    }

    fn boss(&self) -> Client {
        self.connect(Shows::Token("boss")).unwrap()
    }

    /// The names of what clients sent.
    fn kept(&self) -> Vec<String> {
        let Ok(folder) = std::fs::read_dir(self.lab.folder.0.join("uploads")) else { return Vec::new() };
        let mut names: Vec<String> =
            folder.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

fn refused(asked: Result<Answer, ClientError>) -> Refused {
    match asked {
        Err(ClientError::Refused(refused)) => refused,
        other => panic!("{other:?}"),
    }
}

fn text(asked: Result<Answer, ClientError>) -> String {
    match asked {
        Ok(Answer::Text(text)) => text,
        other => panic!("{other:?}"),
    }
}

fn done(asked: Result<Answer, ClientError>) -> Vec<String> {
    match asked {
        Ok(Answer::Changed(changed)) => changed.done,
        other => panic!("{other:?}"),
    }
}

/// Every kind of request that is of one switch.
fn of_switch(lab: &Lab, name: &str) -> Vec<Request> {
    let switch = || name.to_owned();
    let program = || std::fs::read_to_string(lab.folder.0.join("steer.p4")).unwrap();
    vec![
        Request::Stats { switch: Some(switch()) },
        Request::Stop { switch: switch() },
        Request::Start { switch: switch() },
        Request::Swap { switch: switch(), program: program(), keep_everything: false, probation: None },
        Request::Rollback { switch: switch() },
        Request::Shadow { switch: switch(), program: Some(program()), end: false },
        Request::Shadow { switch: switch(), program: None, end: false },
        Request::Shadow { switch: switch(), program: None, end: true },
        Request::Snapshot { switch: switch() },
    ]
}

/// Every kind of request that is of the device.
fn of_device(shown: &str) -> Vec<Request> {
    let files = BTreeMap::new;
    let link = "[[link]]\nbetween = [\"r:2\", \"o:2\"]\n".to_owned();
    vec![
        Request::Show,
        Request::Unlink { between: ["r:2".into(), "o:2".into()] },
        Request::Load { text: link, folder: String::new(), files: files() },
        Request::Apply { text: shown.to_owned(), folder: String::new(), files: files(), dry_run: true },
        Request::Apply { text: shown.to_owned(), folder: String::new(), files: files(), dry_run: false },
        Request::Remove { switch: "o".into() },
    ]
}

#[test]
fn the_operator_does_all_that_the_socket_does() {
    let house = house("");
    for shows in [Shows::Certificate("boss"), Shows::Token("boss"), Shows::Both("boss", "boss")] {
        let mut boss = house.connect(shows).unwrap();
        assert_eq!(boss.device(), "millrace");
        let Answer::Switches(list) = boss.ask(&Request::List).unwrap() else { panic!() };
        assert_eq!(list.len(), 3);
        let Answer::Stats(stats) = boss.ask(&Request::Stats { switch: None }).unwrap() else { panic!() };
        assert_eq!((stats.physical.len(), stats.switches.len()), (2, 3));
        let Answer::Graph(graph) = boss.ask(&Request::Graph).unwrap() else { panic!() };
        assert_eq!(graph.links.len(), 7);
        let shown = text(boss.ask(&Request::Show));
        for request in of_switch(&house.lab, "r").into_iter().chain(of_device(&shown)) {
            boss.ask(&request).unwrap_or_else(|error| panic!("{shows:?} {request:?}: {error}"));
        }
        let snapshot = text(boss.ask(&Request::Snapshot { switch: "r".into() }));
        let restored = done(boss.ask(&Request::Restore { switch: "b".into(), snapshot }));
        assert!(restored[0].contains("goes on with the snapshot of r"), "{restored:?}");
        house.lab.passes(10);
        // Who removed a switch brings it back with its files, or as one of this machine.
        assert!(refused(boss.ask(&of_device(&shown)[4])).message.contains("not named over gRPC"));
        house.lab.change(&house.lab.apply(&shown));
    }
    // What each asked is in the log, with where from.
    let House { lab, .. } = house;
    let Lab { device, folder, .. } = lab;
    drop(device);
    let log = std::fs::read_to_string(folder.0.join("audit.log")).unwrap();
    let lines: Vec<serde_json::Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for what in [
        "swap r",
        "rollback r",
        "stop r",
        "start r",
        "snapshot r",
        "restore b",
        "shadow r",
        "load",
        "unlink r:2 o:2",
        "remove o",
    ] {
        let found = lines.iter().filter(|line| line["what"] == what);
        let found: Vec<_> = found.map(|line| (&line["who"], &line["from"], &line["result"])).collect();
        assert!(found.len() >= 3, "{what}: {found:?}");
        assert!(
            found
                .iter()
                .all(|(who, from, result)| *who == "operator" && *from == "127.0.0.1" && *result == "ok")
        );
    }
}

#[test]
fn a_tenant_does_it_to_its_own_switches_only() {
    let house = house("");
    let shown = text(house.boss().ask(&Request::Show));
    for shows in [Shows::Certificate("red"), Shows::Token("red")] {
        let mut red = house.connect(shows).unwrap();
        let Answer::Switches(list) = red.ask(&Request::List).unwrap() else { panic!() };
        assert_eq!(list.iter().map(|switch| switch.name.as_str()).collect::<Vec<_>>(), ["r"]);
        let Answer::Stats(stats) = red.ask(&Request::Stats { switch: None }).unwrap() else { panic!() };
        assert_eq!((stats.physical.len(), stats.switches.len()), (0, 1));
        let Answer::Graph(graph) = red.ask(&Request::Graph).unwrap() else { panic!() };
        assert_eq!(graph.switches.len(), 1);
        for request in of_switch(&house.lab, "r") {
            red.ask(&request).unwrap_or_else(|error| panic!("{shows:?} {request:?}: {error}"));
        }
        for other in ["b", "o", "nobody"] {
            for request in of_switch(&house.lab, other) {
                let refused = refused(red.ask(&request));
                assert_eq!(refused.kind, RefusalKind::NotFound, "{request:?}");
                assert_eq!(refused.message, format!("there is no switch `{other}`"));
            }
        }
        for request in of_device(&shown) {
            assert_eq!(refused(red.ask(&request)).kind, RefusalKind::Forbidden, "{request:?}");
        }
    }
}

#[test]
fn a_stranger_gets_nowhere() {
    let house = house("");
    for shows in [
        Shows::Nothing,
        Shows::Certificate("nobody"),
        Shows::Token("nobody"),
        // Who brings a wrong token is nobody, whatever the certificate says.
        Shows::Both("boss", "nobody"),
    ] {
        match house.connect(shows) {
            Err(ClientError::Refused(refused)) => assert_eq!(refused.kind, RefusalKind::Unknown, "{shows:?}"),
            other => panic!("{shows:?}: {other:?}"),
        }
    }
    // Another authority, and no TLS at all.
    let stranger = authority();
    let (certificate, key) = signed("boss", &stranger);
    let tls = ClientTls {
        authority: house.authority.pem().into(),
        name: "localhost".into(),
        identity: Some((certificate.into(), key.into())),
    };
    assert!(Client::connect_grpc(endpoint(house.address, Some(&tls)).unwrap(), None).is_err());
    assert!(Client::connect_grpc(endpoint(house.address, None).unwrap(), Some(&token("boss"))).is_err());
    // A tenant that is gone is nobody from the next request on.
    let mut red = house.connect(Shows::Token("red")).unwrap();
    let shown = text(house.boss().ask(&Request::Show));
    let (before, rest) = shown.split_once("[[tenant]]\nname = \"red\"").unwrap();
    let without =
        format!("{before}{}", &rest[rest.find("[[tenant]]").unwrap()..]).replace("tenant = \"red\"\n", "");
    done(house.boss().ask(&Request::Apply {
        text: without,
        folder: String::new(),
        files: BTreeMap::new(),
        dry_run: false,
    }));
    assert_eq!(refused(red.ask(&Request::List)).kind, RefusalKind::Unknown);
}

#[test]
fn without_the_key_nobody_is_answered() {
    let folder = Folder::new();
    folder.write("boss.token", &token("boss"));
    let device = "grpc = \"127.0.0.1:0\"\noperator-token-file = \"boss.token\"";
    let lab = Lab::within(folder, &file(device, &switch("a", 10, CROSS_FILE)));
    let address = lab.device.p4runtime().unwrap();
    let asked = Client::connect_grpc(endpoint(address, None).unwrap(), Some(&token("boss")));
    let error = asked.unwrap_err().to_string();
    assert!(error.contains("grpc-ctl"), "{error}");
}

/// A device on this machine without TLS, with uploads.
fn plain() -> (Lab, SocketAddr) {
    let folder = Folder::new();
    for name in ["boss", "red", "blue", "green", "white"] {
        folder.write(&format!("{name}.token"), &token(name));
    }
    let tenant = |name| format!("[[tenant]]\nname = \"{name}\"\ntoken-file = \"{name}.token\"\n");
    let tenants = ["red", "blue", "green", "white"].map(tenant).concat();
    let device =
        format!("grpc = \"127.0.0.1:0\"\ngrpc-ctl = true\noperator-token-file = \"boss.token\"\n{UPLOADS}");
    let lab = Lab::within(folder, &file(&device, &(tenants + &switch("a", 10, CROSS_FILE))));
    let address = lab.device.p4runtime().unwrap();
    (lab, address)
}

fn plain_client(address: SocketAddr, name: &str) -> Result<Client, ClientError> {
    Client::connect_grpc(endpoint(address, None).unwrap(), Some(&token(name)))
}

fn apply(text: &str, files: &[(&str, &str)]) -> Request {
    let files = files.iter().map(|(path, content)| ((*path).to_owned(), (*content).to_owned())).collect();
    Request::Apply { text: text.to_owned(), folder: String::new(), files, dry_run: false }
}

#[test]
fn contents_of_files_are_sent_and_kept_while_they_are_named() {
    let house = house(UPLOADS);
    let mut boss = house.boss();
    let shown = text(boss.ask(&Request::Show));
    let new = "[[switch]]\nname = \"new\"\nprogram = \"mine/steer.p4\"\nengine = \"interp\"\nentries = [\"mine/entries\"]\ndevice-id = 40\n\
               [[switch.port]]\nnumber = 0\nphysical = \"p0\"\nmatch = { vlan = 40 }\ntag = \"strip\"\n\
               [[switch.port]]\nnumber = 1\nphysical = \"p1\"\nmatch = { vlan = 40 }\ntag = \"strip\"\n\
               [[tenant]]\nname = \"green\"\ntoken-file = \"green.token\"\n";
    let source = std::fs::read_to_string(house.lab.folder.0.join("steer.p4")).unwrap();
    let image = compiled(&source);
    let entries = std::fs::read_to_string(house.lab.folder.0.join("cross.txt")).unwrap();
    let secret = token("green");
    let all = [("mine/steer.p4", image.as_str()), ("mine/entries", &entries), ("green.token", &secret)];
    let whole = format!("{new}{shown}");
    let mut dry = apply(&whole, &all);
    let Request::Apply { dry_run, .. } = &mut dry else { panic!() };
    *dry_run = true;
    assert!(!done(boss.ask(&dry)).is_empty());
    assert!(house.kept().is_empty(), "a dry run keeps nothing");
    let load = |files: &[(&str, &str)]| {
        let Request::Apply { files, .. } = apply("", files) else { panic!() };
        Request::Load { text: new.to_owned(), folder: String::new(), files }
    };
    done(boss.ask(&load(&all)));
    house.lab.passes(40);
    house.connect(Shows::Token("green")).unwrap();
    let kept = house.kept();
    assert_eq!(kept.len(), 3, "{kept:?}");
    for (name, content) in kept.iter().map(|name| (name, house.lab.folder.0.join("uploads").join(name))) {
        use std::os::unix::fs::PermissionsExt;
        let meta = std::fs::metadata(&content).unwrap();
        assert_eq!(meta.permissions().mode() & 0o777, 0o600, "{name}");
    }
    // The same contents are the same files: nothing changes.
    assert_eq!(done(boss.ask(&apply(&whole, &all))), Vec::<String>::new());
    // A file that was damaged, as by a machine that lost its power, is sent again.
    let damaged = kept.iter().find(|name| name.ends_with(".mimg")).unwrap();
    for content in [String::new(), image.replacen('{', "[", 1)] {
        house.lab.folder.write(&format!("uploads/{damaged}"), &content);
        assert_eq!(done(boss.ask(&apply(&whole, &all))), Vec::<String>::new());
        let again = std::fs::read_to_string(house.lab.folder.0.join("uploads").join(damaged)).unwrap();
        assert!(again == image, "the image is whole again");
    }
    // What is shown can be changed and sent back, without the files.
    let now = text(boss.ask(&Request::Show));
    let stopped = now.replacen("state = \"running\"", "state = \"stopped\"", 1);
    assert_eq!(done(boss.ask(&apply(&stopped, &[]))).len(), 1);
    // Other contents take the place of the first.
    let other = [("mine/steer.p4", image.as_str()), ("mine/entries", ""), ("green.token", &secret)];
    assert_eq!(done(boss.ask(&apply(&whole, &other))).len(), 2, "entries of one, the state of another");
    let after = house.kept();
    assert!(after.len() == 3 && after != kept, "{after:?}");
    // What nothing names any more goes; other files stay.
    house.lab.folder.write("uploads/mine.txt", "mine");
    done(boss.ask(&apply(&shown, &[])));
    assert_eq!(house.kept(), ["mine.txt"]);
}

/// An image of a program, as a client makes one.
fn compiled(source: &str) -> String {
    use millrace_compile::{Options, Source, Standard, check};
    let checked = check(Source::Text("steer.p4", source), Standard::P4_16, &Options::default());
    let typed = millrace_describe::p4info::describe(&checked.typed);
    millrace_describe::image::Image::new(checked.lower().unwrap(), typed).to_string()
}

#[test]
fn nobody_names_a_file_of_the_machine_of_the_device() {
    let house = house(UPLOADS);
    let mut boss = house.boss();
    let shown = text(boss.ask(&Request::Show));
    let secret = house.lab.folder.text() + "/boss.token";
    let section = |keys: &str| format!("[[switch]]\nname = \"new\"\ndevice-id = 40\n{keys}\n");
    let mine = [("m", "x")];
    for (added, files, says) in [
        (section(&format!("image = \"{secret}\"")), &[][..], "not named over gRPC"),
        (section("program = \"/etc/hostname\""), &[], "not named over gRPC"),
        (section("image = \"m\"\nentries = [\"/etc/hostname\"]"), &mine, "not named over gRPC"),
        (section("image = \"m\""), &[], "were not sent"),
        (section("image = \"../m\""), &mine, "were not sent"),
        ("[[tenant]]\nname = \"new\"\ntoken-file = \"/etc/hostname\"\n".into(), &[], "not named over gRPC"),
        ("[[tenant]]\nname = \"new\"\ntoken-file = \"m\"\nfolder = \"/etc\"\n".into(), &mine, "`folder`"),
        ("[[port]]\nname = \"new\"\ndevice = \"pcap:/etc/hostname\"\n".into(), &[], "pcap"),
        ("[[port]]\nname = \"new\"\ndevice = \"stream:/etc/hostname\"\n".into(), &[], "stream"),
        ("[[port]]\nname = \"new\"\ndevice = \"null:/etc/hostname\"\n".into(), &[], "null"),
        ("[[port]]\nname = \"new\"\ndevice = \"dpdk:net_pcap0,rx_pcap=/etc/hostname\"\n".into(), &[], "dpdk"),
        ("[classify]\nprogram = \"/etc/hostname\"\n".into(), &[], "not named over gRPC"),
        ("[classify]\nprogram = \"m\"\ninclude = [\"/etc\"]\n".into(), &mine, "`include`"),
        (String::new(), &mine, "does not name the file `m`"),
    ] {
        let refused = refused(boss.ask(&apply(&format!("{added}{shown}"), files)));
        assert_eq!(refused.kind, RefusalKind::Invalid, "{added}: {refused:?}");
        assert!(refused.message.contains(says), "{added}: {refused:?}");
        assert!(house.kept().is_empty());
    }
    // A file of another switch is not for this one.
    let (_, entries) = shown.split_once("entries = [\"").unwrap();
    let path = entries.split('"').next().unwrap();
    let taken = section(&format!("image = \"{path}\""));
    assert!(refused(boss.ask(&apply(&format!("{taken}{shown}"), &[]))).message.contains("not named"));
    // Keys of the device, and its files, stay: nothing is read to find out.
    for (key, other) in [
        ("audit = \"", "audit = \"/etc/hostname\" # \""),
        ("operator-token-file = \"", "operator-token-file = \"/etc/hostname\" # \""),
    ] {
        let refused = refused(boss.ask(&apply(&shown.replacen(key, other, 1), &[])));
        assert!(refused.message.contains("has to start again"), "{refused:?}");
    }
    let folder = Request::Load { text: String::new(), folder: "/".into(), files: BTreeMap::new() };
    assert!(refused(boss.ask(&folder)).message.contains("no folder"));
    // Over the socket the device reads files itself.
    let socket = ControlSocket::serve(&house.lab.device).unwrap_or_else(|failure| panic!("{failure}"));
    let mut local = Client::connect(socket.path(), None).unwrap();
    let mut sent = apply(&shown, &mine);
    let Request::Apply { folder, .. } = &mut sent else { panic!() };
    *folder = "/".into();
    assert!(refused(local.ask(&sent)).message.contains("over gRPC only"));
}

#[test]
fn without_a_folder_no_file_is_taken() {
    let house = house("");
    let mut boss = house.boss();
    let shown = text(boss.ask(&Request::Show));
    let added = format!("[[switch]]\nname = \"new\"\ndevice-id = 40\nimage = \"m\"\n{shown}");
    let refused = refused(boss.ask(&apply(&added, &[("m", "x")])));
    assert!(refused.message.contains("`uploads`"), "{refused:?}");
}

/// What a device says to some parts, after which nothing more comes; or how the call ends.
fn say(address: SocketAddr, name: &str, parts: Vec<Vec<u8>>) -> Result<String, Status> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let channel = endpoint(address, None).unwrap().connect().await.unwrap();
        let (to, said) = tokio::sync::mpsc::channel(1);
        let mut request = tonic::Request::new(ReceiverStream::new(said));
        request.metadata_mut().insert("authorization", format!("Bearer {}", token(name)).parse().unwrap());
        let asked = CtlClient::new(channel).converse(request).await?;
        tokio::spawn(async move {
            for bytes in parts {
                if to.send(Part { bytes }).await.is_err() {
                    return;
                }
            }
        });
        let (mut answers, mut heard) = (asked.into_inner(), Vec::new());
        while let Some(part) = answers.message().await? {
            assert!(part.bytes.len() <= MAX_PART);
            heard.extend(part.bytes);
        }
        Ok(String::from_utf8(heard).unwrap())
    })
}

const HELLO: &[u8] = b"{\"version\":1}\n";

#[test]
fn lines_come_in_any_parts_and_those_that_are_none_are_refused() {
    let (_lab, address) = plain();
    let said =
        |parts: Vec<&[u8]>| say(address, "boss", parts.into_iter().map(<[u8]>::to_vec).collect()).unwrap();
    let whole = [HELLO, b"\"list\"\n\"graph\"\n"].concat();
    let expected = said(vec![&whole]);
    assert_eq!(expected.lines().count(), 3, "{expected}");
    assert_eq!(said(whole.chunks(1).collect()), expected);
    assert_eq!(said(vec![HELLO, b"", b"\"list\"\n\"gra", b"", b"ph\"\n"]), expected);
    for (parts, last) in [
        (vec![&b"\n"[..]], "malformed"),
        (vec![b"{\"version\":2}\n"], "malformed"),
        (vec![b"\xff\xff\n"], "malformed"),
        (vec![b"{\"version\":1,\"token\":\"a\"}\n"], "metadata"),
        (vec![HELLO, b"{}\n"], "malformed"),
        (vec![HELLO, b"\"list\""], "malformed"),
        (vec![HELLO, &[0; 100]], "malformed"),
    ] {
        let said = said(parts.clone());
        assert!(said.lines().last().unwrap().contains(last), "{parts:?}: {said}");
    }
    assert_eq!(said(vec![]), "");
}

#[test]
fn parts_and_requests_have_their_limits() {
    let (_lab, address) = plain();
    let said = say(address, "boss", vec![HELLO.to_vec(), vec![b' '; MAX_PART_MESSAGE + 1]]).unwrap();
    assert!(said.lines().nth(1).is_some_and(|line| line.contains("malformed")), "{said}");
    // A line without end.
    let parts = 1 + MAX_REQUEST / MAX_PART;
    let mut long = vec![HELLO.to_vec()];
    long.extend(std::iter::repeat_n(vec![b' '; MAX_PART], parts));
    let said = say(address, "boss", long).unwrap();
    assert!(said.contains(&format!("longer than {MAX_REQUEST} bytes")), "{said}");
    assert!(plain_client(address, "boss").unwrap().ask(&Request::List).is_ok());
}

#[test]
fn calls_are_few_and_the_operator_is_not_kept_out() {
    let (_lab, address) = plain();
    let mut held = Vec::new();
    for name in ["red", "blue", "green"] {
        held.extend((0..MAX_CONNECTIONS_OF_TENANT).map(|_| plain_client(address, name).unwrap()));
        let error = plain_client(address, name).unwrap_err();
        assert!(error.to_string().contains("MAX_CONNECTIONS_OF_TENANT"), "{error}");
    }
    assert_eq!(held.len(), MAX_CONNECTIONS_OF_TENANTS);
    let error = plain_client(address, "white").unwrap_err();
    assert!(error.to_string().contains("MAX_CONNECTIONS_OF_TENANTS"), "{error}");
    held.extend((held.len()..MAX_CONNECTIONS).map(|_| plain_client(address, "boss").unwrap()));
    let refused = plain_client(address, "boss").unwrap_err();
    assert!(
        matches!(&refused, ClientError::Refused(refused) if refused.kind == RefusalKind::Limit),
        "{refused}"
    );
    // Each that goes leaves its place, also one that ends in the middle of a line.
    held.clear();
    wait_for(|| plain_client(address, "boss").is_ok());
    for _ in 0..2 * MAX_CONNECTIONS {
        wait_for(|| match say(address, "boss", vec![HELLO.to_vec(), b"\"li".to_vec()]) {
            Ok(said) => said.contains("malformed"),
            Err(status) => status.code() != Code::ResourceExhausted,
        });
    }
}

#[test]
fn who_says_nothing_is_not_waited_for_and_calls_end_with_the_device() {
    let (lab, address) = plain();
    let begun = Instant::now();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let said = runtime.block_on(async {
        let channel = endpoint(address, None).unwrap().connect().await.unwrap();
        let (to, said) = tokio::sync::mpsc::channel::<Part>(1);
        let mut request = tonic::Request::new(ReceiverStream::new(said));
        request.metadata_mut().insert("authorization", format!("Bearer {}", token("boss")).parse().unwrap());
        let mut answers = CtlClient::new(channel).converse(request).await.unwrap().into_inner();
        let last = tokio::time::timeout(PATIENCE, answers.message()).await.unwrap();
        drop(to);
        last
    });
    assert!(begun.elapsed() < Duration::from_secs(20), "{said:?}");
    let mut client = plain_client(address, "boss").unwrap();
    client.ask(&Request::List).unwrap();
    let Lab { device, .. } = lab;
    let begun = Instant::now();
    drop(device);
    assert!(begun.elapsed() < Duration::from_secs(5), "the device waits for its clients");
    assert!(client.ask(&Request::List).is_err());
}

/// What a device tells of who reaches its servers.
fn exposures(keys: &str, rest: &str) -> Vec<String> {
    let (folder, authority) = (Folder::new(), authority());
    let (certificate, key) = signed("server", &authority);
    folder.write("cert.pem", &certificate);
    folder.write("key.pem", &key);
    folder.write("ca.pem", &authority.pem());
    folder.write("boss.token", &token("boss"));
    Lab::within(folder, &file(keys, rest)).device.exposures()
}

#[test]
fn who_reaches_the_servers_of_a_device_is_told() {
    const TLS: &str = "grpc = \"127.0.0.1:0\"\ngrpc-cert = \"cert.pem\"\ngrpc-key = \"key.pem\"\n";
    const OPEN: &str = "grpc = \"0.0.0.0:0\"\ngrpc-allow-plaintext = true\n";
    const HTTP: &str = "http = \"0.0.0.0:0\"\nhttp-allow-remote = true\n";
    const BOSS: &str = "operator-token-file = \"boss.token\"\n";
    const AUTHORITY: &str = "grpc-client-ca = \"ca.pem\"\n";
    let thrift = "thrift = \"0.0.0.0:0\"\nthrift-allow-remote = true";
    let switch = switch("o", 30, &format!("{CROSS_FILE}\n{thrift}"));
    for (keys, rest, told) in [
        (TLS.to_owned(), "", Some("TLS without grpc-client-ca authenticates no client")),
        (TLS.to_owned() + AUTHORITY, "", None),
        (TLS.to_owned() + BOSS, "", None),
        (OPEN.to_owned(), "", Some("P4Runtime at 0.0.0.0:")),
        (OPEN.to_owned() + BOSS, "", Some("takes tokens without TLS")),
        (HTTP.to_owned(), "", Some("metrics at 0.0.0.0:")),
        (HTTP.to_owned() + BOSS, "", Some("takes tokens without TLS")),
        (String::new(), &switch, Some("Thrift at 0.0.0.0:")),
    ] {
        let said = exposures(&keys, rest);
        assert_eq!(said.len(), told.iter().count(), "{keys}{rest}: {said:?}");
        assert!(said.iter().zip(told).all(|(said, told)| said.contains(told)), "{keys}{rest}: {said:?}");
    }
}

#[test]
fn errors_of_servers_have_the_words_of_the_file() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let served = switch("o", 30, &format!("{CROSS_FILE}\nthrift = \"{address}\""));
    for (keys, rest, key) in [
        (format!("grpc = \"{address}\""), "", "grpc"),
        (format!("http = \"{address}\""), "", "http"),
        (String::new(), &*served, "thrift"),
    ] {
        let folder = Folder::new();
        let file = lab::read(&folder, &file(&keys, rest));
        let started = Device::start(&file, OpenPorts::open(&file).unwrap());
        let failed = started.err().expect("the address is taken").to_string();
        assert!(failed.contains(&format!("; {key} names another address")), "{failed}");
        assert!(!failed.contains("--"), "{failed}");
    }
}
