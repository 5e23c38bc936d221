//! The subcommands of `sdm`. The opening of sessions is passed in as an [`Opener`].

mod attach;
mod check;
mod command_source;
mod completion;
mod control;
mod core;
mod dap;
mod diagnose;
mod emulate;
mod error;
mod explain;
mod full_screen;
mod job;
mod keep;
mod keys;
mod live;
mod local;
mod machine;
mod manual;
mod notify;
mod opener;
mod pager;
mod prompt;
mod python;
mod queue;
mod report;
mod rescue;
mod roundtrips;
mod run;
mod screen;
mod self_description;
mod signals;
mod stacks;
mod stdin;
mod type_ahead;
mod view;
mod wake;
mod web;
mod words;

use std::ffi::OsString;

use clap::CommandFactory;
use nix::sys::signal::Signal;

use sdm_shell::exit_codes::NOT_STARTED;

use crate::cli::{self, Verb};
use crate::sink::{self, complain};
pub use error::AppError;
pub use live::Live;
pub use opener::Opener;
pub use wake::Wake;

/// Carries out a command line. Returns the exit code.
pub fn main<O: Opener>(args: impl IntoIterator<Item = OsString>, opener: &mut O) -> u8 {
    // A file that may not grow is an error like others.
    if let Err(error) = crate::sys::outlive(Signal::SIGXFSZ) {
        complain(format_args!("sdm: cannot set up signal handling: {error}"));
        return NOT_STARTED;
    }
    sink::exit_code(carry_out(args, opener))
}

fn carry_out<O: Opener>(args: impl IntoIterator<Item = OsString>, opener: &mut O) -> u8 {
    let args: Vec<OsString> = args.into_iter().collect();
    match completion::answered(&args) {
        Ok(false) => {}
        Ok(true) => return 0,
        Err(error) => {
            complain(format_args!("sdm: cannot write the completions: {error}"));
            return 2;
        }
    }
    let command = cli::Cli::command();
    let args = cli::divided(&command, args);
    let definition = match self_description::definition(command, &args) {
        Ok(definition) => definition,
        Err(error) => {
            complain(format_args!("sdm: {error}"));
            return 2;
        }
    };
    let (mut cli, commands) = match cli::parse(definition, args.iter().cloned()) {
        Ok(parsed) => parsed,
        Err(error) => {
            let code = u8::try_from(error.exit_code()).unwrap_or(2);
            self_description::explain(error);
            return code;
        }
    };
    if let Some((name, program)) = keep::wanted(&cli.command) {
        return keep::start(name, &program, &args);
    }
    if let Some(code) = crate::cluster::carry_out(&cli.command) {
        return code;
    }
    if let Some(code) = crate::cluster::find_job(&mut cli.command, &args) {
        return code;
    }
    match cli.command {
        Verb::Run(args) => run::run(&args, commands, opener),
        Verb::Diagnose(args) => diagnose::diagnose(&args, opener),
        Verb::Attach(args) | Verb::Web(args) => attach::attach(&args, commands, opener),
        Verb::Emulate(args) => emulate::emulate(&args, commands, opener),
        Verb::Stacks(args) => stacks::stacks(&args, opener),
        Verb::Profile(args) => stacks::profile(&args, opener),
        Verb::Dap(args) => dap::dap(&args, opener),
        Verb::Core(args) => core::core(&args, commands, opener),
        Verb::Doctor(args) => crate::doctor::carry_out(&args),
        Verb::Rescue(args) => rescue::rescue(&args.pids),
        Verb::Settings(args) => self_description::settings(args.verb.as_deref()),
        Verb::Completions(args) => self_description::written(completion::script(args.shell)),
        Verb::Man(args) => manual::man(&args.directory),
        Verb::Sessions(args) => keep::sessions(args.json),
        Verb::Resume(args) => keep::resume(args.session.as_deref()),
        Verb::Detach(args) => keep::detach(args.session.as_deref()),
        Verb::Pmix(args) => crate::pmix::carry_out(&args),
        Verb::Keeper(args) => keep::keeper(&args),
        // The verbs of clusters have been carried out.
        _ => 0,
    }
}
