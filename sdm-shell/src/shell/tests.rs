//! A shell over a scripted session: what it sends, what it shows, when it waits.

mod diagnose;
pub(super) mod fake;
mod golden;
mod killing;
mod lines;
mod scale;
mod told;
mod waiting;
