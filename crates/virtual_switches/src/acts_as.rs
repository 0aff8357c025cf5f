//! What clients of the Thrift server of a switch may do: they show nothing to be known by, and act as whom the file says, or as nobody. The
//! access list decides about each of their calls.

use crate::clients::Clients;
use crate::failure::Failure;
use millrace_access::{Refusal, Resource, Right, Tenant};
use millrace_thrift::Guard;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, PoisonError, RwLock};

/// See the module's documentation.
pub(crate) struct ActsAs {
    pub(crate) clients: Arc<Clients>,
    pub(crate) switch: String,
    pub(crate) device_id: u64,
    /// Whom they act as.
    pub(crate) name: Option<String>,
    /// The tenant of the switch, as it is now.
    pub(crate) owner: Owner,
}

/// The tenant of a switch, which may become another one.
pub(crate) type Owner = Arc<RwLock<Option<Tenant>>>;

impl fmt::Debug for ActsAs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ActsAs")
            .field("switch", &self.switch)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Guard for ActsAs {
    fn may(&self, right: Right) -> Result<(), String> {
        let owner = self.owner.read().unwrap_or_else(PoisonError::into_inner);
        let may = self.clients.may_as(self.name.as_deref(), right, Resource::Device(owner.as_ref()));
        may.map_err(|refusal| match refusal {
            Refusal::Hidden => Failure::no_switch(&self.switch).to_string(),
            refusal => refusal.to_string(),
        })
    }

    fn record(&self, from: Option<IpAddr>, call: &str, result: Result<(), &str>) {
        let from = from.map_or_else(|| "Thrift".to_owned(), |from| format!("{from}, Thrift"));
        self.clients.record_as(self.name.as_deref(), &from, self.device_id, call, result);
    }
}
