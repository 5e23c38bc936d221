//! Full-screen views for a terminal, as machines without I/O.
//!
//! [`Debugger`] is the debugger's screen. `sdm top` has the four views of the runtime platform ("PTP runtime platform,
//! Runtime Views").
//!
//! [`Top`] is a state machine without I/O. Its inputs are keys ([`Top::handle_key`]), snapshots
//! ([`Top::handle_facts`]), ends of commands ([`Top::handle_end`]) and the time. Its outputs are frames
//! ([`Top::draw`]) and requests ([`Top::poll_request`]). It never queries a resource manager and starts no
//! program. A request is a command line of `sdm`, which its owner carries out, and which the screen shows
//! in its log.
//!
//! Text is escaped when it comes in ([`Facts`]). [`Terminal`] alone accesses the terminal.

#![forbid(unsafe_code)]

mod bindings;
mod debug;
mod form;
mod line;
mod map;
mod paint;
mod palette;
#[cfg(test)]
mod pictures;
mod platform_state;
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
pub use debug::{Debugger, ScreenAction};
pub use palette::Palette;
pub use platform_state::{Cluster, Facts, Item, Output, Wants};
pub use ratatui::crossterm::event::{
    KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};
pub use style::Style;
pub use terminal::{Input, Terminal, TerminalError, check};
pub use top::{Request, Top};
