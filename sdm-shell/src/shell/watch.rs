//! `sdm stacks --watch`: the stacks are looked at again and again, and shown where they differ from the look before.

use std::time::{Duration, Instant};

use sdm_debug::command::AttachSpec;
use sdm_debug::{Command, TaskState};
use sdm_idset::IdSet;

use super::ending::StacksCode;
use super::model::open_commands::RunEnd;
use super::run::answer;
use super::{SessionHandle, Verdict, attach, diagnose, stacks};
use sdm_view::item::{Item, MergedStacks};
use sdm_view::render::set_text;

/// How often the line that tells what goes on is renewed.
const TURN: Duration = Duration::from_secs(1);

/// Attaches to processes without changing them and shows their merged stacks whenever they
/// differ, looking every `period`, until Ctrl-C or until all have ended; then leaves them. The
/// tasks run between two looks.
pub(super) async fn watch_stacks_of(
    session: &SessionHandle,
    spec: AttachSpec,
    full: bool,
    period: Duration,
) -> StacksCode {
    let all = session.all();
    let since = session.interrupts();
    let (verdict, attached) = attach::attach_quietly(session, spec, &all).await;
    if attached.is_empty() || session.is_over() {
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
        let enough = !look_again(session, &attached, &mut watch).await;
        let standing = session.standing().intersection(&attached);
        if standing.is_empty() || session.is_over() || session.interrupted_since(since) || enough {
            break;
        }
        session.send_unattended("stacks", &standing, &Command::Continue, RunEnd::Hidden);
        seen_enough = let_pass(session, &watch, period).await;
        let running = session.running().intersection(&attached);
        if !diagnose::stop_quietly(session, "stacks", &running, since).await
            || seen_enough
            || session.is_over()
        {
            break;
        }
    }
    session.status(None);
    let standing = session.standing().intersection(&attached);
    if !standing.is_empty() && !session.is_over() {
        session
            .ask_quietly("detach", &standing, &Command::Detach)
            .await;
    }
    let is_dead = |state: &TaskState| *state == TaskState::GdbDead;
    let unseen = session.read(|model| model.tasks.in_state(is_dead).union(&model.tasks.lost()));
    match watch.shown {
        _ if seen_enough || session.interrupted_since(since) => StacksCode::Interrupted,
        Some(_) if !unseen.is_disjoint(&attached) => StacksCode::Error,
        Some(stacks) if verdict == Verdict::Done => StacksCode::Agree.of_stacks(Some(&stacks)),
        Some(_) => StacksCode::Error,
        None => stacks::code_of_nothing(session, since),
    }
}

/// Looks at those who stand, and shows what differs from the last look; false where a person
/// gave up waiting for it.
async fn look_again(session: &SessionHandle, attached: &IdSet, watch: &mut Watch) -> bool {
    let seconds = (session.now() - watch.began).as_secs();
    let gone = attached.difference(&session.read(|model| model.tasks.live()));
    let left = gone.difference(&watch.gone);
    if !left.is_empty() {
        let rows = session.read(|model| model.tasks.rank_rows(&left));
        session.say(&format!("after {seconds} s: gone: {}", set_text(&left, 60)));
        session.show(&Item::Ranks(rows));
        watch.gone = gone;
    }
    let standing = session.standing().intersection(attached);
    if standing.is_empty() {
        return true;
    }
    let stacks = Command::Stacks { full: watch.full };
    let (verdict, open) = session.ask_quietly("stacks", &standing, &stacks).await;
    let Some(open) = open.filter(|_| verdict != Verdict::GivenUp) else {
        return false;
    };
    watch.looks += 1;
    let stacks = open.gathered.stacks();
    if stacks.is_none() || stacks == watch.shown {
        return true;
    }
    watch.changed = session.now();
    watch.shown = stacks;
    session.say(&format!("after {seconds} s:"));
    session.show(&answer(open.gathered, watch.full));
    true
}

/// Lets the time until the next look pass; true where a person has seen enough.
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
            "watching: {} looks, unchanged for {} s; ^C ends it",
            watch.looks,
            (now - watch.changed).as_secs()
        );
        session.status(Some(&line));
        session.turn(Some(until.min(now + TURN))).await;
    }
}

/// What was seen so far.
struct Watch {
    /// Stacks are shown as a whole.
    full: bool,
    began: Instant,
    /// When the stacks last differed from those before.
    changed: Instant,
    /// How many looks there were.
    looks: u64,
    /// The stacks that were shown last.
    shown: Option<MergedStacks>,
    /// The tasks that were said to be gone.
    gone: IdSet,
}
