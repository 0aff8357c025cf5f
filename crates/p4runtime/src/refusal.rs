//! Why one update, one read or one stream message was refused, as the specification wants it said.

use crate::proto::v1;
use millrace_state::{ProfileError, TableError, WriteError};
use millrace_switch::ReplicationError;
use prost::Message;
use tonic::{Code, Status};
use tracing::debug;

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

    fn error(self) -> v1::Error {
        v1::Error { canonical_code: self.code as i32, message: self.message, ..v1::Error::default() }
    }
}

/// The status of a batch: OK, or UNKNOWN with one `p4.v1.Error` for each element, in order (specification, "Error
/// Reporting").
pub(crate) fn batch_status(results: Vec<Result<(), Refusal>>, failed: &str) -> Result<(), Status> {
    if results.iter().all(Result::is_ok) {
        return Ok(());
    }
    let details = results.into_iter().enumerate().map(|(number, result)| {
        if let Err(refusal) = &result {
            debug!(number, code = ?refusal.code, reason = refusal.message, "{failed}");
        }
        let error = result.err().map_or_else(v1::Error::default, Refusal::error);
        prost_types::Any { type_url: "type.googleapis.com/p4.v1.Error".into(), value: error.encode_to_vec() }
    });
    let status = crate::proto::google::rpc::Status {
        code: Code::Unknown as i32,
        message: failed.to_owned(),
        details: details.collect(),
    };
    Err(Status::with_details(Code::Unknown, failed, status.encode_to_vec().into()))
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
                | ProfileError::GroupTooLarge { .. } => Code::ResourceExhausted,
                ProfileError::DuplicateMember(_) | ProfileError::DuplicateGroup(_) => Code::AlreadyExists,
                ProfileError::NoMember(_) | ProfileError::NoGroup(_) => Code::NotFound,
                ProfileError::MemberInUse(_) | ProfileError::GroupInUse(_) => Code::FailedPrecondition,
                _ => Code::InvalidArgument,
            },
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
            ReplicationError::TooMany { .. } => Code::ResourceExhausted,
            ReplicationError::GroupExists(_) => Code::AlreadyExists,
            ReplicationError::NoGroup(_) | ReplicationError::NoSession(_) | ReplicationError::NoNode(_) => {
                Code::NotFound
            }
            _ => Code::InvalidArgument,
        };
        Refusal::new(code, error.to_string())
    }
}

impl From<Refusal> for Status {
    fn from(refusal: Refusal) -> Status {
        Status::new(refusal.code, refusal.message)
    }
}
