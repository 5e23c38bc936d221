//! `sdm stacks --watch`: one look after the other, shown where it differs from the one before.

use std::time::{Duration, Instant};

use sdm_debug::Command;
use sdm_debug::command::AttachSpec;
use sdm_idset::IdSet;
use sdm_session::Debug;
use sdm_view::item::{Item, MergedStacks};
use sdm_view::render::set_text;

use super::flow::StacksCode;
use super::run::answer;
use super::{Control, Shell, Verdict};

/// How often the line that tells what goes on is renewed.
const TURN: Duration = Duration::from_secs(1);

impl<D: Debug> Shell<D> {
    /// Attaches to processes without changing them and shows their merged stacks whenever they
    /// differ, looking every `period`, until Ctrl-C or until all have ended; then leaves them. The
    /// tasks run between two looks.
    pub fn watch_stacks_of(
        &mut self,
        spec: AttachSpec,
        full: bool,
        period: Duration,
    ) -> StacksCode {
        let all = self.debug.tasks().clone();
        self.interrupted = false;
        let (verdict, attached) = self.attach_quietly(spec, &all);
        if attached.is_empty() || self.over.is_some() {
            return self.code_of_nothing();
        }
        self.quiet_runs = true;
        self.open.hush_runs(true);
        let mut watch = Watch {
            full,
            began: self.now(),
            changed: self.now(),
            looks: 0,
            shown: None,
            gone: IdSet::new(),
        };
        while !self.interrupted {
            let enough = !self.look_again(&attached, &mut watch);
            let standing = self.standing().intersection(&attached);
            if standing.is_empty() || self.over.is_some() || self.interrupted || enough {
                break;
            }
            self.continue_quietly("stacks", &standing);
            let enough = self.let_pass(&watch, period);
            let running = self.tasks.running().intersection(&attached);
            if !self.stop_quietly("stacks", &running) || enough || self.over.is_some() {
                break;
            }
        }
        self.view.status(None);
        self.quiet_runs = false;
        self.open.hush_runs(false);
        let standing = self.standing().intersection(&attached);
        if !standing.is_empty() && self.over.is_none() {
            self.ask_quietly("detach", &standing, &Command::Detach);
        }
        match watch.shown {
            Some(stacks) if verdict == Verdict::Done && !stacks.agree() => StacksCode::Differ,
            Some(_) if verdict == Verdict::Done => StacksCode::Agree,
            Some(_) => StacksCode::Error,
            None => self.code_of_nothing(),
        }
    }

    /// Looks at those who stand, and shows what differs from the last look; false where a person
    /// gave up waiting for it.
    fn look_again(&mut self, attached: &IdSet, watch: &mut Watch) -> bool {
        let seconds = (self.now() - watch.began).as_secs();
        let gone = attached.difference(&self.tasks.live());
        let left = gone.difference(&watch.gone);
        if !left.is_empty() {
            let rows = self.tasks.rank_rows(&left);
            self.say(&format!("after {seconds} s: gone: {}", set_text(&left, 60)));
            self.show(&Item::Ranks(rows));
            watch.gone = gone;
        }
        let standing = self.standing().intersection(attached);
        if standing.is_empty() {
            return true;
        }
        let stacks = Command::Stacks { full: watch.full };
        let (verdict, open) = self.ask_quietly("stacks", &standing, &stacks);
        let Some(open) = open.filter(|_| verdict != Verdict::GivenUp) else {
            return false;
        };
        watch.looks += 1;
        let stacks = open.gathered.stacks();
        if stacks.is_none() || stacks == watch.shown {
            return true;
        }
        watch.changed = self.now();
        watch.shown = stacks;
        self.say(&format!("after {seconds} s:"));
        self.show(&answer(open.gathered, watch.full));
        true
    }

    /// Lets the time until the next look pass; true where a person has seen enough.
    fn let_pass(&mut self, watch: &Watch, period: Duration) -> bool {
        let until = self.now() + period;
        loop {
            let control = self.take_control();
            if matches!(control, Some(Control::Interrupt | Control::Suspend)) {
                return true;
            }
            let now = self.now();
            if now >= until || self.over.is_some() {
                return false;
            }
            let line = format!(
                "watching: {} looks, unchanged for {} s; ^C ends it",
                watch.looks,
                (now - watch.changed).as_secs()
            );
            self.view.status(Some(&line));
            self.pump(Some(until.min(now + TURN)));
        }
    }
}

/// What was seen so far.
struct Watch {
    full: bool,
    began: Instant,
    changed: Instant,
    looks: u64,
    shown: Option<MergedStacks>,
    gone: IdSet,
}
