//! Names that come a second time, found in time linear in their number.

use foldhash::HashMap;
use millrace_syntax::Span;

/// The names so far with their places.
#[derive(Default)]
pub(crate) struct Names<'n>(HashMap<&'n str, Span>);

impl<'n> Names<'n> {
    /// Takes a name; the place of the same name before it, if there is one.
    pub(crate) fn take(&mut self, name: &'n str, span: Span) -> Option<Span> {
        let earlier = self.0.get(name).copied();
        if earlier.is_none() {
            self.0.insert(name, span);
        }
        earlier
    }
}
