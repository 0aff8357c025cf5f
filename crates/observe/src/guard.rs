//! Which requests are answered: those whose `Host` is this server, and changes only when a program asks, not a web page.
//!
//! A browser of the operator's machine reaches servers that listen on loopback. A web page may not read their answers, but it may
//! have its own name point to 127.0.0.1 after it was loaded (DNS rebinding): then the browser takes this server for the
//! page's, and the page reads everything. What the page cannot change is the `Host` of its requests, its own name.

use hyper::header::{HOST, ORIGIN};
use hyper::http::request::Parts;
use hyper::http::uri::Authority;
use hyper::{StatusCode, Version};
use std::net::{IpAddr, SocketAddr};

/// The names by which this server may be asked for, beyond its address and those of loopback.
#[derive(Clone, Debug, Default)]
pub(crate) struct Guard {
    names: Vec<String>,
    /// What gives them.
    given_by: &'static str,
}

/// Why a request is not answered.
pub(crate) type Refusal = (StatusCode, String);

impl Guard {
    /// With further names, which that option or key gives.
    pub(crate) fn new(names: &[String], given_by: &'static str) -> Guard {
        Guard { names: names.iter().map(|name| bare(name).to_ascii_lowercase()).collect(), given_by }
    }

    /// Whether a request that came to the address `local` may be answered.
    pub(crate) fn admits(&self, head: &Parts, local: SocketAddr) -> Result<(), Refusal> {
        let mut given = head.headers.get_all(HOST).iter();
        let host = match (head.uri.authority(), given.next()) {
            // As a proxy is asked: what is there takes precedence (RFC 9112, 3.2.2).
            (Some(authority), _) => authority.as_str(),
            (None, Some(host)) => host.to_str().unwrap_or_default(),
            // Browsers have spoken HTTP/1.1 for long.
            (None, None) if head.version < Version::HTTP_11 => return Ok(()),
            (None, None) => return Err((StatusCode::BAD_REQUEST, "a request has a Host".to_owned())),
        };
        if given.next().is_some() {
            return Err((StatusCode::BAD_REQUEST, "a request has one Host".to_owned()));
        }
        let authority = host
            .parse::<Authority>()
            .map_err(|_| (StatusCode::BAD_REQUEST, format!("`{}` is no Host", host.escape_debug())))?;
        match self.knows(authority.host(), local) {
            true => Ok(()),
            false => Err((
                StatusCode::FORBIDDEN,
                format!(
                    "this server is not `{}`: {} names further hosts of it",
                    authority.host().escape_debug(),
                    self.given_by
                ),
            )),
        }
    }

    fn knows(&self, host: &str, local: SocketAddr) -> bool {
        let host = bare(host).to_ascii_lowercase();
        if host == "localhost" || self.names.contains(&host) {
            return true;
        }
        host.parse::<IpAddr>().is_ok_and(|address| {
            let address = address.to_canonical();
            address.is_loopback() || address == local.ip().to_canonical()
        })
    }
}

/// Whether a request may change something: it comes from this machine, and from no web page.
pub(crate) fn may_change(head: &Parts, peer: SocketAddr) -> Result<(), Refusal> {
    if !peer.ip().to_canonical().is_loopback() || head.headers.contains_key(ORIGIN) {
        return Err((
            StatusCode::FORBIDDEN,
            "captures and the log are switched by programs of this machine".to_owned(),
        ));
    }
    Ok(())
}

/// Without the brackets of an IPv6 address and the dot of a complete name.
fn bare(host: &str) -> &str {
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    host.strip_suffix('.').unwrap_or(host)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::Request;

    fn head(hosts: &[&str]) -> Parts {
        let request = hosts
            .iter()
            .fold(Request::builder().uri("/metrics"), |request, host| request.header(HOST, *host));
        request.body(()).unwrap().into_parts().0
    }

    fn status(guard: &Guard, hosts: &[&str]) -> Option<StatusCode> {
        guard.admits(&head(hosts), "10.0.0.5:9560".parse().unwrap()).err().map(|(status, _)| status)
    }

    #[test]
    fn names_of_others_are_refused() {
        let guard = Guard::new(&["Switch1.example".to_owned(), "fd00::1".to_owned()], "");
        for host in [
            "localhost",
            "LOCALHOST:9560",
            "localhost.",
            "127.0.0.1:9560",
            "127.9.9.9",
            "[::1]:9560",
            "10.0.0.5:9560",
            "10.0.0.5",
            "switch1.example",
            "switch1.example:80",
            "[fd00::1]:9560",
        ] {
            assert_eq!(status(&guard, &[host]), None, "{host}");
        }
        for host in [
            "attacker.example",
            "attacker.example:9560",
            "localhost.attacker.example",
            "10.0.0.6:9560",
            "127.0.0.1.nip.example",
        ] {
            assert_eq!(status(&guard, &[host]), Some(StatusCode::FORBIDDEN), "{host}");
        }
        for hosts in [&[][..], &["localhost", "localhost"], &[""], &["a b"]] {
            assert_eq!(status(&guard, hosts), Some(StatusCode::BAD_REQUEST), "{hosts:?}");
        }
        let mut old = head(&[]);
        old.version = Version::HTTP_10;
        assert!(guard.admits(&old, "127.0.0.1:1".parse().unwrap()).is_ok());
        let absolute =
            Request::builder().uri("http://attacker.example/metrics").header(HOST, "localhost").body(());
        let head = absolute.unwrap().into_parts().0;
        assert!(guard.admits(&head, "127.0.0.1:1".parse().unwrap()).is_err());
    }
}
