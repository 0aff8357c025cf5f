//! The chains of plugins that a program asks for, while it is still a text.

use millrace_compile::Checked;
use millrace_inputs::{InputError, PortChain};
use millrace_syntax::Diagnostic;

/// Finds what is wrong with the chains that a program asks for, at their places; with `has_files` also with the lists that they
/// name.
pub fn check_chains(checked: &mut Checked, has_files: bool) {
    for asked in checked.chains() {
        let refused = match PortChain::parse(&asked.chain.text, asked.chain.is_output) {
            Err(error) => {
                let found = Diagnostic::error("chain", asked.place(error.at), error.message);
                Some(found.with_label("in this chain of plugins"))
            }
            Ok(chain) if has_files => chain.chain().check().err().map(|error| match error {
                InputError::Text(error) => Diagnostic::error("chain", asked.place(error.at), error.message),
                error => Diagnostic::error("chain", asked.span, error.to_string()),
            }),
            Ok(_) => None,
        };
        refused.into_iter().for_each(|finding| checked.find(finding));
    }
}
