//! What the front-end tells every server's backend with the session's configuration.

use serde::{Deserialize, Serialize};

/// Which backend a server uses, and how it is set up.
///
/// The list is only appended to: its order is the wire form.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum BackendSettings {
    /// gdb over GDB/MI.
    Gdb,
    /// A script in place of gdb: for trying the tree without programs.
    Fake {
        /// The scenario's text; see [`crate::fake::Scenario`].
        scenario: String,
    },
}
