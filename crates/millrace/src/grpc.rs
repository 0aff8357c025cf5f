//! The P4Runtime options of `millrace run`.

use crate::captures::OpenPort;
use crate::cli::GrpcArgs;
use crate::findings::Failure;
use crate::output::note_line;
use millrace_access::read_secret;
use millrace_chassis::Pipeline;
use millrace_dataplane::PortId;
use millrace_describe::image::Image;
use millrace_listen::{Address, Admission, P4RUNTIME, Service};
use millrace_p4runtime::{CpuLink, Listen, MAX_KEY_BYTES, Tls};
use millrace_p4runtime_api::client::ClientTls;
use millrace_syntax::read_file;
use std::net::SocketAddr;
use std::path::Path;
use tracing::warn;

/// Where and how to listen, if at all.
pub(crate) fn listen(args: &GrpcArgs) -> Result<Option<Listen>, Failure> {
    let Some(given) = &args.grpc else { return Ok(None) };
    let tls = match (&args.grpc_cert, &args.grpc_key) {
        (Some(certificate), Some(key)) => {
            let authority = args.grpc_client_ca.as_deref();
            let tls = match args.grpc_key_exposed {
                true => exposed(certificate, key, authority),
                false => Tls::read(certificate, key, authority),
            };
            Some(tls.map_err(Failure::Failed)?)
        }
        _ => None,
    };
    Ok(Some(Listen { address: address(given, &P4RUNTIME)?, tls, allow_plaintext: args.grpc_allow_plaintext }))
}

/// TLS with a key that others may read, as bmv2 has it; says that they may.
fn exposed(certificate: &Path, key: &Path, authority: Option<&Path>) -> Result<Tls, String> {
    let (tls, exposed) = Tls::read_exposed(certificate, key, authority)?;
    if let Some(exposed) = exposed {
        warn!("{}: {exposed}", key.display());
        note_line(format_args!("warning: {}: {exposed}", key.display()));
    }
    Ok(tls)
}

/// The address that an option names.
pub(crate) fn address(given: &Address, service: &Service) -> Result<SocketAddr, Failure> {
    given
        .resolve(service.default_port)
        .map_err(|error| Failure::Usage(format!("{}: {error}", service.option)))
}

/// TLS of a client, from the files of its options: the authority of the server, the name in its certificate, the client's own certificate
/// with its key. Without an authority there is none.
pub(crate) fn client_tls(
    authority: Option<&Path>,
    name: String,
    certificate: Option<(&Path, &Path)>,
) -> Result<Option<ClientTls>, Failure> {
    let read =
        |path: &Path| read_file(path, MAX_KEY_BYTES).map_err(|error| Failure::failed(path.display(), error));
    let secret = |path: &Path| {
        read_secret(path, MAX_KEY_BYTES).map_err(|error| Failure::failed(path.display(), error))
    };
    let Some(authority) = authority else { return Ok(None) };
    let identity = certificate.map(|(certificate, key)| Ok::<_, Failure>((read(certificate)?, secret(key)?)));
    Ok(Some(ClientTls { authority: read(authority)?, name, identity: identity.transpose()? }))
}

/// Warns of a server that lets in whoever reaches it.
pub(crate) fn warn_of_exposure(service: &Service, address: SocketAddr, admission: Admission) {
    millrace_listen::exposure(service, address, admission)
        .iter()
        .for_each(|exposure| tell_exposure(exposure));
}

/// Tells the operator, and the log, who reaches a server.
pub(crate) fn tell_exposure(exposure: &str) {
    warn!("{exposure}");
    note_line(format_args!("warning: {exposure}"));
}

/// The program as controllers see it. What they get as its device config is the image, which they can set again.
pub(crate) fn pipeline(image: Image) -> Result<Pipeline, Failure> {
    let device_config = image.to_string().into_bytes();
    Pipeline::new(image, device_config).map_err(Failure::Failed)
}

/// Adds the port of the controller.
pub(crate) fn cpu_port(
    args: &GrpcArgs,
    ports: &mut Vec<OpenPort>,
) -> Result<Option<(PortId, CpuLink)>, Failure> {
    let Some(number) = args.cpu_port else { return Ok(None) };
    let (port, link) =
        millrace_p4runtime::cpu_port().map_err(|error| Failure::failed("the CPU port", error))?;
    ports.push((number, vec![Box::new(port)]));
    Ok(Some((number, link)))
}
