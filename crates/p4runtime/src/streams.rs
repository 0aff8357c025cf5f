//! The streams that are open: who may take part in an arbitration, and what waits for each of them.
//!
//! There are limits of streams for a connection, an address and all together. A client that would be primary always finds
//! a place: a stream that is not primary gives way for it.

use crate::arbitration::{Arbitration, ClientId, MAX_CLIENTS_PER_ROLE, Notice};
use crate::caller::Caller;
use crate::line::{Line, full};
use crate::peers::Peer;
use millrace_p4runtime_api::v1::{MasterArbitrationUpdate, stream_message_response};
use std::collections::{HashMap, HashSet};
use tonic::Status;

/// Most streams of one address that take part in an arbitration.
pub const MAX_STREAMS_OF_PEER: usize = 96;
/// Most streams that take part in an arbitration: fewer than there may be connections, so that others have places too.
pub const MAX_STREAMS: usize = 224;
/// Who is connected, and who may write.
pub(crate) struct Streams {
    pub(crate) arbitration: Arbitration,
    clients: HashMap<ClientId, Client>,
}

struct Client {
    line: Line,
    /// Whether it took part in an arbitration, and is primary.
    is_known: bool,
    is_primary: bool,
}

impl Streams {
    pub(crate) fn new(device_id: u64) -> Streams {
        Streams { arbitration: Arbitration::new(device_id), clients: HashMap::new() }
    }

    /// A stream is for this device. It has no role before it says so.
    pub(crate) fn join(&mut self, id: ClientId, line: Line) {
        self.clients.insert(id, Client { line, is_known: false, is_primary: false });
    }

    /// Ends the streams for whose clients there is a reason.
    pub(crate) fn end(&self, reason: impl Fn(&Caller) -> Option<Status>) {
        for client in self.clients.values() {
            if let Some(status) = reason(&client.line.caller) {
                client.line.end.tell(status);
            }
        }
    }

    /// A stream has ended. Says whether it had taken part in an arbitration.
    pub(crate) fn leave(&mut self, id: ClientId) -> bool {
        let was_known = self.remove(id);
        let notices = self.arbitration.leave(id);
        self.follow();
        self.notify(notices);
        was_known
    }

    fn remove(&mut self, id: ClientId) -> bool {
        let Some(client) = self.clients.remove(&id) else { return false };
        if client.is_primary {
            client.peer().count_primary(false);
        }
        if client.is_known {
            client.peer().count_stream(false);
        }
        client.is_known
    }

    /// A client says who it is. Gives what it is told when the writes that are under way have ended.
    pub(crate) fn arbitrate(
        &mut self,
        id: ClientId,
        message: &MasterArbitrationUpdate,
    ) -> Result<Vec<Notice>, Status> {
        if self.clients.get(&id).is_some_and(|client| !client.is_known) {
            self.make_room(id, message)?;
        }
        let outcome = self.arbitration.update(id, message)?;
        if let Some(client) = self.clients.get_mut(&id).filter(|client| !client.is_known) {
            client.is_known = true;
            client.peer().count_stream(true);
        }
        self.follow();
        self.notify(outcome.now);
        Ok(outcome.settled)
    }

    /// Whether a client may take part in an arbitration for the first time. Where there are too many, one that would be
    /// primary takes the place of one that is not.
    fn make_room(&mut self, id: ClientId, message: &MasterArbitrationUpdate) -> Result<(), Status> {
        let role = message.role.as_ref().map_or("", |role| role.name.as_str());
        let is_wanted = self.arbitration.would_be_primary(role, message.election_id.as_ref());
        let Some(address) = self.clients.get(&id).map(|client| client.peer().address) else { return Ok(()) };
        let of_role: HashSet<ClientId> = self.arbitration.clients(role).collect();
        let of_address = |client: &Client| address.is_some() && client.peer().address == address;
        let known = |client: &&Client| client.is_known;
        let address_count = self.clients.values().filter(known).filter(|client| of_address(client)).count();
        let count = self.clients.values().filter(known).count();
        let victim = |of: &dyn Fn(ClientId, &Client) -> bool| {
            let clients = self.clients.iter().filter(|(_, client)| client.is_known && !client.is_primary);
            let clients = clients.filter(|(id, client)| of(**id, client));
            // Of the connection that has most, the one with the lowest election id, which came first.
            clients
                .max_by_key(|(id, client)| {
                    let election = self.arbitration.election_of(**id);
                    (client.peer().streams(), std::cmp::Reverse((election, **id)))
                })
                .map(|(id, _)| *id)
        };
        let given_way = if of_role.len() >= MAX_CLIENTS_PER_ROLE {
            Some((victim(&|id, _| of_role.contains(&id)), MAX_CLIENTS_PER_ROLE, "of one role"))
        } else if address_count >= MAX_STREAMS_OF_PEER {
            Some((victim(&|_, client| of_address(client)), MAX_STREAMS_OF_PEER, "of one address"))
        } else if count >= MAX_STREAMS {
            Some((victim(&|_, _| true), MAX_STREAMS, "in all"))
        } else {
            None
        };
        let Some((victim, most, of)) = given_way else { return Ok(()) };
        if !is_wanted {
            return Err(full(most, of));
        }
        // All others may be primaries, of which there are not more than roles: then there is one stream more.
        if let Some(victim) = victim {
            if let Some(client) = self.clients.get(&victim) {
                client
                    .line
                    .end
                    .tell(Status::resource_exhausted("the stream gave way to one that is primary now"));
            }
            self.remove(victim);
            // It was not primary: nobody else needs to know.
            self.arbitration.leave(victim);
        }
        Ok(())
    }

    /// Connections learn which of their streams are primary.
    fn follow(&mut self) {
        let primaries: HashSet<ClientId> = self.arbitration.primaries().map(|(_, _, id)| id).collect();
        for (id, client) in &mut self.clients {
            let is_primary = primaries.contains(id);
            if is_primary != client.is_primary {
                client.is_primary = is_primary;
                client.peer().count_primary(is_primary);
            }
        }
    }

    /// Sends a message if there is room that is not reserved.
    pub(crate) fn send(&self, client: ClientId, update: stream_message_response::Update) -> bool {
        self.clients.get(&client).is_some_and(|client| client.line.send(update))
    }

    /// Sends arbitration messages. A client that takes none is ended: it could not know who is the primary.
    pub(crate) fn notify(&self, notices: Vec<Notice>) {
        for (id, update) in notices {
            let Some(client) = self.clients.get(&id) else { continue };
            if !client.line.send_first(stream_message_response::Update::Arbitration(update)) {
                client.line.end.tell(Status::resource_exhausted("the client does not take its messages"));
            }
        }
    }
}

impl Client {
    fn peer(&self) -> &Peer {
        &self.line.caller.peer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::{MAX_STREAM_BACKLOG, MAX_STREAMS_OF_CONNECTION, StreamAnswers};
    use crate::peers::OpenStream;
    use millrace_p4runtime_api::election;
    use millrace_p4runtime_api::v1::{PacketIn, Role, stream_message_response::Update};
    use std::sync::Arc;

    const DEVICE: u64 = 7;

    fn says(election: Option<u128>, role: &str) -> MasterArbitrationUpdate {
        MasterArbitrationUpdate {
            device_id: DEVICE,
            role: (!role.is_empty()).then(|| Role { name: role.into(), ..Role::default() }),
            election_id: election.map(election::message),
            status: None,
        }
    }

    type Open = (Line, StreamAnswers, OpenStream);

    fn join(streams: &mut Streams, id: u64, peer: &Arc<Peer>) -> Result<Open, Status> {
        let open = Line::open(Caller::local(peer), None)?;
        streams.join(ClientId(id), open.0.clone());
        Ok(open)
    }

    #[tokio::test]
    async fn who_would_be_primary_finds_a_place_and_others_do_not() {
        let mut streams = Streams::new(DEVICE);
        let mut open = Vec::new();
        for connection in 0..2 {
            let peer = Peer::local();
            for stream in 0..MAX_STREAMS_OF_CONNECTION as u64 {
                let id = 100 * connection + stream;
                open.push(join(&mut streams, id, &peer).unwrap());
                let election = if id == 0 { 50 } else { u128::from(id % 49) };
                let election = (id % 2 == 0).then_some(election * 1000 + u128::from(id));
                streams.arbitrate(ClientId(id), &says(election, "")).unwrap();
            }
            assert!(join(&mut streams, 99, &peer).is_err(), "one connection has so many");
        }
        let late = Peer::local();
        open.push(join(&mut streams, 1000, &late).unwrap());
        assert!(streams.arbitrate(ClientId(1000), &says(Some(1), "")).is_err());
        assert!(streams.arbitrate(ClientId(1000), &says(Some(1 << 100), "")).unwrap().len() == 1);
        assert!(late.is_primary() && late.streams() == 1);
        // The first without an election id gave way.
        let status = open[1].0.end.told().await;
        assert_eq!(status.code(), tonic::Code::ResourceExhausted);
        assert_eq!(streams.clients.len(), MAX_CLIENTS_PER_ROLE);
        streams.leave(ClientId(1000));
        assert!(!late.is_primary() && late.streams() == 0);
    }

    #[test]
    fn one_address_has_not_all_streams_whatever_roles_it_makes_up() {
        let peers = crate::peers::Peers::new();
        let mut streams = Streams::new(DEVICE);
        let mut open = Vec::new();
        let mut refused = 0;
        for id in 0..2 * MAX_STREAMS_OF_PEER as u64 {
            let (peer, _) = peers.admit([10, 0, 0, 1].into()).unwrap();
            open.push(join(&mut streams, id, &peer).unwrap());
            let role = format!("role{id}");
            if streams.arbitrate(ClientId(id), &says(Some(1), &role)).is_err() {
                refused += 1;
                streams.leave(ClientId(id));
                peers.leave(&peer);
            }
        }
        assert_eq!(refused, MAX_STREAMS_OF_PEER);
        // In the default role of the same address there is a place all the same.
        let (peer, _) = peers.admit([10, 0, 0, 1].into()).unwrap();
        open.push(join(&mut streams, 5000, &peer).unwrap());
        streams.arbitrate(ClientId(5000), &says(Some(1), "")).unwrap();
        assert!(peer.is_primary());
    }

    #[test]
    fn what_waits_for_a_stream_is_bounded_in_bytes_and_arbitration_is_not_among_it() {
        let mut streams = Streams::new(DEVICE);
        let peer = Peer::local();
        let (_line, answers, _place) = join(&mut streams, 1, &peer).unwrap();
        streams.arbitrate(ClientId(1), &says(Some(1), "")).unwrap();
        let packet = PacketIn { payload: vec![0; 9000].into(), ..PacketIn::default() };
        let sent = (0..2000).filter(|_| streams.send(ClientId(1), Update::Packet(packet.clone()))).count();
        assert_eq!(sent, MAX_STREAM_BACKLOG / (9000 + 256));
        let notices = streams.arbitration.update(ClientId(1), &says(Some(2), "")).unwrap();
        streams.notify(notices.settled);
        assert_eq!(answers.waiting(), sent + 1);
    }
}
