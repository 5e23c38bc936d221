//! Tests of a shell over a scripted session.

mod diagnose;
pub(super) mod fake;
mod golden;
mod killing;
mod lines;
mod overview;
mod scale;
mod told;
mod waiting;
