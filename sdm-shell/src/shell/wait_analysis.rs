//! What tasks wait for, as `diagnose` finds it: messages, locks, files. It is read from the line of source
//! where they wait and from the values there, in one task of each group.
use std::collections::BTreeMap;

use sdm_debug::command::{BacktraceSpec, FrameSelect};
use sdm_debug::reply::{StackFrame, TaskStacks};
use sdm_debug::{Command, Reply};
use sdm_idset::{IdSet, TaskId};
use sdm_view::diagnose::{Message, Observed, Wait, WaitKind, call_arguments, is_lock};

use super::SessionHandle;

/// The most groups that are looked at closer.
const GROUPS_MAX: usize = 8;
/// The most tasks whose locks are looked at.
const LOCK_TASKS_MAX: usize = 4;
/// The most threads of one task that are looked at.
const THREADS_MAX: usize = 64;
/// How many lines a call can have.
const CALL_LINES: u32 = 6;

/// Looks at what the last sample shows.
pub(super) async fn look_closer(
    session: &SessionHandle,
    line: &str,
    looked: &IdSet,
    observed: &mut Observed,
) {
    let Some(sample) = observed.samples.last() else {
        return;
    };
    let standing = looked.intersection(&session.standing());
    let mut groups: Vec<(IdSet, Wait)> = Vec::new();
    let mut locked: Vec<IdSet> = Vec::new();
    for (tasks, stacks) in sample.stacks.clone() {
        let tasks = tasks.intersection(&standing);
        if tasks.is_empty() {
            continue;
        }
        if threads_in_locks(&stacks) >= 2 {
            locked.push(tasks.clone());
        }
        if let Some(wait) = Wait::of(&stacks) {
            super::model::gather::join(&mut groups, &tasks, wait);
        }
    }
    for (tasks, wait) in groups.into_iter().take(GROUPS_MAX) {
        match wait.kind {
            WaitKind::Message => {
                let messages = messages(session, line, &tasks, &wait).await;
                observed.messages.extend(messages);
            }
            WaitKind::File => {
                let facts = file_facts(session, line, &tasks, &wait).await;
                observed.files.extend(facts);
            }
            _ => {}
        }
    }
    for tasks in locked.into_iter().take(LOCK_TASKS_MAX) {
        if let Some(one) = tasks.first()
            && let Some(words) = circle_of_locks(session, line, one).await
        {
            observed.circles.push((tasks, words));
        }
    }
}

/// Peer and tag of what a group waits for, by what each has there.
async fn messages(session: &SessionHandle, line: &str, tasks: &IdSet, wait: &Wait) -> Vec<Message> {
    let text = source_of(session, line, tasks, &wait.frame).await;
    let head = text.lines().next().unwrap_or("").trim();
    let source = match wait.frame.line {
        0 => String::new(),
        number => format!("{number}: {head}"),
    };
    let arguments = call_arguments(&text, &wait.call).unwrap_or_default();
    let name = wait.call.to_ascii_lowercase();
    let name = name.trim_start_matches('p').trim_start_matches("mpi_");
    let places: &[(usize, &str)] = match name.trim_end_matches('_') {
        "recv" | "mrecv" => &[(3, "from"), (4, "tag")],
        "send" | "ssend" | "bsend" | "rsend" => &[(3, "to"), (4, "tag")],
        "probe" | "mprobe" | "iprobe" => &[(0, "from"), (1, "tag")],
        "sendrecv" => &[(3, "to"), (4, "tag"), (8, "from"), (9, "tag")],
        _ => &[],
    };
    let mut known: Vec<(IdSet, Message)> = vec![(
        tasks.clone(),
        Message {
            source,
            ..Message::default()
        },
    )];
    for (index, word) in places {
        let Some(expression) = arguments.get(*index) else {
            continue;
        };
        let values = values(session, line, tasks, expression).await;
        known = with_values(known, expression, word, &values);
    }
    let named = known.into_iter().take(GROUPS_MAX);
    named
        .map(|(tasks, message)| Message { tasks, ..message })
        .collect()
}

/// Which file a group waits for.
async fn file_facts(
    session: &SessionHandle,
    line: &str,
    tasks: &IdSet,
    wait: &Wait,
) -> Vec<(IdSet, String)> {
    let text = source_of(session, line, tasks, &wait.frame).await;
    let Some(first) = call_arguments(&text, &wait.call).and_then(|a| a.into_iter().next()) else {
        return Vec::new();
    };
    let head = text.lines().next().unwrap_or("").trim();
    let mut facts = vec![(tasks.clone(), format!("{}: {head}", wait.frame.line))];
    for (tasks, value) in values(session, line, tasks, &first)
        .await
        .into_iter()
        .take(GROUPS_MAX)
    {
        facts.push((tasks, format!("{first} = {value}")));
    }
    facts
}

/// Some lines of source from where a frame stands.
async fn source_of(
    session: &SessionHandle,
    line: &str,
    tasks: &IdSet,
    frame: &StackFrame,
) -> String {
    let Some(one) = tasks.first().filter(|_| frame.line > 0) else {
        return String::new();
    };
    let (file, first) = (&frame.file, frame.line);
    let command = Command::Console {
        line: format!("list {file}:{first},{file}:{}", first + CALL_LINES),
    };
    let answers = session.answers(line, &IdSet::single(one), &command).await;
    let Some((_, Reply::Text(text))) = answers.first() else {
        return String::new();
    };
    let source = |line: &str| {
        line.split_once('\t')
            .map_or("", |(_, text)| text)
            .to_owned()
    };
    text.lines().map(source).collect::<Vec<_>>().join("\n")
}

async fn values(
    session: &SessionHandle,
    line: &str,
    tasks: &IdSet,
    expression: &str,
) -> Vec<(IdSet, String)> {
    let command = Command::Evaluate {
        expression: expression.to_owned(),
    };
    let answers = session.answers(line, tasks, &command).await.into_iter();
    let value = |(tasks, reply)| match reply {
        Reply::Value(value) => Some((tasks, value.text)),
        _ => None,
    };
    answers.filter_map(value).collect()
}

/// Threads of a task that wait for each other's mutexes, where the owners say so.
async fn circle_of_locks(session: &SessionHandle, line: &str, task: TaskId) -> Option<Vec<String>> {
    let one = IdSet::single(task);
    let threads = session.answers(line, &one, &Command::Threads).await;
    let Some((_, Reply::Threads(threads))) = threads.into_iter().next() else {
        return None;
    };
    let current = threads.iter().find(|thread| thread.current);
    let current = current.map(|thread| thread.number);
    let mut waits: BTreeMap<u32, LockWait> = BTreeMap::new();
    let mut numbers: BTreeMap<u64, u32> = BTreeMap::new();
    for thread in threads.iter().take(THREADS_MAX) {
        let select = Command::SelectThread {
            number: thread.number,
        };
        session.answers(line, &one, &select).await;
        if let Some(lwp) = lwp(session, line, &one).await {
            numbers.insert(lwp, thread.number);
        }
        if let Some(wait) = lock_wait(session, line, &one).await {
            waits.insert(thread.number, wait);
        }
    }
    if let Some(number) = current {
        session
            .answers(line, &one, &Command::SelectThread { number })
            .await;
    }
    circle(&waits, &numbers)
}

/// The kernel's number of the selected thread.
async fn lwp(session: &SessionHandle, line: &str, one: &IdSet) -> Option<u64> {
    let command = Command::Console {
        line: "thread".to_owned(),
    };
    let answers = session.answers(line, one, &command).await;
    let Some((_, Reply::Text(text))) = answers.first() else {
        return None;
    };
    let number = text.split_once("LWP ").map_or_else(
        || text.split_once("process ").map(|(_, rest)| rest),
        |(_, rest)| Some(rest),
    )?;
    let end = number.find(|c: char| !c.is_ascii_digit());
    number[..end.unwrap_or(number.len())].parse().ok()
}

/// The mutex that the selected thread waits for.
async fn lock_wait(session: &SessionHandle, line: &str, one: &IdSet) -> Option<LockWait> {
    let spec = BacktraceSpec {
        limit: 16,
        args: false,
        full: true,
    };
    let answers = session.answers(line, one, &Command::Backtrace(spec)).await;
    let Some((_, Reply::Backtrace(backtrace))) = answers.into_iter().next() else {
        return None;
    };
    let frames = &backtrace.frames;
    let lock = frames.iter().position(|frame| is_lock(&frame.function))?;
    let user = frames[lock + 1..].iter().find(|frame| frame.line > 0)?;
    let select = Command::SelectFrame(FrameSelect::Level(user.level));
    session.answers(line, one, &select).await;
    let frame = StackFrame::own(&user.function, &user.file, user.line);
    let text = source_of(session, line, one, &frame).await;
    let name = plain_lock(&frames[lock].function);
    let mutex = call_arguments(&text, name)?.into_iter().next()?;
    let owner = values(session, line, one, &format!("({mutex})->__data.__owner")).await;
    Some(LockWait {
        mutex,
        place: format!("{} () at {}:{}", user.function, user.file, user.line),
        owner: owner.first()?.1.parse().ok()?,
    })
}

/// What a thread waits for.
struct LockWait {
    mutex: String,
    place: String,
    /// The kernel's number of the thread that holds it.
    owner: u64,
}

fn circle(waits: &BTreeMap<u32, LockWait>, numbers: &BTreeMap<u64, u32>) -> Option<Vec<String>> {
    for start in waits.keys() {
        let mut way = vec![*start];
        while let Some(next) = way
            .last()
            .and_then(|thread| waits.get(thread))
            .and_then(|wait| numbers.get(&wait.owner))
        {
            let Some(at) = way.iter().position(|thread| thread == next) else {
                way.push(*next);
                continue;
            };
            let say = |thread: &u32| {
                let wait = &waits[thread];
                let holder = numbers[&wait.owner];
                format!(
                    "thread {thread} waits in {} for {}, which thread {holder} holds",
                    wait.place, wait.mutex
                )
            };
            return Some(way[at..].iter().map(say).collect());
        }
    }
    None
}

/// The name in the source of what gdb may call by an inner name.
fn plain_lock(function: &str) -> &str {
    let name = function.trim_start_matches('_');
    let name = name.strip_prefix("GI_").unwrap_or(name);
    name.trim_start_matches('_')
}

fn threads_in_locks(stacks: &TaskStacks) -> u32 {
    let in_lock = stacks.threads.iter().filter(|thread| {
        let last = thread.frames.last();
        last.is_some_and(|frame| is_lock(&frame.function))
    });
    in_lock.map(|thread| thread.count).sum()
}

/// Divides what is known by the values of an expression.
fn with_values(
    known: Vec<(IdSet, Message)>,
    expression: &str,
    word: &str,
    values: &[(IdSet, String)],
) -> Vec<(IdSet, Message)> {
    let mut divided = Vec::new();
    for (tasks, message) in known {
        let mut rest = tasks.clone();
        for (who, value) in values {
            let both = tasks.intersection(who);
            if both.is_empty() {
                continue;
            }
            rest.subtract(&both);
            let mut message = message.clone();
            let fact = if expression == value {
                format!("{word} {value}")
            } else {
                format!("{word} {value} ({expression})")
            };
            message.facts.push(fact);
            if word != "tag" {
                message.peer = value.parse().ok();
            }
            divided.push((both, message));
        }
        if !rest.is_empty() {
            divided.push((rest, message));
        }
    }
    divided
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(owner: u64) -> LockWait {
        LockWait {
            mutex: "&m".to_owned(),
            place: "f () at a.c:1".to_owned(),
            owner,
        }
    }

    #[test]
    fn a_circle_of_owners_is_found_and_a_chain_is_none() {
        let numbers = BTreeMap::from([(100, 1), (101, 2), (102, 3)]);
        let waits = BTreeMap::from([(1, wait(101)), (2, wait(102)), (3, wait(101))]);
        let words = circle(&waits, &numbers).unwrap();
        assert_eq!(
            words,
            [
                "thread 2 waits in f () at a.c:1 for &m, which thread 3 holds",
                "thread 3 waits in f () at a.c:1 for &m, which thread 2 holds"
            ]
        );
        let waits = BTreeMap::from([(1, wait(101)), (2, wait(102))]);
        assert_eq!(circle(&waits, &numbers), None);
    }
}
