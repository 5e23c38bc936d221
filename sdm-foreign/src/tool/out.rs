//! Output of the tool: messages to the parent process.

use std::sync::OnceLock;
use std::sync::mpsc::SyncSender;

use sdm_foreign::tool_protocol::FromTool;

/// Channel to the parent process.
static OUT: OnceLock<SyncSender<FromTool>> = OnceLock::new();

/// Sends a message to the parent process; does nothing once it is gone.
pub(super) fn tell(message: FromTool) {
    if let Some(out) = OUT.get() {
        let _ = out.send(message);
    }
}

/// Sets the channel; only the first call has an effect.
pub(super) fn begin(out: SyncSender<FromTool>) {
    OUT.get_or_init(|| out);
}
