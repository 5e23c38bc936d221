//! Messages for the user, on standard error.

use std::io::Write;

/// Tells who has started this process, on standard error; that may be gone.
pub(crate) fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "sdm-pmix: {text}");
}
