//! Reading the stacks of processes: without a debugger where possible, otherwise by gdb.

use sdm_debug::command::{AttachSpec, LookSpec};
use sdm_debug::{Command, FailureCode};
use sdm_idset::IdSet;
use sdm_view::coalesce::join;
use sdm_view::item::{Gathered, Happening, Item};

use super::model::open_commands::OpenCommand;
use super::{SessionHandle, Verdict, ask, attach, run};

/// The way in which stacks are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LookBy {
    /// Without gdb: the process stops for an instant. gdb attaches where that is not supported.
    #[default]
    Snapshot,
    /// gdb takes all samples.
    Gdb,
}

/// Says that gdb samples those of these tasks that it is attached to, where others are sampled without it.
pub(super) fn say_attached(session: &SessionHandle, to: &IdSet, free: &IdSet) {
    let rest = session.standing().intersection(&to.difference(free));
    let rest = rest.difference(&session.read(|model| model.job.seized.clone()));
    if !free.is_empty() && !rest.is_empty() {
        say_by_gdb(session, &rest, "gdb is attached already");
    }
}

/// Says that gdb samples these tasks.
pub(super) fn say_by_gdb(session: &SessionHandle, tasks: &IdSet, why: &str) {
    session.show(&Item::Happened {
        tasks: tasks.clone(),
        what: Happening::Notice(format!("sampling by gdb, which takes longer: {why}")),
    });
}

/// A reader of the stacks of processes, which can be used repeatedly.
pub(super) struct Look {
    spec: AttachSpec,
    full: bool,
    /// Tasks that are read without gdb.
    free: IdSet,
    /// Tasks that gdb is attached to.
    attached: IdSet,
    /// Tasks that were found to have ended.
    ended: IdSet,
    /// True if not all stacks could be read.
    has_failed: bool,
}

impl Look {
    /// A reader for all processes of an attachment. With [`LookBy::Gdb`], gdb attaches to them at once.
    pub(super) async fn new(
        session: &SessionHandle,
        spec: AttachSpec,
        full: bool,
        by: LookBy,
    ) -> Self {
        let all = session.all();
        attach::announce(session, &spec, &all);
        let mut look = Self::of(spec, all, full);
        if by == LookBy::Gdb {
            let all = std::mem::take(&mut look.free);
            look.attach(session, &all).await;
        }
        look
    }

    /// A reader for these processes of an attachment, which gdb is not attached to.
    pub(super) fn of(spec: AttachSpec, free: IdSet, full: bool) -> Self {
        Self {
            spec,
            full,
            free,
            attached: IdSet::new(),
            ended: IdSet::new(),
            has_failed: false,
        }
    }

    /// True if no process is left to read.
    pub(super) fn is_over(&self) -> bool {
        self.free.is_empty() && self.attached.is_empty()
    }

    /// The tasks that are read without gdb.
    pub(super) fn free(&self) -> &IdSet {
        &self.free
    }

    /// The tasks that gdb is attached to.
    pub(super) fn attached(&self) -> &IdSet {
        &self.attached
    }

    /// The tasks that were found to have ended.
    pub(super) fn ended(&self) -> &IdSet {
        &self.ended
    }

    /// True if not all stacks could be read.
    pub(super) fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Reads the stacks of all tasks. None if a query gave no result, for example because the user has interrupted it.
    pub(super) async fn take(&mut self, session: &SessionHandle) -> Option<Gathered> {
        let mut gathered = Gathered::default();
        if !self.free.is_empty() {
            let spec = LookSpec {
                pids: self.spec.pids.clone(),
                full: self.full,
                probe: None,
            };
            let free = self.free.clone();
            let (verdict, open) = session
                .ask_quietly("stacks", &free, &Command::Look(spec))
                .await;
            let open = open.filter(|_| verdict != Verdict::GivenUp)?;
            gathered = self.sort(session, open).await;
        }
        let standing = session.standing().intersection(&self.attached);
        if standing.is_empty() || session.is_over() {
            return Some(gathered);
        }
        let stacks = Command::Stacks { full: self.full };
        let (verdict, open) = session.ask_quietly("stacks", &standing, &stacks).await;
        self.has_failed |= verdict != Verdict::Done;
        let open = open.filter(|_| verdict != Verdict::GivenUp)?;
        gathered.absorb(open.gathered);
        Some(gathered)
    }

    /// Returns the stacks that were read without gdb, and attaches gdb to the tasks for which that is not
    /// supported.
    async fn sort(&mut self, session: &SessionHandle, open: OpenCommand) -> Gathered {
        let mut gathered = open.gathered;
        let mut wanted = IdSet::new();
        for (tasks, failure) in std::mem::take(&mut gathered.failed) {
            match failure.code {
                FailureCode::Unsupported => {
                    say_by_gdb(session, &tasks, &failure.text);
                    wanted.union_with(&tasks);
                }
                FailureCode::NotRunning => self.ended.union_with(&tasks),
                _ => self.has_failed = true,
            }
            if failure.code != FailureCode::Unsupported {
                join(&mut gathered.failed, &tasks, failure);
            }
        }
        self.has_failed |= !gathered.missing.is_empty() || !gathered.lost.is_empty();
        self.free.subtract(&self.ended);
        self.free.subtract(&wanted);
        self.free.subtract(&gathered.lost);
        if !wanted.is_empty() && !session.is_over() {
            self.attach(session, &wanted).await;
        }
        gathered
    }

    async fn attach(&mut self, session: &SessionHandle, to: &IdSet) {
        let own = session.read(|model| model.job.seized.intersection(to));
        if !own.is_empty() {
            run::stop(session, &own).await;
            self.attached.union_with(&own);
            return;
        }
        let spec = attach::among(&self.spec, to);
        let (verdict, attached) = attach::attach_unannounced(session, spec, to).await;
        self.has_failed |= verdict != Verdict::Done;
        self.attached.union_with(&attached);
    }

    /// Detaches from the tasks that gdb is attached to.
    pub(super) async fn leave(&mut self, session: &SessionHandle) {
        if let Some(open) = self.leave_quietly(session).await {
            ask::show_unless_all_well(session, open);
        }
    }

    /// Detaches like [`Look::leave`], and returns the result instead of showing it. None if gdb was attached to no live
    /// task, or the session is over.
    pub(super) async fn leave_quietly(&mut self, session: &SessionHandle) -> Option<OpenCommand> {
        let live = session.read(|model| model.tasks.live());
        let attached = self.attached.intersection(&live);
        if attached.is_empty() || session.is_over() {
            return None;
        }
        let (verdict, open) = session
            .ask_quietly("detach", &attached, &Command::Detach)
            .await;
        self.has_failed |= verdict != Verdict::Done;
        open
    }
}
