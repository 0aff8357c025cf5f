//! How an address is written: `9559`, `:9559`, `10.0.0.1`, `10.0.0.1:9559`, `::1`, `[::1]:9559`, `name`, `name:9559`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::str::FromStr;

/// Longest name of a machine, in bytes (RFC 1035).
const MAX_NAME: usize = 253;

/// Where a server listens, or where it is reached: a machine and a port, either of which may be left out. Without a
/// machine it is this one, reached by nobody else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    host: Host,
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Host {
    Address(IpAddr),
    Name(String),
}

/// Why a text is no address, or the address of nobody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddressError {
    /// It has another form.
    Form(String),
    /// The number after the colon, or alone, is no port.
    Port(String),
    /// It names a socket of the file system.
    Unix(String),
    /// Nobody knows the name.
    Unknown(String, String),
}

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AddressError::Form(text) => {
                write!(
                    f,
                    "`{text}` is no address to listen on, as in 9559 (of this machine), 127.0.0.1:9559 or [::1]:9559"
                )
            }
            AddressError::Port(text) => write!(f, "`{text}` is no port: 0 to {}", u16::MAX),
            AddressError::Unix(text) => {
                write!(f, "`{text}` is no address to listen on: sockets of the file system are not served")
            }
            AddressError::Unknown(name, reason) => {
                write!(f, "`{name}` is no address to listen on: {reason}")
            }
        }
    }
}

impl std::error::Error for AddressError {}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Address, AddressError> {
        let form = || AddressError::Form(text.escape_debug().to_string());
        if text.starts_with("unix:") {
            return Err(AddressError::Unix(text.escape_debug().to_string()));
        }
        // A number alone is a port: the system would take it for an address, 9559 for 0.0.37.87.
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Ok(Address { host: Host::Address(Ipv4Addr::LOCALHOST.into()), port: Some(port(text)?) });
        }
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Address { host: Host::Address(address), port: None });
        }
        if let Some(rest) = text.strip_prefix('[') {
            let (address, rest) = rest.split_once(']').ok_or_else(form)?;
            let host = Host::Address(address.parse::<Ipv6Addr>().map_err(|_| form())?.into());
            let port = match rest.strip_prefix(':') {
                Some(number) => Some(port(number)?),
                None if rest.is_empty() => None,
                None => return Err(form()),
            };
            return Ok(Address { host, port });
        }
        let (name, number) = match text.split_once(':') {
            Some((name, number)) => (name, Some(port(number)?)),
            None => (text, None),
        };
        let host = match name {
            "" if number.is_some() => Host::Address(Ipv4Addr::LOCALHOST.into()),
            _ => match name.parse::<Ipv4Addr>() {
                Ok(address) => Host::Address(address.into()),
                Err(_) if is_name(name) => Host::Name(name.to_owned()),
                Err(_) => return Err(form()),
            },
        };
        Ok(Address { host, port: number })
    }
}

impl Address {
    /// The address. A name is looked up; `localhost` is 127.0.0.1.
    ///
    /// # Errors
    /// [`AddressError::Unknown`].
    pub fn resolve(&self, default_port: u16) -> Result<SocketAddr, AddressError> {
        let port = self.port.unwrap_or(default_port);
        let name = match &self.host {
            Host::Address(address) => return Ok((*address, port).into()),
            Host::Name(name) if name.eq_ignore_ascii_case("localhost") => {
                return Ok((Ipv4Addr::LOCALHOST, port).into());
            }
            Host::Name(name) => name,
        };
        let unknown = |reason: String| AddressError::Unknown(name.clone(), reason);
        let mut found =
            (name.as_str(), port).to_socket_addrs().map_err(|error| unknown(error.to_string()))?;
        found.next().ok_or_else(|| unknown("it has no address".to_owned()))
    }

    /// The port, if it was written.
    pub fn port(&self) -> Option<u16> {
        self.port
    }

    /// The machine as it was written, for whoever compares it with a certificate.
    pub fn host(&self) -> String {
        match &self.host {
            Host::Address(address) => address.to_string(),
            Host::Name(name) => name.clone(),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.host, self.port) {
            (Host::Address(IpAddr::V6(address)), Some(port)) => write!(f, "[{address}]:{port}"),
            (_, Some(port)) => write!(f, "{}:{port}", self.host()),
            (_, None) => f.write_str(&self.host()),
        }
    }
}

fn port(text: &str) -> Result<u16, AddressError> {
    // A plus sign would parse as a number too.
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = is_number.then(|| text.parse().ok()).flatten();
    number.ok_or_else(|| AddressError::Port(text.escape_debug().to_string()))
}

/// Labels of letters, digits, `-` and `_`, at least one of which has a letter: numbers and dots alone are an address that
/// is not one.
fn is_name(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let labels_are_there = text.strip_suffix('.').unwrap_or(text).split('.').all(|label| !label.is_empty());
    text.len() <= MAX_NAME
        && labels_are_there
        && text.bytes().all(is_plain)
        && text.bytes().any(|byte| byte.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(text: &str) -> String {
        text.parse::<Address>().unwrap().resolve(1000).unwrap().to_string()
    }

    #[test]
    fn an_address_has_one_form_for_all() {
        for (text, address) in [
            ("9559", "127.0.0.1:9559"),
            (":9559", "127.0.0.1:9559"),
            ("0", "127.0.0.1:0"),
            ("65535", "127.0.0.1:65535"),
            ("127.0.0.1:9559", "127.0.0.1:9559"),
            ("127.0.0.1", "127.0.0.1:1000"),
            ("[::1]:9559", "[::1]:9559"),
            ("[::1]", "[::1]:1000"),
            ("::1", "[::1]:1000"),
            ("[::1]:0", "[::1]:0"),
            ("localhost:9559", "127.0.0.1:9559"),
            ("LocalHost", "127.0.0.1:1000"),
            ("0.0.0.0:9559", "0.0.0.0:9559"),
            ("[::]:9559", "[::]:9559"),
        ] {
            assert_eq!(resolved(text), address, "{text}");
        }
        let name: Address = "switch-1.example:9559".parse().unwrap();
        assert_eq!(
            (name.host(), name.to_string()),
            ("switch-1.example".into(), "switch-1.example:9559".into())
        );
        assert_eq!("[::1]:5".parse::<Address>().unwrap().to_string(), "[::1]:5");
    }

    #[test]
    fn nonsense_is_refused() {
        let refused = |text: &str| text.parse::<Address>().unwrap_err();
        for text in [
            "",
            ":",
            "a b",
            "1.2.3",
            "1.2.3.4.5",
            "256.0.0.1:1",
            "[::1",
            "[::1]9",
            "[x]:1",
            "::g",
            "a..b",
            "\x1b[2J",
            "a/b",
        ] {
            let error = refused(text);
            assert!(matches!(error, AddressError::Form(_) | AddressError::Port(_)), "{text}: {error:?}");
            assert!(!error.to_string().contains('\x1b'), "{error}");
        }
        for text in
            ["65536", ":65536", "localhost:65536", "127.0.0.1:x", "[::1]:-1", "a:+1", "99999999999999999999"]
        {
            assert!(matches!(refused(text), AddressError::Port(_)), "{text}");
        }
        assert!(refused("unix:/run/millrace").to_string().contains("file system"));
        let long = format!("{}:1", "a".repeat(300));
        assert!(long.parse::<Address>().is_err());
    }
}
