//! Where messages go.

use std::sync::OnceLock;
use std::sync::mpsc::SyncSender;

use sdm_foreign::asked::FromTool;

/// The way to who has started this process.
static OUT: OnceLock<SyncSender<FromTool>> = OnceLock::new();

/// Tells who has started this process; once it is gone, nobody reads.
pub(super) fn tell(message: FromTool) {
    if let Some(out) = OUT.get() {
        let _ = out.send(message);
    }
}

/// From now on there is a way.
pub(super) fn begin(out: SyncSender<FromTool>) {
    OUT.get_or_init(|| out);
}
