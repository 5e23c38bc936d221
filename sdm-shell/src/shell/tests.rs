//! Tests of a shell over a scripted session.

mod diagnose;
pub(super) mod fake;
mod golden;
mod killing;
mod lines;
mod scale;
mod told;
mod waiting;
