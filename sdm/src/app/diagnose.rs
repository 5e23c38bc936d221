//! The command `sdm diagnose`, for running processes and for recorded observations.

use std::path::Path;
use std::time::Duration;

use sdm_debug::EndPolicy;
use sdm_diagnose::{OBSERVATIONS_BYTES_MAX, Observations, Observed, dot};
use sdm_idset::{IdSet, TaskId};
use sdm_shell::{Diagnosed, Ending, Looks, StacksCode};
use sdm_system::{files, proc};
use sdm_view::coalesce::join;
use sdm_view::item::Item;
use sdm_view::render::Names;

use super::attach::{look_up, open_to_look};
use super::error::AppError;
use super::explain::named;
use super::opener::Opener;
use super::view::{give_up, view, write};
use crate::cli::DiagnoseArgs;
use crate::sink;

/// The exit code of a failure.
const ERROR: u8 = 2;

/// Samples a job's stacks several times, shows the diagnosis, and detaches; or judges recorded observations
/// (`--replay`).
pub(super) fn diagnose<O: Opener>(args: &DiagnoseArgs, opener: &mut O) -> u8 {
    match try_diagnose(args, opener) {
        Ok(code) => code,
        Err(error) => give_up(args.target.json, ERROR, named(&error)),
    }
}

fn try_diagnose<O: Opener>(args: &DiagnoseArgs, opener: &mut O) -> Result<u8, AppError> {
    if let Some(path) = &args.replay {
        return replay(path, args);
    }
    let attachment = look_up(&args.target, true)?;
    // Observed before gdb attaches: afterwards every process is stopped by its tracer.
    let mut observed = observed(&attachment.pids_here());
    observed.outside = attachment.known.difference(&attachment.ended);
    if !attachment.ended.is_empty() {
        let what = "ended: the process no longer exists".to_owned();
        join(&mut observed.gone, &attachment.ended, what);
    }
    let (mut shell, spec, _) = open_to_look(&args.target, attachment, opener)?;
    let looks = Looks::of(args.samples, args.seconds);
    let (code, reason) = match shell.diagnose_target(spec, (looks, args.by.into()), observed) {
        Diagnosed::Judged(judged) => {
            let (found, observed) = *judged;
            write(args.dot.as_deref(), || dot(&found));
            let code = found.step.exit_code();
            let text = || Observations::new(observed, &found).encode();
            write(args.observations.as_deref(), text);
            (code, None)
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
    Ok(super::command_source::end(shell, opener, ending))
}

/// Judges a file of observations, and shows the diagnosis.
fn replay(path: &Path, args: &DiagnoseArgs) -> Result<u8, AppError> {
    let text = files::open(path).and_then(|file| files::text_of(file, OBSERVATIONS_BYTES_MAX));
    let text = text.map_err(|source| AppError::File {
        path: path.to_owned(),
        source,
    })?;
    let kept = Observations::decode(&text).map_err(|source| AppError::Observations {
        path: path.to_owned(),
        source,
    })?;
    let found = kept.judge();
    write(args.dot.as_deref(), || dot(&found));
    let code = sink::exit_code(found.step.exit_code());
    let json = args.target.json;
    let mut view = view(json, Names::ranks(), None);
    view.show(Duration::ZERO, &Item::Diagnosis(found));
    if json {
        view.show(Duration::ZERO, &Item::End { code, reason: None });
    }
    Ok(code)
}

/// The kernel's state of processes before any sample.
fn observed(pids: &[(u32, i32)]) -> Observed {
    let mut observed = Observed::default();
    for (task, pid) in pids {
        let tasks = IdSet::single(TaskId(*task));
        observed.pids.insert(*pid, TaskId(*task));
        let process = proc::of(*pid).living();
        let Some(state) = process.state() else {
            continue;
        };
        let (list, what) = match state.0 {
            'T' => (
                &mut observed.halted,
                "stopped by a signal before the diagnosis began (process state T)".to_owned(),
            ),
            'Z' => (
                &mut observed.gone,
                "ended, but not yet reaped by the parent process (zombie)".to_owned(),
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
    format!("in an uninterruptible wait in the kernel (process state D{place})")
}
