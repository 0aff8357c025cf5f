//! Packet-in and packet-out: frames with the program's controller headers in front, to and from messages.

use crate::catalog::{Catalog, HeaderField};
use crate::refusal::Refusal;
use crate::translation::NewText;
use millrace_p4runtime_api::v1::{PacketIn, PacketMetadata, PacketOut};
use millrace_pipeline::Bits;
use prost::bytes::Bytes;

/// The frame that a packet-out is: its metadata as the program's `packet_out` header, then the payload.
pub(crate) fn frame(catalog: &Catalog, packet: &PacketOut) -> Result<Vec<u8>, Refusal> {
    let fields = catalog.packet_out.as_deref().unwrap_or_default();
    if let Some(unknown) =
        packet.metadata.iter().find(|given| !fields.iter().any(|field| field.id == given.metadata_id))
    {
        return Err(Refusal::invalid(format!("unknown metadata field with id {}", unknown.metadata_id)));
    }
    let mut header = millrace_pipeline::bits::BitWriter::new();
    for field in fields {
        let mut given = packet.metadata.iter().filter(|given| given.metadata_id == field.id);
        let value = match (given.next(), given.next()) {
            (Some(given), None) => catalog.read(&field.codec, &given.value, NewText::Unknown),
            (None, _) => Err(Refusal::invalid("it is missing")),
            (Some(_), Some(_)) => Err(Refusal::invalid("it is given twice")),
        };
        let of_field = |refusal: Refusal| {
            Refusal::invalid(refusal.message).of(format_args!("metadata field `{}`", field.name))
        };
        header.push(&value.map_err(of_field)?);
    }
    let mut frame = header.finish();
    frame.extend_from_slice(&packet.payload);
    Ok(frame)
}

/// The message of a frame that left at the port of the CPU; none when it is shorter than the program's `packet_in`
/// header.
pub(crate) fn message(catalog: &Catalog, frame: &[u8]) -> Option<PacketIn> {
    let fields = catalog.packet_in.as_deref().unwrap_or_default();
    let bits: usize = fields.iter().map(|field| field.codec.width as usize).sum();
    let payload = frame.get(bits.div_ceil(8)..)?;
    let mut at = 0;
    let metadata = fields.iter().map(|field: &HeaderField| {
        let value = Bits::read_at(frame, at, field.codec.width)?;
        at += field.codec.width as usize;
        Some(PacketMetadata { metadata_id: field.id, value: catalog.write(&field.codec, &value) })
    });
    Some(PacketIn { metadata: metadata.collect::<Option<_>>()?, payload: Bytes::copy_from_slice(payload) })
}
