//! Action profiles and selectors: actions kept apart from the entries that share them.
//!
//! A member is an action; a group is a set of members with weights, of which a hash selects one. An empty group
//! selects nothing: the entry that names it still counts as a hit, and the caller runs what the table has for this case.

use crate::action::{ActionCall, ActionDataId, ActionStore};
use crate::entry::{GroupRef, MemberRef, TargetRef};
use crate::error::{ProfileError, SpecError};
use crate::limits::{MAX_ACTION_BYTES, MAX_ENTRIES, MAX_GROUP_WEIGHT, MAX_GROUPS};
use crate::prices::{self, Held};
use crate::table::Table;
use std::collections::BTreeMap;

/// What an action profile is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProfileSpec {
    /// Most members, at most [`MAX_ENTRIES`].
    pub max_members: u32,
    /// Most groups, at most [`MAX_GROUPS`]; 0 for a profile without a selector.
    pub max_groups: u32,
    /// Largest sum of the weights in one group, at most [`MAX_GROUP_WEIGHT`].
    pub max_group_weight: u32,
}

/// One member of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupMember {
    /// The member's id.
    pub member: u32,
    /// How often it is selected relative to the others; not 0.
    pub weight: u32,
}

/// How a group selects the member for a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Selection {
    /// By the selector's hash: packets of one flow meet one member.
    #[default]
    Hash,
    /// At random.
    Random,
}

/// An action profile, with a selector or without. Ids are the control plane's.
#[derive(Clone, Debug)]
pub struct ActionProfile {
    spec: ProfileSpec,
    actions: ActionStore,
    members: BTreeMap<u32, ActionDataId>,
    groups: BTreeMap<u32, Group>,
    /// Bytes of each member in the tables that use it.
    in_tables: u64,
    held: Held,
    /// See [`ActionProfile::set_capacity`].
    capacity: Option<u32>,
    /// The weights of all groups.
    places: u64,
}

/// The members of a group by ascending id, each with the sum of the weights up to and with its own.
#[derive(Clone, Debug, Default)]
struct Group {
    members: Vec<GroupMember>,
    cumulative: Vec<u64>,
    selection: Selection,
}

impl Group {
    fn new(members: Vec<GroupMember>, selection: Selection) -> Group {
        let cumulative = members
            .iter()
            .scan(0, |sum, member| {
                *sum += u64::from(member.weight);
                Some(*sum)
            })
            .collect();
        Group { members, cumulative, selection }
    }

    fn select(&self, hash: u64) -> Option<u32> {
        let place = hash % self.cumulative.last()?;
        let at = self.cumulative.partition_point(|&upto| upto <= place);
        self.members.get(at).map(|member| member.member)
    }
}

impl ActionProfile {
    /// An empty profile.
    ///
    /// # Errors
    /// [`SpecError::TooLarge`].
    pub fn new(spec: ProfileSpec) -> Result<ActionProfile, SpecError> {
        let limits = [
            ("the size of the action profile in members", spec.max_members, MAX_ENTRIES),
            ("the number of groups of the action profile", spec.max_groups, MAX_GROUPS),
            ("the largest group of the action profile", spec.max_group_weight, MAX_GROUP_WEIGHT),
        ];
        for (what, asked, limit) in limits {
            if asked > limit {
                return Err(SpecError::TooLarge { what, asked: asked.into(), limit: limit.into() });
            }
        }
        Ok(ActionProfile {
            spec,
            actions: ActionStore::default(),
            members: BTreeMap::new(),
            groups: BTreeMap::new(),
            in_tables: 0,
            held: Held::default(),
            capacity: None,
            places: 0,
        })
    }

    /// The same, empty, used by tables whose records are of these lengths in bytes: members count for these too.
    pub fn used_by(self, records: impl Iterator<Item = u32>) -> ActionProfile {
        ActionProfile { in_tables: prices::in_tables(records), ..self }
    }

    /// Whoever looks up holds so many members of groups, each as often as its weight: more are refused. What there is stays.
    pub fn set_capacity(&mut self, places: u32) {
        self.capacity = Some(places);
    }

    /// What its members and groups count for ([`prices`]).
    pub fn held(&self) -> Held {
        self.held
    }

    /// Bytes of memory of members and groups, as their price is without what they take in tables.
    pub fn memory_bytes(&self) -> usize {
        let in_tables = self.in_tables.saturating_mul(self.members.len() as u64);
        self.held.bytes.saturating_sub(in_tables) as usize
    }

    /// What a member counts for that does this.
    pub fn price(&self, action: &ActionCall) -> Held {
        prices::member(action.data.len(), self.in_tables)
    }

    fn price_of(&self, action: ActionDataId) -> Held {
        self.actions.get(action).map_or_else(Held::default, |action| self.price(action))
    }

    /// What the profile is like.
    pub fn spec(&self) -> &ProfileSpec {
        &self.spec
    }

    // The packet side.

    /// The action of a member; `None` when it does not exist.
    pub fn member(&self, id: u32) -> Option<&ActionCall> {
        self.actions.get(*self.members.get(&id)?)
    }

    /// Selects a member of a group by a hash, or by a random number where it selects at random: the members in ascending
    /// order of their ids, each as often as its weight, counted round by the hash. `None` when the group is empty or does not exist.
    pub fn select(&self, group: u32, hash: u64) -> Option<u32> {
        self.groups.get(&group)?.select(hash)
    }

    /// The action of an entry's target, selected by `hash` (asked for only when a group is to be selected from).
    /// `None` for a direct action, which the table holds, and for an empty group: run [`crate::TableSpec::empty_group`].
    pub fn resolve(&self, target: TargetRef, hash: impl FnOnce() -> u64) -> Option<&ActionCall> {
        match target {
            TargetRef::Action(_) => None,
            TargetRef::Member(member) => self.member(member.0),
            TargetRef::Group(group) => self.member(self.select(group.0, hash())?),
        }
    }

    // The control side.

    /// The name of a member that exists, for an entry.
    ///
    /// # Errors
    /// [`ProfileError::NoMember`].
    pub fn member_ref(&self, id: u32) -> Result<MemberRef, ProfileError> {
        self.members.contains_key(&id).then_some(MemberRef(id)).ok_or(ProfileError::NoMember(id))
    }

    /// The name of a group that exists, for an entry.
    ///
    /// # Errors
    /// [`ProfileError::NoGroup`].
    pub fn group_ref(&self, id: u32) -> Result<GroupRef, ProfileError> {
        self.groups.contains_key(&id).then_some(GroupRef(id)).ok_or(ProfileError::NoGroup(id))
    }

    /// The smallest member id that is free: for fronts that leave the choice to the switch.
    pub fn free_member_id(&self) -> u32 {
        first_free(self.members.keys())
    }

    /// The smallest group id that is free.
    pub fn free_group_id(&self) -> u32 {
        first_free(self.groups.keys())
    }

    /// Adds a member.
    ///
    /// # Errors
    /// [`ProfileError::DuplicateMember`], [`ProfileError::MembersFull`], [`ProfileError::ActionTooLong`].
    pub fn insert_member(&mut self, id: u32, action: ActionCall) -> Result<MemberRef, ProfileError> {
        check_action(&action)?;
        if self.members.contains_key(&id) {
            return Err(ProfileError::DuplicateMember(id));
        }
        if self.members.len() >= self.spec.max_members as usize {
            return Err(ProfileError::MembersFull { limit: self.spec.max_members });
        }
        self.held += self.price(&action);
        self.members.insert(id, self.actions.intern(action));
        Ok(MemberRef(id))
    }

    /// Gives a member another action, which every entry and group that names it follows.
    ///
    /// # Errors
    /// [`ProfileError::NoMember`], [`ProfileError::ActionTooLong`].
    pub fn modify_member(&mut self, id: u32, action: ActionCall) -> Result<(), ProfileError> {
        check_action(&action)?;
        let before = *self.members.get(&id).ok_or(ProfileError::NoMember(id))?;
        self.held = self.held + self.price(&action) - self.price_of(before);
        self.members.insert(id, self.actions.intern(action));
        self.actions.release(before);
        Ok(())
    }

    /// Removes a member. `tables` are the tables of this profile.
    ///
    /// # Errors
    /// [`ProfileError::NoMember`]; [`ProfileError::MemberInUse`] when a group or an entry names it.
    pub fn remove_member<'a>(
        &mut self,
        id: u32,
        tables: impl IntoIterator<Item = &'a Table>,
    ) -> Result<(), ProfileError> {
        let action = *self.members.get(&id).ok_or(ProfileError::NoMember(id))?;
        let in_group =
            self.groups.values().any(|group| group.members.iter().any(|member| member.member == id));
        let target = TargetRef::Member(MemberRef(id));
        if in_group || tables.into_iter().any(|table| table.uses(target)) {
            return Err(ProfileError::MemberInUse(id));
        }
        self.held = self.held - self.price_of(action);
        self.members.remove(&id);
        self.actions.release(action);
        Ok(())
    }

    /// Adds a group, which may be empty.
    ///
    /// # Errors
    /// [`ProfileError`]: the id is taken, there are too many groups, or what is wrong with the members.
    pub fn insert_group(
        &mut self,
        id: u32,
        members: &[GroupMember],
        selection: Selection,
    ) -> Result<GroupRef, ProfileError> {
        if self.spec.max_groups == 0 {
            return Err(ProfileError::NoSelector);
        }
        if self.groups.contains_key(&id) {
            return Err(ProfileError::DuplicateGroup(id));
        }
        if self.groups.len() >= self.spec.max_groups as usize {
            return Err(ProfileError::GroupsFull { limit: self.spec.max_groups });
        }
        let group = self.check_group(members, selection)?;
        self.places = self.check_places(0, weight(members))?;
        self.held += prices::group(members);
        self.groups.insert(id, group);
        Ok(GroupRef(id))
    }

    /// Gives a group other members, all at once.
    ///
    /// # Errors
    /// [`ProfileError::NoGroup`], or what is wrong with the members.
    pub fn modify_group(&mut self, id: u32, members: &[GroupMember]) -> Result<(), ProfileError> {
        let selection = self.selection(id).ok_or(ProfileError::NoGroup(id))?;
        let group = self.check_group(members, selection)?;
        let before = self.groups.get(&id).map_or(0, |group| weight(&group.members));
        self.places = self.check_places(before, weight(members))?;
        let before = self.groups.insert(id, group).unwrap_or_default();
        self.held = self.held + prices::group(members) - prices::group(&before.members);
        Ok(())
    }

    /// Removes a group. `tables` are the tables of this profile.
    ///
    /// # Errors
    /// [`ProfileError::NoGroup`]; [`ProfileError::GroupInUse`] when an entry names it.
    pub fn remove_group<'a>(
        &mut self,
        id: u32,
        tables: impl IntoIterator<Item = &'a Table>,
    ) -> Result<(), ProfileError> {
        let target = TargetRef::Group(self.group_ref(id)?);
        if tables.into_iter().any(|table| table.uses(target)) {
            return Err(ProfileError::GroupInUse(id));
        }
        let before = self.groups.remove(&id).unwrap_or_default();
        self.places -= weight(&before.members);
        self.held = self.held - prices::group(&before.members);
        Ok(())
    }

    /// The members by ascending id.
    pub fn members(&self) -> impl Iterator<Item = (u32, &ActionCall)> {
        self.members_from(0)
    }

    /// The members from this id on, by ascending id.
    pub fn members_from(&self, first: u32) -> impl Iterator<Item = (u32, &ActionCall)> {
        self.members.range(first..).filter_map(|(&id, &action)| Some((id, self.actions.get(action)?)))
    }

    /// The groups by ascending id, each with its members by ascending id.
    pub fn groups(&self) -> impl Iterator<Item = (u32, &[GroupMember])> {
        self.groups.iter().map(|(&id, group)| (id, group.members.as_slice()))
    }

    /// The members of a group by ascending id; `None` when it does not exist.
    pub fn group(&self, id: u32) -> Option<&[GroupMember]> {
        self.groups.get(&id).map(|group| group.members.as_slice())
    }

    /// How a group selects; `None` when it does not exist.
    pub fn selection(&self, id: u32) -> Option<Selection> {
        self.groups.get(&id).map(|group| group.selection)
    }

    /// The weights of all groups when those of one have changed.
    fn check_places(&self, before: u64, after: u64) -> Result<u64, ProfileError> {
        let places = self.places - before + after;
        match self.capacity {
            // A group may always become smaller.
            Some(limit) if places > limit.into() && after > before => Err(ProfileError::PlacesFull { limit }),
            _ => Ok(places),
        }
    }

    fn check_group(&self, members: &[GroupMember], selection: Selection) -> Result<Group, ProfileError> {
        let weight = weight(members);
        if weight > self.spec.max_group_weight.into() {
            return Err(ProfileError::GroupTooLarge { weight, limit: self.spec.max_group_weight });
        }
        for member in members {
            self.member_ref(member.member)?;
            if member.weight == 0 {
                return Err(ProfileError::ZeroWeight { member: member.member });
            }
        }
        let mut members = members.to_vec();
        members.sort_unstable_by_key(|member| member.member);
        match members.windows(2).find(|pair| pair[0].member == pair[1].member) {
            Some(pair) => Err(ProfileError::RepeatedMember { member: pair[0].member }),
            None => Ok(Group::new(members, selection)),
        }
    }
}

fn weight(members: &[GroupMember]) -> u64 {
    members.iter().map(|member| u64::from(member.weight)).sum()
}

fn check_action(action: &ActionCall) -> Result<(), ProfileError> {
    if action.data.len() > MAX_ACTION_BYTES {
        return Err(ProfileError::ActionTooLong { bytes: action.data.len(), limit: MAX_ACTION_BYTES });
    }
    Ok(())
}

/// The smallest number that ascending ids leave out. There are fewer ids than numbers.
fn first_free<'a>(ids: impl Iterator<Item = &'a u32>) -> u32 {
    let mut free = 0;
    for &id in ids {
        if id != free {
            break;
        }
        free += 1;
    }
    free
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::Domain;
    use crate::entry::{EntrySpec, EntryTarget};
    use crate::error::TableError;
    use crate::key::{FieldMatch, KeyField, KeySchema, MatchKind};
    use crate::table::TableSpec;

    fn action(number: u32) -> ActionCall {
        ActionCall::new(number, [])
    }

    fn profile() -> ActionProfile {
        let spec = ProfileSpec { max_members: 4, max_groups: 2, max_group_weight: 10 };
        let mut profile = ActionProfile::new(spec).unwrap();
        for id in [30, 10, 20] {
            profile.insert_member(id, action(id)).unwrap();
        }
        profile
    }

    fn members(of: &[(u32, u32)]) -> Vec<GroupMember> {
        of.iter().map(|&(member, weight)| GroupMember { member, weight }).collect()
    }

    fn table() -> Table {
        let schema = KeySchema::new(vec![KeyField { width: 8, kind: MatchKind::Exact }]).unwrap();
        Table::new(TableSpec { has_profile: true, ..TableSpec::new(schema, 10, action(0)) }, &Domain::new())
            .unwrap()
    }

    #[test]
    fn a_hash_selects_members_by_weight_in_order_of_ids() {
        let mut profile = profile();
        profile.insert_group(1, &members(&[(30, 1), (10, 3), (20, 2)]), Selection::Hash).unwrap();
        let selected: Vec<u32> = (0..8).map(|hash| profile.select(1, hash).unwrap()).collect();
        assert_eq!(selected, [10, 10, 10, 20, 20, 30, 10, 10]);
        // 2^64 - 1 is 3 modulo 6.
        assert_eq!(profile.select(1, u64::MAX), Some(20));
        assert_eq!(profile.select(2, 0), None);
    }

    #[test]
    fn an_empty_group_selects_nothing() {
        let mut profile = profile();
        let group = profile.insert_group(1, &[], Selection::Hash).unwrap();
        assert_eq!(profile.select(1, 5), None);
        assert_eq!(profile.resolve(TargetRef::Group(group), || 5), None);
        profile.modify_group(1, &members(&[(20, 1)])).unwrap();
        assert_eq!(profile.resolve(TargetRef::Group(group), || 5), Some(&action(20)));
        let member = profile.member_ref(10).unwrap();
        assert_eq!(
            profile.resolve(TargetRef::Member(member), || panic!("no hash needed")),
            Some(&action(10))
        );
        profile.modify_member(10, action(99)).unwrap();
        assert_eq!(profile.member(10), Some(&action(99)));
    }

    #[test]
    fn what_is_in_use_stays() {
        let (mut profile, mut table) = (profile(), table());
        let group = profile.insert_group(1, &members(&[(10, 1)]), Selection::Hash).unwrap();
        let member = profile.member_ref(20).unwrap();
        let entry = |key: u8, target| {
            EntrySpec::new(vec![FieldMatch::Exact(vec![key])], action(0)).with_target(target)
        };
        let first = table.insert(entry(1, EntryTarget::Group(group))).unwrap();
        let second = table.insert(entry(2, EntryTarget::Member(member))).unwrap();
        let direct = entry(3, EntryTarget::Action(action(1)));
        assert_eq!(table.insert(direct), Err(TableError::NeedsProfile));
        assert_eq!(table.action_of(first), None);

        assert_eq!(profile.remove_member(10, [&table]), Err(ProfileError::MemberInUse(10)));
        assert_eq!(profile.remove_member(20, [&table]), Err(ProfileError::MemberInUse(20)));
        assert_eq!(profile.remove_group(1, [&table]), Err(ProfileError::GroupInUse(1)));
        profile.remove_member(30, [&table]).unwrap();
        table.modify(second, EntryTarget::Group(group)).unwrap();
        profile.remove_member(20, [&table]).unwrap();
        table.clear();
        profile.remove_group(1, [&table]).unwrap();
        profile.remove_member(10, [&table]).unwrap();
        assert_eq!((profile.members().count(), profile.groups().count()), (0, 0));
    }

    #[test]
    fn a_refused_write_changes_nothing() {
        let mut profile = profile();
        profile.insert_group(1, &members(&[(10, 4)]), Selection::Hash).unwrap();
        let refused = [
            (profile.insert_member(10, action(1)).map(|_| ()), ProfileError::DuplicateMember(10)),
            (profile.modify_member(11, action(1)), ProfileError::NoMember(11)),
            (profile.remove_member(11, []), ProfileError::NoMember(11)),
            (profile.insert_group(1, &[], Selection::Hash).map(|_| ()), ProfileError::DuplicateGroup(1)),
            (profile.modify_group(2, &[]), ProfileError::NoGroup(2)),
            (profile.remove_group(2, []), ProfileError::NoGroup(2)),
            (profile.modify_group(1, &members(&[(11, 1)])), ProfileError::NoMember(11)),
            (profile.modify_group(1, &members(&[(10, 0)])), ProfileError::ZeroWeight { member: 10 }),
            (
                profile.modify_group(1, &members(&[(20, 1), (10, 1), (20, 2)])),
                ProfileError::RepeatedMember { member: 20 },
            ),
            (
                profile.modify_group(1, &members(&[(10, 6), (20, 5)])),
                ProfileError::GroupTooLarge { weight: 11, limit: 10 },
            ),
        ];
        for (result, error) in refused {
            assert_eq!(result, Err(error));
        }
        assert_eq!(profile.group(1), Some(&members(&[(10, 4)])[..]));
        profile.insert_member(40, action(40)).unwrap();
        assert_eq!(profile.insert_member(50, action(50)), Err(ProfileError::MembersFull { limit: 4 }));
        profile.insert_group(2, &[], Selection::Hash).unwrap();
        assert_eq!(profile.insert_group(3, &[], Selection::Hash), Err(ProfileError::GroupsFull { limit: 2 }));
        let plain = ProfileSpec { max_members: 1, max_groups: 0, max_group_weight: 0 };
        let mut plain = ActionProfile::new(plain).unwrap();
        assert_eq!(plain.insert_group(1, &[], Selection::Hash), Err(ProfileError::NoSelector));
    }

    #[test]
    fn groups_have_as_many_places_as_there_are() {
        let mut profile = profile();
        profile.set_capacity(7);
        profile.insert_group(1, &members(&[(10, 4)]), Selection::Hash).unwrap();
        let full = ProfileError::PlacesFull { limit: 7 };
        assert_eq!(profile.insert_group(2, &members(&[(10, 4)]), Selection::Hash), Err(full.clone()));
        profile.insert_group(2, &members(&[(20, 3)]), Selection::Hash).unwrap();
        assert_eq!(profile.modify_group(1, &members(&[(10, 3), (20, 2)])), Err(full));
        assert_eq!(profile.group(1), Some(&members(&[(10, 4)])[..]));
        profile.remove_group(2, []).unwrap();
        profile.modify_group(1, &members(&[(10, 3), (20, 4)])).unwrap();
        // What there is stays, and may become less.
        profile.set_capacity(2);
        profile.modify_group(1, &members(&[(10, 3)])).unwrap();
    }

    #[test]
    fn free_ids_fill_the_gaps() {
        let mut profile = profile();
        assert_eq!((profile.free_member_id(), profile.free_group_id()), (0, 0));
        profile.insert_member(0, action(0)).unwrap();
        assert_eq!(profile.free_member_id(), 1);
    }

    #[test]
    fn sizes_are_limited() {
        let spec = ProfileSpec { max_members: 1, max_groups: 1, max_group_weight: MAX_GROUP_WEIGHT + 1 };
        let error = ActionProfile::new(spec).unwrap_err();
        assert_eq!(error.to_string(), "the largest group of the action profile is 65537, the limit is 65536");
    }
}
