//! Answers to calls, and the macro that makes the server's side of a service from its list of calls.

use millrace_thrift_api::CallError;
use millrace_thrift_api::wire::{Wire, write_field};
use thrift::protocol::{TMessageIdentifier, TMessageType, TOutputProtocol, TStructIdentifier};
use thrift::{ApplicationError, ApplicationErrorKind};

/// The switch has ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gone;

impl<E> From<Gone> for CallError<E> {
    fn from(_: Gone) -> CallError<E> {
        let message = "the switch is not running any more";
        CallError::Failed(ApplicationError::new(ApplicationErrorKind::InternalError, message))
    }
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

/// Why the arguments of a call are none. Its message was read whole, so the connection goes on with the next one.
pub(crate) fn unreadable(error: &thrift::Error) -> ApplicationError {
    ApplicationError::new(ApplicationErrorKind::ProtocolError, error.to_string())
}

/// The server's side of a service: `answer`, which calls the method of the same name of the [`Device`].
///
/// [`Device`]: crate::device::Device
macro_rules! answers {
    ($service:literal {
        $(fn $method:ident($($id:literal $arg:ident: $ty:ty),* $(,)?) -> $result:ty $(, $error:ty)?;)*
    }) => {
        /// The name of the service.
        pub(crate) const NAME: &str = $service;
        /// Its calls.
        #[cfg(test)]
        pub(crate) const CALLS: &[&str] = &[$(stringify!($method)),*];

        /// Answers a call, if the service has it.
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
                    let read = ::millrace_thrift_api::wire::read_fields(from, |id, ty, from| {
                        match id {
                            $($id if ty == <$ty as ::millrace_thrift_api::wire::Wire>::TYPE => {
                                $arg = ::millrace_thrift_api::wire::Wire::read(from)?;
                                Ok(true)
                            })*
                            _ => Ok(false),
                        }
                    });
                    if let Err(error) = read.and_then(|()| from.read_message_end()) {
                        $crate::answer::refuse(to, call, &$crate::answer::unreadable(&error))?;
                        return Ok(true);
                    }
                    let result = device.$method($($arg),*);
                    device.record(method, &result);
                    $crate::answer::reply::<$result, $crate::answer::answers!(@error $($error)?)>(to, call, result)?;
                })*
                _ => return Ok(false),
            }
            Ok(true)
        }
    };
    (@error) => { ::millrace_thrift_api::Undeclared };
    (@error $error:ty) => { $error };
}

pub(crate) use answers;
