//! libpmix behind a process boundary: whatever that does costs this process at most.
//!
//! `sdm-pmix host` is a PMIx server for the programs of a session; see [`host`]. Otherwise it asks the PMIx server in a starter (`prterun`, `prte`) which processes its jobs have.
//!
//! A process of its own, so that whatever a foreign library does costs nobody else anything: who runs
//! it kills it when it takes too long. The library is the one that the server itself has loaded, and
//! it is loaded at run time. A tool that dies while it connects would cost the user the job, so a second process holds
//! its connection then; see [`keeper`]. Never run it against Open MPI 4: its server dies of a tool's connection,
//! and the user's job with it.
//!
//! `sdm-pmix tool LIBRARY PID FILE` does more than that for who has started it: see [`tool`] and `sdm_pmix::asked`.
//!
//! ```text
//! sdm-pmix LIBRARY PID     ->   namespace TAB NAME                            one line for each
//!                               process TAB NAMESPACE TAB RANK TAB PID TAB HOST TAB PROGRAM
//!                               end
//! ```
//! What goes wrong is one sentence on standard error and exit code 1.

mod ffi;
mod host;
mod keeper;
mod library;
mod say;
mod sys;
mod tool;
mod turn;

use std::ffi::CStr;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::Signal;
use turn::Turn;

/// How often it was tried to reach a server, in the environment of this process.
const TRIES: &str = "SDM_PMIX_TRIES";
const TRIES_MAX: u32 = 20;
const TRY_EVERY: Duration = Duration::from_millis(250);
/// What the library says of a server that it cannot reach.
const UNREACHED: i32 = -25;
/// The last line of an answer.
const END: &str = "end\n";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say::say(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments == ["host"] {
        return host::run();
    }
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (library, server, file) = match words[..] {
        [library, server] => (library, server, None),
        ["tool", library, server, file] => (library, server, Some(file)),
        _ => bail!("usage: sdm-pmix LIBRARY PID-OF-SERVER"),
    };
    let server: i32 = server.parse().context("the server's pid")?;
    // Nobody waits for an answer any more, and a crash leaves no core behind.
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL).context("follow whoever asks")?;
    setrlimit(Resource::RLIMIT_CORE, 0, 0).context("forbid a core file")?;
    let library = Path::new(library);
    if let Some(file) = file {
        return tool::run(library, server, file);
    }
    let text = ask(library, server)?;
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// Connects to a server, once it is this tool's turn.
///
/// A server that still has a tool that died before says that it cannot be reached. Its library cannot be asked a second time in one
/// process, so that this process begins anew then, some times.
fn connect(library: &Path, server: i32, file: Option<&CStr>) -> Result<(library::Tool, Turn)> {
    keeper::check_runs(server)?;
    let turn = Turn::take(server)?;
    // While this process has one thread, and before anything is connected.
    keeper::start(server, turn.descriptor())?;
    let error = match library::Tool::connect(library, server, file) {
        Ok(tool) => return Ok((tool, turn)),
        Err(error) => error,
    };
    let known = error.downcast_ref::<library::CallError>();
    let tries = std::env::var(TRIES).ok().and_then(|it| it.parse().ok());
    let tries: u32 = tries.unwrap_or(0);
    if known.is_none_or(|known| known.status != UNREACHED) || tries >= TRIES_MAX {
        return Err(error);
    }
    turn.end();
    std::thread::sleep(TRY_EVERY);
    let mut again = Command::new("/proc/self/exe");
    again.args(std::env::args_os().skip(1));
    Err(again.env(TRIES, (tries + 1).to_string()).exec()).context("try again")
}

fn ask(library: &Path, server: i32) -> Result<String> {
    let (tool, turn) = connect(library, server, None)?;
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
    tool.finish();
    turn.end();
    Ok(text)
}
