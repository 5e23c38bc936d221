//! gdb's command language over sets of tasks.
//!
//! [`commands::parse`] makes a [`commands::Line`] of a line of text: to which tasks, and what. A [`Shell`] carries lines out
//! over a session ([`sdm_session::DebugSession`]) and says what comes of them to a [`sdm_view::View`]. [`Control`]s bring it lines and
//! signals.
//!
//! There is no terminal here, no prompt and no argument of a command line: a front-end brings the lines, and the view that
//! shows what comes of them.

pub mod commands;
mod exported;
mod report_files;
mod shell;

pub use report_files::{NotWritten, ReportFiles};
pub use shell::{
    Application, Batch, COMPLETE_WAIT, Control, Diagnosed, Ended, Ending, GuestShell, InputSource,
    LineSource, LocalEnd, LocalMachine, LocalProcess, LookBy, Looks, NotOpened, Options,
    QUERY_TIMEOUT, Restart, Sampling, Script, ScriptLine, Shell, StacksCode, Verdict, Widen,
    Widened, Widening,
};
