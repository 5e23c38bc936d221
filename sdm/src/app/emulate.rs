//! The command `sdm emulate`: a session of real servers on this machine, whose tasks follow a script.

use sdm_text::printable_name;
use std::path::Path;

use sdm_debug::BackendSettings;
use sdm_debug::command::StartSpec;
use sdm_fake::Scenario;
use sdm_idset::IdSet;
use sdm_session::{Network, SessionConfig};

use super::job::{self, Job};
use super::opener::{Opener, Refused};
use super::roundtrips::{self, Probe};
use super::view::give_up;
use crate::cli::{Commands, EmulateArgs};
use crate::sink::tell;

/// The default scenario: a job that hangs, with one rank a step behind and differing values. `continue`
/// ends the tasks, so that a script can finish.
const EXAMPLE: &str = "\
[all]
stack = main halo.c:142 > solve halo.c:114 > sum_up halo.c:37 > MPI_Allreduce
value step = 60
value residual = 0.{rank%10}5
local step = 60
local neighbour = {rank}
continue = 100ms exit 0
output = 60ms step 60, heat 1000
[tasks 3]
stack = main halo.c:142 > solve halo.c:111 > exchange halo.c:54 > MPI_Recv
value step = 59
local step = 59
local neighbour = 2
output = 60ms step 59, heat 997
";

/// Starts the servers, and shows the prompt, carries out commands, or measures.
pub(super) fn emulate<O: Opener>(
    args: &EmulateArgs,
    commands: Vec<Commands>,
    opener: &mut O,
) -> u8 {
    let Some(rounds) = args.roundtrips else {
        return job::run(args.script.json, job(args, commands), opener);
    };
    let measured = scenario(args.scenario.as_deref()).and_then(|scenario| {
        let probe = Probe::new(args.bytes);
        let session = session(args, scenario + &probe.scenario());
        roundtrips::measure(opener, &session, &probe, rounds)
            .map_err(|error| (1, error.to_string()))
    });
    match measured {
        Ok(line) => u8::from(tell(&line).is_err()),
        Err((code, why)) => give_up(false, code, why),
    }
}

pub(super) fn job(args: &EmulateArgs, commands: Vec<Commands>) -> Result<Job<'_>, Refused> {
    let scenario = match args.scenario.as_deref() {
        None => EXAMPLE.to_owned(),
        file => scenario(file)?,
    };
    let all = IdSet::all_below(args.count);
    let start = StartSpec {
        program: b"emulated".to_vec(),
        stdin_tasks: all.clone(),
        ..StartSpec::default()
    };
    Ok(Job {
        batch: None,
        check_room: false,
        files: None,
        control: None,
        args: &args.script,
        commands,
        session: session(args, scenario),
        programs: vec![(all.clone(), start)],
        stdin_tasks: all,
        passes_input: false,
    })
}

fn session(args: &EmulateArgs, scenario: String) -> SessionConfig {
    let session = SessionConfig {
        backend: BackendSettings::Fake { scenario },
        forks: true,
        network: Network {
            shape: args.shape(),
            ..Network::default()
        },
        ..args.tree.session(args.count)
    };
    match args.hosts {
        Some(hosts) => session.over_loopback(hosts),
        None => session,
    }
}

/// The text of a scenario file, which has been validated. Empty without a file.
fn scenario(file: Option<&Path>) -> Result<String, Refused> {
    let Some(file) = file else {
        return Ok(String::new());
    };
    let name = printable_name(file);
    let text =
        sdm_system::files::read_text(file).map_err(|error| (2, format!("read {name}: {error}")))?;
    match Scenario::parse(&text) {
        Ok(_) => Ok(text),
        Err(error) => Err((2, format!("{name}: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn example_scenario_is_valid() {
        assert!(Scenario::parse(EXAMPLE).is_ok());
    }
}
