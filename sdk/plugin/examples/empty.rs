//! Does nothing: what a call costs at least. `@plugin("empty") extern void empty();`

use millrace_plugin::{Call, plugin};

plugin! { payload: 0, reply: 0, call: nothing }

fn nothing(_call: &mut Call<'_>) {}
