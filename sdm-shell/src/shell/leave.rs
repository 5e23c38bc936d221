//! The end of a session whose programs run on.
//!
//! What was started and then detached still prints through the session, and its launcher waits for
//! the session's servers: so `sdm` stays, as the launcher itself would, until these have ended.

use std::time::Duration;

use sdm_debug::{Command, EndPolicy, TaskState};
use sdm_idset::IdSet;
use sdm_session::Debug;
use sdm_view::item::{Happening, Item};
use sdm_view::render::set_text;

use super::flow::Ending;
use super::wait::{Goal, Waited};
use super::{Over, Shell};

/// How long a launcher may take to end when all that it started has.
const LAUNCHER_WAIT: Duration = Duration::from_secs(10);

impl<D: Debug> Shell<D> {
    /// Detaches what lives, where the session is to end so, and stays with what was started and
    /// detached until it has ended; Ctrl-C kills it.
    pub fn leave(&mut self, mut ending: Ending) -> Ending {
        self.show_told();
        let wanted = matches!(self.over, None | Some(Over::Quit(_)));
        if !self.options.is_ours() || !wanted {
            return ending;
        }
        let over = self.over.take();
        if ending.policy == EndPolicy::Detach && self.detach_all() {
            // There is nothing left to be ended otherwise.
            ending.policy = EndPolicy::KillStarted;
        }
        let left = self.left_running();
        if !left.is_empty() {
            let who = set_text(&left, 60);
            let text = format!("{who} run on; sdm stays until they have ended, ^C kills them");
            self.show(&Item::Notice(text));
            let waited = self.wait_for(&Goal::Gone(left.clone()), "detached", None);
            if waited != Waited::Over {
                self.settle(&self.ended_among(&left));
            }
            self.show_held();
        }
        if self.options.controlled && self.tasks.live().is_empty() {
            // It ends by itself, behind what it has to forward and to say.
            let until = Some(self.now() + LAUNCHER_WAIT);
            self.wait_for(&Goal::LauncherOver, "quit", until);
            self.show_held();
            self.show_gone();
        }
        self.over = self.over.take().or(over);
        if let Some(Over::Terminated(signal)) = self.over {
            ending.code = 128 + signal;
            ending.reason = Some(format!("signal {signal}"));
        }
        ending
    }

    /// Started programs that were detached and have not ended.
    pub(super) fn left_running(&self) -> IdSet {
        if self.launcher_over {
            return IdSet::new();
        }
        let left = self.tasks.in_state(|state| *state == TaskState::Detached);
        left.difference(self.tasks.lost())
    }

    /// Detaches what lives; true where all of it was.
    fn detach_all(&mut self) -> bool {
        let live = self.tasks.live();
        if live.is_empty() {
            return true;
        }
        let id = self.send("detach", &live, &Command::Detach);
        self.wait_for(&Goal::Answered(id), "detach", None);
        let Some(open) = self.open.remove(id) else {
            return false;
        };
        let done = open.plainly_done();
        self.happened(&done, Happening::Detached, true);
        if open.has_failed() {
            self.show(&Item::Answer(open.gathered));
        }
        live.is_subset(&done)
    }
}
