//! Text for the user: one block per distinct answer, largest class first.

mod answer;
mod data;
mod diagnosis;
mod event;
mod highlight;
mod label;
mod numbers;
mod page;
mod place;
mod plot;
mod profile;
mod queues;
mod stacks;
mod style;
mod table;
mod text;
mod topics;
mod values;

pub(crate) use event::{Sentence, sentence};
pub use event::{exited, fatal_error_of_mpich, stopped};
pub use label::Names;
pub(crate) use place::stack_frame;
pub use place::{frame as frame_text, value as value_text};
pub(crate) use profile::share;
pub(crate) use sdm_text::{printable, printable_lines};
pub(crate) use stacks::lines as stack_lines;
pub use style::Style;
pub(crate) use text::item_lines;
pub use text::recorded_screen::RecordedScreen;
pub use text::{Screen, TextView, status_in};
pub use topics::amount;
