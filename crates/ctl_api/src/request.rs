//! What a client says.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// The first line of a connection.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub struct Hello {
    /// [`crate::VERSION`].
    pub version: u32,
    /// The token of a tenant; without one the client is who its user is. None over gRPC, where it is in the metadata of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
}

impl fmt::Debug for Hello {
    /// Without the token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let token = self.token.as_ref().map(|_| "...");
        f.debug_struct("Hello").field("version", &self.version).field("token", &token).finish()
    }
}

/// A line after it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// The switches that the client may see.
    List,
    /// What switches and physical ports have counted.
    Stats {
        /// One switch; without it all.
        #[serde(default)]
        switch: Option<String>,
    },
    /// Switches, ports and links.
    Graph,
    /// The file of the device as it runs now.
    Show,
    /// The device is to become as a file says, by the smallest changes.
    Apply {
        /// The text of the file.
        text: String,
        /// The folder that its paths start at, from the root. None over gRPC.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        folder: String,
        /// Over gRPC, the contents of the files that it names, by their paths as they are written: of a program its image.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        files: BTreeMap<String, String>,
        /// Only says what would change.
        #[serde(default)]
        dry_run: bool,
    },
    /// Sections of a file more: switches, ports, links, tenants.
    Load {
        /// Their text.
        text: String,
        /// As of [`Request::Apply`].
        #[serde(default, skip_serializing_if = "String::is_empty")]
        folder: String,
        /// As of [`Request::Apply`].
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        files: BTreeMap<String, String>,
    },
    /// A switch goes, with its links.
    Remove {
        /// Its name.
        switch: String,
    },
    /// A switch takes packets.
    Start {
        /// Its name.
        switch: String,
    },
    /// A switch takes packets no more.
    Stop {
        /// Its name.
        switch: String,
    },
    /// A link goes.
    Unlink {
        /// Its ends, each as SWITCH:PORT.
        between: [String; 2],
    },
    /// Another program takes over from the one that runs.
    Swap {
        /// The switch.
        switch: String,
        /// The program: an image, or the text of a P4_16 program.
        program: String,
        /// The change is refused if not all entries have a place in the new program.
        #[serde(default)]
        keep_everything: bool,
        /// The program before comes back by itself if the new one drops too much.
        #[serde(default)]
        probation: Option<Probation>,
    },
    /// The program before the last swap comes back, with the state that it had then.
    Rollback {
        /// The switch.
        switch: String,
    },
    /// The program, entries and state of a switch, as a text.
    Snapshot {
        /// The switch.
        switch: String,
    },
    /// A switch goes on with what a snapshot holds.
    Restore {
        /// The switch.
        switch: String,
        /// The snapshot.
        snapshot: String,
    },
    /// A candidate gets a copy of what a switch gets; what it sends is compared and goes nowhere.
    Shadow {
        /// The switch.
        switch: String,
        /// The program of the candidate; without it, how the one that runs compares.
        #[serde(default)]
        program: Option<String>,
        /// The candidate ends.
        #[serde(default)]
        end: bool,
    },
}

/// When a program goes back by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub struct Probation {
    /// How long the new program is watched.
    pub seconds: u32,
    /// The largest part of its packets that it may drop, in millionths.
    pub max_drops: u32,
}
