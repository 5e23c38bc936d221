//! Messages for the user, on standard error.

use std::io::Write;

/// Writes a message to standard error, for the parent process, which may be gone.
pub(crate) fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "sdm-pmix: {text}");
}
