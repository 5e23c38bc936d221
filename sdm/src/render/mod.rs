//! Text for a person: one block per distinct answer, biggest class first.

mod answer;
mod data;
mod diagnosis;
mod escape;
mod event;
mod label;
mod numbers;
mod place;
mod stacks;
mod style;
mod table;
mod text;
mod topics;
mod values;

pub(crate) use event::stopped;
pub use label::{Names, set_text};
pub(crate) use place::value as value_text;
pub use style::Style;
pub use text::{Screen, TextView};

#[cfg(test)]
pub(crate) use text::recorder::Recorder;
