//! What is waited in, put into words: messages, locks, files, and the kernel's word on those who run.

use std::collections::BTreeMap;

use sdm_debug::probe::{ArgumentRole, Call, LockWait, ProcessState, TaskWaits, WaitFor};
use sdm_debug::rules::Probes;
use sdm_idset::IdSet;

use super::wait::{WaitKind, kind, place};

/// The most different calls or circles that are told of one group.
const GROUPS_MAX: usize = 8;

/// What the last sample says of waits.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    /// What those wait for that are in a send, a receive or a collective operation.
    pub(super) messages: Vec<Message>,
    /// Circles of threads that hold each other's locks: of whom, and the circle in words.
    pub(super) circles: Vec<(IdSet, Vec<String>)>,
    /// What is known of files and system calls that are waited in.
    others: Vec<(IdSet, Vec<String>)>,
}

/// A message that some tasks wait for or want to send.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Message {
    /// The tasks that wait for it.
    pub(super) tasks: IdSet,
    /// The other side, where it is one rank of all.
    pub(super) peer: Option<u32>,
    /// The line of source with its number; empty where it is not known.
    source: String,
    /// What is known of it: `from 2 (left)`.
    facts: Vec<String>,
}

impl Evidence {
    pub(super) fn of(probes: &Probes) -> Self {
        let mut evidence = Self::default();
        for (tasks, waits) in &probes.waits {
            evidence.add(tasks, waits);
        }
        evidence
    }

    fn add(&mut self, tasks: &IdSet, waits: &TaskWaits) {
        let call = waits.call.as_ref();
        match call.map(|call| (call, kind(&call.function))) {
            Some((call, WaitKind::Message | WaitKind::Collective)) => {
                self.messages.push(Message::of(tasks, call));
            }
            Some((call, WaitKind::File)) => {
                let mut lines = vec![numbered(call)];
                for argument in &call.arguments {
                    let value = argument.value.as_ref();
                    lines.extend(value.map(|v| format!("{} = {}", argument.expression, v.text)));
                }
                self.others.push((tasks.clone(), lines));
            }
            _ => {}
        }
        // What no table here knows is told by the system call that it waits in.
        let main = waits.threads.iter().find(|wait| wait.thread == 1);
        if let Some(WaitFor::SystemCall(name)) = main.map(|wait| &wait.what)
            && call.is_none()
        {
            let line = format!("in the system call {name}");
            self.others.push((tasks.clone(), vec![line]));
        }
        if let Some(circle) = circle(waits) {
            self.circles.push((tasks.clone(), circle));
        }
    }

    /// What is known of these tasks, a line each.
    pub(super) fn lines(&self, tasks: &IdSet) -> Vec<String> {
        let mut lines = Vec::new();
        let mut add = |line: String| {
            if !line.is_empty() && !lines.contains(&line) {
                lines.push(line);
            }
        };
        let circles = about(&self.circles, tasks);
        circles.cloned().for_each(&mut add);
        let messages = self.messages.iter().filter(|m| !m.tasks.is_disjoint(tasks));
        for message in messages.take(GROUPS_MAX) {
            add(message.source.clone());
            add(message.facts.join(", "));
        }
        about(&self.others, tasks).cloned().for_each(&mut add);
        lines
    }
}

/// The lines on these tasks.
fn about<'a>(list: &'a [(IdSet, Vec<String>)], tasks: &IdSet) -> impl Iterator<Item = &'a String> {
    let known = list.iter().filter(|(who, _)| !who.is_disjoint(tasks));
    known.take(GROUPS_MAX).flat_map(|(_, lines)| lines)
}

impl Message {
    fn of(tasks: &IdSet, call: &Call) -> Self {
        use ArgumentRole as R;
        let mut message = Self {
            tasks: tasks.clone(),
            ..Self::default()
        };
        let mut of_all = true;
        for argument in &call.arguments {
            let expression = &argument.expression;
            let value = argument.value.as_ref().map(|value| value.text.as_str());
            let word = match argument.role {
                R::Destination => "to",
                R::Source => "from",
                R::Tag | R::ReceiveTag => "tag",
                R::Communicator if argument.is_world() => continue,
                R::Communicator => {
                    // Ranks of another communicator are no ranks of the job.
                    of_all = value.is_none();
                    message.facts.push(format!("in {expression}"));
                    continue;
                }
                R::Count | R::File => continue,
            };
            let Some(value) = value else { continue };
            message.facts.push(if expression == value {
                format!("{word} {value}")
            } else {
                format!("{word} {value} ({expression})")
            });
            if word != "tag" {
                message.peer = value.parse().ok();
            }
        }
        if !of_all {
            message.peer = None;
        }
        if kind(&call.function) == WaitKind::Message || !message.facts.is_empty() {
            message.source = numbered(call);
        }
        message
    }
}

/// The line of source with its number.
fn numbered(call: &Call) -> String {
    match call.place.line {
        0 => String::new(),
        line => format!("{line}: {}", call.source),
    }
}

/// Threads of a task that wait for each other's mutexes, in words.
fn circle(waits: &TaskWaits) -> Option<Vec<String>> {
    let locks = waits.threads.iter().filter_map(|wait| match &wait.what {
        WaitFor::Lock(lock) => Some((wait.thread, lock)),
        WaitFor::SystemCall(_) => None,
    });
    let locks: BTreeMap<u32, &LockWait> = locks.collect();
    let held_by = |thread: u32| locks.get(&thread).and_then(|lock| lock.holder);
    for start in locks.keys() {
        let mut way = vec![*start];
        while let Some(next) = way.last().and_then(|thread| held_by(*thread)) {
            let Some(at) = way.iter().position(|thread| *thread == next) else {
                way.push(next);
                continue;
            };
            let say = |thread: &u32| {
                let (lock, holder) = (locks[thread], held_by(*thread)?);
                let place = place(&lock.place);
                Some(format!(
                    "thread {thread} waits in {place} for {}, which thread {holder} holds",
                    lock.mutex
                ))
            };
            return way[at..].iter().map(say).collect();
        }
    }
    None
}

/// What the kernel says of tasks that could not be stopped.
pub(super) fn in_kernel(probes: &Probes, tasks: &IdSet) -> Vec<String> {
    let known = probes.processes.iter();
    let known = known.filter(|(who, _)| !who.is_disjoint(tasks));
    let line = |(_, process): &(IdSet, ProcessState)| {
        let ProcessState {
            letter,
            wait_channel,
        } = process;
        match wait_channel.as_str() {
            "" | "0" => format!("the kernel has it in state {letter}"),
            function => format!("the kernel has it in state {letter}, in {function}"),
        }
    };
    known.take(GROUPS_MAX).map(line).collect()
}

#[cfg(test)]
mod tests {
    use sdm_debug::probe::{CallArgument, ThreadWait};
    use sdm_debug::reply::{StackFrame, Value};

    use super::*;

    fn waits(holders: &[(u32, u32)]) -> TaskWaits {
        let wait = |(thread, holder): &(u32, u32)| ThreadWait {
            thread: *thread,
            what: WaitFor::Lock(LockWait {
                mutex: "&m".to_owned(),
                place: StackFrame::own("f", "a.c", 1),
                holder: Some(*holder),
            }),
        };
        TaskWaits {
            call: None,
            threads: holders.iter().map(wait).collect(),
        }
    }

    #[test]
    fn a_circle_of_owners_is_found_and_a_chain_is_none() {
        let words = circle(&waits(&[(1, 2), (2, 3), (3, 2)])).unwrap();
        assert_eq!(
            words,
            [
                "thread 2 waits in f () at a.c:1 for &m, which thread 3 holds",
                "thread 3 waits in f () at a.c:1 for &m, which thread 2 holds"
            ]
        );
        assert_eq!(circle(&waits(&[(1, 2), (2, 3)])), None);
    }

    fn receive(communicator: (&str, Option<&str>)) -> Message {
        let value = |text: &str| Value {
            text: text.to_owned(),
            cut: None,
        };
        let argument = |role, expression: &str, text: Option<&str>| CallArgument {
            role,
            expression: expression.to_owned(),
            value: text.map(value),
        };
        let (name, handle) = communicator;
        let call = Call {
            function: "MPI_Recv".to_owned(),
            place: StackFrame::own("halo", "halo.c", 60),
            source: "MPI_Recv(...)".to_owned(),
            arguments: vec![
                argument(ArgumentRole::Count, "1", Some("1")),
                argument(ArgumentRole::Source, "left", Some("2")),
                argument(ArgumentRole::Tag, "MPI_ANY_TAG", None),
                argument(ArgumentRole::Communicator, name, handle),
            ],
        };
        Message::of(&"0".parse().unwrap(), &call)
    }

    #[test]
    fn a_rank_of_another_communicator_is_no_rank_of_the_job() {
        let plain = receive(("MPI_COMM_WORLD", None));
        assert_eq!(
            (plain.peer, &plain.facts[..]),
            (Some(2), &["from 2 (left)".to_owned()][..])
        );
        assert_eq!(plain.source, "60: MPI_Recv(...)");
        assert_eq!(receive(("comm", Some("1140850688"))), plain);
        let row = receive(("row", Some("-2080374784")));
        assert_eq!(
            (row.peer, row.facts.join(", ")),
            (None, "from 2 (left), in row".to_owned())
        );
    }
}
