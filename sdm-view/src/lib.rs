//! Output of a session as data, and its conversion to text for a person, JSON for a program, and a page for
//! later reading.
//!
//! An [`Item`] is one unit of output: an answer with its tasks, an event, a table, a diagnosis. A [`View`]
//! receives items. [`render::TextView`] writes them as text and [`json::JsonView`] as records. A
//! [`report::Recorder`] keeps a bounded part of them, from which a [`report::Report`] is made.
//!
//! Nothing here queries a task, starts a session, opens a file or examines a terminal. Every text is a pure
//! function of its arguments, which include the width.

pub mod coalesce;
pub mod compare;
pub mod escape;
mod gathered;
pub mod item;
pub mod json;
mod markup;
pub mod normalise;
pub mod overview;
mod picture;
pub mod profile;
pub mod queues;
pub mod readable;
pub mod render;
pub mod report;
mod stacks;

pub use item::{Item, View};
