//! The program `sdm-pmix`, which loads foreign libraries. A fault of a library ends this process and no other.
//!
//! `sdm-pmix host` is a PMIx server for the programs of a session; see [`host`]. `sdm-pmix LIBRARY PID` asks the
//! PMIx server in a launcher (`prterun`, `prte`) for its jobs and processes.
//!
//! The caller kills this process when it takes too long. The library is the one that the server itself has loaded, and
//! it is loaded at run time. A tool that dies while it connects would cost the user the job, so a second process holds
//! its connection then; see [`connection_holder`]. Never run it against Open MPI 4: its server dies of a tool's connection,
//! and the user's job with it.
//!
//! `sdm-pmix queues` loads another foreign library, the one that an MPI library has for debuggers: see [`msgq`].
//!
//! `sdm-pmix tool LIBRARY PID FILE` executes requests of its caller as a PMIx tool: see [`tool`] and
//! `sdm_foreign::tool_protocol`.
//!
//! ```text
//! sdm-pmix LIBRARY PID     ->   starting                                      where it has no job yet, and is waited for
//!                               namespace TAB NAME                            one line for each
//!                               process TAB NAMESPACE TAB RANK TAB PID TAB HOST TAB PROGRAM
//!                               end
//! ```
//! A failure is one sentence on standard error and exit code 1.

mod connect;
mod connection_holder;
mod ffi;
mod host;
mod library;
mod messages;
mod msgq;
mod sys;
mod tool;
mod tool_lock;

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::Signal;
use sdm_hosts::job::STARTING;

/// The last line of an answer.
const END: &str = "end\n";

fn main() -> ExitCode {
    sdm_text::escape_panics();
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            messages::say(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments == ["host"] {
        return host::run();
    }
    if arguments == ["queues"] {
        return msgq::run();
    }
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (library, server, file) = match words[..] {
        [library, server] => (library, server, None),
        ["tool", library, server, file] => (library, server, Some(file)),
        _ => bail!("usage: sdm-pmix LIBRARY PID-OF-SERVER"),
    };
    let server: i32 = server
        .parse()
        .context("the pid of the PMIx server is not a number")?;
    // This process ends with the caller, which alone needs the answer, and a crash leaves no core file.
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)
        .context("cannot set this process to end with its parent")?;
    setrlimit(Resource::RLIMIT_CORE, 0, 0).context("cannot disable core files")?;
    let library = Path::new(library);
    if let Some(file) = file {
        return tool::run(library, server, file);
    }
    let text = ask(library, server)?;
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

fn ask(library: &Path, server: i32) -> Result<String> {
    let (tool, turn) = connect::connect(library, server, None)?;
    tool.wait_for_job(|| {
        // The caller may have ended.
        let _ = writeln!(std::io::stdout(), "{STARTING}");
    });
    let mut text = String::new();
    for namespace in tool.namespaces()? {
        text.push_str(&format!("namespace\t{namespace}\n"));
        // Namespaces of tools and of the server itself have no table.
        for process in tool.processes(&namespace).unwrap_or_default() {
            let library::Process {
                rank,
                pid,
                host,
                program,
            } = process;
            let line = format!("process\t{namespace}\t{rank}\t{pid}\t{host}\t{program}\n");
            text.push_str(&line);
        }
    }
    text.push_str(END);
    connect::leave(tool, turn);
    Ok(text)
}
