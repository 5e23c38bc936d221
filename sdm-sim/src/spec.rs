//! The simulated commands and the expected answers. Both depend only on the command and the task, so that the checker
//! knows each byte of an answer.

use bytes::Bytes;
use sdm_core::aggregate::{Acc, Merge, Rejected};
use sdm_core::message::{Lane, Status};
use sdm_debug::{Failure, FailureCode};
use sdm_idset::{IdSet, TaskId};

use crate::rng::mix;

/// The merge rule of the simulation: the number of answers, and the sum of their numbers.
pub(crate) const RULE_SUM: u16 = 1;

/// The payload of a command: the request to each task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Spec {
    /// A number that distinguishes the answers of different commands.
    pub(crate) number: u32,
    /// Number of distinct answers.
    pub(crate) classes: u32,
    /// Length in bytes to which an answer is padded, before the number of its class.
    pub(crate) answer_bytes: u32,
    /// Maximum time that a task takes, in microseconds.
    pub(crate) delay_us: u32,
    /// Of so many tasks one does not answer until it is told to; 0 for none.
    pub(crate) hang_one_in: u32,
    /// Of so many tasks one fails; 0 for none.
    pub(crate) fail_one_in: u32,
    /// Number of events of a task before its answer.
    pub(crate) events: u32,
    /// True if the answers are numbers to be summed.
    pub(crate) sum: bool,
    /// True if the command uses the bulk lane, as input for a program does.
    pub(crate) bulk: bool,
}

impl Spec {
    /// Encodes the payload, followed by `padding` bytes.
    pub(crate) fn encode(&self, padding: usize) -> Bytes {
        let mut out = Vec::with_capacity(32 + padding);
        for word in [
            self.number,
            self.classes,
            self.answer_bytes,
            self.delay_us,
            self.hang_one_in,
            self.fail_one_in,
            self.events,
            u32::from(self.sum) | u32::from(self.bulk) << 1,
        ] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        out.resize(32 + padding, 0x2E);
        Bytes::from(out)
    }

    pub(crate) fn decode(payload: &[u8]) -> Self {
        let word = |at: usize| {
            let bytes = payload[at * 4..].first_chunk();
            u32::from_le_bytes(*bytes.expect("every command of the simulation is a spec"))
        };
        Self {
            number: word(0),
            classes: word(1),
            answer_bytes: word(2),
            delay_us: word(3),
            hang_one_in: word(4),
            fail_one_in: word(5),
            events: word(6),
            sum: word(7) & 1 == 1,
            bulk: word(7) & 2 == 2,
        }
    }

    fn dice(&self, task: TaskId, what: u64) -> u64 {
        mix(u64::from(self.number) << 32 | u64::from(task.0)) ^ mix(what)
    }

    /// Time that the task needs for its answer, in microseconds.
    pub(crate) fn delay(&self, task: TaskId) -> u64 {
        mix(self.dice(task, 1)) % (u64::from(self.delay_us) + 1)
    }

    pub(crate) fn hangs(&self, task: TaskId) -> bool {
        one_in(self.dice(task, 2), self.hang_one_in)
    }

    pub(crate) fn fails(&self, task: TaskId) -> bool {
        one_in(self.dice(task, 3), self.fail_one_in)
    }

    /// The task's expected answer.
    pub(crate) fn answer(&self, task: TaskId) -> (Status, Bytes) {
        if self.fails(task) {
            let class = task.0 % self.classes.max(1);
            let text = format!("command {} class {class}", self.number);
            return (
                Status::Failed,
                Failure::new(FailureCode::Gdb, text).encode(),
            );
        }
        if self.sum {
            return (
                Status::Ok,
                Sum {
                    count: 1,
                    total: self.value(task),
                }
                .encode(),
            );
        }
        let class = task.0 % self.classes.max(1);
        // All answers have the same length and beginning, so that only the last bytes distinguish the classes.
        let mut text = format!("{:010}", self.number).into_bytes();
        text.resize(text.len().max(self.answer_bytes as usize), b'.');
        text.extend_from_slice(format!("{class:010}").as_bytes());
        (Status::Ok, Bytes::from(text))
    }

    fn value(&self, task: TaskId) -> u64 {
        self.dice(task, 4)
    }

    /// The expected sum of the answers of some tasks.
    pub(crate) fn sum_of(&self, tasks: &IdSet) -> Bytes {
        let mut sum = Sum::default();
        for task in tasks {
            sum.count += 1;
            sum.total = sum.total.wrapping_add(self.value(task));
        }
        sum.encode()
    }
}

fn one_in(dice: u64, count: u32) -> bool {
    count > 0 && mix(dice).is_multiple_of(u64::from(count))
}

#[derive(Clone, Copy, Default)]
struct Sum {
    count: u64,
    total: u64,
}

impl Sum {
    fn encode(self) -> Bytes {
        let mut out = Vec::with_capacity(16);
        out.extend_from_slice(&self.count.to_le_bytes());
        out.extend_from_slice(&self.total.to_le_bytes());
        Bytes::from(out)
    }
}

struct SumRule;

impl Merge for SumRule {
    fn start(&self) -> Acc {
        Box::new(Sum::default())
    }

    fn merge(&self, acc: &mut Acc, _sources: &IdSet, payload: &[u8]) -> Result<(), Rejected> {
        let (Some(count), Some(total), 16) =
            (payload.first_chunk(), payload.last_chunk(), payload.len())
        else {
            return Err(Rejected("a sum has 16 bytes"));
        };
        let acc = acc.downcast_mut::<Sum>().expect("made by this rule");
        acc.count += u64::from_le_bytes(*count);
        acc.total = acc.total.wrapping_add(u64::from_le_bytes(*total));
        Ok(())
    }

    fn finish(&self, acc: Acc, _bytes_max: usize) -> Bytes {
        acc.downcast::<Sum>().expect("made by this rule").encode()
    }
}

/// The merge rule with this number; `None` for other numbers than the simulation's.
pub(crate) fn rules(number: u16, _params: &[u8]) -> Option<Box<dyn Merge>> {
    (number == RULE_SUM).then(|| Box::new(SumRule) as Box<dyn Merge>)
}

/// Flag in the number of a bulk event.
const BULK_BIT: u32 = 1 << 31;

/// The payload of a task's `sequence`-th spontaneous event in a lane: the same bytes for every task.
pub(crate) fn event_payload(lane: Lane, sequence: u32, bytes: usize) -> Bytes {
    let number = if lane == Lane::Bulk {
        sequence | BULK_BIT
    } else {
        sequence
    };
    let mut out = number.to_le_bytes().to_vec();
    out.resize(4 + bytes, b' ');
    Bytes::from(out)
}

/// Lane and number of an event; `None` for bytes that no simulated task emits.
pub(crate) fn event_of(payload: &[u8]) -> Option<(Lane, u32)> {
    let (number, rest) = payload.split_first_chunk()?;
    let number = u32::from_le_bytes(*number);
    let lane = if number & BULK_BIT == 0 {
        Lane::Control
    } else {
        Lane::Bulk
    };
    let whole = rest.iter().all(|byte| *byte == b' ');
    whole.then_some((lane, number & !BULK_BIT))
}
