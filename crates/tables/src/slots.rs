//! Action slots: what the entries of one table do, each distinct thing once, as records that workers read.
//!
//! Slot 0 is what a miss finds: the default action, or a member or group in its place. Every other slot is counted by use
//! and freed with its last one; its number is given out again after a grace period. A record never changes while workers
//! may read it: it is written before its slot is published, and what changes an old one publishes a copy of all.

use crate::action::{ActionCall, ActionDataId};
use crate::engines::{Cells, Domain, NoMemory, Publisher, Stamp, Subscriber, Worker};
use crate::entry::{GroupRef, MemberRef, TargetRef};
use crate::heap;
use crate::profile::Selection;
use crate::record::RecordLayout;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a slot stands for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    Call(Arc<ActionCall>),
    Member(MemberRef),
    Group(GroupRef),
}

#[derive(Clone, Debug)]
struct ActionSlot {
    /// None: free, or slot 0 with the default action.
    key: Option<Key>,
    /// What its record holds; none: the default action. Of a group, for when it is empty.
    call: Option<Arc<ActionCall>>,
    uses: u32,
}

/// The writing side.
pub(crate) struct Slots {
    layout: RecordLayout,
    default: Arc<ActionCall>,
    /// What the records of groups hold, for when they are empty; none: the default action.
    empty_group: Option<Arc<ActionCall>>,
    slots: Vec<ActionSlot>,
    /// Of the keys that are calls, and of the others.
    by_call: HashMap<Arc<ActionCall>, u32>,
    by_key: HashMap<Key, u32>,
    /// The slot of the call that was interned last.
    latest: u32,
    free: Vec<u32>,
    /// Without a use, but the engine may still lead workers to them.
    unlinked: Vec<u32>,
    limbo: VecDeque<(Stamp, u32)>,
    records: Publisher<Arc<Cells<AtomicU64>>>,
    /// Records that workers may still read, with the time when they were replaced: what is new is written there too.
    older: VecDeque<(Stamp, Arc<Cells<AtomicU64>>)>,
    groups: Publisher<Groups>,
    /// Groups as they are to be published.
    next_groups: Option<Groups>,
    domain: Domain,
}

/// The groups, by slot.
type Groups = HashMap<u32, Arc<GroupSlots>>;

/// The action slots of a group's members, each with the sum of the weights up to and with its own.
#[derive(Clone, Debug)]
pub struct GroupSlots {
    slots: Vec<(u64, u32)>,
    selection: Selection,
}

impl GroupSlots {
    /// What [`GroupSlots::select`] is to be given.
    pub fn selection(&self) -> Selection {
        self.selection
    }

    /// The slot that a hash selects, as [`crate::ActionProfile::select`] selects a member; none of an empty group.
    pub fn select(&self, hash: u64) -> Option<u32> {
        let place = hash % self.slots.last()?.0;
        let at = self.slots.partition_point(|(upto, _)| *upto <= place);
        self.slots.get(at).map(|(_, slot)| *slot)
    }
}

/// Beyond so many older arrays of records, whoever writes waits for workers to let go of them.
const MOST_OLDER: usize = 8;
/// With so many slots in limbo it is looked whether some can be used again.
const MANY_IN_LIMBO: usize = 256;

impl std::fmt::Debug for Slots {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Slots").field("slots", &self.slots).finish_non_exhaustive()
    }
}

/// Records and groups, for workers.
#[derive(Clone)]
pub(crate) struct SlotsReader {
    records: Subscriber<Arc<Cells<AtomicU64>>>,
    groups: Subscriber<Groups>,
}

impl SlotsReader {
    /// The first record, valid until the worker's next quiescent point.
    #[inline]
    pub(crate) fn records(&self, worker: &Worker) -> *const u8 {
        self.records.get(worker).map_or(std::ptr::null(), |cells| cells.as_ptr().cast())
    }

    pub(crate) fn group<'w>(&self, worker: &'w Worker, slot: u32) -> Option<&'w GroupSlots> {
        self.groups.get(worker)?.get(&slot).map(|group| &**group)
    }
}

impl Slots {
    /// The default action alone, with room for so many more before the records move.
    pub(crate) fn new(
        domain: &Domain,
        layout: RecordLayout,
        default: ActionCall,
        empty_group: Option<ActionCall>,
        room: u32,
    ) -> Result<Slots, NoMemory> {
        // There is room for all entries of a full table, most of which has none yet.
        let cells = Cells::filled_from_the_first((room as usize + 1).saturating_mul(layout.words()))?;
        let slots = Slots {
            default: Arc::new(default),
            empty_group: empty_group.map(Arc::new),
            slots: vec![ActionSlot { key: None, call: None, uses: 1 }],
            by_call: HashMap::new(),
            by_key: HashMap::new(),
            latest: 0,
            free: Vec::new(),
            unlinked: Vec::new(),
            limbo: VecDeque::new(),
            records: Publisher::new(domain, Arc::new(cells)),
            older: VecDeque::new(),
            groups: Publisher::new(domain, Groups::new()),
            next_groups: None,
            domain: domain.clone(),
            layout,
        };
        slots.write(0, slots.records.current());
        Ok(slots)
    }

    pub(crate) fn reader(&self) -> SlotsReader {
        SlotsReader { records: self.records.subscribe(), groups: self.groups.subscribe() }
    }

    /// The number of distinct actions in use, the default one among them, equal or not.
    pub(crate) fn len(&self) -> usize {
        self.by_call.len() + self.by_key.len() + 1
    }

    /// Bytes of memory.
    pub(crate) fn memory_bytes(&self) -> usize {
        let calls = self.slots.iter().filter_map(|slot| slot.call.as_ref());
        let of_call = heap::piece(2 * size_of::<usize>() + size_of::<ActionCall>());
        let data: usize = calls.map(|call| of_call + heap::piece(call.data.len())).sum();
        Cells::<AtomicU64>::bytes_of_first(self.slots.len() * self.layout.words())
            + self.slots.capacity() * size_of::<ActionSlot>()
            + heap::hash_map::<(Arc<ActionCall>, u32)>(self.by_call.capacity())
            + heap::hash_map::<(Key, u32)>(self.by_key.capacity())
            + data
    }

    /// What the default action is.
    pub(crate) fn default_action(&self) -> &ActionCall {
        &self.default
    }

    /// The call of a slot: what its record holds.
    pub(crate) fn call(&self, slot: u32) -> Option<&ActionCall> {
        let slot = self.slots.get(slot as usize)?;
        Some(slot.call.as_deref().unwrap_or(&self.default))
    }

    /// Bytes of the arguments of an entry that has this slot to itself.
    pub(crate) fn arguments(&self, slot: u32) -> u64 {
        match self.slots.get(slot as usize).and_then(|slot| slot.key.as_ref()) {
            Some(Key::Call(call)) => call.data.len() as u64,
            Some(Key::Member(_) | Key::Group(_)) | None => 0,
        }
    }

    /// What a slot stands for.
    pub(crate) fn target(&self, slot: u32) -> TargetRef {
        match self.slots.get(slot as usize).and_then(|slot| slot.key.as_ref()) {
            Some(Key::Member(member)) => TargetRef::Member(*member),
            Some(Key::Group(group)) => TargetRef::Group(*group),
            Some(Key::Call(_)) | None => TargetRef::Action(ActionDataId(slot)),
        }
    }

    /// The slot of a target, if it is in use.
    pub(crate) fn find(&self, target: TargetRef) -> Option<u32> {
        match target {
            TargetRef::Action(id) => Some(id.0),
            TargetRef::Member(member) => self.by_key.get(&Key::Member(member)).copied(),
            TargetRef::Group(group) => self.by_key.get(&Key::Group(group)).copied(),
        }
    }

    /// The slot of an action, with one more use.
    ///
    /// # Errors
    /// [`NoMemory`]; nothing has changed then.
    pub(crate) fn intern(&mut self, call: ActionCall) -> Result<ActionDataId, NoMemory> {
        // Entries that follow each other in a file often do the same.
        let last = &mut self.slots[self.latest as usize];
        if last.uses > 0 && matches!(&last.key, Some(Key::Call(kept)) if **kept == call) {
            last.uses += 1;
            return Ok(ActionDataId(self.latest));
        }
        self.latest = match self.by_call.get(&call) {
            Some(&slot) => {
                self.slots[slot as usize].uses += 1;
                slot
            }
            None => {
                let call = Arc::new(call);
                self.add(Key::Call(Arc::clone(&call)), Some(call))?
            }
        };
        Ok(ActionDataId(self.latest))
    }

    /// The slot of a member or group, with one more use.
    ///
    /// # Errors
    /// [`NoMemory`]; nothing has changed then.
    pub(crate) fn use_target(&mut self, target: TargetRef) -> Result<u32, NoMemory> {
        match target {
            TargetRef::Action(id) => {
                self.slots[id.0 as usize].uses += 1;
                Ok(id.0)
            }
            TargetRef::Member(member) => self.take(Key::Member(member), None),
            TargetRef::Group(group) => self.take(Key::Group(group), self.empty_group.clone()),
        }
    }

    fn take(&mut self, key: Key, call: Option<Arc<ActionCall>>) -> Result<u32, NoMemory> {
        if let Some(&slot) = self.by_key.get(&key) {
            self.slots[slot as usize].uses += 1;
            return Ok(slot);
        }
        self.add(key, call)
    }

    /// A slot for a key that has none.
    fn add(&mut self, key: Key, call: Option<Arc<ActionCall>>) -> Result<u32, NoMemory> {
        if self.free.is_empty() || self.limbo.len() > MANY_IN_LIMBO {
            self.collect();
        }
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                let slot = self.slots.len();
                if (slot + 1) * self.layout.words() > self.records.current().len() {
                    self.publish(slot * 2 + 1)?;
                }
                self.slots.push(ActionSlot { key: None, call: None, uses: 0 });
                slot as u32
            }
        };
        self.slots[slot as usize] = ActionSlot { key: Some(key.clone()), call, uses: 1 };
        match key {
            Key::Call(call) => self.by_call.insert(call, slot),
            key => self.by_key.insert(key, slot),
        };
        self.write(slot, self.records.current());
        while self.older.front().is_some_and(|(stamp, _)| self.domain.passed(*stamp)) {
            self.older.pop_front();
        }
        // A worker that still reads older records may find the new slot in this batch.
        self.older.iter().for_each(|(_, cells)| self.write(slot, cells));
        Ok(slot)
    }

    /// The slots that wait for [`Slots::settle`].
    pub(crate) fn unlinked(&self) -> usize {
        self.unlinked.len()
    }

    /// Nothing that workers find from now on leads to the slots that were released. Publishes groups.
    pub(crate) fn settle(&mut self) {
        self.publish_groups();
        if !self.unlinked.is_empty() {
            let stamp = self.domain.stamp();
            self.limbo.extend(self.unlinked.drain(..).map(|slot| (stamp, slot)));
        }
    }

    /// Takes one use back. The slot of the last one is free a grace period after [`Slots::settle`].
    pub(crate) fn release(&mut self, slot: u32) {
        let kept = &mut self.slots[slot as usize];
        kept.uses = kept.uses.saturating_sub(1);
        if kept.uses == 0 {
            kept.call = None;
            match kept.key.take() {
                Some(Key::Call(call)) => drop(self.by_call.remove(&call)),
                Some(Key::Group(group)) => {
                    self.by_key.remove(&Key::Group(group));
                    self.groups_mut().remove(&slot);
                }
                Some(key) => drop(self.by_key.remove(&key)),
                None => {}
            }
            self.unlinked.push(slot);
        }
    }

    /// Gives slot 0 another action.
    ///
    /// # Errors
    /// [`NoMemory`]; nothing has changed then.
    pub(crate) fn set_default(&mut self, call: ActionCall) -> Result<(), NoMemory> {
        let before = std::mem::replace(&mut self.default, Arc::new(call));
        let published = self.set_first(None, None);
        if published.is_err() {
            self.default = before;
        }
        published
    }

    /// Has misses find what the slot of a member or a group stands for. Both have one.
    ///
    /// # Errors
    /// [`NoMemory`]; nothing has changed then.
    pub(crate) fn set_default_target(&mut self, target: TargetRef) -> Result<(), NoMemory> {
        let slot = self.find(target).unwrap_or(0) as usize;
        let ActionSlot { key, call, .. } = self.slots[slot].clone();
        self.set_first(key, call)
    }

    fn set_first(&mut self, key: Option<Key>, call: Option<Arc<ActionCall>>) -> Result<(), NoMemory> {
        let group = match &key {
            Some(group @ Key::Group(_)) => self.by_key.get(group).copied(),
            _ => None,
        };
        let before = std::mem::replace(&mut self.slots[0], ActionSlot { key, call, uses: 1 });
        // While there is a group, workers do not read the record.
        if let Some(group) = group {
            self.lead_misses_to(Some(group));
            self.publish_groups();
        }
        if let Err(error) = self.publish(0) {
            self.slots[0] = before;
            let group = self.slots[0].key.as_ref().and_then(|key| self.by_key.get(key)).copied();
            self.lead_misses_to(group);
            self.publish_groups();
            return Err(error);
        }
        if group.is_none() {
            self.lead_misses_to(None);
            self.publish_groups();
        }
        Ok(())
    }

    /// Says of what group slot 0 is, to be published.
    fn lead_misses_to(&mut self, group: Option<u32>) {
        let current = self.next_groups.as_ref().unwrap_or_else(|| self.groups.current());
        let group = group.and_then(|slot| current.get(&slot).cloned());
        match group {
            Some(group) => drop(self.groups_mut().insert(0, group)),
            None if current.contains_key(&0) => drop(self.groups_mut().remove(&0)),
            None => {}
        }
    }

    /// The slot of a member, with one more use, and what it does; none: the default action.
    ///
    /// # Errors
    /// [`NoMemory`]; nothing has changed then.
    pub(crate) fn add_member(&mut self, member: MemberRef, call: Option<ActionCall>) -> Result<(), NoMemory> {
        self.take(Key::Member(member), call.map(Arc::new)).map(|_| ())
    }

    /// Says what the slot of a member does from now on. A member without a slot stays without.
    ///
    /// # Errors
    /// [`NoMemory`]; nothing has changed then.
    pub(crate) fn change_member(
        &mut self,
        member: MemberRef,
        call: Option<ActionCall>,
    ) -> Result<(), NoMemory> {
        let key = Key::Member(member);
        let Some(&slot) = self.by_key.get(&key) else { return Ok(()) };
        let is_default = self.slots[0].key.as_ref() == Some(&key);
        let replace = |slots: &mut [ActionSlot], call: Option<Arc<ActionCall>>| {
            if is_default {
                slots[0].call = call.clone();
            }
            std::mem::replace(&mut slots[slot as usize].call, call)
        };
        let before = replace(&mut self.slots, call.map(Arc::new));
        let published = self.publish(0);
        if published.is_err() {
            replace(&mut self.slots, before);
        }
        published
    }

    /// Says what members a group has, whose slots there are; a group that is new gets a slot. Published by
    /// [`Slots::settle`] or [`Slots::publish_groups`].
    ///
    /// # Errors
    /// [`NoMemory`]; nothing has changed then.
    pub(crate) fn set_group(
        &mut self,
        group: GroupRef,
        members: impl Iterator<Item = (MemberRef, u32)>,
        selection: Selection,
    ) -> Result<(), NoMemory> {
        let slot = match self.by_key.get(&Key::Group(group)) {
            Some(&slot) => slot,
            None => self.add(Key::Group(group), self.empty_group.clone())?,
        };
        let mut upto = 0;
        let slots = members.filter_map(|(member, weight)| {
            upto += u64::from(weight);
            Some((upto, *self.by_key.get(&Key::Member(member))?))
        });
        let made = Arc::new(GroupSlots { slots: slots.collect(), selection });
        if self.slots[0].key == Some(Key::Group(group)) {
            self.groups_mut().insert(0, Arc::clone(&made));
        }
        self.groups_mut().insert(slot, made);
        Ok(())
    }

    fn groups_mut(&mut self) -> &mut Groups {
        self.next_groups.get_or_insert_with(|| self.groups.current().clone())
    }

    /// Publishes the groups, if there is something new. To be called before anything that leads workers to a new group.
    pub(crate) fn publish_groups(&mut self) {
        if let Some(groups) = self.next_groups.take() {
            self.groups.publish(groups);
        }
    }

    /// Publishes all records again, with room for so many. Only where there are more than before it waits until no worker
    /// reads the old ones, as these have no place for new slots.
    fn publish(&mut self, room: usize) -> Result<(), NoMemory> {
        let before = Arc::clone(self.records.current());
        let room = (room * self.layout.words()).max(before.len());
        let cells = Cells::filled_from_the_first(room)?;
        (0..self.slots.len() as u32).for_each(|slot| self.write(slot, &cells));
        self.records.publish(Arc::new(cells));
        if room > before.len() || self.older.len() >= MOST_OLDER {
            self.domain.wait();
            self.older.clear();
        } else {
            self.older.push_back((self.domain.stamp(), before));
        }
        Ok(())
    }

    fn write(&self, slot: u32, cells: &Cells<AtomicU64>) {
        let Some(call) = self.call(slot) else { return };
        let start = slot as usize * self.layout.words();
        let record = self.layout.record(call);
        for (cell, word) in cells[start..].iter().zip(record) {
            cell.store(word, Ordering::Relaxed);
        }
    }

    /// Frees slots whose grace period is over.
    fn collect(&mut self) {
        while let Some(&(stamp, slot)) = self.limbo.front()
            && self.domain.passed(stamp)
        {
            self.free.push(slot);
            self.limbo.pop_front();
        }
    }
}
