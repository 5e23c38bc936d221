//! Options for gdb.

use clap::Args;
use sdm_debug::{BackendSettings, GdbOptions};

use super::printers::{PrinterArgs, backend};

/// Settings of gdb that differ from the usual ones.
#[derive(Clone, Debug, Default, Args)]
pub struct GdbArgs {
    /// A command of the site's that runs the program in its own process (`numactl -N 0`, a binding
    /// script), for the shell.
    #[arg(long, value_name = "CMD", help_heading = "gdb")]
    pub wrapper: Option<String>,

    /// Have Valgrind run the program and look at each access to memory: errors are stops, and memory that is lost at the end is told.
    #[arg(long, help_heading = "gdb", conflicts_with = "wrapper")]
    pub memcheck: bool,

    /// Read debug information of the system's libraries too, where it is installed: slower.
    #[arg(long, help_heading = "gdb")]
    pub system_debug: bool,

    /// Fetch debug information by debuginfod, as the environment says.
    #[arg(long, help_heading = "gdb")]
    pub debuginfod: bool,

    /// Read your own .gdbinit files.
    #[arg(long, help_heading = "gdb")]
    pub gdb_init: bool,

    /// A command for every gdb before it reads the program; can be given several times.
    #[arg(long, value_name = "CMD", help_heading = "gdb")]
    pub gdb_setting: Vec<String>,

    /// The pretty printers that gdb loads.
    #[command(flatten)]
    pub printers: PrinterArgs,

    /// Do not hold programs that are about to abort, to leave before `MPI_Finalize`, or that a sanitizer has found something in.
    #[arg(long, help_heading = "gdb")]
    pub no_holds: bool,

    /// Start also where a host seems to have too little memory for so many gdbs.
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
