//! Who asks, and what they may do.

use crate::failure::Failure;
use millrace_access::{
    AccessError, AccessList, AuditLog, AuditRecord, Credential, Entry, Refusal, Resource, Right, Rights,
    Scope, Tenant, Token, Who,
};
use millrace_device_file::{Device, DeviceFile, OPERATOR, Role, Tenant as TenantInFile};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// Who asks for something over the socket of the device, or over gRPC.
#[derive(Clone, Debug)]
pub enum Client {
    /// Whoever the socket's permissions let in without a token.
    Operator {
        /// Their user id, for the log of changes.
        uid: u32,
    },
    /// Somebody with a token.
    WithToken(Token),
    /// Somebody with a certificate or a token who asks over gRPC.
    Remote {
        /// What they show to be known by.
        who: Who,
        /// Where they are, for the log of changes.
        from: IpAddr,
    },
    /// Nobody: the device does it by itself, or for its file, when that is read again.
    Itself,
}

/// The access list of a device, and its log of changes.
pub(crate) struct Clients {
    list: RwLock<Arc<AccessList>>,
    /// No file until now has said who may use the servers of the device: everybody may who reaches them.
    is_open: AtomicBool,
    audit: Option<AuditLog>,
}

impl Clients {
    /// Those of a file.
    pub(crate) fn new(file: &DeviceFile) -> Result<Clients, Failure> {
        let audit = file.device.audit.as_ref().map(|path| {
            AuditLog::open(Path::new(path)).map_err(|error| Failure::failed(format_args!("{path}: {error}")))
        });
        let is_open = AtomicBool::new(!are_known(file));
        Ok(Clients { list: RwLock::new(Arc::new(list(file)?)), is_open, audit: audit.transpose()? })
    }

    /// A file says who may use the servers: from now on nobody else does, also when a later file says nothing.
    pub(crate) fn close(&self) {
        self.is_open.store(false, Ordering::Release);
    }

    /// Where changes are recorded.
    pub(crate) fn audit(&self) -> Option<AuditLog> {
        self.audit.clone()
    }

    /// Those of another file from now on.
    pub(crate) fn set(&self, list: Arc<AccessList>) {
        *self.list.write().unwrap_or_else(PoisonError::into_inner) = list;
    }

    pub(crate) fn list(&self) -> Arc<AccessList> {
        Arc::clone(&self.list.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether a client may do something with a resource.
    pub(crate) fn may(&self, client: &Client, right: Right, resource: Resource<'_>) -> Result<(), Refusal> {
        match client {
            // The operator may do everything, and hears of what is not there from whoever looks for it.
            Client::Operator { .. } | Client::Itself => Ok(()),
            Client::WithToken(token) => self.list().may(&who(token), right, resource),
            Client::Remote { who, .. } => self.list().may(who, right, resource),
        }
    }

    /// Whether somebody who asks over HTTP may do something with a resource. Without a token nobody is the operator, but where the file
    /// says nothing of clients.
    pub(crate) fn may_over_http(
        &self,
        who: &Who,
        right: Right,
        resource: Resource<'_>,
    ) -> Result<(), Refusal> {
        match self.is_open.load(Ordering::Acquire) {
            true => Ok(()),
            false => self.list().may(who, right, resource),
        }
    }

    /// Whether somebody who shows nothing to be known by, and acts as the client of that name, may do something with a resource. Without a
    /// name nobody may, but where the file says nothing of clients.
    pub(crate) fn may_as(
        &self,
        name: Option<&str>,
        right: Right,
        resource: Resource<'_>,
    ) -> Result<(), Refusal> {
        match name {
            Some(OPERATOR) => Ok(()),
            Some(name) => self.list().may_as(name, right, resource),
            None => self.may_over_http(&Who::default(), right, resource),
        }
    }

    /// Records what somebody asked for who acts as the client of that name, and what came of it.
    pub(crate) fn record_as(
        &self,
        name: Option<&str>,
        from: &str,
        device: u64,
        what: &str,
        result: Result<(), &str>,
    ) {
        let Some(audit) = &self.audit else { return };
        audit.record(AuditRecord::now(name, from, Some(device), what, result));
    }

    /// The name of a client on the access list, unless it is the operator.
    pub(crate) fn tenant(&self, client: &Client) -> Option<String> {
        let list = self.list();
        let name = match client {
            Client::WithToken(token) => list.name(&who(token)),
            Client::Remote { who, .. } => list.name(who),
            Client::Operator { .. } | Client::Itself => None,
        };
        name.filter(|name| *name != OPERATOR).map(str::to_owned)
    }

    /// Records what somebody asked for over HTTP, and what came of it.
    pub(crate) fn record_over_http(
        &self,
        who: &Who,
        from: SocketAddr,
        device: Option<u64>,
        what: &str,
        result: Result<(), &str>,
    ) {
        let Some(audit) = &self.audit else { return };
        let list = self.list();
        audit.record(AuditRecord::now(list.name(who), &from.to_string(), device, what, result));
    }

    /// Records what somebody asked for, and what came of it.
    pub(crate) fn record(&self, client: &Client, device: Option<u64>, what: &str, result: Result<(), &str>) {
        let Some(audit) = &self.audit else { return };
        let list = self.list();
        let (name, from) = match client {
            Client::Operator { uid } => (Some(OPERATOR), format!("socket, user {uid}")),
            Client::WithToken(token) => (list.name(&who(token)), "socket".to_owned()),
            Client::Remote { who, from } => (list.name(who), from.to_string()),
            Client::Itself => (Some("the device"), "itself".to_owned()),
        };
        audit.record(AuditRecord::now(name, &from, device, what, result));
    }
}

fn who(token: &Token) -> Who {
    Who { certificate: None, token: Some(token.clone()) }
}

/// The tenants of a file, and its operator. Tokens are read from their files.
pub(crate) fn list(file: &DeviceFile) -> Result<AccessList, Failure> {
    let mut list = AccessList::default();
    let Device { operator_certificate, operator_token_file, .. } = &file.device;
    add(&mut list, OPERATOR, operator_certificate, operator_token_file, &Scope::Operator, Rights::all())?;
    for TenantInFile { name, certificate, token_file, roles, .. } in &file.tenants {
        let tenant: Tenant = name.parse().map_err(Failure::failed)?;
        let rights = roles.iter().map(|role| right(*role)).collect();
        add(&mut list, name, certificate, token_file, &Scope::Tenant(tenant), rights)?;
    }
    Ok(list)
}

/// Whether a file says who may use the P4Runtime server; else everybody may who reaches it.
pub(crate) fn are_known(file: &DeviceFile) -> bool {
    let Device { operator_certificate, operator_token_file, .. } = &file.device;
    !file.tenants.is_empty() || operator_certificate.is_some() || operator_token_file.is_some()
}

fn add(
    list: &mut AccessList,
    name: &str,
    certificate: &Option<String>,
    token_file: &Option<String>,
    scope: &Scope,
    rights: Rights,
) -> Result<(), Failure> {
    let token = token_file.as_ref().map(|path| {
        Token::read(Path::new(path)).map_err(|error| Failure::Invalid(format!("{path}: {error}")))
    });
    let token = token.transpose()?.map(Credential::Token);
    let certificate = certificate.clone().map(Credential::Certificate);
    for credential in [token, certificate].into_iter().flatten() {
        let entry = Entry { name: name.to_owned(), credential, scope: scope.clone(), rights };
        list.add(entry).map_err(|error: AccessError| Failure::Invalid(error.to_string()))?;
    }
    Ok(())
}

fn right(role: Role) -> Right {
    match role {
        Role::Read => Right::Read,
        Role::Write => Right::Write,
        Role::Swap => Right::Swap,
        Role::Capture => Right::Capture,
        Role::LifeCycle => Right::LifeCycle,
    }
}
