//! The looker: a process that inspects others for a server. It reads their files, has a child take snapshots, and
//! reports their stacks.
//!
//! It is the server's own executable in another mode ([`run`] is among the first calls of its `main`). So a damaged
//! file can end only the looker, and the server's loop never waits for a disk. The looker exits at the end of its
//! input, so that it does not outlive its server.

mod client;
mod message;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

pub use client::{Answer, Looker};
use message::{Frames, LookAnswer, LookRequest, frame};
pub use message::{LookedProbe, Question, View};
use sdm_debug::Failure;
use sdm_debug::command::ProbeSpec;
use sdm_debug::fold::FoldRules;
use sdm_debug::reply::TaskStacks;

use crate::snapshot::Refusal;
use crate::stack::{Inspection, Inspector};
use crate::sys;

/// The looker's first argument, which selects this mode of the executable.
const MODE: &str = "--look";
/// The looker's second argument, if the system's debug information is to be used too.
const OF_SYSTEM: &str = "--system-debug";
/// Time that a process has to stop.
const PATIENCE: Duration = Duration::from_secs(5);
/// Maximum private memory of a looker, in bytes. A looker with more is replaced by a new one.
const OWN_BYTES_MAX: u64 = 256 << 20;
/// Number of bytes read at once.
const READ_BYTES: usize = 64 << 10;

/// Maximum number of attempts to probe a process whose frames change during the attempt.
const PROBES_MAX: usize = 4;

/// Turns an inspection into a probe, and keeps the probe for comparison with the next one.
pub trait Prober {
    /// Probes a process.
    ///
    /// # Errors
    /// [`Failure`] if its state cannot be determined.
    fn probe(
        &mut self,
        inspection: &Inspection,
        spec: ProbeSpec,
        rules: &FoldRules,
    ) -> Result<ProbeResult, Failure>;

    /// Discards the last probe of a process. The next probe is compared with the one before the discarded probe.
    fn take_back(&mut self, pid: i32);

    /// The stacks of a process with an interpreter's functions; `None` if it runs no interpreter.
    fn woven(
        &mut self,
        inspection: &Inspection,
        rules: &FoldRules,
    ) -> Option<Result<TaskStacks, Failure>>;
}

/// The result of one inspection of a process.
pub struct ProbeResult {
    /// The facts of the probe.
    pub seen: LookedProbe,
    /// Indices of threads, each with the level of a frame. The result is of one moment only if these threads have not
    /// left these frames since.
    pub certain_from: Vec<(usize, usize)>,
}

/// Serves requests until the end of the input, or until this process uses too much memory; `None` if this process was
/// not started as a looker.
#[must_use]
pub fn run(prober: &mut dyn Prober) -> Option<io::Result<()>> {
    let mut words = std::env::args_os().skip(1);
    let mode = words.next()?;
    (mode == MODE).then(|| serve(words.next().is_some_and(|word| word == OF_SYSTEM), prober))
}

fn serve(of_system: bool, prober: &mut dyn Prober) -> io::Result<()> {
    sys::end_after_child()?;
    let mut from = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut to = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let mut inspector = Inspector::new(of_system);
    let mut frames = Frames::default();
    let mut bytes = vec![0; READ_BYTES];
    loop {
        while let Some(ask) = frames.take::<LookRequest>()? {
            match &ask.question {
                Question::Samples {
                    span,
                    period,
                    woven,
                } => {
                    let view = |it: &Inspection| view(prober, it, woven.as_ref());
                    sample(&mut inspector, &ask, (*span, *period), view, &mut to)?;
                }
                _ => {
                    let seen = answer(&mut inspector, prober, &ask);
                    tell(&ask, seen, |_| true, &mut to)?;
                }
            }
            // The stored state of the processes is still needed for the next probe of the series.
            let is_in_a_row = matches!(ask.question, Question::Probe(spec, _) if !spec.waits);
            if !is_in_a_row && is_full() {
                return Ok(());
            }
        }
        match from.read(&mut bytes)? {
            0 => return Ok(()),
            count => frames.push(&bytes[..count]),
        }
    }
}

/// Answers a request once, with one result for each process.
fn answer(
    inspector: &mut Inspector,
    prober: &mut dyn Prober,
    ask: &LookRequest,
) -> Vec<Result<View, Refusal>> {
    match &ask.question {
        Question::Probe(spec, rules) => still(inspector, prober, &ask.pids, (*spec, rules)),
        Question::Woven(rules) => {
            let found = inspector.inspect(&ask.pids, true, PATIENCE).into_iter();
            found.map(|it| view(prober, &it?, Some(rules))).collect()
        }
        Question::Thread(ids) => {
            let found = inspector.inspect(&ask.pids, false, PATIENCE).into_iter();
            let thread = |it: Inspection| it.stopped_thread(ids).ok_or(Refusal::Ended);
            found
                .map(|it| Ok(View::Thread(Box::new(thread(it?)?))))
                .collect()
        }
        Question::Stacks | Question::Samples { .. } => {
            let stacks = inspector.stacks(&ask.pids, PATIENCE).into_iter();
            stacks.map(|it| it.map(View::Stacks)).collect()
        }
    }
}

/// The stacks of an inspection: with rules and an interpreter, with its functions.
fn view(
    prober: &mut dyn Prober,
    inspection: &Inspection,
    rules: Option<&FoldRules>,
) -> Result<View, Refusal> {
    match rules.and_then(|rules| prober.woven(inspection, rules)) {
        Some(woven) => {
            let stood = inspection.stood();
            let view = |stacks| View::Woven { stacks, stood };
            woven.map(view).map_err(refusal)
        }
        None => Ok(View::Stacks(inspection.to_stacks())),
    }
}

/// Takes samples repeatedly. If a sample takes longer than the period, the samples that were due meanwhile are left
/// out.
fn sample(
    inspector: &mut Inspector,
    ask: &LookRequest,
    (span, period): (Duration, Duration),
    mut view: impl FnMut(&Inspection) -> Result<View, Refusal>,
    to: &mut File,
) -> io::Result<()> {
    let began = Instant::now();
    let mut spaces = inspector.open(&ask.pids);
    spaces.reads_python = matches!(ask.question, Question::Samples { woven: Some(_), .. });
    let mut next = began;
    loop {
        let looked = inspector.inspect_open(&mut spaces, PATIENCE).into_iter();
        let seen = looked.map(|it| view(&it?)).collect();
        let now = Instant::now();
        while next <= now && !period.is_zero() {
            next += period;
        }
        let is_over = period.is_zero() || next >= began + span;
        if is_over {
            // If the client continues the sampling at once, the next sample is due then.
            wait_until(next);
        }
        tell(ask, seen, |seen| is_over || seen.is_err(), to)?;
        if is_over {
            return Ok(());
        }
        wait_until(next);
    }
}

/// Sends the result of each process.
fn tell(
    ask: &LookRequest,
    seen: Vec<Result<View, Refusal>>,
    is_last: impl Fn(&Result<View, Refusal>) -> bool,
    to: &mut File,
) -> io::Result<()> {
    let processor = processor()?;
    for (pid, seen) in ask.pids.iter().copied().zip(seen) {
        to.write_all(&frame(&LookAnswer {
            number: ask.number,
            pid,
            is_last: is_last(&seen),
            seen,
            processor,
        })?)?;
    }
    Ok(())
}

fn wait_until(time: Instant) {
    thread::sleep(time.saturating_duration_since(Instant::now()));
}

/// The processor time of this process and of its children, which take the snapshots.
fn processor() -> io::Result<Duration> {
    let mut sum = Duration::ZERO;
    for who in [UsageWho::RUSAGE_SELF, UsageWho::RUSAGE_CHILDREN] {
        let usage = getrusage(who)?;
        for time in [usage.user_time(), usage.system_time()] {
            sum += Duration::from_micros(time.num_microseconds().unsigned_abs());
        }
    }
    Ok(sum)
}

fn refusal(failure: Failure) -> Refusal {
    Refusal::System { text: failure.text }
}

/// Probes processes. If a process has moved while its memory was read, the probe is repeated, up to `PROBES_MAX` times.
fn still(
    inspector: &mut Inspector,
    prober: &mut dyn Prober,
    pids: &[i32],
    (spec, rules): (ProbeSpec, &FoldRules),
) -> Vec<Result<View, Refusal>> {
    let mut seen: BTreeMap<i32, Result<View, Refusal>> = BTreeMap::new();
    let mut open = pids.to_vec();
    for _ in 0..PROBES_MAX {
        let mut uncertain = Vec::new();
        for (pid, found) in open.iter().zip(inspector.inspect(&open, true, PATIENCE)) {
            let result = found.and_then(|inspection| {
                let result = prober.probe(&inspection, spec, rules).map_err(refusal)?;
                if !result.certain_from.is_empty() {
                    uncertain.push((*pid, inspection, result.certain_from));
                }
                Ok(View::Probe(result.seen))
            });
            seen.insert(*pid, result);
        }
        open = uncertain.iter().map(|(pid, ..)| *pid).collect();
        let later = inspector.inspect(&open, false, PATIENCE).into_iter();
        let moved = uncertain.into_iter().zip(later);
        let moved = moved.filter(|((_, was, frames), now)| {
            let stays = |now: &Inspection, (thread, level)| now.is_still_in(was, thread, level);
            let still = |now: &Inspection| frames.iter().all(|frame| stays(now, *frame));
            now.as_ref().is_ok_and(|now| !still(now))
        });
        open = moved.map(|((pid, ..), _)| pid).collect();
        if open.is_empty() {
            break;
        }
        for pid in &open {
            prober.take_back(*pid);
        }
    }
    let seen_of = |pid: &i32| seen.remove(pid).unwrap_or(Err(Refusal::Ended));
    pids.iter().map(seen_of).collect()
}

/// True if the files read so far use so much memory that the looker should be replaced.
fn is_full() -> bool {
    let status = sdm_system::proc::own().status();
    let own = status.ok().and_then(|status| status.bytes("RssAnon"));
    own.is_some_and(|own| own > OWN_BYTES_MAX)
}
