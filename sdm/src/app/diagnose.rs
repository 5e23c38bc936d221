//! `sdm diagnose`.

use sdm_debug::EndPolicy;
use sdm_idset::{IdSet, TaskId};
use sdm_shell::{Diagnosed, Ending, Looks, StacksCode};
use sdm_system::proc;
use sdm_view::diagnose::{Observed, dot};
use sdm_view::gather::join;

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
    let mut observed = observed(&attachment.pids_here());
    observed.outside = attachment.known.difference(&attachment.ended);
    if !attachment.ended.is_empty() {
        let what = "ended: its process is not there any more".to_owned();
        join(&mut observed.gone, &attachment.ended, what);
    }
    let (mut shell, spec, _) = open_to_look(&args.target, attachment, opener)?;
    let looks = Looks::of(args.samples, args.seconds);
    let (code, reason) = match shell.diagnose_target(spec, looks, observed) {
        Diagnosed::Judged(found) => {
            if let Some(path) = &args.dot {
                std::fs::write(path, dot(&found)).map_err(|source| AppError::File {
                    path: path.clone(),
                    source,
                })?;
            }
            (found.step.exit_code(), None)
        }
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

/// What the kernel says of processes that nobody has touched yet.
fn observed(pids: &[(u32, i32)]) -> Observed {
    let mut observed = Observed::default();
    for (task, pid) in pids {
        let tasks = IdSet::single(TaskId(*task));
        observed.pids.insert(*pid, TaskId(*task));
        let process = proc::of(*pid);
        let Some(state) = process.state() else {
            continue;
        };
        let (list, what) = match state.0 {
            'T' => (
                &mut observed.halted,
                "stopped by a signal before anybody looked (state T)".to_owned(),
            ),
            'Z' => (
                &mut observed.gone,
                "ended; nobody has asked for the exit code (zombie)".to_owned(),
            ),
            'D' => (&mut observed.states, in_kernel(&process.wait_channel())),
            _ => continue,
        };
        join(list, &tasks, what);
    }
    observed
}

fn in_kernel(wait_channel: &str) -> String {
    let place = match wait_channel {
        "" => String::new(),
        wchan => format!(", in {wchan}"),
    };
    format!("in the kernel, not to be interrupted (state D{place})")
}
