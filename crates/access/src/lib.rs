//! Who may do what with which device.
//!
//! ```text
//!  a server: certificate, token --> Who --+
//!                                         +--> AccessList::may --> yes, or a Refusal
//!            right, tenant of the device -+
//!
//!            AuditRecord --> AuditLog --bounded queue--> a thread that writes lines of JSON
//! ```
//!
//! It promises that one place decides ([`AccessList::may`]), for all servers alike; that a client learns nothing of a device
//! that it may not see, not even that there is one; that secrets are kept as hashes, and compared in a time that does not
//! depend on them, and are not taken from files that others may read; and that whoever records a change never waits for the disk.
//!
//! It never knows a protocol or a switch.

mod audit;
mod certificate;
mod list;
mod right;
mod secret;
mod tenant;
mod token;

pub use audit::{AUDIT_QUEUE, AuditLog, AuditRecord, MAX_AUDIT_FILE, MAX_AUDIT_TEXT};
pub use certificate::common_name;
pub use list::{AccessError, AccessList, Credential, Entry, MAX_ENTRIES, Refusal, Resource, Scope, Who};
pub use right::{Right, Rights};
pub use secret::{Exposed, SecretError, read_exposed_secret, read_secret};
pub use tenant::{MAX_TENANT_NAME, Tenant, TenantError};
pub use token::{MAX_TOKEN, MAX_TOKEN_FILE, MIN_TOKEN, Token, TokenError};
