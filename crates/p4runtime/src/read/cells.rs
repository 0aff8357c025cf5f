//! Counters, meters, registers, value sets, and how digests are sent.

use super::table::{colors_message, counter_message, fields_messages};
use super::{MAX_ENTITIES, Reader, Stop};
use crate::proto::v1::{self, Index, entity::Entity};
use crate::refusal::Refusal;
use crate::write::{cells, meter_message};
use millrace_pipeline::semantics::Value;
use millrace_state::{CounterRef, CounterValue, State};
use std::ops::Range;

impl Reader<'_> {
    /// Sends what is made of each cell of a range.
    async fn each_cell<T: Send + 'static>(
        &self,
        range: Range<u64>,
        look: impl Fn(&State, u64) -> Option<T> + Clone + Send + 'static,
        make: impl Fn(Option<Index>, T) -> Entity,
    ) -> Result<(), Stop> {
        let mut start = range.start;
        while start < range.end {
            let end = range.end.min(start + MAX_ENTITIES as u64);
            let look = look.clone();
            let values: Vec<Option<T>> = self
                .loaded
                .target
                .call(move |switch| (start..end).map(|cell| look(switch.state(), cell)).collect())
                .await?;
            let made =
                (start..end).zip(values).filter_map(|(cell, value)| Some(make(index_message(cell), value?)));
            self.send(made.collect()).await?;
            start = end;
        }
        Ok(())
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
            let meter = info.object;
            let index = request.index.as_ref().filter(|_| request.meter_id != 0);
            self.each_cell(
                cells(index, info.size)?,
                move |state, cell| {
                    Some((state.meter_config(meter, cell).ok()?, state.meter_counts(meter, cell).ok()?))
                },
                |index, (config, counts)| {
                    let config = config.as_ref().map(meter_message);
                    let counter_data = with_colors.then(|| colors_message(counts));
                    Entity::MeterEntry(v1::MeterEntry { meter_id, index, config, counter_data })
                },
            )
            .await?;
        }
        Ok(())
    }

    pub(super) async fn registers(&self, request: v1::RegisterEntry) -> Result<(), Stop> {
        for (register_id, info) in self.loaded.catalog.registers.select(request.register_id)? {
            let registers = info.registers.clone();
            let index = request.index.as_ref().filter(|_| request.register_id != 0);
            self.each_cell(
                cells(index, info.size)?,
                move |state, cell| {
                    let values = registers.iter().map(|register| state.register_value(*register, cell).ok());
                    values.collect::<Option<Vec<_>>>()
                },
                |index, values| {
                    let data = Some(info.shape.write(&mut values.into_iter().map(Value::Bits)));
                    Entity::RegisterEntry(v1::RegisterEntry { register_id, index, data })
                },
            )
            .await?;
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
            let members: Vec<_> =
                self.loaded.target.call(move |switch| switch.state().values(set).collect()).await?;
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

fn index_message(cell: u64) -> Option<Index> {
    Some(Index { index: i64::try_from(cell).unwrap_or(i64::MAX) })
}
