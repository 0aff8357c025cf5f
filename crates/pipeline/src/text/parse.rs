//! Parsing: tokens, names, the program as a whole and its storage.
//!
//! Two passes: the first finds what is declared and gives it its number, so that anything may be named before it is
//! declared; the second reads everything.

use super::ParseError;
use super::lexer::{Located, Token, error_at, tokens};
use super::names;
use crate::*;
use cranelift_entity::EntityRef;
use foldhash::{HashMap, HashMapExt};
use std::borrow::Cow;

/// Reads a program.
///
/// # Errors
/// The first place where the text is not understood.
pub fn parse(text: &str) -> Result<Program, ParseError> {
    let mut parser = Parser {
        text,
        tokens: tokens(text)?,
        at: 0,
        names: Declared::default(),
        program: Program::default(),
    };
    parser.declare()?;
    parser.at = 0;
    while *parser.peek() != Token::End {
        parser.item()?;
    }
    if parser.names.slots.count != parser.program.slots.len() {
        return parser.error("a header's field stands where none can");
    }
    Ok(parser.program)
}

pub(super) type Result<T, E = ParseError> = std::result::Result<T, E>;

/// What is declared, by name.
#[derive(Default)]
pub(super) struct Declared<'t> {
    pub(super) slots: Scope<'t, SlotId>,
    pub(super) headers: Scope<'t, HeaderId>,
    pub(super) stacks: Scope<'t, StackId>,
    pub(super) bodies: Scope<'t, BodyId>,
    pub(super) actions: Scope<'t, ActionId>,
    pub(super) tables: Scope<'t, TableId>,
    pub(super) profiles: Scope<'t, ProfileId>,
    pub(super) counters: Scope<'t, CounterId>,
    pub(super) meters: Scope<'t, MeterId>,
    pub(super) registers: Scope<'t, RegisterId>,
    pub(super) value_sets: Scope<'t, ValueSetId>,
    pub(super) hashes: Scope<'t, HashId>,
    pub(super) digests: Scope<'t, DigestId>,
    pub(super) plugins: Scope<'t, PluginId>,
}

/// Things of one kind; several may share a name where the kind allows it.
pub(super) struct Scope<'t, I> {
    by_name: HashMap<Cow<'t, str>, Vec<I>>,
    count: usize,
}

impl<I> Default for Scope<'_, I> {
    fn default() -> Self {
        Scope { by_name: HashMap::new(), count: 0 }
    }
}

impl<'t, I: EntityRef> Scope<'t, I> {
    /// Declares the next thing; whether its name is new.
    fn declare(&mut self, name: Cow<'t, str>) -> bool {
        let same = self.by_name.entry(name).or_default();
        same.push(I::new(self.count));
        self.count += 1;
        same.len() == 1
    }
}

impl Declared<'_> {
    pub(super) fn action_is_called(&self, action: ActionId, name: &str) -> bool {
        self.actions.by_name.get(name).is_some_and(|same| same.contains(&action))
    }
}

pub(super) struct Parser<'t> {
    text: &'t str,
    tokens: Vec<Located<'t>>,
    at: usize,
    pub(super) names: Declared<'t>,
    pub(super) program: Program,
}

impl<'t> Parser<'t> {
    pub(super) fn peek(&self) -> &Token<'t> {
        &self.tokens[self.at].token
    }

    fn peek_next(&self) -> &Token<'t> {
        &self.tokens[(self.at + 1).min(self.tokens.len() - 1)].token
    }

    /// Goes past the next token.
    pub(super) fn skip(&mut self) {
        self.at = (self.at + 1).min(self.tokens.len() - 1);
    }

    /// An error at the next token.
    pub(super) fn error<T>(&self, message: impl Into<String>) -> Result<T> {
        Err(error_at(self.text, self.tokens[self.at].at, message.into()))
    }

    pub(super) fn expected<T>(&self, what: &str) -> Result<T> {
        self.error(format!("expected {what}, found {}", self.peek()))
    }

    pub(super) fn is_sign(&self, sign: &str) -> bool {
        matches!(self.peek(), Token::Sign(s) if *s == sign)
    }

    pub(super) fn is_word(&self, word: &str) -> bool {
        matches!(self.peek(), Token::Word(w) if *w == word)
    }

    /// Takes the sign if it comes next.
    pub(super) fn eat(&mut self, sign: &str) -> bool {
        let found = self.is_sign(sign);
        if found {
            self.skip();
        }
        found
    }

    /// Takes the word if it comes next.
    pub(super) fn eat_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        if found {
            self.skip();
        }
        found
    }

    pub(super) fn sign(&mut self, sign: &str) -> Result<()> {
        if self.eat(sign) { Ok(()) } else { self.expected(&format!("`{sign}`")) }
    }

    pub(super) fn word(&mut self, word: &str) -> Result<()> {
        if self.eat_word(word) { Ok(()) } else { self.expected(&format!("`{word}`")) }
    }

    /// A word that stands for something, as `from` says.
    pub(super) fn choice<T>(&mut self, what: &str, from: impl Fn(&str) -> Option<T>) -> Result<T> {
        match self.peek() {
            Token::Word(word) => match from(word) {
                Some(found) => {
                    self.skip();
                    Ok(found)
                }
                None => self.expected(what),
            },
            _ => self.expected(what),
        }
    }

    /// A new name.
    pub(super) fn name(&mut self) -> Result<String> {
        self.name_in_text().map(Cow::into_owned)
    }

    /// A name as it stands in the text, without its quotes.
    fn name_in_text(&mut self) -> Result<Cow<'t, str>> {
        let name = match self.peek() {
            Token::Word(word) if names::is_reserved(word) => {
                return self
                    .error(format!("`{word}` is a word of the language; as a name it is written in quotes"));
            }
            Token::Word(name) => Cow::Borrowed(*name),
            Token::Quoted(name) => name.clone(),
            _ => return self.expected("a name"),
        };
        self.skip();
        Ok(name)
    }

    pub(super) fn quoted(&mut self) -> Result<String> {
        let Token::Quoted(text) = self.peek() else { return self.expected("a text in quotes") };
        let text = text.clone().into_owned();
        self.skip();
        Ok(text)
    }

    pub(super) fn number<N: TryFrom<u64>>(&mut self) -> Result<N> {
        match self.peek() {
            Token::Number(number) => match N::try_from(*number) {
                Ok(number) => {
                    self.skip();
                    Ok(number)
                }
                Err(_) => self.error("the number is too large here"),
            },
            _ => self.expected("a number"),
        }
    }

    pub(super) fn bits(&mut self) -> Result<Bits> {
        match self.peek() {
            Token::Bits(bits) => {
                let bits = bits.clone();
                self.skip();
                Ok(bits)
            }
            _ => self.expected("a number with its width, such as 8w1"),
        }
    }

    /// `bool`, `bit<W>` or `varbit<W>`.
    pub(super) fn ty(&mut self) -> Result<Type> {
        if self.eat_word("bool") {
            Ok(Type::Bool)
        } else if self.eat_word("varbit") {
            Ok(Type::Varbit(self.width()?))
        } else {
            self.bit_width().map(Type::Bits)
        }
    }

    /// `bit<W>`.
    pub(super) fn bit_width(&mut self) -> Result<u32> {
        if self.eat_word("bit") { self.width() } else { self.expected("a type") }
    }

    fn width(&mut self) -> Result<u32> {
        self.sign("<")?;
        let width = self.number()?;
        self.sign(">")?;
        Ok(width)
    }

    /// `(item, item, ...)`, also empty.
    pub(super) fn list<T>(&mut self, mut item: impl FnMut(&mut Parser<'t>) -> Result<T>) -> Result<Vec<T>> {
        self.sign("(")?;
        let mut items = Vec::new();
        while !self.eat(")") {
            if !items.is_empty() {
                self.sign(",")?;
            }
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// The name of something that is declared; `name#number` where several share it.
    pub(super) fn find<I: EntityRef>(
        &mut self,
        what: &str,
        scope: for<'n> fn(&'n Declared<'t>) -> &'n Scope<'t, I>,
    ) -> Result<I> {
        let start = self.at;
        let name = self.name_in_text()?;
        let number: Option<usize> = if self.eat("#") { Some(self.number()?) } else { None };
        let same = scope(&self.names).by_name.get(&*name).map_or(&[][..], Vec::as_slice);
        let found = match (number, same) {
            (Some(number), _) => same.iter().copied().find(|id| id.index() == number),
            (None, [one]) => Some(*one),
            _ => None,
        };
        let several = number.is_none() && same.len() > 1;
        found.map_or_else(
            || {
                self.at = start;
                match several {
                    true => {
                        self.error(format!("several {what}s are called {name}; say which as {name}#NUMBER"))
                    }
                    false => self.error(format!("no {what} is called {name}")),
                }
            },
            Ok,
        )
    }

    pub(super) fn slot(&mut self) -> Result<SlotId> {
        self.find("slot", |n| &n.slots)
    }

    pub(super) fn header(&mut self) -> Result<HeaderId> {
        self.find("header", |n| &n.headers)
    }

    /// The first pass: numbers for all that is declared. Whatever it does not understand the second pass reports.
    fn declare(&mut self) -> Result<()> {
        let mut depth = 0usize;
        let mut header: Option<Cow<'t, str>> = None;
        while *self.peek() != Token::End {
            let start = self.at;
            let token = self.peek().clone();
            self.skip();
            match token {
                Token::Sign("{") => depth += 1,
                Token::Sign("}") => {
                    depth = depth.saturating_sub(1);
                    header = None;
                }
                Token::Word(word) if depth == 0 => {
                    if word == "body" {
                        self.skip();
                    }
                    if declares(word)
                        && let Some(name) = self.peek().text()
                    {
                        if word == "header" {
                            header = Some(name.clone());
                        }
                        self.declare_one(word, name)?;
                    }
                }
                // The fields of a header that is declared without them are declared by themselves.
                Token::Sign("(") if depth == 0 => header = None,
                token if depth > 0 => {
                    if let (Some(header), Some(field), Token::Sign(":")) =
                        (&header, token.text(), self.peek())
                    {
                        let name = format!("{header}.{field}");
                        self.at = start;
                        self.declare_one("slot", name.into())?;
                        self.skip();
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn declare_one(&mut self, word: &str, name: Cow<'t, str>) -> Result<()> {
        let text = name.clone();
        let n = &mut self.names;
        let new = match word {
            "slot" | "metadata" | "local" => n.slots.declare(name),
            "header" => n.headers.declare(name),
            "stack" => n.stacks.declare(name),
            "body" => n.bodies.declare(name),
            "table" => n.tables.declare(name),
            "profile" => n.profiles.declare(name),
            "counter" => n.counters.declare(name),
            "meter" => n.meters.declare(name),
            "register" => n.registers.declare(name),
            "value_set" => n.value_sets.declare(name),
            "own_hash" => n.hashes.declare(name),
            "plugin" => n.plugins.declare(name),
            "action" => {
                n.actions.declare(name);
                true
            }
            _ => {
                n.digests.declare(name);
                true
            }
        };
        if new { Ok(()) } else { self.error(format!("{text} is declared twice")) }
    }

    fn item(&mut self) -> Result<()> {
        let Token::Word(word) = *self.peek() else { return self.expected("a declaration") };
        self.skip();
        match word {
            "program" => self.program.name = self.name()?,
            "architecture" => self.program.architecture = self.name()?,
            "errors" => self.program.errors = self.list(Parser::name)?,
            "on_reject" => {
                self.program.on_reject =
                    self.choice("`continue`, `drop` or `pass_on`", OnReject::from_name)?
            }
            "deparse_at_ingress" => self.program.deparse_at_ingress = true,
            "ingress" => self.program.ingress = self.list(|p| p.find("body", |n| &n.bodies))?,
            "egress" => self.program.egress = self.list(|p| p.find("body", |n| &n.bodies))?,
            "reset_at_egress" => self.program.reset_at_egress = self.list(Parser::slot)?,
            "field_list" => {
                let (id, slots) = (self.number()?, self.list(Parser::slot)?);
                self.program.field_lists.push(FieldList { id, slots });
            }
            "input" | "output" => {
                let chain = ChainText { is_output: word == "output", text: self.quoted()? };
                self.program.chains.push(chain);
            }
            "source" => {
                let kind = self.quoted()?;
                let Some(kind) = SourceKind::from_name(&kind) else {
                    return self.error("`body`, `state`, `table` or `use` is expected before this");
                };
                let (name, file, line) = (self.quoted()?, self.quoted()?, self.number()?);
                self.program.source_lines.push(SourceLine { kind, name, file, line });
            }
            "drop_site" => {
                let (file, line) = (self.quoted()?, self.number()?);
                let (block, request) = (self.quoted()?, self.quoted()?);
                let (called_at, tables) = (self.number()?, self.list(Parser::quoted)?);
                let site = DropSite { file, line, block, request, called_at, tables };
                self.program.drop_sites.push(site);
            }
            "intrinsic" => {
                let role = |w: &str| Intrinsic::ALL.iter().copied().find(|r| r.name() == w);
                let role = self.choice("the name of a role", role)?;
                self.sign("=")?;
                let slot = self.slot()?;
                self.program.intrinsics.set(role, Some(slot));
            }
            "header" => self.header_item()?,
            "metadata" => self.slot_item(Some(Home::Metadata))?,
            "local" => self.slot_item(Some(Home::Local))?,
            "slot" => self.slot_item(None)?,
            "stack" => {
                let (name, elements) = (self.name()?, self.list(Parser::header)?);
                self.word("next")?;
                let next = self.slot()?;
                self.program.stacks.push(Stack { name, elements, next });
            }
            "body" => self.body()?,
            _ => {
                self.at -= 1;
                self.object()?;
            }
        }
        Ok(())
    }

    fn slot_item(&mut self, home: Option<Home>) -> Result<()> {
        let name = self.name()?;
        self.sign(":")?;
        let ty = self.ty()?;
        let home = match home {
            Some(home) => home,
            None => {
                self.word("in")?;
                let header = self.header()?;
                self.word("at")?;
                Home::Header { header, offset: self.number()? }
            }
        };
        self.program.slots.push(Slot { name, ty, home });
        Ok(())
    }

    fn header_item(&mut self) -> Result<()> {
        let name = self.name()?;
        self.sign(":")?;
        let type_name = self.name()?;
        if self.is_sign("(") {
            let fields = self.list(Parser::slot)?;
            self.word("bits")?;
            let fixed_bits = self.number()?;
            self.program.headers.push(Header { name, type_name, fields, fixed_bits });
            return Ok(());
        }
        self.sign("{")?;
        let header = self.program.headers.next_key();
        let (mut offset, mut fields) = (0u32, Vec::new());
        while !self.eat("}") {
            let field = format!("{name}.{}", self.name()?);
            self.sign(":")?;
            let ty = self.ty()?;
            fields.push(self.program.slots.push(Slot {
                name: field,
                ty,
                home: Home::Header { header, offset },
            }));
            offset = offset.saturating_add(ty.fixed_bits());
        }
        self.program.headers.push(Header { name, type_name, fields, fixed_bits: offset });
        Ok(())
    }

    /// `block7`.
    pub(super) fn block(&mut self) -> Result<BlockId> {
        let number = match self.peek() {
            Token::Word(word) => names::block_number(word).and_then(|n| n.parse::<u32>().ok()),
            _ => None,
        };
        match number {
            Some(number) if (number as usize) < limits::MAX_BLOCKS => {
                self.skip();
                Ok(BlockId::from_u32(number))
            }
            _ => self.expected("a block"),
        }
    }

    /// Whether `name =` comes next.
    pub(super) fn is_assignment(&self) -> bool {
        matches!(self.peek_next(), Token::Sign("="))
    }

    /// Whether `, word` comes next.
    pub(super) fn is_next_labelled(&self, word: &str) -> bool {
        self.is_sign(",") && matches!(self.peek_next(), Token::Word(w) if *w == word)
    }
}

fn declares(word: &str) -> bool {
    matches!(
        word,
        "slot"
            | "metadata"
            | "local"
            | "header"
            | "stack"
            | "body"
            | "table"
            | "profile"
            | "counter"
            | "meter"
            | "register"
            | "value_set"
            | "own_hash"
            | "action"
            | "digest"
            | "plugin"
    )
}
