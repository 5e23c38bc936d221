//! What a task remembers of its last probe.

/// What the last probe has seen, for the next one to compare with.
#[derive(Clone, Debug, Default)]
pub(in crate::driver) struct Probed {
    /// A fingerprint of the innermost user frame's variables.
    pub(in crate::driver) inner: Option<u128>,
    /// The same of the two frames that called it.
    pub(in crate::driver) outer: Option<u128>,
    /// The processor time until then, in milliseconds.
    pub(in crate::driver) cpu_ms: Option<u64>,
}
