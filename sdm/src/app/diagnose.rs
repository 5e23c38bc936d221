//! `sdm diagnose`.

use sdm_debug::EndPolicy;
use sdm_idset::{IdSet, TaskId};
use sdm_shell::{Diagnosed, Ending, StacksCode};
use sdm_system::proc;

use super::attach::{look_up, open_to_look};
use super::error::AppError;
use super::explain::named;
use super::opener::Opener;
use super::view::give_up;
use crate::cli::DiagnoseArgs;

/// The exit code where something went wrong.
const ERROR: u8 = 2;

/// Attaches, looks a few times, says what is stuck, leaves everything as it was.
pub(super) fn diagnose<O: Opener>(args: &DiagnoseArgs, opener: &mut O) -> u8 {
    match try_diagnose(args, opener) {
        Ok(code) => code,
        Err(error) => give_up(args.target.json, ERROR, named(&error)),
    }
}

fn try_diagnose<O: Opener>(args: &DiagnoseArgs, opener: &mut O) -> Result<u8, AppError> {
    let attachment = look_up(&args.target, true)?;
    // Seen before gdb comes: to it everything is a process that it has stopped.
    let states = states(&attachment.pids_here());
    let (mut shell, spec, _) = open_to_look(&args.target, attachment, opener)?;
    let (code, reason) = match shell.diagnose_target(spec, args.samples, states) {
        Diagnosed::Judged { stuck } => (u8::from(stuck), None),
        Diagnosed::Unseen => (ERROR, None),
        Diagnosed::Interrupted => {
            let code = StacksCode::Interrupted;
            (code as u8, code.reason())
        }
    };
    let ending = Ending {
        code,
        policy: EndPolicy::Detach,
        reason,
    };
    Ok(super::lines::end(shell, opener, ending))
}

/// Processes in a state in which they cannot go on, each with what it is in words.
fn states(pids: &[(u32, i32)]) -> Vec<(IdSet, String)> {
    let mut states: Vec<(IdSet, String)> = Vec::new();
    for (task, pid) in pids {
        let Some(what) = state_of(*pid) else {
            continue;
        };
        match states.iter_mut().find(|(_, known)| *known == what) {
            Some((tasks, _)) => {
                tasks.insert(TaskId(*task));
            }
            None => states.push((IdSet::single(TaskId(*task)), what)),
        }
    }
    states
}

fn state_of(pid: i32) -> Option<String> {
    let process = proc::of(pid);
    match process.state()?.0 {
        'T' => Some("stopped by a signal before anybody looked (state T)".to_owned()),
        'Z' => Some("ended; nobody has asked for the exit code (zombie)".to_owned()),
        'D' => {
            let place = match process.wait_channel().as_str() {
                "" => String::new(),
                wchan => format!(", in {wchan}"),
            };
            Some(format!(
                "in the kernel, not to be interrupted (state D{place})"
            ))
        }
        _ => None,
    }
}
