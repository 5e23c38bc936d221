//! `diagnose`: samples the stacks a few times while the tasks run in between, and judges which ranks are
//! stuck.

mod absent;
mod sample;
mod stuck;

use std::cell::Cell;
use std::time::Duration;

use sdm_debug::command::{AttachSpec, ProbeSpec};
use sdm_debug::probe::{ArgumentRole, CallArgument};
use sdm_debug::{Command, FailureCode};
use sdm_diagnose::{Diagnosis, Observed, Step, judge};
use sdm_idset::IdSet;

use super::invocation::Invocation;
use super::look::{LookBy, say_attached, say_by_gdb};
use super::model::open_commands::RunEnd;
use super::{SessionHandle, Verdict, ask, attach};
use absent::{is_job_control, note_abort, note_absent, note_ended, note_outside};
use sample::{BETWEEN, HALTED, LookResult, Sampler, all_of, free, note_missed, where_stopped};
use sdm_view::coalesce::join;
use sdm_view::item::{Gathered, Item};

pub use sample::Looks;
pub(super) use sample::stop_quietly;
pub(super) use stuck::proof_of_hang;

/// The command name of `sdm diagnose` in queries.
const LINE: &str = "diagnose";

/// The outcome of `sdm diagnose`.
#[derive(Clone, Debug, PartialEq)]
pub enum Diagnosed {
    /// A judgement, with the observations that it rests on.
    Judged(Box<(Diagnosis, Observed)>),
    /// No process could be sampled, or the session is over.
    Unseen,
    /// Interrupted by the user.
    Interrupted,
}

/// Maximum number of repeated observations, where one was incomplete, was too short to judge or had not settled.
const AGAIN: u32 = 2;

/// Factor for the time between samples where it is unknown which rank is waited for. A large message in
/// transit looks the same.
const LONGER: u32 = 6;

/// Factor for the time between samples where tasks got no processor in between, by the kernel's count of their time. On
/// a loaded host that lasts for seconds. This waits for evidence and not for a verdict: the last look's judgement is
/// the answer, whatever it is. A task that still had no processor is not judged, and is named.
const LONGEST: u32 = 15;

/// Carries out `diagnose [SAMPLES] [for SECONDS]`.
pub(super) async fn diagnose(
    session: &SessionHandle,
    said: &Invocation<'_>,
    (samples, seconds): (u32, Option<u32>),
) -> Verdict {
    let looks = Looks::of(samples, seconds);
    let (free, spec) = session.read(|model| model.without_gdb(&said.to));
    let mut subject = Subject {
        line: said.line,
        spec,
        to: said.to.clone(),
        free,
        first: None,
    };
    say_attached(session, &subject.to, &subject.free);
    let found = subject.judged(session, looks, Observed::default()).await;
    let Some((found, _)) = found.filter(|_| !session.is_over()) else {
        return Verdict::GivenUp;
    };
    session.show(&Item::Diagnosis(found));
    Verdict::Done
}

/// Samples processes without changing them, judges which are stuck, and detaches. `observed` has the
/// observations made before.
pub(super) async fn diagnose_target(
    session: &SessionHandle,
    spec: AttachSpec,
    (looks, by): (Looks, LookBy),
    observed: Observed,
) -> Diagnosed {
    let all = session.all();
    let since = session.interrupts();
    attach::announce(session, &spec, &all);
    let mut subject = Subject {
        line: LINE,
        spec,
        to: IdSet::new(),
        free: IdSet::new(),
        first: None,
    };
    match by {
        LookBy::Snapshot => subject.look_first(session, &all, (looks, &observed)).await,
        LookBy::Gdb => subject.attach(session, &all).await,
    }
    if subject.to.is_empty() || session.is_over() {
        return undiagnosed(session, since);
    }
    let mut found = None;
    if !session.interrupted_since(since) {
        found = subject.judged(session, looks, observed).await;
    }
    if let Some((found, _)) = found.as_ref().filter(|_| !session.is_over()) {
        session.show(&Item::Diagnosis(found.clone()));
    }
    let standing = session.standing().intersection(&subject.to);
    session
        .ask_quietly("detach", &standing, &Command::Detach)
        .await;
    // Before two samples only the end of every process is known.
    let is_judged = |found: &Diagnosis| {
        found.samples >= 2 || looks.samples < 2 || found.step == Step::NoHangSeen
    };
    match found.filter(|(found, _)| is_judged(found) && !session.is_over()) {
        Some(found) => Diagnosed::Judged(Box::new(found)),
        None => undiagnosed(session, since),
    }
}

/// The tasks of a diagnosis.
struct Subject<'a> {
    /// The command line of the diagnosis.
    line: &'a str,
    spec: AttachSpec,
    to: IdSet,
    /// The tasks of `to` that gdb is not attached to.
    free: IdSet,
    /// The first sample, taken without gdb. None if there is none.
    first: Option<LookResult>,
}

impl Subject<'_> {
    /// Samples all tasks once without gdb, except those that are known to be stopped or to have ended. Attaches gdb to
    /// those that only gdb can sample.
    async fn look_first(
        &mut self,
        session: &SessionHandle,
        all: &IdSet,
        (looks, observed): (Looks, &Observed),
    ) {
        let sampler = Sampler {
            session,
            line: self.line,
            since: session.interrupts(),
            free: &self.spec.pids,
            first: Cell::default(),
        };
        let apart = all_of(&observed.halted).union(&all_of(&observed.gone));
        let spec = ProbeSpec {
            compare: false,
            waits: looks.samples == 1,
        };
        let (probes, failed) = sampler.probe(&all.difference(&apart), spec).await;
        let mut wanted = IdSet::new();
        let mut refused = Gathered::default();
        for (tasks, failure) in &failed {
            match failure.code {
                FailureCode::NotRunning => {}
                FailureCode::AttachFailed => join(&mut refused.failed, tasks, failure.clone()),
                _ => {
                    say_by_gdb(session, tasks, &failure.text);
                    wanted.union_with(tasks);
                }
            }
        }
        let left = IdSet::union_all(refused.failed.iter().map(|(tasks, _)| tasks));
        ask::show_rest(session, refused);
        self.to = all.difference(&wanted).difference(&left);
        self.free = self.to.clone();
        if wanted.is_empty() {
            self.first = Some((probes, failed));
        } else if !session.is_over() {
            self.attach(session, &wanted).await;
        }
    }

    /// The tasks of which gdb could read more, and the reason. None if there are none.
    fn wanting(&self, (found, observed): &(Diagnosis, Observed)) -> Option<(IdSet, &'static str)> {
        if !found.doubtful.is_disjoint(&self.free) {
            let why = "running ranks share memory with the waiting ranks";
            return Some((self.free.clone(), why));
        }
        let waits = &observed.samples.last()?.waits;
        let unread = waits.iter().filter(|(_, waits)| {
            let call = waits.call.as_ref();
            call.is_some_and(|call| call.arguments.iter().any(is_unread))
        });
        let unread = IdSet::union_all(unread.map(|(tasks, _)| tasks)).intersection(&self.free);
        let is_wanted = found.step != Step::NoHangSeen && !unread.is_empty();
        is_wanted.then_some((
            unread,
            "not all arguments of the call can be read without gdb",
        ))
    }

    async fn attach(&mut self, session: &SessionHandle, to: &IdSet) {
        // A rank that the session has started gets its gdb where the first sample stops it.
        let own = seized(session, to);
        self.to.union_with(&own);
        let to = &to.difference(&own);
        if to.is_empty() {
            return;
        }
        let spec = attach::among(&self.spec, to);
        let attached = attach::attach_unannounced(session, spec, to).await.1;
        self.to.union_with(&attached);
    }

    /// Judges, without gdb for the tasks that have none. If gdb could read more of these tasks, it attaches to them,
    /// and the judgement is repeated. None if the user has interrupted it.
    async fn judged(
        &mut self,
        session: &SessionHandle,
        looks: Looks,
        observed: Observed,
    ) -> Option<(Diagnosis, Observed)> {
        let found = self.diagnose(session, looks, observed.clone()).await?;
        let wanting = self.wanting(&found).filter(|_| !session.is_over());
        let Some((tasks, why)) = wanting else {
            return Some(found);
        };
        say_by_gdb(session, &tasks, why);
        self.free.subtract(&tasks);
        self.to.subtract(&tasks);
        let own = seized(session, &tasks);
        self.attach(session, &tasks).await;
        let by_gdb = self.diagnose(session, looks, observed).await;
        // The tasks run again without gdb, as before.
        let standing = session.standing().intersection(&tasks).difference(&own);
        session
            .ask_quietly("detach", &standing, &Command::Detach)
            .await;
        session.edit(|model| model.job.unattached.union_with(&standing));
        // What was judged without gdb stands where gdb has sampled nothing.
        by_gdb.map(|by_gdb| if by_gdb.0.samples < 2 { found } else { by_gdb })
    }

    async fn diagnose(
        &mut self,
        session: &SessionHandle,
        looks: Looks,
        observed: Observed,
    ) -> Option<(Diagnosis, Observed)> {
        let free = attach::among(&self.spec, &self.free).pids;
        let sampler = Sampler {
            session,
            line: self.line,
            since: session.interrupts(),
            free: &free,
            first: Cell::new(self.first.take()),
        };
        diagnosis(&self.to, &sampler, looks, observed).await
    }
}

/// The tasks among these that the session has started without gdb.
fn seized(session: &SessionHandle, among: &IdSet) -> IdSet {
    session.read(|model| model.job.seized.intersection(among))
}

/// True for an argument that names a peer and has no value. Constants of MPI need no value.
fn is_unread(argument: &CallArgument) -> bool {
    use ArgumentRole as R;
    let names = matches!(
        argument.role,
        R::Source | R::Destination | R::Root | R::Tag | R::ReceiveTag | R::Requests
    );
    let is_known = argument.number.is_some() || argument.value.is_some();
    names && !is_known && !argument.expression.starts_with("MPI_")
}

fn undiagnosed(session: &SessionHandle, since: u64) -> Diagnosed {
    if session.interrupted_since(since) && !session.is_over() {
        Diagnosed::Interrupted
    } else {
        Diagnosed::Unseen
    }
}

/// Samples tasks and judges the observations, which are returned too; `known` has those made before. None
/// if the user has interrupted it, because an incomplete observation proves nothing.
async fn diagnosis(
    to: &IdSet,
    sampler: &Sampler<'_>,
    mut looks: Looks,
    known: Observed,
) -> Option<(Diagnosis, Observed)> {
    let (session, since) = (sampler.session, sampler.since);
    session.edit(|model| model.open.set_run_end(RunEnd::Looked));
    let ran = session.running().intersection(to);
    let mut known = known;
    session.read(|model| {
        known.unranked |= model.options.unranked;
        known.strict_sends |= model.options.strict_sends;
        known.outside.union_with(&model.options.outside);
    });
    let mut found = None;
    for _ in 0..=AGAIN {
        // Tasks that did not stop in time in the previous pass may stop now.
        let running = session.running().intersection(to);
        let running = running.difference(&sampler.free_tasks());
        stop_quietly(session, sampler.line, &running, since).await;
        let mut observed = known.clone();
        note_absent(session, to, &mut observed);
        note_outside(session, to, &mut observed);
        let held = to.difference(&sampler.free_tasks());
        let mut looked = let_run_between(session, &held, &mut observed);
        let apart = all_of(&observed.halted).union(&all_of(&observed.gone));
        looked.union_with(&sampler.free_tasks().difference(&apart));
        let missed = sampler.sample((&looked, looks), &mut observed).await;
        note_ended(session, &looked, &mut observed);
        note_abort(session, to, &mut observed);
        let is_whole = note_missed(missed, &mut observed);
        let mut judged = judge(&observed);
        if look_at_doubtful(sampler, &judged, (&looked, &mut observed)).await {
            judged = judge(&observed);
        }
        let longer = longer(looks, &judged, &observed);
        let is_enough = is_whole && has_settled(&observed, &judged) && longer.is_none();
        found = Some((judged, observed));
        looks.between = longer.unwrap_or(looks.between);
        if is_enough || session.is_over() || session.interrupted_since(since) {
            break;
        }
    }
    session.edit(|model| model.open.set_run_end(RunEnd::Shown));
    let going_on = ran.intersection(&free(session));
    if !going_on.is_empty() && !session.is_over() {
        session.send_unattended(sampler.line, &going_on, &Command::Continue, RunEnd::Shown);
    }
    found.filter(|_| !session.interrupted_since(since))
}

/// Returns a longer interval between samples where the last one was too short to judge. None if it
/// sufficed, or was the longest.
fn longer(looks: Looks, judged: &Diagnosis, observed: &Observed) -> Option<Duration> {
    let steps: &[u32] = match () {
        () if !observed.starved().is_empty() => &[LONGER, LONGEST],
        () if judged.is_guessed() => &[LONGER],
        () => &[],
    };
    let mut times = steps.iter().map(|factor| BETWEEN * *factor);
    times.find(|time| looks.between < *time)
}

/// Lets only the doubtful tasks run, and samples them. These would be proved deadlocked if no other running task could
/// change memory that they share. Returns true if they were sampled.
async fn look_at_doubtful(
    sampler: &Sampler<'_>,
    judged: &Diagnosis,
    (looked, observed): (&IdSet, &mut Observed),
) -> bool {
    let session = sampler.session;
    let doubtful = judged.doubtful.intersection(looked);
    if !sampler.free.is_empty() || doubtful.is_empty() || looked.is_subset(&doubtful) {
        return false;
    }
    sampler.run_for(&doubtful, BETWEEN).await;
    if session.is_over() || session.interrupted_since(sampler.since) {
        return false;
    }
    let spec = ProbeSpec {
        compare: true,
        waits: false,
    };
    let (alone, _) = sampler.probe(&doubtful, spec).await;
    observed.add_alone(&doubtful, &alone);
    true
}

/// False if the last two samples alone would prove something else than all of them, or leave fewer tasks to
/// wait for. Some tasks have then only just begun to wait.
fn has_settled(observed: &Observed, found: &Diagnosis) -> bool {
    let earlier = observed.samples.len().saturating_sub(2);
    if earlier == 0 {
        return true;
    }
    let mut late = observed.clone();
    late.samples.drain(..earlier);
    let late = judge(&late);
    match (late.step, found.step) {
        (late_step, step) if late_step.is_proved() => {
            late_step == step && late.suspects == found.suspects
        }
        (Step::HeldUp, Step::HeldUp) => {
            late.held_up_by == found.held_up_by || !late.held_up_by.is_subset(&found.held_up_by)
        }
        _ => true,
    }
}

/// The tasks that may run between samples. Tasks at a breakpoint or behind a step stay stopped, and so do
/// those that a signal has stopped.
fn let_run_between(session: &SessionHandle, to: &IdSet, observed: &mut Observed) -> IdSet {
    let free = free(session);
    let standing = session.standing().intersection(to);
    let by_signal = where_stopped(session, is_job_control).intersection(&standing);
    if !by_signal.is_empty() {
        join(&mut observed.halted, &by_signal, HALTED.to_owned());
    }
    let halted = all_of(&observed.halted);
    let free = free.difference(&halted);
    let gone = all_of(&observed.gone);
    let stood = standing.difference(&free).difference(&gone);
    let stood = stood.difference(&halted);
    if !stood.is_empty() {
        let what = "stopped before the diagnosis, and not resumed".to_owned();
        join(&mut observed.stood, &stood, what);
    }
    let still_running = session.running().intersection(to);
    if !still_running.is_empty() {
        let what = "the process could not be stopped".to_owned();
        join(&mut observed.unseen, &still_running, what);
    }
    standing.intersection(&free)
}
