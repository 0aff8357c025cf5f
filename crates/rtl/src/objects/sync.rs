//! What software knows of the unit of an object: which words control has changed, and what frames have made of the others.
//!
//! What control has written goes into the unit, what a frame changed there is read and brought back to the objects of the switch. Control
//! is looked at as a whole only after it has written.

use super::{Kind, Measure, ObjectUnit, account, messages, meter_part};
use crate::driver::SoftwareAccess;
use crate::stage::{ObjectKey, Unit, crc_parameters, input_width};
use crate::tables::{Full, Numbers};
use crate::units::Objects;
use millrace_pipeline::{Bits, EntryMatch, TableId, Type};
use millrace_state::{
    AccountConfig, AccountTest, CounterRef, CounterValue, EntryIndex, Meter, MeterConfig, MeterRates,
    MeterRef, Rate, State, Tables, Written,
};
use std::collections::{BTreeMap, BTreeSet};

/// Steps of a unit of tokens.
const STEPS: u128 = 1_000_000_000_000_000;

/// A unit, and what is known of it.
#[derive(Debug)]
pub(crate) struct Synced {
    pub(crate) unit: ObjectUnit,
    /// The words of the unit, in limbs.
    known: Vec<u64>,
    limbs: usize,
    seen: Option<Written>,
    entries: Entries,
    /// Cells that frames may have changed.
    touched: BTreeSet<u64>,
    /// Of hits: cells of entries that frames may have hit before software looks at them.
    unseen: BTreeSet<u64>,
    /// Messages that frames have sent.
    sent: u64,
    lost: u64,
    /// Requests that came to the unit.
    #[cfg(test)]
    pub(crate) requests: u64,
}

/// Words that control has changed.
#[derive(Debug)]
pub(crate) struct Changes {
    pub(crate) words: Vec<(u64, Bits)>,
    entries: Entries,
    written: Written,
    /// Nothing was known of the unit.
    all: bool,
}

/// The entries that cells belong to, with their matches.
type Entries = BTreeMap<u64, (EntryIndex, Vec<EntryMatch>)>;

/// Words of a unit that were read, by their addresses: before and now.
type Changed = BTreeMap<u64, (Bits, Bits)>;

impl Synced {
    pub(crate) fn new(unit: ObjectUnit) -> Synced {
        let port = unit.port();
        let limbs = port.width.div_ceil(64) as usize;
        let known = match &unit.kind {
            // Nothing is kept of what is only read once.
            Kind::Messages { .. } => Vec::new(),
            Kind::Register { initial: Some(initial), .. } | Kind::Hash { initial } => {
                let cell: Vec<u64> = initial.limbs().chain(std::iter::repeat(0)).take(limbs).collect();
                cell.repeat(port.words as usize)
            }
            _ => vec![0; limbs * port.words as usize],
        };
        Synced {
            unit,
            known,
            limbs,
            seen: None,
            entries: BTreeMap::new(),
            touched: BTreeSet::new(),
            unseen: BTreeSet::new(),
            sent: 0,
            lost: 0,
            #[cfg(test)]
            requests: 0,
        }
    }

    /// Notes what a frame asks the unit for.
    pub(crate) fn asked(&mut self, unit: &Unit, inputs: &[(Bits, Type)]) {
        #[cfg(test)]
        {
            self.requests += 1;
        }
        match unit {
            Unit::RegisterRead(_) | Unit::Member(_) => {}
            Unit::Digest(_) | Unit::Log(_) => self.sent += 1,
            _ => {
                let cell = inputs.first().map_or(0, |(index, _)| index.to_u64_saturating());
                if cell < self.cells() {
                    self.touched.insert(cell);
                }
            }
        }
    }

    /// The words that control has changed since this was asked last, and whether it has written at all; `all` asks for every word. What
    /// belongs to entries has the cells of their numbers; none: those of their indices.
    ///
    /// # Errors
    /// The unit has no room for what there is.
    pub(crate) fn changes(
        &self,
        state: &State,
        (tables, numbers): (&Tables, Option<&Numbers>),
        all: bool,
    ) -> Result<Option<Changes>, Full> {
        let written = state.written(tables);
        let written = match self.unit.key {
            ObjectKey::DirectCounter(_) | ObjectKey::DirectMeter(_) | ObjectKey::Hits(_) => written,
            ObjectKey::Counter(_) => written.to_arrays(),
            _ => written.to_objects(),
        };
        if self.seen == Some(written) && !all {
            return Ok(None);
        }
        let entries = self.cells_of_entries(tables, numbers);
        self.check_room(&entries, state)?;
        // What an entry has counted that is gone, or another one now.
        let is_new = |cell: u64| {
            self.entries.get(&cell).is_some_and(|before| entries.get(&cell).is_some_and(|now| now != before))
        };
        let gone: Vec<u64> =
            self.entries.keys().copied().filter(|cell| !entries.contains_key(cell)).collect();
        let parts = self.parts();
        let mut words = Vec::new();
        // Of large arrays most words are as they are known.
        self.words((state, tables), &entries, all, &mut |at, word| {
            if all || is_new(at / parts) || !self.is_known(at, &word) {
                words.push((at, word));
            }
        });
        let zero = Bits::zero(self.unit.port().width);
        for cell in gone {
            words.extend((0..parts).map(|part| (cell * parts + part, zero.clone())));
        }
        Ok(Some(Changes { words, entries, written, all }))
    }

    /// Notes that they are written.
    pub(crate) fn wrote(&mut self, changes: Changes) {
        for (at, word) in &changes.words {
            self.note(*at, word);
        }
        if let ObjectKey::Hits(_) = self.unit.key {
            let is_new = |cell: &u64, matches| changes.all || self.entries.get(cell) != Some(matches);
            let new = changes.entries.iter().filter(|(cell, matches)| is_new(cell, matches));
            self.unseen.extend(new.map(|(cell, _)| *cell));
        }
        (self.entries, self.seen) = (changes.entries, Some(changes.written));
    }

    /// Words of a cell.
    fn parts(&self) -> u64 {
        match self.unit.kind {
            Kind::Meter { .. } => meter_part::ALL,
            _ => 1,
        }
    }

    /// The table whose entries have the cells.
    pub(crate) fn table(&self) -> Option<TableId> {
        match self.unit.key {
            ObjectKey::DirectCounter(table) | ObjectKey::DirectMeter(table) | ObjectKey::Hits(table) => {
                Some(table)
            }
            _ => None,
        }
    }

    fn cells_of_entries(&self, tables: &Tables, numbers: Option<&Numbers>) -> Entries {
        let cell = |index: EntryIndex| numbers.map_or(index.0, |numbers| numbers.number(index));
        let entries = self.table().into_iter().flat_map(|table| tables.entries(table));
        entries.map(|entry| (cell(entry.index).into(), (entry.index, entry.matches))).collect()
    }

    fn check_room(&self, entries: &Entries, state: &State) -> Result<(), Full> {
        match (self.table(), entries.last_key_value()) {
            (Some(table), Some((last, _))) if *last >= self.cells() => Err(Full {
                selector: None,
                table: state.program().tables[table].name.clone(),
                entries: entries.len() as u64,
                capacity: self.cells().saturating_sub(1),
            }),
            _ => Ok(()),
        }
    }

    /// Whether frames may have changed anything.
    pub(crate) fn is_touched(&self) -> bool {
        !self.touched.is_empty() || self.sent > 0
    }

    /// From now on frames may have changed everything that frames change.
    pub(crate) fn touch_all(&mut self) {
        match self.unit.key {
            ObjectKey::DirectCounter(_) | ObjectKey::DirectMeter(_) | ObjectKey::Hits(_) => {
                self.touched.extend(self.entries.keys())
            }
            ObjectKey::Counter(_) | ObjectKey::Meter(_) | ObjectKey::Register(_) => {
                self.touched.extend(0..self.cells());
            }
            _ => {}
        }
    }

    fn measure(&self) -> Measure {
        match self.unit.kind {
            Kind::Meter { measure, .. } => measure,
            _ => Measure::Bytes,
        }
    }

    fn cells(&self) -> u64 {
        match &self.unit.kind {
            Kind::Register { size, .. }
            | Kind::Counter { size }
            | Kind::Meter { size, .. }
            | Kind::Values { size, .. } => u64::from(*size),
            Kind::Hash { .. } => 1,
            // Frames ask software for random numbers.
            Kind::Messages { .. } | Kind::Random { .. } => 0,
        }
    }

    fn known(&self, at: u64) -> Bits {
        let start = at as usize * self.limbs;
        let limbs = self.known.get(start..start + self.limbs).unwrap_or(&[]);
        let parts = limbs.iter().rev().map(|limb| Bits::new(64, u128::from(*limb)));
        let whole = parts.reduce(|high, low| high.concat(&low)).unwrap_or(Bits::zero(1));
        whole.zero_extend(self.unit.port().width)
    }

    /// Whether that is the word that is known.
    fn is_known(&self, at: u64, word: &Bits) -> bool {
        let start = at as usize * self.limbs;
        let known = self.known.get(start..start + self.limbs).unwrap_or(&[]);
        word.limbs().chain(std::iter::repeat(0)).take(self.limbs).eq(known.iter().copied())
    }

    /// Whether all words of a cell are 0, as far as is known.
    fn is_zero(&self, cell: u64) -> bool {
        let limbs = self.limbs * self.parts() as usize;
        let start = cell as usize * limbs;
        self.known.get(start..start + limbs).is_some_and(|known| known.iter().all(|limb| *limb == 0))
    }

    fn note(&mut self, at: u64, word: &Bits) {
        let start = at as usize * self.limbs;
        if let Some(known) = self.known.get_mut(start..start + self.limbs) {
            known.iter_mut().zip(word.limbs().chain(std::iter::repeat(0))).for_each(|(to, limb)| *to = limb);
        }
    }

    /// Tells the words that the unit should have, with their addresses: `all` of them, or those of cells that have anything or are known
    /// to have had.
    fn words(
        &self,
        (state, tables): (&State, &Tables),
        entries: &Entries,
        all: bool,
        keep: &mut dyn FnMut(u64, Bits),
    ) {
        let entries = entries.iter().map(|(cell, (index, _))| (*cell, u64::from(index.0)));
        match self.unit.key {
            ObjectKey::Register(id) => (0..self.cells()).for_each(|at| keep(at, state.register_read(id, at))),
            ObjectKey::Hits(_) => entries.for_each(|(cell, _)| keep(cell, Bits::zero(1))),
            ObjectKey::Counter(id) => {
                let value = |at| tables.counter_value(CounterRef::Indexed(id), at).unwrap_or_default();
                (0..self.cells()).for_each(|at| keep(at, counter_word(value(at))));
            }
            ObjectKey::DirectCounter(id) => {
                for (cell, at) in entries {
                    let value = tables.counter_value(CounterRef::Direct(id), at).unwrap_or_default();
                    keep(cell, counter_word(value));
                }
            }
            ObjectKey::Meter(id) => {
                for at in 0..self.cells() {
                    let counts = state.meter_counts(id, at).unwrap_or_default();
                    self.words_of_meter((at, all), state.meter_cell(id, at), counts, keep);
                }
            }
            ObjectKey::DirectMeter(id) => {
                for (cell, at) in entries {
                    let counts = tables.direct_meter_counts(id, at).unwrap_or_default();
                    self.words_of_meter((cell, all), tables.direct_meter(id, at), counts, keep);
                }
            }
            ObjectKey::ValueSet(id) => {
                let members: Vec<Bits> = state.values(id).map(|member| self.member(&member)).collect();
                let none = Bits::zero(self.unit.port().width);
                let word = |at: u64| members.get(at as usize).unwrap_or(&none).clone();
                (0..self.cells()).for_each(|at| keep(at, word(at)));
            }
            ObjectKey::Hash(id) => keep(0, crc_parameters(state.own_hash(id).parameters())),
            ObjectKey::Table(_) | ObjectKey::Random | ObjectKey::Messages => {}
        }
    }

    fn words_of_meter(
        &self,
        (cell, all): (u64, bool),
        meter: Option<Meter>,
        counts: [CounterValue; 3],
        keep: &mut dyn FnMut(u64, Bits),
    ) {
        let own = meter.unwrap_or_default();
        let is_unused =
            own.config().is_none() && own.buckets() == ([0, 0], 0) && counts == [CounterValue::default(); 3];
        if is_unused && !all && self.is_zero(cell) {
            return;
        }
        let mut words = Vec::new();
        meter_words(&mut words, self.measure(), (cell, meter), counts);
        words.into_iter().for_each(|(at, word)| keep(at, word));
    }

    /// The word of a member of a value set: whether there is one, values, masks.
    fn member(&self, member: &[EntryMatch]) -> Bits {
        let Kind::Values { fields, .. } = &self.unit.kind else { return Bits::zero(1) };
        let (mut values, mut masks): (Option<Bits>, Option<Bits>) = (None, None);
        for ((width, _), field) in fields.iter().zip(member) {
            let ones = Bits::ones(*width);
            let (value, mask) = match field {
                EntryMatch::Exact(value) | EntryMatch::Optional(Some(value)) => (value.clone(), ones),
                EntryMatch::Lpm(value, length) => {
                    (value.clone(), ones.shl_by(u64::from(width.saturating_sub(*length))))
                }
                EntryMatch::Ternary(value, mask) => (value.clone(), mask.clone()),
                EntryMatch::Range(low, high) => (low.clone(), high.clone()),
                EntryMatch::Optional(None) => (Bits::zero(*width), Bits::zero(*width)),
            };
            values = Some(values.map_or(value.clone(), |high| high.concat(&value)));
            masks = Some(masks.map_or(mask.clone(), |high| high.concat(&mask)));
        }
        let there = Bits::new(1, 1);
        match (values, masks) {
            (Some(values), Some(masks)) => there.concat(&values).concat(&masks),
            _ => there,
        }
    }

    /// The addresses of what frames may have changed.
    pub(crate) fn to_read(&self) -> Vec<u64> {
        match self.unit.kind {
            Kind::Meter { .. } => {
                const PARTS: [u64; 5] = [
                    meter_part::TOKENS,
                    meter_part::LAST,
                    meter_part::COUNTS,
                    meter_part::COUNTS + 1,
                    meter_part::COUNTS + 2,
                ];
                let of = |cell: &u64| PARTS.map(|part| cell * meter_part::ALL + part);
                self.touched.iter().flat_map(of).collect()
            }
            // As many messages as were sent, and then how many were lost.
            Kind::Messages { .. } if self.sent > 0 => {
                std::iter::repeat_n(0, self.sent as usize).chain([1]).collect()
            }
            _ => self.touched.iter().copied().collect(),
        }
    }

    /// The cells of entries that were hit, by words that were read.
    pub(crate) fn hit(&self, read: &[(u64, Bits)]) -> Vec<u64> {
        let is_hits = matches!(self.unit.key, ObjectKey::Hits(_));
        read.iter().filter(|(_, word)| is_hits && !word.is_zero()).map(|(cell, _)| *cell).collect()
    }

    /// Has entries that frames may have hit before software looks count as hit.
    pub(crate) fn hit_unseen(&mut self, state: &mut State, now_ns: u64) {
        let ObjectKey::Hits(table) = self.unit.key else { return };
        for cell in std::mem::take(&mut self.unseen) {
            self.hit_at(table, cell, state, now_ns);
        }
    }

    /// The entry of a cell was hit. One that is gone is hit no more.
    fn hit_at(&self, table: TableId, cell: u64, state: &mut State, now_ns: u64) {
        if let Some((entry, _)) = self.entries.get(&cell) {
            state.record(table, *entry, now_ns);
        }
    }

    /// Takes the words that were read; those of hits are set back.
    pub(crate) fn bring(&mut self, read: Vec<(u64, Bits)>, objects: &mut Objects<'_>) {
        if let Kind::Messages { messages, .. } = &self.unit.kind {
            let messages = messages.clone();
            for (at, word) in read {
                match at {
                    0 => {
                        self.send(&messages, &word, objects);
                    }
                    _ => self.lose(&word, objects),
                }
            }
            self.sent = 0;
            return;
        }
        if let ObjectKey::Hits(table) = self.unit.key {
            for cell in self.hit(&read) {
                self.hit_at(table, cell, objects.state, objects.now_ns);
            }
            self.touched.clear();
            return;
        }
        let mut changed: Changed = BTreeMap::new();
        for (at, word) in read {
            let before = self.known(at);
            if before != word {
                self.note(at, &word);
                changed.insert(at, (before, word));
            }
        }
        for cell in std::mem::take(&mut self.touched) {
            self.keep(cell, &changed, objects.state);
        }
    }

    /// Takes all messages that wait; none of other units. `port` is its number.
    pub(crate) fn take_messages<D: SoftwareAccess>(
        &mut self,
        port: usize,
        objects: &mut Objects<'_>,
        device: &mut D,
    ) -> Result<(), D::Error> {
        let Kind::Messages { messages, depth } = &self.unit.kind else { return Ok(()) };
        let (messages, depth) = (messages.clone(), *depth);
        // As many as the queue holds: more of them may come meanwhile.
        for _ in 0..depth {
            let read = device.read(&[(port, 0)])?;
            if !read.first().is_some_and(|word| self.send(&messages, word, objects)) {
                break;
            }
        }
        self.take_lost(port, objects, device)
    }

    /// Takes how many messages were lost; none of other units. `port` is its number.
    pub(crate) fn take_lost<D: SoftwareAccess>(
        &mut self,
        port: usize,
        objects: &mut Objects<'_>,
        device: &mut D,
    ) -> Result<(), D::Error> {
        if let Kind::Messages { .. } = &self.unit.kind
            && let Some(word) = device.read(&[(port, 1)])?.first()
        {
            self.lose(word, objects);
        }
        Ok(())
    }

    /// Takes a message by its word.
    pub(crate) fn take_message(&self, word: &Bits, objects: &mut Objects<'_>) {
        if let Kind::Messages { messages, .. } = &self.unit.kind {
            self.send(messages, &word.zero_extend(self.unit.port().width), objects);
        }
    }

    fn lose(&mut self, word: &Bits, objects: &mut Objects<'_>) {
        let lost = word.to_u64_saturating();
        objects.effects.lose(lost.wrapping_sub(self.lost));
        self.lost = lost;
    }

    /// Sends the message of a word; says whether there is one.
    fn send(&self, messages: &[messages::Message], word: &Bits, objects: &mut Objects<'_>) -> bool {
        let top = word.width() - 1;
        if word.slice(top, top).is_zero() {
            return false;
        }
        let width = messages::width(&self.unit.kind);
        let number = word.slice(width - 1, width - messages::number_width(messages)).to_u64_saturating();
        let Some(message) = messages.get(number as usize) else { return true };
        let mut low = message.width();
        let mut inputs = Vec::new();
        for ty in &message.values {
            let high = low;
            low -= input_width(*ty);
            inputs.push((word.slice(high - 1, low), *ty));
        }
        objects.access(&message.unit, &inputs, 0);
        true
    }

    /// Brings a cell back.
    fn keep(&self, cell: u64, changed: &Changed, state: &mut State) {
        let entry = self.entries.get(&cell).map(|(index, _)| u64::from(index.0));
        match self.unit.key {
            ObjectKey::Register(id) => {
                if let Some((_, now)) = changed.get(&cell) {
                    state.register_write(id, cell, now);
                }
            }
            ObjectKey::Counter(id) => {
                keep_counts((CounterRef::Indexed(id), Some(cell)), cell, changed, state)
            }
            ObjectKey::DirectCounter(id) => {
                keep_counts((CounterRef::Direct(id), entry), cell, changed, state)
            }
            ObjectKey::Meter(id) => {
                self.keep_meter((MeterRef::Indexed(id), Some(cell)), cell, changed, state)
            }
            ObjectKey::DirectMeter(id) => {
                self.keep_meter((MeterRef::Direct(id), entry), cell, changed, state)
            }
            ObjectKey::Table(_)
            | ObjectKey::ValueSet(_)
            | ObjectKey::Random
            | ObjectKey::Messages
            | ObjectKey::Hits(_)
            | ObjectKey::Hash(_) => {}
        }
    }

    fn keep_meter(
        &self,
        (meter, at): (MeterRef, Option<u64>),
        cell: u64,
        changed: &Changed,
        state: &mut State,
    ) {
        let Some(at) = at else { return };
        let first = cell * meter_part::ALL;
        let counts = [0, 1, 2].map(|color| {
            let part = changed.get(&(first + meter_part::COUNTS + color));
            part.map_or_else(CounterValue::default, |(before, now)| more(before, now))
        });
        let tokens = self.known(first + meter_part::TOKENS);
        let bits = self.measure().bucket_bits();
        let bucket = |at: u32| tokens.slice(at * bits + bits - 1, at * bits).to_u128().unwrap_or(0);
        let last = self.known(first + meter_part::LAST).to_u64_saturating();
        let word = self.known(first + meter_part::CONFIG);
        let config = match self.measure() {
            Measure::Account => account_of(&word),
            Measure::Packets | Measure::Bytes => rates(&word),
        };
        state.bring_meter(meter, at, Meter::with(config, [bucket(0), bucket(1)], last), counts);
    }
}

/// Brings what a cell has counted to the counter at that place, if there is one.
fn keep_counts((counter, at): (CounterRef, Option<u64>), cell: u64, changed: &Changed, state: &mut State) {
    if let (Some(at), Some((before, now))) = (at, changed.get(&cell)) {
        // An entry that is gone has nothing to be added to.
        let _ = state.tables().bring_counts(counter, at, more(before, now));
    }
}

fn counter_word(value: CounterValue) -> Bits {
    Bits::new(128, u128::from(value.bytes) << 64 | u128::from(value.packets))
}

fn more(before: &Bits, now: &Bits) -> CounterValue {
    let number = |of: &Bits, low: u32| of.slice(low + 63, low).to_u64_saturating();
    CounterValue {
        packets: number(now, 0).wrapping_sub(number(before, 0)),
        bytes: number(now, 64).wrapping_sub(number(before, 64)),
    }
}

/// The words of a meter.
pub(super) fn meter_words(
    words: &mut Vec<(u64, Bits)>,
    measure: Measure,
    (cell, meter): (u64, Option<Meter>),
    counts: [CounterValue; 3],
) {
    let first = cell * meter_part::ALL;
    let meter = meter.unwrap_or_default();
    let ([committed, peak], last) = meter.buckets();
    let number = |width: u32, value: u128| Bits::new(width, value);
    let (bits, width) = (measure.bucket_bits(), measure.config_bits());
    let config = match meter.config() {
        Some(MeterConfig::Rates(rates)) => {
            let bucket = |rate: Rate, burst: u64| {
                number(bits, u128::from(burst) * STEPS).concat(&number(64, rate.millionths().into()))
            };
            let peak = bucket(rates.pir, rates.pbs);
            number(1, 1).concat(&peak).concat(&bucket(rates.cir, rates.cbs))
        }
        Some(MeterConfig::Account(config)) => account_word(&config),
        None => Bits::zero(width),
    };
    words.push((first + meter_part::CONFIG, config));
    let tokens = number(bits, peak).concat(&number(bits, committed));
    words.push((first + meter_part::TOKENS, tokens.zero_extend(width)));
    words.push((first + meter_part::LAST, number(64, last.into()).zero_extend(width)));
    for (at, count) in (meter_part::COUNTS..).zip(counts) {
        words.push((first + at, counter_word(count).zero_extend(width)));
    }
}

/// The configuration of an account, with the products that a packet does not have to compute.
fn account_word(config: &AccountConfig) -> Bits {
    let (smax, bag) = (u128::from(config.smax()), u128::from(config.bag_ns()));
    let window = bag + u128::from(config.jitter_ns());
    let tests = match config.test() {
        AccountTest::Bytes => 0b01,
        AccountTest::Frames => 0b10,
        AccountTest::Both => 0b11,
    };
    let fields = [
        (account::field::TESTS, tests),
        (account::field::FRAME, smax * bag),
        (account::field::FULL, smax * window),
        (account::field::WINDOW, window),
        (account::field::BAG, bag),
        (account::field::SMAX, smax),
    ];
    fields
        .into_iter()
        .fold(Bits::new(1, 1), |high, ((_, width), value)| high.concat(&Bits::new(width, value)))
}

/// The account that a word says.
fn account_of(word: &Bits) -> Option<MeterConfig> {
    let number = |(low, width): (u32, u32)| word.slice(low + width - 1, low).to_u64_saturating();
    if number((account::field::IS_THERE, 1)) == 0 {
        return None;
    }
    let (bag, window) = (number(account::field::BAG), number(account::field::WINDOW));
    let test = match number(account::field::TESTS) {
        0b01 => AccountTest::Bytes,
        0b10 => AccountTest::Frames,
        _ => AccountTest::Both,
    };
    let config = AccountConfig::new(bag, window.checked_sub(bag)?, number(account::field::SMAX) as u32, test);
    config.ok().map(MeterConfig::from)
}

/// The rates that a word says.
fn rates(word: &Bits) -> Option<MeterConfig> {
    let (bits, all) = (Measure::Bytes.bucket_bits(), Measure::Bytes.config_bits());
    let number = |low: u32, width: u32| word.slice(low + width - 1, low).to_u128().unwrap_or(0);
    if number(all - 1, 1) == 0 {
        return None;
    }
    let peak = 64 + bits;
    let rate = |low: u32| Rate::per_second_millionths(number(low, 64) as u64);
    let burst = |low: u32| (number(low, bits) / STEPS) as u64;
    let rates = MeterRates { cir: rate(0), cbs: burst(64), pir: rate(peak), pbs: burst(peak + 64) };
    Some(rates.into())
}
