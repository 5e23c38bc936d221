//! Text for a person: one block per distinct answer, biggest class first.

mod answer;
mod data;
mod diagnosis;
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

pub(crate) use answer::biggest_first;
pub(crate) use event::{sentence, stopped};
pub use label::{Names, set_text};
pub(crate) use place::{frame as frame_text, stack_frame, value as value_text};
pub(crate) use sdm_core::printable::{printable, printable_lines};
pub(crate) use stacks::lines as stack_lines;
pub use style::Style;
pub(crate) use text::item_lines;
pub use text::{Screen, TextView};

#[cfg(test)]
pub(crate) use text::recorder::Recorder;
