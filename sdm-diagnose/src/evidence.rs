//! Evidence for a wait as text: messages, locks, files, and the kernel's state of running processes.

mod parts;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use sdm_debug::probe::{
    ArgumentRole, Call, CallArgument, Known, LockWait, ProcessState, ResourceWait, TaskWaits,
    ThreadWait, WaitFor,
};
use sdm_debug::reply::TaskStacks;
use sdm_debug::rules::{Alike, Probes};
use sdm_idset::{IdSet, set_text};
use sdm_mpi::is_of_two_groups;

use super::operations::{
    is_of_collective, is_rank_of_the_job, is_unspoken, started_by, waits_for_data,
};
use super::threads::{among_threads, computing};
use super::wait::{WaitKind, kind, place};

/// Maximum number of calls, cycles, locks and other facts that are printed for one group.
const GROUPS_MAX: usize = 8;
/// Maximum number of values of an argument that are printed.
const VALUES_MAX: usize = 4;
/// Maximum length of the text of the ranks that have one value, in bytes.
const RANKS_BYTES_MAX: usize = 40;

/// The waits in the last sample.
#[derive(Debug, Default)]
pub(super) struct Evidence<'a> {
    probes: Option<&'a Probes>,
    /// The MPI calls that tasks are in.
    calls: Vec<(&'a IdSet, &'a Call)>,
    /// Tasks whose threads wait for each other in a cycle, with a line of text per thread.
    pub(super) circles: Vec<(IdSet, Vec<String>)>,
    /// Tasks whose main thread waits for a lock whose holder has ended.
    pub(super) orphaned: IdSet,
    /// Tasks whose only thread, or each of whose threads, waits for another thread of the task.
    pub(super) alone: IdSet,
    /// Tasks of `alone` with several threads.
    pub(super) of_several: IdSet,
    /// Tasks with a single thread, whose wait only the task itself could end. It waits at a pipe whose other end no
    /// other process has, or for processes that wait for the task.
    pub(super) of_own_pipe: IdSet,
    /// Tasks whose main thread waits for processes which all wait for the task.
    pub(super) waited_back: IdSet,
    /// Tasks with several threads, each of which waits for another thread of the task.
    pub(super) among_threads: IdSet,
    /// Text about threads that compute while the main thread of their task waits for them.
    computing: Vec<(IdSet, Vec<String>)>,
    /// Text about files, locks and system calls that tasks wait in.
    others: Vec<(IdSet, Vec<String>)>,
}

impl<'a> Evidence<'a> {
    pub(super) fn of(probes: &'a Probes) -> Self {
        let mut evidence = Self {
            probes: Some(probes),
            ..Self::default()
        };
        for (tasks, waits) in &probes.waits {
            evidence.add(tasks, waits);
        }
        let of_one = of_one_thread(probes);
        evidence.of_own_pipe = evidence.of_own_pipe.intersection(&of_one);
        evidence.of_several = evidence.alone.difference(&of_one);
        evidence.computing = computing(probes);
        evidence.among_threads = among_threads(probes);
        evidence
    }

    fn add(&mut self, tasks: &'a IdSet, waits: &'a TaskWaits) {
        let call = waits.call.as_ref();
        match call.map(|call| (call, kind(&call.function))) {
            Some((call, WaitKind::File)) => {
                let mut lines = vec![numbered(call)];
                for argument in &call.arguments {
                    let expression = &argument.expression;
                    lines.extend(
                        self.value(call, argument, tasks)
                            .map(|v| format!("{expression} = {v}")),
                    );
                }
                self.others.push((tasks.clone(), lines));
            }
            Some((call, _)) => self.calls.push((tasks, call)),
            _ => {}
        }
        match waits.main() {
            // A call that is in no table here is described by its system call.
            Some(WaitFor::SystemCall(name)) if call.is_none() => {
                let line = format!("in the system call {name}");
                self.others.push((tasks.clone(), vec![line]));
            }
            Some(WaitFor::Resource(resource)) => {
                self.others
                    .push((tasks.clone(), vec![resource_text(resource)]));
                self.note_own(tasks, resource);
            }
            // A lock that the main thread itself holds is described with the cycle of locks.
            Some(WaitFor::Lock(lock)) if lock.holder == Some(1) => {}
            Some(WaitFor::Lock(lock)) => {
                self.others.push((tasks.clone(), vec![lock_text(lock)]));
                if lock.orphaned {
                    self.orphaned.union_with(tasks);
                }
            }
            Some(WaitFor::Nobody) => {
                let line = match waits.threads.len() {
                    1 => "for another thread of its process, but the process has no other thread",
                    _ => "for another thread of its process, but all of its threads wait",
                };
                self.others.push((tasks.clone(), vec![line.to_owned()]));
            }
            Some(WaitFor::Join(join)) => {
                let line = format!("for thread {} to end", join.thread);
                self.others.push((tasks.clone(), vec![line]));
            }
            _ => {}
        }
        if is_closed(waits) {
            self.alone.union_with(tasks);
        }
        let locks = waits.window_locks.iter().map(|lock| match lock.target {
            Some(rank) => format!("holds the window lock at rank {rank}"),
            None => "holds the window lock at all ranks".to_owned(),
        });
        let locks: Vec<String> = locks.take(GROUPS_MAX).collect();
        if !locks.is_empty() {
            self.others.push((tasks.clone(), locks));
        }
        let beside = locks_beside(waits);
        match circle(waits) {
            Some(circle) => self.circles.push((tasks.clone(), circle)),
            None if beside.is_empty() => {}
            None => self.others.push((tasks.clone(), beside)),
        }
    }

    /// Notes tasks that wait for something that only they themselves can provide.
    fn note_own(&mut self, tasks: &IdSet, resource: &ResourceWait) {
        if resource.is_for_itself() {
            self.of_own_pipe.union_with(tasks);
        }
        if resource.is_waited_back() {
            self.waited_back.union_with(tasks);
        }
    }

    /// Removes the tasks that are not idle from those whose threads all wait for each other. A thread that was just
    /// awakened still seems to wait.
    pub(super) fn of_idle(mut self, idle: &IdSet) -> Self {
        let busy = self.of_several.difference(idle);
        self.alone.subtract(&busy);
        self.of_several.subtract(&busy);
        self
    }

    /// A line about a thread that computes while the main thread of its task waits for it. None unless each of these
    /// tasks has such a thread.
    pub(super) fn computing_beside(&self, tasks: &IdSet) -> Option<&String> {
        let known = IdSet::union_all(self.computing.iter().map(|(who, _)| who));
        let line = about(&self.computing, tasks).next();
        line.filter(|_| tasks.is_subset(&known))
    }

    /// The evidence about these tasks, as lines of text.
    pub(super) fn lines(&self, tasks: &IdSet) -> Vec<String> {
        let mut lines = Vec::new();
        let mut add = |line: String| {
            if !line.is_empty() && !lines.contains(&line) {
                lines.push(line);
            }
        };
        let circles = about(&self.circles, tasks);
        circles.cloned().for_each(&mut add);
        let calls = self.calls.iter().filter(|(who, _)| !who.is_disjoint(tasks));
        for (who, call) in calls.take(GROUPS_MAX) {
            let facts = self.facts(call, &who.intersection(tasks));
            if kind(&call.function) == WaitKind::Message || !facts.is_empty() {
                add(numbered(call));
            }
            add(facts.join(", "));
        }
        about(&self.others, tasks).cloned().for_each(&mut add);
        about(&self.computing, tasks).cloned().for_each(&mut add);
        lines
    }

    /// The known arguments of a call of these tasks, as text: `from 2 (left)`.
    fn facts(&self, call: &Call, tasks: &IdSet) -> Vec<String> {
        use ArgumentRole as R;
        let mut facts = Vec::new();
        if is_of_collective(Some(call)) {
            facts.push(match &started_by(Some(call))[..] {
                [] => "for a nonblocking collective operation".to_owned(),
                functions => format!("for {}", functions.join(" or ")),
            });
        }
        for argument in &call.arguments {
            let expression = &argument.expression;
            let word = match argument.role {
                R::Destination => "to",
                R::Source if expression == sdm_mpi::PENDING => {
                    facts.push("its receive is pending".to_owned());
                    continue;
                }
                R::Source => "from",
                _ if is_unspoken(expression) => continue,
                R::Tag if expression == sdm_mpi::UNEXPECTED || expression == sdm_mpi::ELSEWHERE => {
                    facts.extend(fact_of_object(argument));
                    continue;
                }
                R::Tag | R::ReceiveTag => "tag",
                R::Root if is_of_two_groups(&call.function) => "local leader",
                R::Root => "root",
                R::Target if is_of_two_groups(&call.function) => "remote leader",
                R::Target if waits_for_data(call) => self.words_of_data(call, argument, tasks),
                R::Target if kind(&call.function) == WaitKind::Message => "with",
                R::Target => "target",
                R::Requests => "requests:",
                R::Count if kind(&call.function) == WaitKind::Collective => "count",
                _ => {
                    facts.extend(fact_of_object(argument));
                    continue;
                }
            };
            // A name without a value: `MPI_ANY_SOURCE`.
            let value = self
                .value(call, argument, tasks)
                .unwrap_or_else(|| expression.clone());
            let mut notes = Vec::new();
            if *expression != value && expression != "?" {
                notes.push(expression.as_str());
            }
            match argument.known {
                Known::Source => {}
                Known::Callee => notes.push("from debug information"),
                Known::Kept => notes.push("from the registers or the stack of the call"),
            }
            facts.push(match notes.is_empty() {
                true => format!("{word} {value}"),
                false => format!("{word} {value} ({})", notes.join("; ")),
            });
        }
        facts
    }

    /// The value of an argument in these tasks. If the tasks have several values, the text names the ranks of each
    /// value. None if it is unknown.
    fn value(&self, call: &Call, argument: &CallArgument, tasks: &IdSet) -> Option<String> {
        let Some(number) = argument.number else {
            return argument.value.as_ref().map(|value| value.text.clone());
        };
        if matches!(
            argument.role,
            ArgumentRole::File | ArgumentRole::Communicator
        ) {
            return Some(number.to_string());
        }
        let numbers = self.probes?.numbers.get(&argument.role)?;
        let is_of_the_job = is_rank_of_the_job(call, argument.role);
        // A distance from the own rank means nothing where the number is a rank of another communicator.
        let alike = match is_of_the_job {
            true => numbers.alike(Some(tasks)),
            false => {
                let groups = numbers.same(tasks).into_iter();
                groups
                    .map(|(number, of)| (Alike::Same(number), of))
                    .collect()
            }
        };
        let text = |alike: &Alike| match alike {
            Alike::Same(number) => sdm_mpi::constant(argument.role, *number)
                .map_or_else(|| number.to_string(), str::to_owned),
            Alike::Away(0) if !names_rank(argument.role) => "its own rank".to_owned(),
            Alike::Away(by) => away_text(*by),
        };
        let is_rank = |alike: &Alike| matches!(alike, Alike::Same(number) if *number >= 0);
        let is_other = !is_of_the_job && alike.keys().any(is_rank);
        let several = alike.iter();
        let several = several.map(|(alike, of)| {
            let of = set_text(of, RANKS_BYTES_MAX);
            format!("{} [{of}]", text(alike))
        });
        let text = match alike.len() {
            0 => return None,
            1 => alike.keys().next().map(text)?,
            2..=VALUES_MAX => several.collect::<Vec<_>>().join(", "),
            more => format!("{more} different values"),
        };
        let group = match argument.role {
            ArgumentRole::Target => "window's group",
            _ => "communicator",
        };
        Some(match (is_other, alike.len()) {
            (false, _) => text,
            (true, 0..=VALUES_MAX) => format!("rank {text} of its {group}"),
            (true, more) => format!("{more} different ranks of its {group}"),
        })
    }
}

/// The text for an argument that is not a number of the call: a communicator, a window, or a fact from the MPI
/// library's memory. None if there is nothing to say.
fn fact_of_object(argument: &CallArgument) -> Option<String> {
    use ArgumentRole as R;
    let expression = &argument.expression;
    let value = argument.value.as_ref().map(|value| &value.text);
    Some(match argument.role {
        R::Tag => {
            let within = match expression == sdm_mpi::ELSEWHERE {
                true => " in another communicator",
                false => "",
            };
            format!("a message with tag {} has arrived{within}", value?)
        }
        R::Communicator if argument.is_world() => return None,
        R::Communicator if expression == "?" => "in another communicator".to_owned(),
        R::Communicator => {
            let members = value.map_or_else(String::new, |all| format!(" (ranks {all})"));
            format!("in {expression}{members}")
        }
        R::OtherJobs => {
            let perhaps = if argument.number == Some(0) {
                "perhaps "
            } else {
                ""
            };
            format!("{perhaps}with processes of another job")
        }
        R::Window if expression != "?" => format!("of the window {expression}"),
        R::Access => format!("has an access epoch open to ranks {}", value?),
        R::Exposure => format!("has an exposure epoch open for ranks {}", value?),
        _ => return None,
    })
}

/// True if the main thread waits for other threads of its task, and none of them can go on.
fn is_closed(waits: &TaskWaits) -> bool {
    let mut threads = waits.threads.iter();
    let is_told = threads.any(|wait| wait.what == WaitFor::Nobody);
    is_told && waits.main().is_some_and(WaitFor::is_for_a_thread)
}

/// The tasks with a single thread in the program's code.
fn of_one_thread(probes: &Probes) -> IdSet {
    let stacks = probes.stacks.iter();
    let count = |stacks: &TaskStacks| {
        stacks
            .threads
            .iter()
            .map(|thread| thread.count)
            .sum::<u32>()
    };
    let alone = stacks.filter(|(_, stacks)| count(stacks) == 1);
    IdSet::union_all(alone.map(|(tasks, _)| tasks))
}

/// True for an argument that is a rank. Other arguments can depend on the rank, too.
fn names_rank(role: ArgumentRole) -> bool {
    use ArgumentRole as R;
    matches!(role, R::Source | R::Destination | R::Root | R::Target)
}

/// The text for a wait for a resource: `in flock, for the lock on /x; the wait depends on process 4711 (solver)`.
fn resource_text(resource: &ResourceWait) -> String {
    let holders = resource.holders.iter().map(|holder| {
        let state = match holder.letter {
            'T' => ", stopped",
            'Z' => ", ended",
            'D' => ", in the kernel",
            _ => "",
        };
        format!("{} ({}{state})", holder.pid, holder.name)
    });
    let holders: Vec<String> = holders.collect();
    let (count, holders) = (holders.len(), holders.join(", "));
    let ResourceWait { call, what, .. } = resource;
    match count {
        0 => format!("in {call}, for {what}"),
        1 => format!("in {call}, for {what}; the wait depends on process {holders}"),
        _ => format!("in {call}, for {what}; the wait depends on processes {holders}"),
    }
}

fn lock_text(lock: &LockWait) -> String {
    let mutex = &lock.mutex;
    match (lock.holder, lock.orphaned) {
        (Some(thread), _) => format!("for {mutex}, which thread {thread} holds"),
        (None, true) => format!("for {mutex}, whose holder has ended"),
        (None, false) => format!("for {mutex}"),
    }
}

/// The locks for which the other threads of a task wait, as lines of text. Empty unless the main thread waits for
/// threads too.
fn locks_beside(waits: &TaskWaits) -> Vec<String> {
    if !waits.main().is_some_and(WaitFor::is_for_a_thread) {
        return Vec::new();
    }
    let others = waits.threads.iter().filter(|wait| wait.thread != 1);
    let lines = others.filter_map(|wait| {
        let WaitFor::Lock(lock) = &wait.what else {
            return None;
        };
        let (thread, place, what) = (wait.thread, place(&lock.place), lock_text(lock));
        Some(format!("thread {thread} waits in {place} {what}"))
    });
    lines.take(GROUPS_MAX).collect()
}

/// The lines of a list about these tasks.
fn about<'a>(list: &'a [(IdSet, Vec<String>)], tasks: &IdSet) -> impl Iterator<Item = &'a String> {
    let known = list.iter().filter(|(who, _)| !who.is_disjoint(tasks));
    known.take(GROUPS_MAX).flat_map(|(_, lines)| lines)
}

/// The source line of a call, with its number; empty if the line is unknown.
fn numbered(call: &Call) -> String {
    match call.place.line {
        0 => String::new(),
        line => format!("{line}: {}", call.source),
    }
}

/// A cycle of threads that wait for each other, a line of text per thread. None without a cycle.
fn circle(waits: &TaskWaits) -> Option<Vec<String>> {
    let steps = waits.threads.iter().filter_map(step);
    let steps: BTreeMap<u32, (u32, String)> = steps.collect();
    for start in steps.keys() {
        let mut way = vec![*start];
        while let Some((next, _)) = way.last().and_then(|thread| steps.get(thread)) {
            let Some(at) = way.iter().position(|thread| thread == next) else {
                way.push(*next);
                continue;
            };
            let words = way[at..].iter().map(|thread| steps[thread].1.clone());
            return Some(words.collect());
        }
    }
    None
}

/// The number of a thread that waits for another thread of its task, the other thread's number, and the text. None for
/// other waits.
fn step(wait: &ThreadWait) -> Option<(u32, (u32, String))> {
    let (whom, at, what) = match &wait.what {
        WaitFor::Lock(lock) => {
            let (holder, mutex) = (lock.holder?, &lock.mutex);
            let what = match holder == wait.thread {
                true => format!("{mutex}, which it holds itself"),
                false => format!("{mutex}, which thread {holder} holds"),
            };
            (holder, &lock.place, what)
        }
        WaitFor::Join(join) => {
            let what = format!("thread {} to end", join.thread);
            (join.thread, &join.place, what)
        }
        WaitFor::SystemCall(_) | WaitFor::Resource(_) | WaitFor::Polling | WaitFor::Nobody => {
            return None;
        }
    };
    let thread = wait.thread;
    let place = place(at);
    let words = format!("thread {thread} waits in {place} for {what}");
    Some((thread, (whom, words)))
}

/// The state in the kernel of processes that could not be stopped, as lines of text.
pub(super) fn in_kernel(probes: &Probes, tasks: &IdSet) -> Vec<String> {
    let known = probes.processes.iter();
    let known = known.filter(|(who, _)| !who.is_disjoint(tasks));
    let line = |(_, process): &(IdSet, ProcessState)| {
        let ProcessState {
            letter,
            wait_channel,
        } = process;
        match wait_channel.as_str() {
            "" | "0" => format!("process state {letter}"),
            function => format!("process state {letter}, in the kernel function {function}"),
        }
    };
    known.take(GROUPS_MAX).map(line).collect()
}

/// The text of a peer rank at a fixed distance from each task's own rank: `rank-1`.
#[must_use]
pub fn away_text(by: i64) -> String {
    match by {
        0 => "itself".to_owned(),
        by => format!("rank{by:+}"),
    }
}
