//! Parsing of observations from JSON. Any bytes give observations or an error, and memory use is bounded by
//! their size.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use sdm_debug::probe::{
    ArgumentRole, Call, CallArgument, Holder, JoinWait, LockWait, ProcessState, ResourceWait,
    TaskWaits, ThreadWait, WaitFor, WindowLock, Within,
};
use sdm_debug::reply::{StackFrame, TaskStacks, ThreadStack, Value as Shown};
use sdm_debug::rules::{Marks, Numbers, Probes};
use sdm_idset::{IdSet, TaskId};
use serde_json::Value;

use super::fields::{Fields, object};
use super::names::{KNOWN, ROLES, named};
use super::{
    NUMBERS_MAX, OBSERVATIONS_VERSION, Observations, ObservationsError as E, RANKS_MAX, SAMPLES_MAX,
};
use crate::Observed;

/// Decodes a file of observations.
pub(super) fn file(value: Value) -> Result<Observations, E> {
    object("observations", value, |fields| {
        let version: Option<u32> = fields.number("observations")?;
        let version = fields.need("observations", version)?;
        if version != OBSERVATIONS_VERSION {
            return Err(E::Version(version));
        }
        let verdict = fields.take("verdict").filter(Value::is_object);
        let verdict = fields.need("verdict", verdict)?;
        let stacks = fields.list("stacks", stack)?;
        // So many numbers are left.
        let mut room = NUMBERS_MAX;
        let samples = fields.list("samples", |fields| sample(fields, &stacks, &mut room))?;
        if samples.len() > SAMPLES_MAX {
            return Err(fields.wrong("samples", "at most 1,000 elements"));
        }
        let observed = Observed {
            samples,
            span: time(fields, "span_ns")?,
            ran: time(fields, "ran_ns")?,
            gone: told(fields, "gone")?,
            aborting: told(fields, "aborting")?,
            halted: told(fields, "halted")?,
            states: told(fields, "states")?,
            stood: told(fields, "stood")?,
            unseen: told(fields, "unseen")?,
            outside: fields.set("outside")?,
            unranked: fields.flag("unranked")?,
            strict_sends: fields.flag("strict_sends")?,
            pids: fields.list("pids", pid)?.into_iter().collect(),
        };
        Ok(Observations { observed, verdict })
    })
}

fn time(fields: &mut Fields, field: &'static str) -> Result<Duration, E> {
    let nanoseconds = fields.number(field)?;
    Ok(Duration::from_nanos(nanoseconds.unwrap_or_default()))
}

fn pid(fields: &mut Fields) -> Result<(i32, TaskId), E> {
    let pid = fields.number("pid")?;
    let rank: Option<u32> = fields.number("rank")?;
    let (pid, rank) = (fields.need("pid", pid)?, fields.need("rank", rank)?);
    if rank >= RANKS_MAX {
        return Err(fields.wrong("rank", "a rank below 4,194,304"));
    }
    Ok((pid, TaskId(rank)))
}

fn told(fields: &mut Fields, field: &'static str) -> Result<Vec<(IdSet, String)>, E> {
    fields.list(field, |one| Ok((one.set("tasks")?, one.text("what")?)))
}

/// Parses a list of objects, each with its set of tasks.
fn of_each<T>(
    fields: &mut Fields,
    field: &'static str,
    read: impl Fn(&mut Fields) -> Result<T, E>,
) -> Result<Vec<(IdSet, T)>, E> {
    fields.list(field, |one| Ok((one.set("tasks")?, read(one)?)))
}

fn sample(fields: &mut Fields, stacks: &[TaskStacks], room: &mut u64) -> Result<Probes, E> {
    // A stack that one look named again and again would cost more than the file.
    let mut seen = BTreeSet::new();
    let stacks = fields.list("stacks", |one| {
        let number = one.number("stack")?;
        let number: usize = one.need("stack", number)?;
        let stack = stacks.get(number).filter(|_| seen.insert(number));
        let expected = "the number of a stack that no earlier element names";
        let stack = stack.ok_or_else(|| one.wrong("stack", expected))?;
        Ok((one.set("tasks")?, stack.clone()))
    })?;
    Ok(Probes {
        stacks,
        marks: fields.object("marks", marks)?.unwrap_or_default(),
        waits: of_each(fields, "waits", waits)?,
        numbers: numbers_of_roles(fields, room)?,
        within: of_each(fields, "within", within)?,
        cpu_ms: of_each(fields, "cpu", |one| {
            let ms = one.number("ms")?;
            one.need("ms", ms)
        })?,
        processes: of_each(fields, "processes", process)?,
        cut: fields.set("cut")?,
    })
}

fn marks(fields: &mut Fields) -> Result<Marks, E> {
    Ok(Marks {
        inner_changed: fields.set("inner_changed")?,
        outer_changed: fields.set("outer_changed")?,
        partial: fields.set("partial")?,
        starved: fields.set("starved")?,
        unfollowed: fields.set("unfollowed")?,
        exchanged: fields.set("exchanged")?,
    })
}

fn numbers_of_roles(
    fields: &mut Fields,
    room: &mut u64,
) -> Result<BTreeMap<ArgumentRole, Numbers>, E> {
    let roles = fields.object("numbers", |fields| {
        let mut roles = BTreeMap::new();
        for (role, word) in ROLES {
            if fields.names().iter().any(|name| name == word) {
                roles.insert(role, numbers(fields, word, room)?);
            }
        }
        Ok(roles)
    })?;
    Ok(roles.unwrap_or_default())
}

fn numbers(fields: &mut Fields, field: &'static str, room: &mut u64) -> Result<Numbers, E> {
    let mut seen = IdSet::new();
    let mut each: Vec<(TaskId, i64)> = Vec::new();
    fields.list(field, |one| {
        let tasks = one.set("tasks")?;
        *room = room
            .checked_sub(tasks.len())
            .ok_or_else(|| one.wrong("tasks", "at most 16,777,216 numbers in the file"))?;
        if !tasks.is_disjoint(&seen) {
            return Err(one.wrong("tasks", "ranks that are in no other element of the list"));
        }
        seen.union_with(&tasks);
        let (same, away): (Option<i64>, Option<i64>) =
            (one.number("number")?, one.number("above_rank")?);
        let ids = tasks.iter();
        match (same, away) {
            (Some(number), None) => each.extend(ids.map(|task| (task, number))),
            (None, Some(by)) => {
                each.extend(ids.map(|task| (task, by.wrapping_add(task.0.into()))));
            }
            _ => return Err(one.wrong("number", "either `number` or `above_rank`")),
        }
        Ok(())
    })?;
    Ok(each.into_iter().collect())
}

fn stack(fields: &mut Fields) -> Result<TaskStacks, E> {
    Ok(TaskStacks {
        threads: fields.list("threads", thread)?,
        helpers: fields.number("helpers")?.unwrap_or_default(),
    })
}

fn thread(fields: &mut Fields) -> Result<ThreadStack, E> {
    Ok(ThreadStack {
        count: fields.number("count")?.unwrap_or(1),
        main: fields.flag("main")?,
        frames: fields.list("frames", frame)?,
    })
}

fn frame(fields: &mut Fields) -> Result<StackFrame, E> {
    Ok(StackFrame {
        module: fields.text("module")?,
        function: fields.text("function")?,
        file: fields.text("file")?,
        line: fields.number("line")?.unwrap_or_default(),
        repeat: fields.number("repeat")?.unwrap_or(1),
    })
}

fn needed_frame(fields: &mut Fields, field: &'static str) -> Result<StackFrame, E> {
    let found = fields.object(field, frame)?;
    fields.need(field, found)
}

fn within(fields: &mut Fields) -> Result<Within, E> {
    let depth = fields.number("depth")?;
    Ok(Within {
        depth: fields.need("depth", depth)?,
        frame: needed_frame(fields, "frame")?,
        changed: fields.flag("changed")?,
        noted: fields.flag("noted")?,
    })
}

fn process(fields: &mut Fields) -> Result<ProcessState, E> {
    Ok(ProcessState {
        letter: fields.letter("state")?,
        wait_channel: fields.text("wait_channel")?,
    })
}

fn waits(fields: &mut Fields) -> Result<TaskWaits, E> {
    Ok(TaskWaits {
        call: fields.object("call", call)?,
        threads: fields.list("threads", thread_wait)?,
        window_locks: fields.list("window_locks", |one| {
            let window = one.number("window")?;
            Ok(WindowLock {
                window: one.need("window", window)?,
                target: one.number("target")?,
            })
        })?,
    })
}

fn call(fields: &mut Fields) -> Result<Call, E> {
    Ok(Call {
        function: fields.text("function")?,
        place: needed_frame(fields, "place")?,
        source: fields.text("source")?,
        arguments: fields.list("arguments", argument)?,
    })
}

fn argument(fields: &mut Fields) -> Result<CallArgument, E> {
    let role = named(&ROLES, &fields.text("role")?);
    let known = named(&KNOWN, &fields.text("known")?);
    Ok(CallArgument {
        role: role.ok_or_else(|| fields.wrong("role", "a role listed in docs/json.md"))?,
        expression: fields.text("expression")?,
        value: fields.object("value", shown)?,
        number: fields.number("number")?,
        known: known.ok_or_else(|| fields.wrong("known", "`source`, `callee` or `kept`"))?,
    })
}

fn shown(fields: &mut Fields) -> Result<Shown, E> {
    let whole = (fields.number("whole_bytes")?, fields.number("whole_hash")?);
    let cut = match whole {
        (None, None) => None,
        (bytes, hash) => Some((
            fields.need("whole_bytes", bytes)?,
            fields.need("whole_hash", hash)?,
        )),
    };
    Ok(Shown {
        text: fields.text("text")?,
        cut,
    })
}

fn thread_wait(fields: &mut Fields) -> Result<ThreadWait, E> {
    let thread = fields.number("thread")?;
    let name = |one: &mut Fields| one.text("name");
    let found = [
        fields.object("lock", lock)?.map(WaitFor::Lock),
        fields.object("system_call", name)?.map(WaitFor::SystemCall),
        fields.object("resource", resource)?.map(WaitFor::Resource),
        fields.object("join", join)?.map(WaitFor::Join),
        fields.flag("polling")?.then_some(WaitFor::Polling),
        fields.flag("nobody")?.then_some(WaitFor::Nobody),
    ];
    let mut found = found.into_iter().flatten();
    let (Some(what), None) = (found.next(), found.next()) else {
        let expected =
            "exactly one of `lock`, `system_call`, `resource`, `join`, `polling` and `nobody`";
        return Err(fields.wrong("lock", expected));
    };
    Ok(ThreadWait {
        thread: fields.need("thread", thread)?,
        what,
    })
}

fn lock(fields: &mut Fields) -> Result<LockWait, E> {
    Ok(LockWait {
        mutex: fields.text("mutex")?,
        place: needed_frame(fields, "place")?,
        holder: fields.number("holder")?,
        orphaned: fields.flag("orphaned")?,
    })
}

fn join(fields: &mut Fields) -> Result<JoinWait, E> {
    let thread = fields.number("thread")?;
    Ok(JoinWait {
        thread: fields.need("thread", thread)?,
        place: needed_frame(fields, "place")?,
    })
}

fn resource(fields: &mut Fields) -> Result<ResourceWait, E> {
    Ok(ResourceWait {
        call: fields.text("call")?,
        what: fields.text("what")?,
        holders: fields.list("holders", |one| {
            let pid = one.number("pid")?;
            Ok(Holder {
                pid: one.need("pid", pid)?,
                name: one.text("name")?,
                letter: one.letter("state")?,
            })
        })?,
    })
}
