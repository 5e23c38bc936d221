//! `sdm stacks --watch`: reads the stacks repeatedly, and shows them whenever they have changed.

use std::time::{Duration, Instant};

use sdm_debug::command::AttachSpec;
use sdm_debug::{Command, FailureCode, TaskState};
use sdm_idset::IdSet;

use super::exit::StacksCode;
use super::look::{Look, LookBy};
use super::model::open_commands::RunEnd;
use super::run::answer;
use super::{SessionHandle, diagnose, stacks};
use sdm_view::item::{Happening, Item, MergedStacks};

/// Interval between two updates of the status line.
const TURN: Duration = Duration::from_secs(1);

/// Reads the stacks of processes every `period` without changing them, and shows the merged stacks whenever
/// they have changed. Ends on Ctrl-C or when all processes have ended, and detaches. The tasks run in
/// between.
pub(super) async fn watch_stacks_of(
    session: &SessionHandle,
    spec: AttachSpec,
    full: bool,
    by: LookBy,
    period: Duration,
) -> StacksCode {
    let since = session.interrupts();
    let mut look = Look::new(session, spec, full, by).await;
    if look.is_over() || session.is_over() {
        return stacks::code_of_nothing(session, since);
    }
    session.edit(|model| model.open.set_run_end(RunEnd::Hidden));
    let mut watch = Watch {
        full,
        began: session.now(),
        changed: session.now(),
        looks: 0,
        shown: None,
        gone: IdSet::new(),
    };
    let mut seen_enough = false;
    while !session.interrupted_since(since) {
        let enough = !look_again(session, &mut look, &mut watch).await;
        let standing = session.standing().intersection(look.attached());
        let is_over = look.free().is_empty() && standing.is_empty();
        if is_over || session.is_over() || session.interrupted_since(since) || enough {
            break;
        }
        if !standing.is_empty() {
            session.send_unattended("stacks", &standing, &Command::Continue, RunEnd::Hidden);
        }
        seen_enough = let_pass(session, &watch, period).await;
        let running = session.running().intersection(look.attached());
        let stopped =
            running.is_empty() || diagnose::stop_quietly(session, "stacks", &running, since).await;
        if !stopped || seen_enough || session.is_over() {
            break;
        }
    }
    session.status(None);
    look.leave_quietly(session).await;
    let is_dead = |state: &TaskState| *state == TaskState::GdbDead;
    let unseen = session.read(|model| model.tasks.in_state(is_dead).union(&model.tasks.lost()));
    let is_unseen = !unseen.is_disjoint(&look.attached().union(look.free()));
    match watch.shown {
        _ if seen_enough || session.interrupted_since(since) => StacksCode::Interrupted,
        Some(_) if look.has_failed() || is_unseen => StacksCode::Error,
        Some(stacks) => StacksCode::Agree.of_stacks(Some(&stacks)),
        None => stacks::code_of_nothing(session, since),
    }
}

/// Reads the stacks, and shows them if they have changed. Returns false if the user has interrupted it.
async fn look_again(session: &SessionHandle, look: &mut Look, watch: &mut Watch) -> bool {
    let Some(mut gathered) = look.take(session).await else {
        return false;
    };
    let seconds = (session.now() - watch.began).as_secs();
    let live = session.read(|model| model.tasks.live());
    let gone = look.attached().difference(&live).union(look.ended());
    let left = gone.difference(&watch.gone);
    if !left.is_empty() {
        // How a process ended is known only where gdb traced it.
        let told = left.difference(look.ended());
        let what = match told.is_empty() {
            true => "the process has ended",
            false => "ended or detached",
        };
        let what = Happening::Notice(format!("{what}, after {seconds} s"));
        session.show(&Item::Happened { tasks: left, what });
        if !told.is_empty() {
            let rows = session.read(|model| model.tasks.rank_rows(&told, &model.job.unattached));
            session.show(&Item::Ranks(rows));
        }
        watch.gone = gone;
    }
    watch.looks += 1;
    let stacks = gathered.stacks();
    if stacks.is_none() || stacks == watch.shown {
        return true;
    }
    watch.changed = session.now();
    watch.shown = stacks;
    session.say(&format!("after {seconds} s:"));
    // The end of these tasks has been shown already.
    gathered
        .failed
        .retain(|(_, failure)| failure.code != FailureCode::NotRunning);
    session.show(&answer(gathered, watch.full));
    true
}

/// Waits for the time of the next sample. Returns true if the user has interrupted the watch.
async fn let_pass(session: &SessionHandle, watch: &Watch, period: Duration) -> bool {
    let until = session.now() + period;
    loop {
        if session.take_break().is_some() {
            return true;
        }
        let now = session.now();
        if now >= until || session.is_over() {
            return false;
        }
        let line = format!(
            "watching the stacks: {} samples, unchanged for {} s; ^C ends this",
            watch.looks,
            (now - watch.changed).as_secs()
        );
        session.status(Some(&line));
        session.turn(Some(until.min(now + TURN))).await;
    }
}

/// State of a watch.
struct Watch {
    /// True if stacks are shown in full.
    full: bool,
    began: Instant,
    /// Time of the last change of the stacks.
    changed: Instant,
    /// Number of samples taken so far.
    looks: u64,
    /// The last shown stacks; None before the first.
    shown: Option<MergedStacks>,
    /// The tasks that were reported as ended or detached.
    gone: IdSet,
}
