//! The end of a session whose programs keep running.
//!
//! Programs that were started and then detached still print through the session, and their launcher waits
//! for the session's servers. So `sdm` stays until they have ended, as the launcher itself would.

use std::time::Duration;

use sdm_debug::{Command, EndPolicy};

use super::exit::{Ending, told_to_end};
use super::model::Over;
use super::model::goal::{Goal, WaitOutcome};
use super::model::open_commands::RunEnd;
use super::{SessionHandle, ask, notices};
use sdm_view::item::{Happening, Item};
use sdm_view::render::Names;

/// Time limit for a launcher to end after all its processes have ended.
const LAUNCHER_WAIT: Duration = Duration::from_secs(10);

/// In a session that has started its programs, detaches living tasks if that is the ending's policy. Stays until
/// programs that were started and then detached have ended; Ctrl-C kills them.
pub(super) async fn leave(session: &SessionHandle, mut ending: Ending) -> Ending {
    notices::show_told(session);
    let stays = session
        .read(|model| model.options.is_ours() && matches!(model.over, None | Some(Over::Quit(_))));
    if !stays {
        return after_signal(session, ending);
    }
    let over = session.edit(|model| model.over.take());
    if ending.policy == EndPolicy::Detach && detach_all(session).await {
        // There is nothing left to be ended otherwise.
        ending.policy = EndPolicy::KillStarted;
    }
    let left = session.read(|model| model.left_running());
    if !left.is_empty() {
        let who = Names::ranks().label(&left, 60);
        let text = format!("still running: {who}; sdm waits until they have ended, ^C kills them");
        session.show(&Item::Notice(text));
        let waited = session
            .wait_for(&Goal::Gone(left.clone()), "detached", None)
            .await;
        if waited != WaitOutcome::Over {
            let ended = session.read(|model| model.tasks.ended_among(&left));
            ask::settle(session, &ended).await;
        }
        notices::show_held(session);
    }
    if session.read(|model| model.options.controlled && model.tasks.live().is_empty()) {
        // The launcher ends without a request, after it has forwarded its output.
        let until = Some(session.now() + LAUNCHER_WAIT);
        session.wait_for(&Goal::LauncherEnded, "quit", until).await;
        notices::show_held(session);
        notices::show_gone(session);
    }
    session.edit(|model| model.over = model.over.take().or(over));
    after_signal(session, ending)
}

/// Replaces the ending by that of a signal, if one has ended the session.
fn after_signal(session: &SessionHandle, ending: Ending) -> Ending {
    let Some(Over::Terminated(signal)) = session.read(|model| model.over.clone()) else {
        return ending;
    };
    let (code, reason) = told_to_end(signal);
    Ending {
        code,
        reason: Some(reason),
        ..ending
    }
}

/// Detaches all living tasks. Returns true if all were detached.
async fn detach_all(session: &SessionHandle) -> bool {
    let live = session.read(|model| model.tasks.live());
    if live.is_empty() {
        return true;
    }
    let id = session.send("detach", &live, &Command::Detach);
    session.wait_for(&Goal::Answered(id), "detach", None).await;
    let Some(open) = session.edit(|model| model.open.remove(id)) else {
        return false;
    };
    let done = open.plainly_done();
    session.happened(&done, Happening::Detached, RunEnd::Hidden);
    if open.has_failed() {
        session.show(&Item::Answer(open.gathered));
    }
    live.is_subset(&done)
}
