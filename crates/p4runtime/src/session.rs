//! One stream, from its first message to its end. The first arbitration says which device it is for, and so it stays.

use crate::arbitration::ClientId;
use crate::device::Device;
use crate::devices::Devices;
use crate::line::Line;
use crate::peers::OpenStream;
use crate::read::STALL;
use crate::refusal::{Refusal, echo};
use millrace_access::Right;
use millrace_p4runtime_api::v1::stream_error::Details;
use millrace_p4runtime_api::v1::stream_message_request::Update;
use millrace_p4runtime_api::v1::{
    DigestListAckError, MasterArbitrationUpdate, PacketOutError, StreamMessageRequest, StreamOtherError,
};
use std::sync::Arc;
use std::time::Duration;
use tonic::{Status, Streaming};

/// A stream says who its client is after so long.
pub const ARBITRATION_TIME: Duration = Duration::from_secs(10);

/// Serves a stream. `place` counts it.
pub(crate) async fn session(
    devices: Devices,
    line: Line,
    place: OpenStream,
    mut messages: Streaming<StreamMessageRequest>,
) {
    let mut session = Session { devices, line, joined: None };
    let mut silence = Box::pin(tokio::time::sleep(ARBITRATION_TIME));
    let last = loop {
        let message = tokio::select! {
            message = messages.message() => message,
            () = session.line.answers.closed() => break None,
            status = session.line.end.told() => break Some(status),
            () = &mut silence, if session.joined.is_none() => break Some(Status::deadline_exceeded(format!(
                "the first arbitration of a stream comes within {} seconds", ARBITRATION_TIME.as_secs()
            ))),
        };
        match message {
            Ok(Some(message)) => {
                if let Err(status) = session.take(message).await {
                    break Some(status);
                }
            }
            Ok(None) => break None,
            Err(status) => break Some(status),
        }
    };
    if let Some((device, client)) = session.joined {
        device.leave(client);
    }
    drop(place);
    if let Some(status) = last {
        let _ = tokio::time::timeout(STALL, session.line.answers.send(Err(status))).await;
    }
}

/// What an error about a message names.
fn details(update: Update) -> Option<Details> {
    match update {
        Update::Arbitration(_) => None,
        Update::Packet(packet) => Some(Details::PacketOut(PacketOutError { packet_out: echo(packet) })),
        Update::DigestAck(ack) => {
            Some(Details::DigestListAck(DigestListAckError { digest_list_ack: echo(ack) }))
        }
        Update::Other(other) => Some(Details::Other(StreamOtherError { other: echo(other) })),
    }
}

struct Session {
    devices: Devices,
    line: Line,
    /// The device, once the client has named it, and what it calls this stream.
    joined: Option<(Arc<Device>, ClientId)>,
}

impl Session {
    /// Takes a message; an error ends the stream.
    async fn take(&mut self, message: StreamMessageRequest) -> Result<(), Status> {
        let update = message.update.ok_or_else(|| Status::invalid_argument("the message is empty"))?;
        if let Update::Arbitration(arbitration) = update {
            let done = self.arbitrate(&arbitration).await;
            return done.inspect_err(|status| {
                let id = arbitration.device_id;
                self.devices.record(&self.line.caller, id, "arbitration", Err(status));
            });
        }
        let Some((device, client)) = &self.joined else {
            // It is of no role, so nothing that it says is done.
            let refusal = Refusal::denied("the client has sent no arbitration update yet");
            if let Some(details) = details(update) {
                self.line.send(refusal.of_stream(details));
            }
            return Ok(());
        };
        let counted = device.count_request().map_err(|status| Refusal::exhausted(status.message()));
        match (update, counted) {
            (Update::Arbitration(_), _) => {}
            (Update::Packet(packet), Ok(())) => device.packet_out(*client, packet),
            (Update::Packet(packet), Err(refusal)) => device.refuse_packet(*client, packet, refusal),
            (Update::DigestAck(ack), Ok(())) => device.acknowledge(*client, ack),
            (Update::DigestAck(ack), Err(refusal)) => device.refuse_ack(*client, ack, refusal),
            (Update::Other(other), _) => device.refuse_other(*client, other),
        }
        Ok(())
    }

    /// Whoever has an election id may become the primary in place of another one, and so needs a right to change something.
    async fn arbitrate(&mut self, message: &MasterArbitrationUpdate) -> Result<(), Status> {
        let rights: &[Right] = match message.election_id {
            Some(_) => &[Right::Write, Right::Swap],
            None => &[Right::Read],
        };
        if let Some((device, client)) = &self.joined {
            // Another device id is refused there, whether or not there is a device of it.
            if message.device_id == device.id {
                self.devices.enter(&self.line.caller, device.id, rights)?;
            }
            return device.arbitrate(*client, message).await;
        }
        let device = self.devices.enter(&self.line.caller, message.device_id, rights)?;
        self.devices.peers().settle(&self.line.caller.peer, device.id).map_err(Status::resource_exhausted)?;
        let client = device.join(self.line.clone())?;
        self.joined = Some((Arc::clone(&device), client));
        device.arbitrate(client, message).await
    }
}
