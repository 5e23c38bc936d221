//! The full-screen terminal: the debugger's screen ([`Debugger`]), and `sdm top`, the four views of the runtime platform ("PTP runtime platform, Runtime Views").
//!
//! [`Top`] is a machine without I/O. Keys ([`Top::handle_key`]), what is known ([`Top::handle_facts`]), how a command has ended
//! ([`Top::handle_end`]) and the time go in; frames ([`Top::draw`]) and requests ([`Top::poll_request`]) come out. It never asks
//! a resource manager and starts no program: a request is a command line of `sdm`, which its owner carries out, and which the
//! screen shows in its log. What is shown is escaped when it comes in ([`Facts`]). [`Terminal`] alone touches the terminal.

#![forbid(unsafe_code)]

mod bindings;
mod debug;
mod facts;
mod form;
mod line;
mod map;
mod paint;
mod palette;
#[cfg(test)]
mod pictures;
mod rows;
#[cfg(test)]
mod snapshot;
mod style;
mod table;
mod terminal;
#[cfg(test)]
mod tests;
mod top;

pub use bindings::{BindingError, Bindings};
pub use debug::{Debugger, Deed};
pub use facts::{Cluster, Facts, Item, Output, Wants};
pub use palette::Palette;
pub use ratatui::crossterm::event::{
    KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};
pub use style::Style;
pub use terminal::{Input, Terminal, TerminalError, check};
pub use top::{Request, Top};
