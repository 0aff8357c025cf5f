//! Places for connections: how many there are at a time, and how many of these tenants have.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Most connections at a time to the socket; as many over gRPC. One more is told so and closed.
pub const MAX_CONNECTIONS: usize = 16;
/// Most of them of all tenants: the operator is not kept out.
pub const MAX_CONNECTIONS_OF_TENANTS: usize = 12;
/// Most of them of one tenant.
pub const MAX_CONNECTIONS_OF_TENANT: usize = 4;

/// See the module's documentation.
#[derive(Debug, Default)]
pub(crate) struct Places(Mutex<Taken>);

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    /// How many each tenant has, by its name on the access list.
    of_tenants: BTreeMap<String, usize>,
}

/// A place of a connection, given back when this goes.
#[derive(Debug)]
pub(crate) struct Place {
    places: Arc<Places>,
    tenant: Option<String>,
}

impl Places {
    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for somebody who is not known yet, or what they are told.
    pub(crate) fn take(self: &Arc<Places>) -> Result<Place, String> {
        let mut taken = self.taken();
        if taken.all >= MAX_CONNECTIONS {
            return Err(format!("{MAX_CONNECTIONS} clients are connected already (MAX_CONNECTIONS)"));
        }
        taken.all += 1;
        Ok(Place { places: Arc::clone(self), tenant: None })
    }
}

impl Place {
    /// It is that of a tenant from now on, if that may have another one.
    pub(crate) fn give_to(&mut self, tenant: Option<String>) -> Result<(), String> {
        let Some(tenant) = tenant else { return Ok(()) };
        let mut taken = self.places.taken();
        if taken.of_tenants.values().sum::<usize>() >= MAX_CONNECTIONS_OF_TENANTS {
            return Err(format!(
                "{MAX_CONNECTIONS_OF_TENANTS} clients of tenants are connected already (MAX_CONNECTIONS_OF_TENANTS)"
            ));
        }
        let count = taken.of_tenants.entry(tenant.clone()).or_default();
        if *count >= MAX_CONNECTIONS_OF_TENANT {
            return Err(format!(
                "{MAX_CONNECTIONS_OF_TENANT} clients of the tenant are connected already (MAX_CONNECTIONS_OF_TENANT)"
            ));
        }
        *count += 1;
        self.tenant = Some(tenant);
        Ok(())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.taken();
        taken.all -= 1;
        let Some(tenant) = &self.tenant else { return };
        if let Some(count) = taken.of_tenants.get_mut(tenant) {
            *count -= 1;
            if *count == 0 {
                taken.of_tenants.remove(tenant);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_tenant_and_all_of_them_leave_places() {
        let places = Arc::<Places>::default();
        let of = |tenant: &str| {
            let mut place = places.take()?;
            place.give_to(Some(tenant.to_owned())).map(|()| place)
        };
        let mut held: Vec<Place> = (0..MAX_CONNECTIONS_OF_TENANT).map(|_| of("red").unwrap()).collect();
        assert!(of("red").unwrap_err().contains("MAX_CONNECTIONS_OF_TENANT)"));
        held.extend((0..MAX_CONNECTIONS_OF_TENANT).map(|_| of("blue").unwrap()));
        held.extend((0..MAX_CONNECTIONS_OF_TENANT).map(|_| of("green").unwrap()));
        assert!(of("white").unwrap_err().contains("MAX_CONNECTIONS_OF_TENANTS"));
        held.extend((0..MAX_CONNECTIONS - MAX_CONNECTIONS_OF_TENANTS).map(|_| places.take().unwrap()));
        assert!(places.take().unwrap_err().contains("MAX_CONNECTIONS)"));
        held.remove(0);
        held.push(of("red").unwrap());
        drop(held);
        assert!(places.taken().all == 0 && places.taken().of_tenants.is_empty());
    }
}
