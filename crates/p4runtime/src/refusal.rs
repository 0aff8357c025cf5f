//! Why one update, one read or one stream message was refused, as the specification wants it said.

use millrace_chassis::{ProgramError, Why};
use millrace_dataplane::{ObjectError, ReplicationError};
use millrace_p4runtime_api::v1::{StreamError, stream_error, stream_message_response};
use millrace_state::{ProfileError, TableError, WriteError};
use prost::Message;
use tonic::{Code, Status};

/// Most bytes of a message that goes back to its client with what was wrong with it.
const MAX_ECHO: usize = 256 << 10;

/// A message that goes back to its client, if it is short enough.
pub(crate) fn echo<M: Message>(message: M) -> Option<M> {
    (message.encoded_len() <= MAX_ECHO).then_some(message)
}

/// A canonical code with a sentence.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Refusal {
    pub(crate) code: Code,
    pub(crate) message: String,
}

impl Refusal {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Refusal {
        Refusal { code, message: message.into() }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Refusal {
        Refusal::new(Code::InvalidArgument, message)
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Refusal {
        Refusal::new(Code::NotFound, message)
    }

    pub(crate) fn exists(message: impl Into<String>) -> Refusal {
        Refusal::new(Code::AlreadyExists, message)
    }

    pub(crate) fn denied(message: impl Into<String>) -> Refusal {
        Refusal::new(Code::PermissionDenied, message)
    }

    pub(crate) fn out_of_range(message: impl Into<String>) -> Refusal {
        Refusal::new(Code::OutOfRange, message)
    }

    pub(crate) fn exhausted(message: impl Into<String>) -> Refusal {
        Refusal::new(Code::ResourceExhausted, message)
    }

    pub(crate) fn unimplemented(message: impl Into<String>) -> Refusal {
        Refusal::new(Code::Unimplemented, message)
    }

    /// The same, with words in front that say of what.
    pub(crate) fn of(self, what: impl std::fmt::Display) -> Refusal {
        Refusal { code: self.code, message: format!("{what}: {}", self.message) }
    }
}

impl Refusal {
    /// It as the message of a stream.
    pub(crate) fn of_stream(self, details: stream_error::Details) -> stream_message_response::Update {
        stream_message_response::Update::Error(StreamError {
            canonical_code: self.code as i32,
            message: self.message,
            details: Some(details),
            ..StreamError::default()
        })
    }
}

impl From<WriteError> for Refusal {
    fn from(error: WriteError) -> Refusal {
        let code = match &error {
            WriteError::Unknown { .. } => Code::NotFound,
            WriteError::ActionScope { .. } => Code::PermissionDenied,
            WriteError::Table(error) | WriteError::Key { error, .. } => table_code(error),
            WriteError::Profile(error) => match error {
                ProfileError::MembersFull { .. }
                | ProfileError::GroupsFull { .. }
                | ProfileError::PlacesFull { .. }
                | ProfileError::GroupTooLarge { .. } => Code::ResourceExhausted,
                ProfileError::DuplicateMember(_) | ProfileError::DuplicateGroup(_) => Code::AlreadyExists,
                ProfileError::NoMember(_) | ProfileError::NoGroup(_) => Code::NotFound,
                ProfileError::MemberInUse(_) | ProfileError::GroupInUse(_) => Code::FailedPrecondition,
                _ => Code::InvalidArgument,
            },
            WriteError::Quota(_) => Code::ResourceExhausted,
            WriteError::Index { .. } => Code::OutOfRange,
            _ => Code::InvalidArgument,
        };
        Refusal::new(code, error.to_string())
    }
}

fn table_code(error: &TableError) -> Code {
    match error {
        TableError::Full { .. } | TableError::NoMemory(_) => Code::ResourceExhausted,
        TableError::Duplicate => Code::AlreadyExists,
        TableError::NotFound => Code::NotFound,
        TableError::ConstEntry | TableError::ConstTable | TableError::ConstDefault => Code::PermissionDenied,
        _ => Code::InvalidArgument,
    }
}

impl From<ReplicationError> for Refusal {
    fn from(error: ReplicationError) -> Refusal {
        let code = match &error {
            ReplicationError::TooMany { .. } | ReplicationError::Quota(_) => Code::ResourceExhausted,
            ReplicationError::GroupExists(_) | ReplicationError::SessionExists(_) => Code::AlreadyExists,
            ReplicationError::NoGroup(_) | ReplicationError::NoSession(_) | ReplicationError::NoNode(_) => {
                Code::NotFound
            }
            _ => Code::InvalidArgument,
        };
        Refusal::new(code, error.to_string())
    }
}

impl From<ProgramError> for Refusal {
    fn from(error: ProgramError) -> Refusal {
        let code = match error.why {
            Why::Invalid => Code::InvalidArgument,
            Why::Cancelled => Code::Cancelled,
            Why::TooMany => Code::ResourceExhausted,
            Why::Broken => Code::Internal,
        };
        Refusal::new(code, error.message)
    }
}

impl From<ObjectError> for Refusal {
    fn from(error: ObjectError) -> Refusal {
        match error {
            ObjectError::Refused(error) => error.into(),
            // Clients of Thrift can bring a program meanwhile.
            ObjectError::Replaced => Refusal::new(Code::Aborted, error.to_string()),
            ObjectError::State(_) => Refusal::new(Code::ResourceExhausted, error.to_string()),
        }
    }
}

impl From<Refusal> for Status {
    fn from(refusal: Refusal) -> Status {
        Status::new(refusal.code, refusal.message)
    }
}
