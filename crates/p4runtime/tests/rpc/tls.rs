//! TLS and mutual TLS, and that nothing else reaches further than this machine.

use crate::common::Device;
use millrace_listen::ListenError;
use millrace_p4runtime::{DeviceConfig, Listen, Server, StartError, Tls};
use millrace_p4runtime_api::v1::CapabilitiesRequest;
use millrace_p4runtime_api::v1::p4_runtime_client::P4RuntimeClient;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Identity};

struct Signed {
    certificate: String,
    key: String,
}

fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(vec![]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

fn signed(name: &str, authority: &CertifiedIssuer<'static, KeyPair>) -> Signed {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    let certificate = params.signed_by(&key, authority).unwrap();
    Signed { certificate: certificate.pem(), key: key.serialize_pem() }
}

async fn ask(address: String, tls: Option<ClientTlsConfig>) -> Result<String, String> {
    let mut endpoint = Channel::from_shared(address).unwrap();
    if let Some(tls) = tls {
        endpoint = endpoint.tls_config(tls).unwrap();
    }
    let channel = endpoint.connect().await.map_err(|error| error.to_string())?;
    let answer = P4RuntimeClient::new(channel).capabilities(CapabilitiesRequest::default()).await;
    answer.map(|answer| answer.into_inner().p4runtime_api_version).map_err(|status| status.to_string())
}

#[tokio::test]
async fn clients_need_a_certificate_of_the_authority_when_one_is_named() {
    let authority = authority();
    let (server, client, stranger) = (
        signed("localhost", &authority),
        signed("controller", &authority),
        signed("controller", &self::authority()),
    );
    let listen = |client_authority| Listen {
        address: ([127, 0, 0, 1], 0).into(),
        tls: Some(Tls {
            certificate: server.certificate.clone().into(),
            key: server.key.clone().into(),
            client_authority,
        }),
        allow_plaintext: false,
    };
    let trusting = || {
        ClientTlsConfig::new().ca_certificate(Certificate::from_pem(authority.pem())).domain_name("localhost")
    };
    let identity = |signed: &Signed| Identity::from_pem(&signed.certificate, &signed.key);

    let device = Device::listening(listen(None));
    let address = device.address().replace("http", "https");
    assert_eq!(ask(address.clone(), Some(trusting())).await, Ok("1.5.0".into()));
    assert!(ask(device.address(), None).await.is_err(), "a plain connection to a TLS port");

    let device = Device::listening(listen(Some(authority.pem().into())));
    let address = device.address().replace("http", "https");
    assert_eq!(ask(address.clone(), Some(trusting().identity(identity(&client)))).await, Ok("1.5.0".into()));
    assert!(ask(address.clone(), Some(trusting())).await.is_err(), "without a certificate");
    assert!(ask(address, Some(trusting().identity(identity(&stranger)))).await.is_err(), "of somebody else");
}

#[tokio::test]
async fn plain_connections_from_elsewhere_are_refused_unless_asked_for() {
    let device = Device::start();
    let start = |listen: &Listen| {
        let config = DeviceConfig {
            device_id: 1,
            making: Default::default(),
            ports: Default::default(),
            links: Default::default(),
            cpu_port: None,
            pipeline: None,
        };
        Server::start(listen, config, device.control.clone())
    };
    let open = Listen { address: ([0, 0, 0, 0], 0).into(), tls: None, allow_plaintext: false };
    assert!(matches!(start(&open), Err(StartError::Listen(ListenError::Exposed(..)))));
    drop(start(&Listen { allow_plaintext: true, ..open }).unwrap());
    let nonsense = Tls { certificate: b"no".into(), key: b"no".into(), client_authority: None };
    let listen = Listen { address: ([127, 0, 0, 1], 0).into(), tls: Some(nonsense), allow_plaintext: false };
    assert!(matches!(start(&listen), Err(StartError::Tls(_))));
    let taken =
        Listen { address: device.server.as_ref().unwrap().address(), tls: None, allow_plaintext: false };
    assert!(matches!(start(&taken), Err(StartError::Listen(ListenError::Refused(..)))));
}
