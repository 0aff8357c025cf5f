//! Calls: what is sent, what comes back, and the macro that makes both sides of an interface from its list of calls.

use crate::wire::{Wire, read_fields, unexpected, write_field};
use std::fmt;
use thrift::protocol::{
    TInputProtocol, TMessageIdentifier, TMessageType, TOutputProtocol, TStructIdentifier, TType,
};
use thrift::{ApplicationError, ApplicationErrorKind};

/// Why a call has no result.
#[derive(Debug)]
pub enum CallError<E> {
    /// An exception of the interface.
    Declared(E),
    /// The server has no such call, or could not do it.
    Failed(ApplicationError),
    /// The connection is broken.
    Broken(thrift::Error),
}

/// The switch has ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gone;

impl<E> From<Gone> for CallError<E> {
    fn from(_: Gone) -> CallError<E> {
        let message = "the switch is not running any more";
        CallError::Failed(ApplicationError::new(ApplicationErrorKind::InternalError, message))
    }
}

/// A call without exceptions of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undeclared {}

impl Wire for Undeclared {
    const TYPE: TType = TType::Struct;

    fn read(_: &mut dyn TInputProtocol) -> thrift::Result<Undeclared> {
        Err(unexpected("an exception that is not declared"))
    }

    fn write(&self, _: &mut dyn TOutputProtocol) -> thrift::Result<()> {
        match *self {}
    }
}

impl<E: fmt::Debug> fmt::Display for CallError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CallError::Declared(error) => write!(f, "{error:?}"),
            CallError::Failed(error) => f.write_str(&error.message),
            CallError::Broken(error) => error.fmt(f),
        }
    }
}

/// Sends a call: its arguments are fields.
pub(crate) fn send(
    to: &mut dyn TOutputProtocol,
    call: &TMessageIdentifier,
    arguments: impl FnOnce(&mut dyn TOutputProtocol) -> thrift::Result<()>,
) -> thrift::Result<()> {
    to.write_message_begin(call)?;
    to.write_struct_begin(&TStructIdentifier::new("args"))?;
    arguments(to)?;
    to.write_field_stop()?;
    to.write_struct_end()?;
    to.write_message_end()?;
    to.flush()
}

/// Takes what a call gave.
pub(crate) fn receive<R: Wire, E: Wire>(
    from: &mut dyn TInputProtocol,
    sequence: i32,
) -> Result<R, CallError<E>> {
    let result = receive_message(from, sequence).map_err(CallError::Broken)?;
    result.map_err(CallError::Failed)?;
    let (mut given, mut refused) = (None, None);
    let read = read_fields(from, |id, ty, from| {
        match id {
            0 if ty == R::TYPE => given = Some(R::read(from)?),
            1 if ty == E::TYPE => refused = Some(E::read(from)?),
            _ => return Ok(false),
        }
        Ok(true)
    });
    read.and_then(|()| from.read_message_end()).map_err(CallError::Broken)?;
    match (refused, given.or_else(R::missing)) {
        (Some(refused), _) => Err(CallError::Declared(refused)),
        (None, Some(given)) => Ok(given),
        (None, None) => {
            Err(CallError::Failed(ApplicationError::new(ApplicationErrorKind::MissingResult, "no result")))
        }
    }
}

fn receive_message(
    from: &mut dyn TInputProtocol,
    sequence: i32,
) -> thrift::Result<Result<(), ApplicationError>> {
    let message = from.read_message_begin()?;
    if message.message_type == TMessageType::Exception {
        let error = thrift::Error::read_application_error_from_in_protocol(from)?;
        from.read_message_end()?;
        return Ok(Err(error));
    }
    thrift::protocol::verify_expected_sequence_number(sequence, message.sequence_number)?;
    thrift::protocol::verify_expected_message_type(TMessageType::Reply, message.message_type)?;
    Ok(Ok(()))
}

/// Answers a call.
pub(crate) fn reply<R: Wire, E: Wire>(
    to: &mut dyn TOutputProtocol,
    call: &TMessageIdentifier,
    result: Result<R, CallError<E>>,
) -> thrift::Result<()> {
    let begin = |to: &mut dyn TOutputProtocol| {
        let name = call.name.as_str();
        to.write_message_begin(&TMessageIdentifier::new(name, TMessageType::Reply, call.sequence_number))?;
        to.write_struct_begin(&TStructIdentifier::new("result"))
    };
    match result {
        Ok(given) => {
            begin(to)?;
            write_field(0, &given, to)?;
        }
        Err(CallError::Declared(error)) => {
            begin(to)?;
            write_field(1, &error, to)?;
        }
        Err(CallError::Failed(error)) => return refuse(to, call, &error),
        Err(CallError::Broken(error)) => return Err(error),
    }
    to.write_field_stop()?;
    to.write_struct_end()?;
    to.write_message_end()?;
    to.flush()
}

/// Answers a call that cannot be done.
pub(crate) fn refuse(
    to: &mut dyn TOutputProtocol,
    call: &TMessageIdentifier,
    error: &ApplicationError,
) -> thrift::Result<()> {
    let name = call.name.as_str();
    to.write_message_begin(&TMessageIdentifier::new(name, TMessageType::Exception, call.sequence_number))?;
    thrift::Error::write_application_error_to_out_protocol(error, to)?;
    to.write_message_end()?;
    to.flush()
}

/// Both sides of a service: `answer` for the server, which calls the method of the same name of the [`Device`], and
/// methods of the [`Client`].
///
/// [`Device`]: crate::device::Device
/// [`Client`]: crate::Client
macro_rules! service {
    ($(#[$meta:meta])* $service:literal {
        $(fn $method:ident($($id:literal $arg:ident: $ty:ty),* $(,)?) -> $result:ty $(, $error:ty)?;)*
    }) => {
        /// The name of the service.
        pub(crate) const NAME: &str = $service;

        $(#[$meta])*
        #[allow(unused_variables, reason = "calls without arguments read none")]
        pub(crate) fn answer(
            device: &$crate::device::Device,
            method: &str,
            call: &::thrift::protocol::TMessageIdentifier,
            from: &mut dyn ::thrift::protocol::TInputProtocol,
            to: &mut dyn ::thrift::protocol::TOutputProtocol,
        ) -> ::thrift::Result<bool> {
            match method {
                $(stringify!($method) => {
                    $(let mut $arg = <$ty>::default();)*
                    $crate::wire::read_fields(from, |id, ty, from| {
                        match id {
                            $($id if ty == <$ty as $crate::wire::Wire>::TYPE => {
                                $arg = $crate::wire::Wire::read(from)?;
                                Ok(true)
                            })*
                            _ => Ok(false),
                        }
                    })?;
                    from.read_message_end()?;
                    let result = device.$method($($arg),*);
                    $crate::call::reply::<$result, $crate::call::service!(@error $($error)?)>(to, call, result)?;
                })*
                _ => return Ok(false),
            }
            Ok(true)
        }

        #[allow(missing_docs, reason = "named as in bmv2's interface")]
        impl $crate::Client {
            $(
                /// # Errors
                /// The exception that bmv2's interface declares, or the connection is broken.
                pub fn $method(&mut self $(, $arg: $ty)*)
                -> Result<$result, $crate::CallError<$crate::call::service!(@error $($error)?)>> {
                    self.call($service, stringify!($method), |_to| {
                        $($crate::wire::write_field($id, &$arg, _to)?;)*
                        Ok(())
                    })
                }
            )*
        }
    };
    (@error) => { $crate::call::Undeclared };
    (@error $error:ty) => { $error };
}

pub(crate) use service;
