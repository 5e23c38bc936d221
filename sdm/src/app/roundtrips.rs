//! `sdm emulate --roundtrips`: measurement of the time from a command to all tasks until its merged answer.

use std::fmt;
use std::time::{Duration, Instant};

use sdm_debug::command::StartSpec;
use sdm_debug::reply::Value;
use sdm_debug::{Command, EndPolicy, Reply, wire};
use sdm_idset::set_text;
use sdm_session::{ClassAnswer, DebugSession, SendOptions, SessionConfig, SessionEvent};

use super::error::AppError;
use super::opener::Opener;

/// Number of uncounted rounds at the beginning, in which caches, buffers and windows grow to size.
const WARM_UP: u32 = 3;
/// Time limit of a round, which only a hanging session reaches.
const ROUND_WAIT: Duration = Duration::from_secs(120);

/// A query of a given size with an answer of the same size.
pub(super) struct Probe {
    bytes: u32,
    name: String,
    value: String,
}

impl Probe {
    /// A probe whose command and answer have `bytes` bytes each on the wire.
    pub(super) fn new(bytes: u32) -> Self {
        let name = filled(bytes, "n", |text| wire::encode(&evaluate(text)).len());
        let value = filled(bytes, "v", |text| wire::encode(&reply(text)).len());
        Self { bytes, name, value }
    }

    /// The addition to a scenario with which the tasks can answer the probe.
    pub(super) fn scenario(&self) -> String {
        format!("\n[all]\nvalue {} = {}\n", self.name, self.value)
    }
}

fn evaluate(expression: &str) -> Command {
    Command::Evaluate {
        expression: expression.to_owned(),
    }
}

fn reply(text: &str) -> Reply {
    Reply::Value(Value {
        text: text.to_owned(),
        cut: None,
    })
}

/// Repeats `letter`, at least once, as long as `size` of the text is at most `bytes`.
fn filled(bytes: u32, letter: &str, size: impl Fn(&str) -> usize) -> String {
    let bytes = bytes as usize;
    let mut count = bytes;
    while count > 1 && size(&letter.repeat(count)) > bytes {
        count -= 1;
    }
    letter.repeat(count)
}

/// The measured times.
struct Figures {
    tasks: u64,
    bytes: u32,
    /// The times of all rounds, sorted; never empty.
    times: Vec<Duration>,
}

impl Figures {
    /// The quantile of the round times, in microseconds: the given part (0 to 1) of all rounds took at most this time.
    fn quantile(&self, part: f64) -> u128 {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let rank = (part * self.times.len() as f64).ceil() as usize;
        self.times[rank.clamp(1, self.times.len()) - 1].as_micros()
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (tasks, bytes) = (self.tasks, self.bytes);
        let (min, median) = (self.quantile(0.0), self.quantile(0.5));
        let (p99, rounds) = (self.quantile(0.99), self.times.len());
        write!(
            f,
            "n={tasks} rounds={rounds} bytes={bytes} min_us={min} median_us={median} p99_us={p99}"
        )
    }
}

/// Opens a session, measures, and closes it. Returns the line with the result.
pub(super) fn measure<O: Opener>(
    opener: &mut O,
    config: &SessionConfig,
    probe: &Probe,
    rounds: u32,
) -> Result<String, AppError> {
    let (mut session, _) = super::opener::open(opener, config)?;
    let times = rounds_of(&mut session, probe, rounds);
    let tasks = session.tasks().len();
    let closed = opener.close(&mut session, EndPolicy::KillStarted);
    let mut times = times?;
    closed?;
    times.sort_unstable();
    let bytes = probe.bytes;
    let figures = Figures {
        tasks,
        bytes,
        times,
    };
    Ok(figures.to_string())
}

fn rounds_of<D: DebugSession>(
    session: &mut D,
    probe: &Probe,
    rounds: u32,
) -> Result<Vec<Duration>, AppError> {
    ask(session, &Command::Start(StartSpec::default()), |_| true)?;
    let command = evaluate(&probe.name);
    let expected = reply(&probe.value);
    let mut times = Vec::new();
    for round in 0..WARM_UP + rounds {
        let began = Instant::now();
        ask(session, &command, |reply| *reply == expected)?;
        if round >= WARM_UP {
            times.push(began.elapsed());
        }
    }
    Ok(times)
}

/// Sends a command to all tasks, and waits for the correct answer of each.
fn ask<D: DebugSession>(
    session: &mut D,
    command: &Command,
    is_right: impl Fn(&Reply) -> bool,
) -> Result<(), AppError> {
    let all = session.tasks().clone();
    let mut left = all.clone();
    let asked = session.send(&all, command, &SendOptions::default());
    let deadline = Instant::now() + ROUND_WAIT;
    loop {
        let wait = deadline.saturating_duration_since(Instant::now());
        match session.next_event(Some(wait)) {
            Some(SessionEvent::Answer { id, classes, .. }) if id == asked => {
                for class in classes {
                    if matches!(&class.answer, ClassAnswer::Reply(reply) if is_right(reply)) {
                        left.subtract(&class.tasks);
                    }
                }
            }
            Some(SessionEvent::Complete { id }) if id == asked => break,
            Some(SessionEvent::Ended(why)) => return Err(AppError::Ended(why)),
            Some(_) => {}
            None => break,
        }
    }
    if left.is_empty() {
        return Ok(());
    }
    Err(AppError::Unanswered {
        command: command.name(),
        tasks: set_text(&left, 60),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roundtrip_command_and_answer_have_the_requested_size() {
        for bytes in [16, 127, 128, 129, 130, 131, 200, 16_384, 65_536] {
            let probe = Probe::new(bytes);
            let sizes = [
                wire::encode(&evaluate(&probe.name)).len(),
                wire::encode(&reply(&probe.value)).len(),
            ];
            for size in sizes {
                // Where the length field grows by a byte, one size cannot be reached.
                let bytes = bytes as usize;
                assert!(size == bytes || size == bytes - 1, "{size} for {bytes}");
            }
        }
    }

    #[test]
    fn roundtrip_line_shows_minimum_median_and_99th_percentile() {
        let times = (1..=200).map(Duration::from_micros).collect();
        let figures = Figures {
            tasks: 64,
            bytes: 200,
            times,
        };
        let expect = "n=64 rounds=200 bytes=200 min_us=1 median_us=100 p99_us=198";
        assert_eq!(figures.to_string(), expect);
    }
}
