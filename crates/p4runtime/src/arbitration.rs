//! Who may write: election ids, roles, primary and backups (specification, "Client Arbitration and Controller
//! Replication").
//!
//! A state machine without threads: it is told what clients say and who has gone, and tells whom to notify of what.

use crate::role_config::RoleConfig;
use millrace_p4runtime_api::election::{message, number};
use millrace_p4runtime_api::google::rpc;
use millrace_p4runtime_api::v1::{MasterArbitrationUpdate, Role, Uint128};
use std::collections::BTreeMap;
use std::sync::Arc;
use tonic::{Code, Status};

/// Most clients of one role.
pub const MAX_CLIENTS_PER_ROLE: usize = 64;
/// Most roles.
pub const MAX_ROLES: usize = 256;

/// Names an open stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ClientId(pub(crate) u64);

/// A notification for a client.
pub(crate) type Notice = (ClientId, MasterArbitrationUpdate);

/// What follows from a client's message.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Outcome {
    /// To be sent at once.
    pub(crate) now: Vec<Notice>,
    /// To be sent when the writes that are being processed have ended: the new primary's.
    pub(crate) settled: Vec<Notice>,
}

/// All roles of one device.
#[derive(Debug)]
pub(crate) struct Arbitration {
    device_id: u64,
    roles: BTreeMap<String, RoleState>,
    /// Counts the clients that went.
    gone: u64,
}

#[derive(Debug, Default)]
struct RoleState {
    /// When its last client went, by [`Arbitration::gone`].
    left: u64,
    /// The highest election id ever seen.
    highest: Option<u128>,
    primary: Option<ClientId>,
    clients: BTreeMap<ClientId, Option<u128>>,
    /// What the role may do, as its last primary said; none: everything.
    config: Option<Arc<RoleConfig>>,
}

impl Arbitration {
    pub(crate) fn new(device_id: u64) -> Arbitration {
        // The default role is there without a client.
        Arbitration { device_id, roles: BTreeMap::from([(String::new(), RoleState::default())]), gone: 0 }
    }

    /// A client says who it is, for the first time or again. An error ends its stream.
    pub(crate) fn update(
        &mut self,
        client: ClientId,
        message: &MasterArbitrationUpdate,
    ) -> Result<Outcome, Status> {
        let known = self.role_of(client).map(str::to_owned);
        if message.device_id != self.device_id {
            return Err(Status::failed_precondition("the device id of a stream cannot change"));
        }
        let role = message.role.as_ref().map_or("", |role| role.name.as_str()).to_owned();
        if known.as_ref().is_some_and(|known| *known != role) {
            return Err(Status::failed_precondition("the role of a stream cannot change"));
        }
        if role.len() > MAX_ROLE_NAME {
            return Err(Status::invalid_argument(format!(
                "the name of a role has at most {MAX_ROLE_NAME} bytes"
            )));
        }
        let config = self.config_of(&role, message)?;
        let election = message.election_id.as_ref().map(number);
        if !self.roles.contains_key(&role) && self.roles.len() >= MAX_ROLES && !self.forget_a_role() {
            return Err(Status::resource_exhausted(format!("at most {MAX_ROLES} roles")));
        }
        if self.is_taken(client, message) {
            return Err(Status::invalid_argument("another client of this role has this election id"));
        }
        let state = self.roles.entry(role.clone()).or_default();
        if known.is_none() && state.clients.len() >= MAX_CLIENTS_PER_ROLE {
            return Err(Status::resource_exhausted(format!(
                "at most {MAX_CLIENTS_PER_ROLE} clients of one role"
            )));
        }
        state.clients.insert(client, election);
        let was_primary = state.primary == Some(client);
        if let Some(id) = election
            && state.highest.is_none_or(|highest| id >= highest)
        {
            state.highest = Some(id);
            state.primary = Some(client);
            state.config = config;
            let (settled, now) = self.notices(&role).into_iter().partition(|(to, _)| *to == client);
            return Ok(Outcome { now, settled });
        }
        if was_primary {
            state.primary = None;
            return Ok(Outcome { now: self.notices(&role), settled: Vec::new() });
        }
        let own = self.notices(&role).into_iter().filter(|(to, _)| *to == client).collect();
        Ok(Outcome { now: own, settled: Vec::new() })
    }

    /// The config that a client asks for its role, if it can have that next to those of other roles.
    fn config_of(
        &self,
        role: &str,
        message: &MasterArbitrationUpdate,
    ) -> Result<Option<Arc<RoleConfig>>, Status> {
        let Some(any) = message.role.as_ref().and_then(|role| role.config.as_ref()) else { return Ok(None) };
        if role.is_empty() {
            return Err(Status::invalid_argument("the default role may do everything and takes no config"));
        }
        let config = RoleConfig::read(any)?;
        let others = self.roles.iter().filter(|(name, _)| *name != role);
        for (name, other) in others.filter_map(|(name, state)| Some((name, state.config.as_ref()?))) {
            if let Some(id) = config.conflict(other) {
                return Err(Status::invalid_argument(format!(
                    "roles `{role}` and `{name}` cannot both have the object with id {id:#010x}, which one of them has \
                     for itself"
                )));
            }
        }
        Ok(Some(Arc::new(config)))
    }

    /// What a role may do; none: everything.
    pub(crate) fn config(&self, role: &str) -> Option<&Arc<RoleConfig>> {
        self.roles.get(role)?.config.as_ref()
    }

    /// Whether another client has the election id that this one asks for.
    pub(crate) fn is_taken(&self, client: ClientId, message: &MasterArbitrationUpdate) -> bool {
        let role = message.role.as_ref().map_or("", |role| role.name.as_str());
        let (state, election) = (self.roles.get(role), message.election_id.as_ref().map(number));
        let taken = |(other, id): (&ClientId, &Option<u128>)| *other != client && *id == election;
        election.is_some() && state.is_some_and(|state| state.clients.iter().any(taken))
    }

    /// Whether a client with that election id would be the primary of a role that others count on: the default one, or one
    /// that has clients.
    pub(crate) fn would_be_primary(&self, role: &str, election: Option<&Uint128>) -> bool {
        let state = self.roles.get(role).filter(|state| role.is_empty() || !state.clients.is_empty());
        let (Some(state), Some(id)) = (state, election.map(number)) else { return false };
        state.highest.is_none_or(|highest| id >= highest)
            && !state.clients.values().any(|other| *other == Some(id))
    }

    /// The clients of a role.
    pub(crate) fn clients(&self, role: &str) -> impl Iterator<Item = ClientId> {
        self.roles.get(role).into_iter().flat_map(|state| state.clients.keys().copied())
    }

    /// The election id of a client, if it has one.
    pub(crate) fn election_of(&self, client: ClientId) -> Option<u128> {
        self.roles.values().find_map(|state| state.clients.get(&client).copied()).flatten()
    }

    /// Makes room for another role: that without clients since the longest time is forgotten, with its highest election id.
    fn forget_a_role(&mut self) -> bool {
        let unused = self.roles.iter().filter(|(name, state)| !name.is_empty() && state.clients.is_empty());
        let oldest = unused.min_by_key(|(_, state)| state.left).map(|(name, _)| name.clone());
        oldest.is_some_and(|name| self.roles.remove(&name).is_some())
    }

    /// A client's stream has ended.
    pub(crate) fn leave(&mut self, client: ClientId) -> Vec<Notice> {
        let Some(role) = self.role_of(client).map(str::to_owned) else { return Vec::new() };
        let Some(state) = self.roles.get_mut(&role) else { return Vec::new() };
        state.clients.remove(&client);
        self.gone += 1;
        state.left = self.gone;
        if state.primary != Some(client) {
            return Vec::new();
        }
        state.primary = None;
        self.notices(&role)
    }

    /// Whether a write with these words comes from the primary.
    pub(crate) fn check_write(&self, role: &str, election: Option<&Uint128>) -> Result<(), Status> {
        let Some(state) = self.roles.get(role) else {
            return Err(Status::not_found(format!("no role `{role}`")));
        };
        let primary = state.primary.and_then(|client| state.clients.get(&client).copied().flatten());
        if primary.is_none() || primary != election.map(number) {
            return Err(Status::permission_denied("only the primary client may write"));
        }
        Ok(())
    }

    /// Whether a client is the primary of its role.
    pub(crate) fn is_primary(&self, client: ClientId) -> bool {
        self.roles.values().any(|state| state.primary == Some(client))
    }

    /// The primaries, with their roles and what those may do.
    pub(crate) fn primaries(&self) -> impl Iterator<Item = (&str, Option<&RoleConfig>, ClientId)> {
        self.roles
            .iter()
            .filter_map(|(role, state)| Some((role.as_str(), state.config.as_deref(), state.primary?)))
    }

    fn role_of(&self, client: ClientId) -> Option<&str> {
        let mut roles = self.roles.iter();
        roles.find(|(_, state)| state.clients.contains_key(&client)).map(|(role, _)| role.as_str())
    }

    /// What all clients of a role are to know.
    fn notices(&self, role: &str) -> Vec<Notice> {
        let Some(state) = self.roles.get(role) else { return Vec::new() };
        let message = |client: ClientId| {
            let (code, text) = match state.primary {
                Some(primary) if primary == client => (Code::Ok, ""),
                Some(_) => (Code::AlreadyExists, "another client is the primary"),
                None => (Code::NotFound, "there is no primary"),
            };
            MasterArbitrationUpdate {
                device_id: self.device_id,
                role: (!role.is_empty()).then(|| Role {
                    name: role.to_owned(),
                    config: state.config.as_ref().map(|config| config.to_any()),
                    ..Role::default()
                }),
                election_id: state.highest.map(message),
                status: Some(rpc::Status {
                    code: code as i32,
                    message: text.to_owned(),
                    details: Vec::new(),
                }),
            }
        };
        state.clients.keys().map(|client| (*client, message(*client))).collect()
    }
}

/// Most bytes in the name of a role.
const MAX_ROLE_NAME: usize = 256;

pub(crate) fn unknown_device(device_id: u64) -> Status {
    Status::not_found(format!("no device {device_id}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEVICE: u64 = 7;

    fn says(election: Option<u128>, role: &str) -> MasterArbitrationUpdate {
        MasterArbitrationUpdate {
            device_id: DEVICE,
            role: (!role.is_empty()).then(|| Role { name: role.into(), ..Role::default() }),
            election_id: election.map(message),
            status: None,
        }
    }

    /// Client, status code, highest election id.
    fn told(notices: &[Notice]) -> Vec<(u64, Code, Option<u128>)> {
        let each = notices.iter().map(|(client, update)| {
            let code = Code::from_i32(update.status.as_ref().unwrap().code);
            (client.0, code, update.election_id.as_ref().map(number))
        });
        each.collect()
    }

    fn may_write(arbitration: &Arbitration, role: &str, election: u128) -> Option<Code> {
        let checked = arbitration.check_write(role, Some(&message(election)));
        checked.err().map(|status| status.code())
    }

    #[test]
    fn the_highest_election_id_is_the_primary_and_the_others_learn_it_first() {
        let mut arbitration = Arbitration::new(DEVICE);
        let first = arbitration.update(ClientId(1), &says(Some(5), "")).unwrap();
        assert_eq!((told(&first.now), told(&first.settled)), (vec![], vec![(1, Code::Ok, Some(5))]));
        let lower = arbitration.update(ClientId(2), &says(Some(4), "")).unwrap();
        assert_eq!(told(&lower.now), [(2, Code::AlreadyExists, Some(5))]);
        assert!(lower.settled.is_empty());
        let above = 1u128 << 64;
        let higher = arbitration.update(ClientId(3), &says(Some(above), "")).unwrap();
        let backups = [(1, Code::AlreadyExists, Some(above)), (2, Code::AlreadyExists, Some(above))];
        assert_eq!(told(&higher.now), backups);
        assert_eq!(told(&higher.settled), [(3, Code::Ok, Some(above))]);
        assert_eq!(may_write(&arbitration, "", above), None);
        assert_eq!(may_write(&arbitration, "", 5), Some(Code::PermissionDenied));
    }

    #[test]
    fn without_a_primary_only_an_id_as_high_as_ever_becomes_one() {
        let mut arbitration = Arbitration::new(DEVICE);
        arbitration.update(ClientId(1), &says(Some(9), "")).unwrap();
        arbitration.update(ClientId(2), &says(Some(3), "")).unwrap();
        assert_eq!(told(&arbitration.leave(ClientId(1))), [(2, Code::NotFound, Some(9))]);
        assert_eq!(may_write(&arbitration, "", 9), Some(Code::PermissionDenied));
        let again = arbitration.update(ClientId(2), &says(Some(8), "")).unwrap();
        assert_eq!(told(&again.now), [(2, Code::NotFound, Some(9))]);
        let equal = arbitration.update(ClientId(2), &says(Some(9), "")).unwrap();
        assert_eq!(told(&equal.settled), [(2, Code::Ok, Some(9))]);
        // A backup that goes is nobody's news.
        arbitration.update(ClientId(4), &says(None, "")).unwrap();
        assert!(arbitration.leave(ClientId(4)).is_empty());
    }

    #[test]
    fn a_primary_that_steps_down_is_told_to_all() {
        let mut arbitration = Arbitration::new(DEVICE);
        arbitration.update(ClientId(1), &says(Some(9), "")).unwrap();
        arbitration.update(ClientId(2), &says(None, "")).unwrap();
        let down = arbitration.update(ClientId(1), &says(Some(1), "")).unwrap();
        assert_eq!(told(&down.now), [(1, Code::NotFound, Some(9)), (2, Code::NotFound, Some(9))]);
    }

    #[test]
    fn without_an_election_id_nobody_becomes_primary_but_zero_is_an_id() {
        let mut arbitration = Arbitration::new(DEVICE);
        let unset = arbitration.update(ClientId(1), &says(None, "")).unwrap();
        assert_eq!(told(&unset.now), [(1, Code::NotFound, None)]);
        let zero = arbitration.update(ClientId(2), &says(Some(0), "")).unwrap();
        assert_eq!(told(&zero.settled), [(2, Code::Ok, Some(0))]);
        assert!(arbitration.check_write("", None).is_err());
    }

    #[test]
    fn roles_are_separate() {
        let mut arbitration = Arbitration::new(DEVICE);
        assert_eq!(may_write(&arbitration, "acl", 1), Some(Code::NotFound));
        arbitration.update(ClientId(1), &says(Some(1), "acl")).unwrap();
        arbitration.update(ClientId(2), &says(Some(1), "")).unwrap();
        assert_eq!((may_write(&arbitration, "acl", 1), may_write(&arbitration, "", 1)), (None, None));
        assert_eq!(arbitration.primaries().count(), 2);
        assert!(arbitration.is_primary(ClientId(1)) && !arbitration.is_primary(ClientId(3)));
    }

    #[test]
    fn roles_without_clients_make_room_for_others() {
        let mut arbitration = Arbitration::new(DEVICE);
        for number in 0..2 * MAX_ROLES as u64 {
            arbitration.update(ClientId(number), &says(Some(1), &format!("role{number}"))).unwrap();
            if number > 3 {
                arbitration.leave(ClientId(number));
            }
        }
        assert_eq!(arbitration.roles.len(), MAX_ROLES);
        assert!((0..4).all(|number| arbitration.is_primary(ClientId(number))), "those with clients stay");
        assert!(arbitration.roles.contains_key("") && !arbitration.roles.contains_key("role4"));
        assert!(arbitration.roles.contains_key("role511"));
    }

    #[test]
    fn what_ends_a_stream() {
        let mut arbitration = Arbitration::new(DEVICE);
        let code = |result: Result<Outcome, Status>| result.unwrap_err().code();
        let elsewhere = MasterArbitrationUpdate { device_id: 8, ..says(Some(1), "") };
        arbitration.update(ClientId(1), &says(Some(1), "")).unwrap();
        assert_eq!(code(arbitration.update(ClientId(1), &elsewhere)), Code::FailedPrecondition);
        assert_eq!(code(arbitration.update(ClientId(1), &says(Some(1), "x"))), Code::FailedPrecondition);
        assert_eq!(code(arbitration.update(ClientId(2), &says(Some(1), ""))), Code::InvalidArgument);
        let mut configured = says(Some(2), "x");
        configured.role.as_mut().unwrap().config = Some(prost_types::Any::default());
        assert_eq!(code(arbitration.update(ClientId(2), &configured)), Code::InvalidArgument);
        for client in 10..10 + MAX_CLIENTS_PER_ROLE as u64 - 1 {
            arbitration.update(ClientId(client), &says(None, "")).unwrap();
        }
        assert_eq!(code(arbitration.update(ClientId(9), &says(None, ""))), Code::ResourceExhausted);
    }
}
