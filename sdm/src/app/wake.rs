//! Waking of a waiting session from other threads.

use std::sync::{Arc, Mutex, PoisonError};

/// Wakes a session that waits for its next event, from any thread.
pub type Wake = Arc<dyn Fn() + Send + Sync>;

/// Wakes the current session. A restarted job has another one.
#[derive(Clone)]
pub(super) struct CurrentWake(Arc<Mutex<Wake>>);

impl CurrentWake {
    pub(super) fn new(wake: Wake) -> Self {
        Self(Arc::new(Mutex::new(wake)))
    }

    /// Sets the session to wake.
    pub(super) fn set(&self, wake: Wake) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = wake;
    }

    pub(super) fn wake(&self) -> Wake {
        let current = self.clone();
        Arc::new(move || {
            let wake = current.0.lock().unwrap_or_else(PoisonError::into_inner);
            let wake = Arc::clone(&wake);
            wake();
        })
    }
}
