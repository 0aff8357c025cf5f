//! Where paths lead: branches, what a parser does with the frame, lookups, ends.

use super::env::{Env, Place, answer_width, slot_width};
use super::expr::Value;
use super::{Converter, End, Step};
use crate::graph::{Cases, Wire};
use crate::limits::{MAX_CASES, MAX_PAIRS, MAX_WINDOW};
use crate::refusal::Construct;
use crate::stage::{LookupAnswer, Unit};
use millrace_midend::Verdict;
use millrace_midend::cfg::{CfgId, Leave, Term};
use millrace_pipeline::*;
use std::sync::Arc;

/// At more places than these, whether a frame is long enough is a sum and not a choice.
const FEW: usize = 4;

/// Where paths lead: blocks, conditions, values.
type Targets = Vec<(CfgId, Wire, Env)>;
/// Keys, cases in order, and where no case matches.
type Choices<'a> = (&'a [Expr], &'a [(Vec<Matcher>, CfgId)], CfgId);

impl Converter<'_> {
    /// Where the paths of a block lead that is come to where `cond` holds.
    pub(super) fn term(&mut self, term: &Term<CfgId>, cond: Wire, env: Env) -> Step<Targets> {
        let mut to = Targets::new();
        match term {
            Term::Goto(next) => to.push((*next, cond, env)),
            Term::Branch { cond: by, then, els } => {
                let by = self.bits(by, &env)?;
                self.either(&mut to, cond, by, (*then, env.clone()), (*els, env));
            }
            Term::Select { keys, cases, default } => {
                self.select(&mut to, cond, env, (keys, cases, *default))?
            }
            Term::Extract { header, next, short } => {
                self.extract(&mut to, cond, env, *header, (*next, *short))?;
            }
            Term::ExtractVar { header, bits, next, short, long, invalid } => {
                let bits = self.bits(bits, &env)?;
                self.extract_varbit(&mut to, cond, env, (*header, bits), (*next, *short, *long, *invalid))?;
            }
            Term::Advance { bits, next, short, invalid } => {
                let bits = self.bits(bits, &env)?;
                self.advance(&mut to, cond, env, bits, (*next, *short, *invalid))?;
            }
            Term::Lookahead { dst, skip, next, short } => {
                self.lookahead(&mut to, cond, env, (*dst, *skip), (*next, *short))?;
            }
            Term::Step { steps, next, .. } => {
                // All blocks together take fewer steps than a body may, so no path does.
                self.steps += u64::from(*steps);
                to.push((*next, cond, env));
            }
            Term::Lookup { table, next } => {
                let env = self.lookup(*table, cond, env)?;
                to.push((*next, cond, env));
            }
            Term::Dispatch { table, actions } => {
                let action = env.cells[self.cells.action(*table)];
                let mut rest = cond;
                for (index, target) in actions.iter().enumerate() {
                    // A table never gives an action that it does not have.
                    let is = match index + 1 == actions.len() {
                        true => self.graph.bool(true),
                        false => self.graph.equals(action, index as u64),
                    };
                    let (taken, not) = (self.graph.and(rest, is), self.graph.not(is));
                    rest = self.graph.and(rest, not);
                    self.lead(&mut to, *target, taken, env.clone());
                }
            }
            Term::MoreCopies { .. } => return Err(Construct::Operation("copies of a frame within a stage")),
            Term::Leave(leave) => self.leave(*leave, cond, env),
        }
        Ok(to)
    }

    /// A path that leads to a block, unless it is never taken.
    fn lead(&mut self, to: &mut Targets, target: CfgId, cond: Wire, env: Env) {
        if !self.graph.is_false(cond) {
            to.push((target, cond, env));
        }
    }

    fn either(&mut self, to: &mut Targets, cond: Wire, by: Wire, then: (CfgId, Env), els: (CfgId, Env)) {
        let not = self.graph.not(by);
        let (taken, other) = (self.graph.and(cond, by), self.graph.and(cond, not));
        self.lead(to, then.0, taken, then.1);
        self.lead(to, els.0, other, els.1);
    }

    fn select(
        &mut self,
        to: &mut Targets,
        cond: Wire,
        env: Env,
        (keys, cases, default): Choices<'_>,
    ) -> Step<()> {
        let keys = keys.iter().map(|key| self.bits(key, &env)).collect::<Step<Vec<_>>>()?;
        let mut rest = cond;
        let mut found: Vec<(CfgId, Wire)> = Vec::new();
        let mut add = |converter: &mut Self, target: CfgId, cond: Wire| {
            if converter.graph.is_false(cond) {
                return;
            }
            match found.iter_mut().find(|(other, _)| *other == target) {
                Some((_, before)) => *before = converter.graph.or(*before, cond),
                None => found.push((target, cond)),
            }
        };
        for (matchers, target) in cases {
            if self.graph.is_false(rest) {
                break;
            }
            let is = self.all_matched(matchers, &keys, rest)?;
            let (taken, not) = (self.graph.and(rest, is), self.graph.not(is));
            rest = self.graph.and(rest, not);
            add(self, *target, taken);
        }
        add(self, default, rest);
        to.extend(found.into_iter().map(|(target, cond)| (target, cond, env.clone())));
        Ok(())
    }

    fn all_matched(&mut self, matchers: &[Matcher], keys: &[Wire], cond: Wire) -> Step<Wire> {
        let mut all = self.graph.bool(true);
        let mut keys = keys;
        for matcher in matchers {
            let taken = match matcher {
                Matcher::ValueSet(set) => self.program.value_sets[*set].fields.len(),
                _ => 1,
            };
            let Some((own, others)) = keys.split_at_checked(taken) else { return Ok(self.graph.bool(false)) };
            keys = others;
            let is = match (matcher, own) {
                (Matcher::ValueSet(set), fields) => {
                    let inputs =
                        fields.iter().map(|key| (*key, Type::Bits(self.graph.width(*key)))).collect();
                    let access = self.access(Unit::Member(*set), cond, inputs, 1);
                    self.graph.answer(access, 0, 1)
                }
                (matcher, [key]) => self.matched(matcher, *key)?,
                _ => self.graph.bool(false),
            };
            all = self.graph.and(all, is);
        }
        Ok(all)
    }

    // ---- the parser ----

    /// Where the cursor may be, in a stage whose parser may read the frame.
    fn cursor(&self, env: &Env) -> Step<Arc<Cases>> {
        if !self.graph.is_false(env.cells[self.cells.deparsed()]) {
            return Err(Construct::ParserAfterDeparser);
        }
        env.cursor.cases.clone().ok_or(match env.cursor.many {
            true => Construct::Places,
            false => Construct::ParserOfContext,
        })
    }

    /// Whether the frame has so many bits.
    fn reaches(&mut self, bits: u64, env: &Env) -> Step<Wire> {
        let bytes = bits.div_ceil(8);
        if bytes > u64::from(MAX_WINDOW) {
            return Err(Construct::Window);
        }
        let least = self.graph.number(32, bytes);
        let short = self.graph.lt(env.cells[self.cells.length()], least);
        Ok(self.graph.not(short))
    }

    /// Whether the frame reaches so many bits after the cursor, wherever that is.
    fn has(&mut self, cursor: &Cases, bits: u64, env: &Env) -> Step<Wire> {
        if cursor.len() > FEW {
            let last = cursor.keys().next_back().copied().unwrap_or(0);
            self.reaches(last + bits, env)?;
            let at = self.graph.of_cases(32, cursor);
            let bits = self.graph.number(32, bits);
            let end = self.graph.add(at, bits);
            return Ok(self.reaches_wire(end, env));
        }
        let mut has: Option<Wire> = None;
        for (at, here) in cursor.iter() {
            let reaches = self.reaches(at + bits, env)?;
            has = Some(match has {
                None if cursor.len() == 1 => reaches,
                None => self.graph.and(*here, reaches),
                Some(before) => {
                    let this = self.graph.and(*here, reaches);
                    self.graph.or(before, this)
                }
            });
        }
        Ok(has.unwrap_or_else(|| self.graph.bool(false)))
    }

    /// Whether the frame has as many bits as a number says, which is at most that of a window.
    fn reaches_wire(&mut self, bits: Wire, env: &Env) -> Wire {
        let zeros = self.graph.number(3, 0);
        let whole = self.graph.concat(env.cells[self.cells.length()], zeros);
        let bits = self.graph.zero_extend(bits, 35);
        let short = self.graph.lt(whole, bits);
        self.graph.not(short)
    }

    /// Bits of the frame, so many after the cursor.
    fn frame(&mut self, cursor: &Cases, skip: u64, width: u32) -> Wire {
        let places: Vec<_> =
            cursor.iter().map(|(at, here)| (*here, self.graph.frame((at + skip) as u32, width))).collect();
        self.graph.one_of(&places).unwrap_or_else(|| self.graph.number(width, 0))
    }

    fn moved(&mut self, cursor: &Cases, by: u64) -> Step<Place> {
        Place::of(cursor.iter().map(|(at, here)| (at + by, *here)).collect(), &mut self.graph)
    }

    fn extract(
        &mut self,
        to: &mut Targets,
        cond: Wire,
        env: Env,
        header: HeaderId,
        (next, short): (CfgId, CfgId),
    ) -> Step<()> {
        let cursor = self.cursor(&env)?;
        let bits = u64::from(self.program.headers[header].fixed_bits);
        let has = self.has(&cursor, bits, &env)?;
        let mut with = env.clone();
        with.cells[self.cells.valid(header)] = self.graph.bool(true);
        let mut skip = 0;
        for field in &self.program.headers[header].fields {
            let ty = self.program.slots[*field].ty;
            let place = self.cells.slot(*field);
            if let Type::Varbit(width) = ty {
                with.cells[place] = self.graph.number(width.min(crate::limits::MAX_VALUE), 0);
                with.cells[place + 1] = self.graph.number(32, 0);
                continue;
            }
            let width = slot_width(ty);
            if width > crate::limits::MAX_VALUE {
                return Err(Construct::Width(width));
            }
            with.cells[place] = self.frame(&cursor, skip, width);
            skip += u64::from(width);
        }
        with.cursor = self.moved(&cursor, bits)?;
        self.either(to, cond, has, (next, with), (short, env));
        Ok(())
    }

    fn extract_varbit(
        &mut self,
        to: &mut Targets,
        cond: Wire,
        env: Env,
        (header, bits): (HeaderId, Wire),
        (next, short, long, invalid): (CfgId, CfgId, CfgId, CfgId),
    ) -> Step<()> {
        let cursor = self.cursor(&env)?;
        let described = &self.program.headers[header];
        let fields: Vec<(SlotId, Type)> =
            described.fields.iter().map(|field| (*field, self.program.slots[*field].ty)).collect();
        let varbit = fields.iter().find_map(|(_, ty)| match ty {
            Type::Varbit(most) => Some(*most),
            _ => None,
        });
        let most = varbit.unwrap_or(0);
        if most > crate::limits::MAX_VALUE {
            return Err(Construct::Width(most));
        }
        // In order: too long, no whole bytes, a frame that is too short.
        let limit = self.graph.number(self.graph.width(bits).max(32), u64::from(most));
        let wide = self.graph.zero_extend(bits, self.graph.width(limit));
        let is_long = self.graph.lt(limit, wide);
        let (too_long, fits) = (self.graph.and(cond, is_long), self.graph.not(is_long));
        self.lead(to, long, too_long, env.clone());
        let cond = self.graph.and(cond, fits);
        let cond = self.whole_bytes(to, cond, &env, bits, invalid);
        if self.graph.is_false(cond) {
            return Ok(());
        }
        let lengths = self.lengths(bits, most)?;
        let fixed = u64::from(described.fixed_bits);
        let is_many = cursor.len() * lengths.len() > MAX_PAIRS;
        if is_many && !matches!(fields.last(), Some((_, Type::Varbit(_)))) {
            return Err(Construct::Places);
        }
        let (after, has) = match is_many {
            false => {
                let after = self.after(&cursor, &lengths)?;
                let has = self.has(&after, fixed, &env)?;
                (after, has)
            }
            true => {
                let last = |cases: &Cases| cases.keys().next_back().copied().unwrap_or(0);
                self.reaches(last(&cursor) + last(&lengths) + fixed, &env)?;
                let end = self.end_of_varbit(bits, fixed, &env);
                (Cases::new(), self.reaches_wire(end, &env))
            }
        };
        let mut with = env.clone();
        with.cells[self.cells.valid(header)] = self.graph.bool(true);
        let (mut skip, mut at) = (0, cursor);
        for (field, ty) in fields {
            let place = self.cells.slot(field);
            let width = slot_width(ty);
            if width > crate::limits::MAX_VALUE {
                return Err(Construct::Width(width));
            }
            if let Type::Varbit(most) = ty {
                with.cells[place] = self.varbit(&at, skip, (&lengths, bits), most);
                with.cells[place + 1] = self.graph.zero_extend(bits, 32);
                at = Arc::new(after.clone());
            } else {
                with.cells[place] = self.frame(&at, skip, width);
                skip += u64::from(width);
            }
        }
        with.cursor = match is_many {
            true => Place::many(self.end_of_varbit(bits, fixed, &env)),
            false => self.moved(&after, fixed)?,
        };
        self.either(to, cond, has, (next, with), (short, env));
        Ok(())
    }

    /// Where a header ends that starts at the cursor.
    fn end_of_varbit(&mut self, bits: Wire, fixed: u64, env: &Env) -> Wire {
        let (bits, fixed) = (self.graph.zero_extend(bits, 32), self.graph.number(32, fixed));
        let length = self.graph.add(bits, fixed);
        self.graph.add(env.cursor.wire, length)
    }

    /// Leads to `invalid` where a number of bits is no number of bytes; gives the condition of the other path.
    fn whole_bytes(&mut self, to: &mut Targets, cond: Wire, env: &Env, bits: Wire, invalid: CfgId) -> Wire {
        let low = self.graph.slice(bits, 2, 0);
        let is_odd = self.truth(low);
        let (odd, whole) = (self.graph.and(cond, is_odd), self.graph.not(is_odd));
        self.lead(to, invalid, odd, env.clone());
        self.graph.and(cond, whole)
    }

    /// The cursor after as many bits as one of the lengths says.
    fn after(&mut self, cursor: &Cases, lengths: &Cases) -> Step<Cases> {
        let mut after = Cases::new();
        for (at, here) in cursor.iter() {
            for (length, is) in lengths.iter() {
                let there = self.graph.and(*here, *is);
                self.graph.add_case(&mut after, at + length, there);
            }
            if after.len() > MAX_CASES {
                return Err(Construct::Places);
            }
        }
        Ok(after)
    }

    /// The bits of a varbit of one of the lengths, with zeros after the last.
    fn varbit(&mut self, cursor: &Cases, skip: u64, (lengths, length): (&Cases, Wire), most: u32) -> Wire {
        let most = most.max(1);
        let longest = lengths.keys().next_back().copied().unwrap_or(0) as u32;
        if longest == 0 {
            return self.graph.number(most, 0);
        }
        let bits = self.frame(cursor, skip, longest);
        // Between two lengths that it may have, all bits are there or none.
        let (mut parts, mut from) = (Vec::new(), 0);
        for to in lengths.keys().map(|to| *to as u32).filter(|to| *to > 0) {
            let part = self.graph.slice(bits, longest - from - 1, longest - to);
            let width = self.graph.width(length);
            let there = match lengths.len() {
                1 => self.graph.bool(true),
                _ if from == 0 && !lengths.contains_key(&0) => self.graph.bool(true),
                _ => {
                    let before = self.graph.number(width, u64::from(from));
                    self.graph.lt(before, length)
                }
            };
            let zero = self.graph.number(to - from, 0);
            parts.push(self.graph.mux(there, part, zero));
            from = to;
        }
        let bits = self.graph.concat_all(parts).unwrap_or(bits);
        self.graph.left_fit(bits, most)
    }

    fn advance(
        &mut self,
        to: &mut Targets,
        cond: Wire,
        env: Env,
        bits: Wire,
        (next, short, invalid): (CfgId, CfgId, CfgId),
    ) -> Step<()> {
        let cursor = self.cursor(&env)?;
        let cond = self.whole_bytes(to, cond, &env, bits, invalid);
        if self.graph.is_false(cond) {
            return Ok(());
        }
        let by = match self.graph.cases(bits) {
            Some(cases) => cases,
            // The most that the number may be decides how many there are.
            None => self.lengths(bits, self.graph.most(bits).ok_or(Construct::Window)?)?,
        };
        let by: Cases = by.iter().filter(|(by, _)| *by % 8 == 0).map(|(by, is)| (*by, *is)).collect();
        // What no frame is long enough for fails without being looked at.
        let longest = limits::MAX_PAYLOAD as u64 * 16;
        let fitting: Cases = by.iter().filter(|(by, _)| **by <= longest).map(|(by, is)| (*by, *is)).collect();
        let after = self.after(&cursor, &fitting)?;
        let mut has = self.graph.bool(false);
        for (at, here) in after.iter() {
            let reaches = self.reaches(*at, &env)?;
            let this = self.graph.and(*here, reaches);
            has = self.graph.or(has, this);
        }
        let mut with = env.clone();
        with.cursor = Place::of(after, &mut self.graph)?;
        self.either(to, cond, has, (next, with), (short, env));
        Ok(())
    }

    fn lookahead(
        &mut self,
        to: &mut Targets,
        cond: Wire,
        env: Env,
        (dst, skip): (SlotId, u32),
        (next, short): (CfgId, CfgId),
    ) -> Step<()> {
        let cursor = self.cursor(&env)?;
        let width = slot_width(self.program.slots[dst].ty);
        if width > crate::limits::MAX_VALUE {
            return Err(Construct::Width(width));
        }
        let has = self.has(&cursor, u64::from(skip) + u64::from(width), &env)?;
        let bits = self.frame(&cursor, u64::from(skip), width);
        let mut with = env.clone();
        self.write(dst, Value::Bits(bits), &mut with)?;
        self.either(to, cond, has, (next, with), (short, env));
        Ok(())
    }

    // ---- tables and ends ----

    fn lookup(&mut self, table: TableId, cond: Wire, mut env: Env) -> Step<Env> {
        let described = &self.program.tables[table];
        let mut inputs = Vec::new();
        for key in &described.keys {
            let (wire, _) = self.number(&key.value, &env)?;
            inputs.push((wire, Type::Bits(self.graph.width(wire))));
        }
        let selector = described.profile.and_then(|profile| self.program.profiles[profile].selector.as_ref());
        if let Some(selector) = selector {
            let hashed: Vec<DataItem> =
                described.selector_inputs.iter().map(|input| DataItem::Value(input.clone())).collect();
            let hash = self.hash(selector.algorithm, None, &hashed, &env)?;
            let hash = self.graph.zero_extend(hash, selector.width);
            inputs.push((hash, Type::Bits(selector.width)));
        }
        let width = answer_width(self.program, table);
        if width > crate::limits::MAX_VALUE {
            return Err(Construct::Width(width));
        }
        let access = self.access(Unit::Lookup(table), cond, inputs, width);
        let g = &mut self.graph;
        let hit = g.answer(access, LookupAnswer::HIT, 1);
        env.cells[self.cells.hit(table)] = hit;
        env.cells[self.cells.last_hit()] = hit;
        env.cells[self.cells.action(table)] = g.answer(access, LookupAnswer::ACTION, 16);
        env.cells[self.cells.entry(table)] = g.answer(access, LookupAnswer::ENTRY, 32);
        env.cells[self.cells.data(table)] =
            g.answer(access, LookupAnswer::DATA, self.cells.data_width(table));
        if described.idle_timeout && !described.const_entries {
            let enable = self.graph.and(cond, hit);
            let entry = env.cells[self.cells.entry(table)];
            self.access(Unit::Hit(table), enable, vec![(entry, Type::Bits(32))], 0);
        }
        Ok(env)
    }

    fn leave(&mut self, leave: Leave, cond: Wire, env: Env) {
        let number = match (leave.out, leave.verdict) {
            (Some(number), _) => self.graph.number(32, u64::from(number)),
            (None, Verdict::ParserError) => env.cells[self.cells.out()],
            (None, _) => self.graph.number(32, 0),
        };
        let site = env.cells[self.cells.site()];
        self.ends.push((cond, End { verdict: leave.verdict, number, site }, env));
    }
}
