//! The client's side of a connection.

use crate::call::{CallError, Undeclared, receive, send};
use crate::interface::*;
use crate::limits;
use crate::wire::{Wire, write_field};
use std::io::{self, BufReader, BufWriter};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;
use thrift::protocol::{
    TBinaryInputProtocol, TBinaryOutputProtocol, TMessageIdentifier, TMessageType, TOutputProtocol,
};

/// How long to wait for a connection.
const CONNECT_TIME: Duration = Duration::from_secs(10);

/// A connection to a switch: this one or bmv2. It has a method for each call of the interface.
#[derive(Debug)]
pub struct Client {
    from: TBinaryInputProtocol<BufReader<TcpStream>>,
    to: TBinaryOutputProtocol<BufWriter<TcpStream>>,
    sequence: i32,
}

impl Client {
    /// Connects to a switch.
    ///
    /// # Errors
    /// There is none, or it does not answer.
    pub fn connect(address: impl ToSocketAddrs) -> io::Result<Client> {
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        for address in address.to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, CONNECT_TIME) {
                Ok(stream) => return Client::new(stream),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn new(stream: TcpStream) -> io::Result<Client> {
        stream.set_nodelay(true)?;
        let reader = BufReader::new(stream.try_clone()?);
        Ok(Client {
            from: TBinaryInputProtocol::with_config(reader, true, limits::of_answers()),
            to: TBinaryOutputProtocol::with_config(BufWriter::new(stream), true, limits::of_answers()),
            sequence: 0,
        })
    }

    fn call<R: Wire, E: Wire>(
        &mut self,
        service: &str,
        method: &str,
        arguments: impl FnOnce(&mut dyn TOutputProtocol) -> thrift::Result<()>,
    ) -> Result<R, CallError<E>> {
        self.sequence = self.sequence.wrapping_add(1);
        let name = format!("{service}:{method}");
        let call = TMessageIdentifier::new(name, TMessageType::Call, self.sequence);
        send(&mut self.to, &call, arguments).map_err(CallError::Broken)?;
        receive(&mut self.from, self.sequence)
    }
}

/// Methods of the [`Client`] for the calls of a service.
macro_rules! methods {
    ($service:literal {
        $(fn $method:ident($($id:literal $arg:ident: $ty:ty),* $(,)?) -> $result:ty $(, $error:ty)?;)*
    }) => {
        #[allow(missing_docs, reason = "named as in bmv2's interface")]
        impl Client {
            $(
                /// # Errors
                /// The exception that bmv2's interface declares, or the connection is broken.
                pub fn $method(&mut self $(, $arg: $ty)*)
                -> Result<$result, CallError<methods!(@error $($error)?)>> {
                    self.call($service, stringify!($method), |_to| {
                        $(write_field($id, &$arg, _to)?;)*
                        Ok(())
                    })
                }
            )*
        }
    };
    (@error) => { Undeclared };
    (@error $error:ty) => { $error };
}

crate::standard_calls!(methods);
crate::simple_pre_lag_calls!(methods);
crate::simple_switch_calls!(methods);
crate::millrace_calls!(methods);
