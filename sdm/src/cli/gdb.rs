//! Options for gdb.

use clap::Args;
use sdm_debug::{BackendSettings, GdbOptions};

use super::printers::{PrinterArgs, backend};

/// Settings of gdb that differ from the usual ones.
#[derive(Clone, Debug, Default, Args)]
pub struct GdbArgs {
    /// A command through which to start the program, such as `numactl -N 0` or a binding script; it must exec the
    /// program. A shell reads the command.
    #[arg(long, value_name = "CMD", help_heading = "gdb")]
    pub wrapper: Option<String>,

    /// Run the program under Valgrind's memcheck: a rank stops at each memory error, and leaked memory is reported at
    /// the end.
    #[arg(long, help_heading = "gdb", conflicts_with = "wrapper")]
    pub memcheck: bool,

    /// Also read installed debug information of system libraries. Starting takes longer.
    #[arg(long, help_heading = "gdb")]
    pub system_debug: bool,

    /// Download debug information from the debuginfod servers in DEBUGINFOD_URLS.
    #[arg(long, help_heading = "gdb")]
    pub debuginfod: bool,

    /// Have gdb read your .gdbinit files.
    #[arg(long, help_heading = "gdb")]
    pub gdb_init: bool,

    /// A gdb command to run in every gdb before it reads the program. Can be repeated.
    #[arg(long, value_name = "CMD", help_heading = "gdb")]
    pub gdb_setting: Vec<String>,

    /// The pretty printers that gdb loads.
    #[command(flatten)]
    pub printers: PrinterArgs,

    /// Do not stop ranks that are about to abort, that exit before `MPI_Finalize`, or in which a sanitizer has found an
    /// error.
    #[arg(long, help_heading = "gdb")]
    pub no_holds: bool,

    /// Start even if a host seems to have too little memory for its gdb processes.
    #[arg(long, help_heading = "gdb")]
    pub force: bool,
}

impl GdbArgs {
    /// The backend settings for the servers, with these gdb options.
    #[must_use]
    pub fn backend(&self) -> BackendSettings {
        let settings = self.printers.settings();
        let options = GdbOptions {
            settings: settings.chain(self.gdb_setting.iter().cloned()).collect(),
            system_debug: self.system_debug,
            debuginfod: self.debuginfod,
            init_files: self.gdb_init,
            no_holds: self.no_holds,
        };
        backend(options)
    }

    /// True where an option has an effect from the program's start on, so that gdb has to start the program.
    #[must_use]
    pub fn shapes_start(&self) -> bool {
        self.memcheck || self.wrapper.is_some() || self.gdb_init || !self.gdb_setting.is_empty()
    }

    /// The words of the command that runs the program: Valgrind, or a shell with the command of `--wrapper`. Empty if
    /// gdb runs the program directly.
    #[must_use]
    pub fn wrapper_words(&self) -> Vec<Vec<u8>> {
        if self.memcheck {
            return vec![b"valgrind".to_vec()];
        }
        let Some(command) = &self.wrapper else {
            return Vec::new();
        };
        let script = format!("exec {command} \"$@\"");
        let words = ["/bin/sh", "-c", script.as_str(), "sdm"];
        words.iter().map(|word| word.as_bytes().to_vec()).collect()
    }
}
