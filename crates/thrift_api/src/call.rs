//! A call from the side of the client: what is sent and what comes back.

use crate::wire::{Wire, read_fields, unexpected};
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
