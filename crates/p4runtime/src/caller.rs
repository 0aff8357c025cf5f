//! Who calls: the connection that a request came by, and what its client shows to be known by.

use crate::peers::Peer;
use millrace_access::{Token, Who, common_name};
use std::net::IpAddr;
use std::sync::Arc;
use tonic::Request;
use tonic::metadata::MetadataMap;
use tonic::transport::server::TlsConnectInfo;

/// The scheme of `authorization` that is understood (RFC 6750).
const SCHEME: &[u8] = b"Bearer ";

#[derive(Debug)]
pub(crate) struct Caller {
    pub(crate) peer: Arc<Peer>,
    pub(crate) who: Who,
}

impl Caller {
    pub(crate) fn of<T>(request: &Request<T>) -> Arc<Caller> {
        let extensions = request.extensions();
        let peer = Peer::of(extensions).unwrap_or_else(Peer::local);
        let certificate = peer.common_name(|| {
            let certificates = extensions.get::<TlsConnectInfo<Arc<Peer>>>()?.peer_certs()?;
            common_name(certificates.first()?)
        });
        Arc::new(Caller { peer, who: Who { certificate, token: token(request.metadata()) } })
    }

    /// Somebody in this process.
    #[cfg(test)]
    pub(crate) fn local(peer: &Arc<Peer>) -> Arc<Caller> {
        Arc::new(Caller { peer: Arc::clone(peer), who: Who::default() })
    }

    /// Where they are, for the log of changes.
    pub(crate) fn from(&self) -> String {
        self.peer.address.map_or_else(|| "this process".to_owned(), |address| address.to_string())
    }
}

/// Who calls a service that is served next to P4Runtime ([`crate::Another`]).
#[derive(Clone, Debug)]
pub struct RemoteCaller {
    /// What the client shows to be known by.
    pub who: Who,
    /// Where it is; none in this process.
    pub address: Option<IpAddr>,
    /// Whether nobody listens in (TLS).
    pub is_encrypted: bool,
}

impl RemoteCaller {
    /// Of a request.
    pub fn of<T>(request: &Request<T>) -> RemoteCaller {
        let is_encrypted = request.extensions().get::<TlsConnectInfo<Arc<Peer>>>().is_some();
        let caller = Caller::of(request);
        RemoteCaller { who: caller.who.clone(), address: caller.peer.address, is_encrypted }
    }
}

/// What a client presents as its token. Another scheme is a token that nobody has.
fn token(metadata: &MetadataMap) -> Option<Token> {
    let given = metadata.get("authorization")?.as_bytes();
    let secret =
        given.split_at_checked(SCHEME.len()).filter(|(scheme, _)| scheme.eq_ignore_ascii_case(SCHEME));
    Some(Token::presented(secret.map_or(&[][..], |(_, secret)| secret.trim_ascii())))
}
