//! Counters, meters, registers, value sets, and how digests are sent.

use super::table::{colors_message, counter_message, fields_messages};
use super::{MAX_ENTITIES, Reader, Stop};
use crate::refusal::Refusal;
use crate::write::{cells, meter_message};
use millrace_dataplane::{Answered, MeterCell, ObjectRequest, Reply, Request};
use millrace_p4runtime_api::v1::{self, Index, entity::Entity};
use millrace_pipeline::semantics::Value;
use millrace_state::{CounterRef, CounterValue};
use std::ops::Range;
use std::sync::Arc;

impl Reader<'_> {
    /// Asks for objects of the program that is read.
    async fn objects<T>(&self, ask: impl FnOnce(Reply<Answered<T>>) -> ObjectRequest) -> Result<T, Stop> {
        let program = Arc::clone(&self.loaded.catalog.program);
        let answered = self.loaded.target.ask(|to| Request::Objects(program, ask(to))).await?;
        Ok(answered.map_err(Refusal::from)?)
    }

    pub(super) async fn counters(&self, request: v1::CounterEntry) -> Result<(), Stop> {
        let handle = self.loaded.target.tables().await?;
        for (counter_id, info) in self.loaded.catalog.counters.select(request.counter_id)? {
            let counter = CounterRef::Indexed(info.object);
            // With all counters an index means nothing.
            let index = request.index.as_ref().filter(|_| request.counter_id != 0);
            let range = cells(index, info.size)?;
            let mut start = range.start;
            while start < range.end {
                let end = range.end.min(start + MAX_ENTITIES as u64);
                let values: Vec<_> = {
                    let tables = handle.lock();
                    (start..end)
                        .filter_map(|cell| Some((cell, tables.counter_value(counter, cell).ok()?)))
                        .collect()
                };
                let message = |(cell, value): (u64, CounterValue)| {
                    let (index, data) = (index_message(cell), Some(counter_message(&value)));
                    Entity::CounterEntry(v1::CounterEntry { counter_id, index, data })
                };
                self.send(values.into_iter().map(message).collect()).await?;
                start = end;
            }
        }
        Ok(())
    }

    pub(super) async fn meters(&self, request: v1::MeterEntry) -> Result<(), Stop> {
        let with_colors = request.counter_data.is_some();
        for (meter_id, info) in self.loaded.catalog.meters.select(request.meter_id)? {
            let index = request.index.as_ref().filter(|_| request.meter_id != 0);
            for cells in parts(cells(index, info.size)?) {
                let read = cells.clone();
                let values = self.objects(|to| ObjectRequest::Meters(info.object, read, to)).await?;
                let message = |(cell, (config, counts)): (u64, MeterCell)| {
                    let config = config.as_ref().and_then(meter_message);
                    let counter_data = with_colors.then(|| colors_message(counts));
                    let index = index_message(cell);
                    Entity::MeterEntry(v1::MeterEntry { meter_id, index, config, counter_data })
                };
                self.send(cells.zip(values).map(message).collect()).await?;
            }
        }
        Ok(())
    }

    pub(super) async fn registers(&self, request: v1::RegisterEntry) -> Result<(), Stop> {
        for (register_id, info) in self.loaded.catalog.registers.select(request.register_id)? {
            let index = request.index.as_ref().filter(|_| request.register_id != 0);
            for cells in parts(cells(index, info.size)?) {
                let (registers, read) = (info.registers.clone(), cells.clone());
                let values = self.objects(|to| ObjectRequest::Registers(registers, read, to)).await?;
                let mut arrays: Vec<_> = values.into_iter().map(Vec::into_iter).collect();
                let message = |cell| {
                    let mut values = arrays.iter_mut().filter_map(|array| array.next().map(Value::Bits));
                    let (index, data) = (index_message(cell), Some(info.shape.write(&mut values)));
                    Entity::RegisterEntry(v1::RegisterEntry { register_id, index, data })
                };
                self.send(cells.map(message).collect()).await?;
            }
        }
        Ok(())
    }

    pub(super) async fn value_sets(&self, request: v1::ValueSetEntry) -> Result<(), Stop> {
        if !request.members.is_empty() {
            return Err(Refusal::invalid("a read of a value set names no members").into());
        }
        let catalog = &self.loaded.catalog;
        for (value_set_id, info) in catalog.value_sets.select(request.value_set_id)? {
            let set = info.set;
            let members = self.objects(|to| ObjectRequest::Values(set, to)).await?;
            let members = members.iter().map(|member: &Vec<_>| v1::ValueSetMember {
                r#match: fields_messages(catalog, &info.fields, member),
            });
            let entry = v1::ValueSetEntry { value_set_id, members: members.collect() };
            self.send(vec![Entity::ValueSetEntry(entry)]).await?;
        }
        Ok(())
    }

    pub(super) async fn digests(&self, request: v1::DigestEntry) -> Result<(), Stop> {
        let known = self.loaded.catalog.digests.select(request.digest_id)?;
        let entries: Vec<Entity> = known
            .into_iter()
            .filter_map(|(digest_id, info)| {
                let config = self.loaded.shadow.digests.get(&info.digest)?;
                Some(Entity::DigestEntry(v1::DigestEntry { digest_id, config: Some(*config) }))
            })
            .collect();
        if entries.is_empty() && request.digest_id != 0 {
            return Err(Refusal::not_found("the digest is not enabled").into());
        }
        self.send(entries).await
    }
}

/// The parts of a range that are read at a time.
fn parts(cells: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let starts = cells.clone().step_by(MAX_ENTITIES);
    starts.map(move |start| start..cells.end.min(start + MAX_ENTITIES as u64))
}

fn index_message(cell: u64) -> Option<Index> {
    Some(Index { index: i64::try_from(cell).unwrap_or(i64::MAX) })
}
