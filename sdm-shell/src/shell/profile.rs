//! `sdm profile`, and the command `profile` for tasks without a gdb: samples processes many times a second, and
//! merges the samples.

use std::time::Duration;

use sdm_debug::command::{AttachSpec, LookSpec, SampleSpec};
use sdm_debug::rules::Merged;
use sdm_debug::{Command, Failure, FailureCode};
use sdm_idset::IdSet;
use sdm_view::item::{Gathered, Item};
use sdm_view::profile::Profile;
use sdm_view::render::Names;

use super::exit::StacksCode;
use super::invocation::Invocation;
use super::{SessionHandle, Verdict, attach, stacks};

/// Time after which servers report their samples. It bounds their memory, and lets the user stop early.
const PART: Duration = Duration::from_secs(1);
/// The rate of `profile` at the prompt, in samples per second.
const RATE: u32 = 10;

/// The duration and rate of sampling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampling {
    /// The duration of the sampling.
    pub span: Duration,
    /// The rate, in samples per second.
    pub rate: u32,
    /// True for unfolded stacks of every thread.
    pub full: bool,
}

/// Samples processes without changing them, and shows the merged call stacks. Ctrl-C shows the result so far. The
/// profile is None if there is no sample.
pub(super) async fn profile_of(
    session: &SessionHandle,
    spec: AttachSpec,
    sampling: Sampling,
) -> (StacksCode, Option<Box<Profile>>) {
    let all = session.all();
    attach::announce(session, &spec, &all);
    sample(session, &spec, &all, sampling).await
}

/// `profile [SECONDS]`: samples tasks that gdb is not attached to.
pub(super) async fn profile(
    session: &SessionHandle,
    said: &Invocation<'_>,
    seconds: u32,
) -> Verdict {
    let (free, spec) = session.read(|model| model.without_gdb(&said.to));
    let rest = said.to.difference(&free);
    if !rest.is_empty() {
        let who = Names::ranks().label(&rest, 60);
        let message = format!(
            "profile: not sampled, because gdb is attached or the program has ended: {who}"
        );
        session.complain(message, "`sdm profile TARGET` samples a job without gdb");
    }
    if free.is_empty() {
        return Verdict::Failed;
    }
    let sampling = Sampling {
        span: Duration::from_secs(seconds.into()),
        rate: RATE,
        full: false,
    };
    match sample(session, &spec, &free, sampling).await.0 {
        StacksCode::Interrupted => Verdict::GivenUp,
        StacksCode::Agree if rest.is_empty() => Verdict::Done,
        _ => Verdict::Failed,
    }
}

/// Samples some tasks, and shows the result.
async fn sample(
    session: &SessionHandle,
    spec: &AttachSpec,
    tasks: &IdSet,
    sampling: Sampling,
) -> (StacksCode, Option<Box<Profile>>) {
    let since = session.interrupts();
    let mut look = Sampled {
        left: tasks.clone(),
        profile: Profile::default(),
        failed: Gathered::default(),
    };
    let period = Duration::from_secs(1) / sampling.rate.max(1);
    let began = session.now();
    let mut goes_on = false;
    while !look.left.is_empty() && !session.is_over() && !session.interrupted_since(since) {
        let passed = session.now() - began;
        let rest = sampling.span.saturating_sub(passed);
        if rest < period || session.take_break().is_some() {
            break;
        }
        let (passed, all) = (passed.as_secs(), sampling.span.as_secs());
        session.status(Some(&format!("sampling: {passed} of {all} s; ^C ends it")));
        let command = Command::Sample(SampleSpec {
            look: LookSpec {
                pids: spec.pids.clone(),
                full: sampling.full,
                probe: None,
            },
            span_ms: milliseconds(rest.min(PART)),
            period_ms: milliseconds(period),
            goes_on,
        });
        goes_on = true;
        if !look.take(session, &command).await {
            break;
        }
    }
    session.status(None);
    look.profile.elapsed = session.now() - began;
    let Sampled {
        profile, failed, ..
    } = look;
    if profile.is_empty() {
        if !failed.failed.is_empty() || !failed.missing.is_empty() {
            session.show(&Item::Answer(failed));
        }
        return (stacks::code_of_nothing(session, since), None);
    }
    let profile = Box::new(profile);
    session.show(&Item::Profile(profile.clone()));
    let ended = |code| code == FailureCode::NotRunning;
    let mut codes = failed.failed.iter().map(|(_, failure)| failure.code);
    let is_whole = codes.all(ended) && failed.missing.is_empty() && failed.lost.is_empty();
    if !failed.failed.is_empty() || !is_whole {
        session.show(&Item::Answer(failed));
    }
    let code = match is_whole {
        true => StacksCode::Agree,
        false => StacksCode::Error,
    };
    (code, Some(profile))
}

/// The result so far, and the tasks that can still be sampled.
struct Sampled {
    left: IdSet,
    profile: Profile,
    /// Failures of the tasks that could not be sampled.
    failed: Gathered,
}

impl Sampled {
    /// Receives the next part of the samples. Returns false if no more are expected.
    async fn take(&mut self, session: &SessionHandle, command: &Command) -> bool {
        let asked = session.ask_quietly("profile", &self.left, command);
        let (verdict, Some(open)) = asked.await else {
            return false;
        };
        let mut gathered = open.gathered;
        if let Some((tasks, Merged::Samples(samples))) = gathered.take_merged() {
            self.profile.absorb(&tasks, &samples);
        }
        let failed = gathered.failed.iter().map(|(of, _)| of);
        let missing = gathered.missing.iter().map(|(of, _)| of);
        for of in failed.chain(missing).chain([&gathered.lost]) {
            self.left.subtract(of);
        }
        let is_given_up = |failure: &Failure| failure.code == FailureCode::Cancelled;
        gathered.failed.retain(|(_, failure)| !is_given_up(failure));
        (gathered.ok, gathered.others) = Default::default();
        self.failed.absorb(gathered);
        verdict != Verdict::GivenUp
    }
}

fn milliseconds(time: Duration) -> u32 {
    u32::try_from(time.as_millis()).unwrap_or(u32::MAX)
}
