//! The commands for clusters: their resources, and their jobs.
//!
//! A started manager is a background process (`sdm_rm`). A command queries one or several of them and shows
//! the answers.

mod change;
mod choose;
mod element;
mod error;
mod for_each;
mod job;
mod list;
mod logs;
mod manage;
pub(crate) mod names;
mod remote_files;
mod show;
mod submit;
mod table;
mod times;
mod top;
mod watch;

use std::ffi::OsString;

use sdm_shell::exit_codes::NOT_STARTED;

use crate::cli::Verb;
use crate::sink::complain;
pub(crate) use job::find_here;
pub(crate) use list::running;

pub(crate) use job::{Located, LocatedPlace, locate};

/// The exit code of `stacks`, `profile` and `diagnose` if a cluster's job cannot be their target.
const NO_LOOK: u8 = 2;

/// Finds the cluster job that a debugger has to attach to (`CLUSTER:NUMBER`). `args` is the whole command line. Returns
/// the exit code if the command ends here, otherwise None.
pub(crate) fn find_job(verb: &mut Verb, args: &[OsString]) -> Option<u8> {
    let (target, comes_to_stay, code) = match verb {
        Verb::Attach(args) | Verb::Web(args) => {
            let given = &args.commands;
            let has_commands = !given.commands.is_empty() || !given.files.is_empty();
            (&mut args.target, !has_commands, NOT_STARTED)
        }
        Verb::Stacks(args) => (&mut args.target, false, NO_LOOK),
        Verb::Profile(args) => (&mut args.target, false, NO_LOOK),
        Verb::Diagnose(args) => (&mut args.target, false, NO_LOOK),
        _ => return None,
    };
    let error = job::find(target, args, comes_to_stay).err()?;
    complain(format_args!("sdm: {error}"));
    Some(code)
}

/// Carries out a cluster command. Returns the exit code, or None for other commands.
pub(crate) fn carry_out(verb: &Verb) -> Option<u8> {
    let done = match verb {
        Verb::Cluster(args) => manage::manage(&args.verb),
        Verb::Nodes(args) => watch::shown(args, list::Which::Nodes),
        Verb::Queues(args) => watch::shown(args, list::Which::Queues),
        Verb::Jobs(args) => watch::shown(&args.list, list::Which::Jobs { all: args.all }),
        Verb::Ps(args) => job::processes(args),
        Verb::Show(args) => show::show(args),
        Verb::Top(args) => top::top(args),
        Verb::Submit(args) => submit::submit(args),
        Verb::Logs(args) => logs::logs(args),
        Verb::Cancel(args) => change::change(args, change::Change::Cancel),
        Verb::Hold(args) => change::change(args, change::Change::Hold),
        Verb::Release(args) => change::change(args, change::Change::Release),
        Verb::Move(args) => change::change(&args.of, change::Change::Move(&args.queue)),
        Verb::Priority(args) => change::change(&args.of, change::Change::Priority(args.priority)),
        _ => return None,
    };
    Some(done.unwrap_or_else(|error| {
        complain(format_args!("sdm: {error}"));
        for_each::REFUSED
    }))
}
