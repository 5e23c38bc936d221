//! gdb's command language over sets of tasks.
//!
//! [`commands::parse`] turns a line of text into a [`commands::Line`]: the target tasks and the command. A
//! [`Shell`] carries lines out over a session ([`sdm_session::DebugSession`]) and passes the results to a
//! [`sdm_view::View`]. Lines and signals reach it as [`Control`]s.
//!
//! There is no terminal here, no prompt and no command-line argument. A front-end provides the lines, and
//! the view that shows the results.

pub mod commands;
pub mod exit_codes;
mod export_files;
mod report_files;
mod shell;

pub use report_files::{NotWritten, ReportFiles};
pub use shell::{
    Application, Batch, COMPLETE_WAIT, Control, Diagnosed, EmbeddedShell, Ended, Ending,
    InputSource, LineSource, LocalEnd, LocalMachine, LocalProcess, LookBy, Looks, NotOpened,
    Options, QUERY_TIMEOUT, Restart, Sampling, Script, ScriptLine, Shell, StacksCode, Verdict,
    Widen, Widened, Widening, runs_without_gdb,
};
