//! Converts the command line of `sdm` for a launch or attach request to a session, with the settings of its verb.

use std::ffi::OsString;

use clap::CommandFactory;
use sdm_session::SessionConfig;
use sdm_shell::exit_codes::NOT_STARTED;

use super::super::opener::{Refused, refused};
use super::super::{attach, emulate, job, run, self_description};
use crate::cli::{self, Cli, Verb};
use crate::cluster;

/// The session of a launch or attach.
pub(super) struct Plan {
    pub(super) config: SessionConfig,
    pub(super) begin: Begin,
    pub(super) notes: Vec<String>,
}

/// The command by which tasks come under the debugger: a start, also of scripted tasks, or an attach.
pub(super) enum Begin {
    Start(Vec<(sdm_idset::IdSet, sdm_debug::command::StartSpec)>),
    Attach(Box<attach::Attachment>),
}

/// Parses the words of a command line, with the settings of its command.
pub(super) fn plan(words: &[OsString]) -> Result<Plan, Refused> {
    let mut line = vec![OsString::from("sdm")];
    line.extend_from_slice(words);
    let definition = self_description::definition(Cli::command(), &line);
    let definition = definition.map_err(|error| (2, error.to_string()))?;
    let (cli, _) = cli::parse(definition, line).map_err(|error| (2, wrong_words(&error)))?;
    let of_job = |job: job::Job<'_>| Plan {
        config: job.session,
        begin: Begin::Start(job.programs),
        notes: Vec::new(),
    };
    match cli.command {
        Verb::Run(args) => {
            let job = run::job(&args, Vec::new())?;
            if job.control.is_some() || job.batch.is_some() {
                let text = "--control and --batch cannot be used with `sdm dap`";
                return Err((2, text.to_owned()));
            }
            Ok(of_job(job))
        }
        Verb::Emulate(args) => Ok(of_job(emulate::job(&args, Vec::new())?)),
        Verb::Attach(mut args) => {
            cluster::find_here(&mut args.target)
                .map_err(|error| (NOT_STARTED, error.to_string()))?;
            let attachment = attach::look_up(&args.target, false).map_err(refused)?;
            Ok(Plan {
                config: attachment.session.clone(),
                begin: Begin::Attach(Box::new(attachment)),
                notes: Vec::new(),
            })
        }
        _ => Err((
            2,
            "the editor gives the target by `launch` or `attach`: omit it on the command line"
                .to_owned(),
        )),
    }
}

/// The error of a command line in one line, without clap's usage text.
fn wrong_words(error: &clap::Error) -> String {
    let text = error.to_string();
    let first = text.lines().next().unwrap_or_default();
    let first = first.strip_prefix("error: ").unwrap_or(first);
    sdm_text::printable(first.as_bytes())
}
