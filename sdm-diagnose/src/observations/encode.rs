//! Formatting of observations as JSON.

use std::time::Duration;

use sdm_debug::probe::{
    Call, CallArgument, LockWait, ProcessState, ResourceWait, TaskWaits, ThreadWait, WaitFor,
    Within,
};
use sdm_debug::reply::{StackFrame, TaskStacks, ThreadStack};
use sdm_debug::rules::{Alike, Marks, Numbers, Probes};
use sdm_idset::IdSet;
use serde_json::{Map, Value, json};

use super::names::{KNOWN, ROLES, word};
use super::{OBSERVATIONS_VERSION, Observations};

/// A JSON object under construction. Empty, false and unknown values are left out.
#[derive(Default)]
struct Object(Map<String, Value>);

impl Object {
    fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        let value = value.into();
        let is_empty = match &value {
            Value::Null => true,
            Value::Bool(is) => !is,
            Value::String(text) => text.is_empty(),
            Value::Array(list) => list.is_empty(),
            Value::Number(_) | Value::Object(_) => false,
        };
        if !is_empty {
            self.0.insert(name.to_owned(), value);
        }
        self
    }

    fn set(self, name: &str, tasks: &IdSet) -> Self {
        self.with(name, tasks.to_string())
    }
}

impl From<Object> for Value {
    fn from(object: Object) -> Self {
        Self::Object(object.0)
    }
}

/// The whole file.
pub(super) fn file(kept: &Observations) -> Value {
    let observed = &kept.observed;
    let mut stacks: Vec<&TaskStacks> = Vec::new();
    let samples = observed.samples.iter();
    let samples: Vec<_> = samples.map(|one| sample(one, &mut stacks)).collect();
    let pids = observed.pids.iter();
    let pids = pids.map(|(pid, task)| json!({ "pid": pid, "rank": task.0 }));
    let object = Object::default()
        .with("observations", OBSERVATIONS_VERSION)
        .with("verdict", kept.verdict.clone())
        .with("span_ns", nanoseconds(observed.span))
        .with("ran_ns", nanoseconds(observed.ran))
        .with("gone", told(&observed.gone))
        .with("aborting", told(&observed.aborting))
        .with("halted", told(&observed.halted))
        .with("states", told(&observed.states))
        .with("stood", told(&observed.stood))
        .with("unseen", told(&observed.unseen))
        .set("outside", &observed.outside)
        .with("unranked", observed.unranked)
        .with("strict_sends", observed.strict_sends)
        .with("pids", pids.collect::<Vec<_>>())
        .with("stacks", stacks.into_iter().map(stack).collect::<Vec<_>>())
        .with("samples", samples);
    object.into()
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn told(list: &[(IdSet, String)]) -> Vec<Value> {
    of_each(list, |object, what| object.with("what", what.as_str()))
}

/// A list of objects, each with its set of tasks.
fn of_each<T>(parts: &[(IdSet, T)], fields: impl Fn(Object, &T) -> Object) -> Vec<Value> {
    let parts = parts.iter();
    let object = |(tasks, part): &(IdSet, T)| fields(Object::default().set("tasks", tasks), part);
    parts.map(|part| object(part).into()).collect()
}

/// One sample. A stack that equals one of `known` is stored by its index there; a new stack is added.
fn sample<'a>(probes: &'a Probes, known: &mut Vec<&'a TaskStacks>) -> Value {
    let mut stacks = Vec::new();
    for (tasks, stack) in &probes.stacks {
        let at = known.iter().position(|one| *one == stack);
        let at = at.unwrap_or_else(|| {
            known.push(stack);
            known.len() - 1
        });
        stacks.push(Object::default().set("tasks", tasks).with("stack", at));
    }
    let numbers = probes.numbers.iter();
    let numbers: Map<_, _> = numbers
        .map(|(role, numbers)| (word(&ROLES, role).to_owned(), self::numbers(numbers)))
        .collect();
    let numbers = Some(numbers).filter(|numbers| !numbers.is_empty());
    let object = Object::default()
        .with("stacks", stacks)
        .with("marks", marks(&probes.marks))
        .with("waits", of_each(&probes.waits, waits))
        .with("numbers", numbers.map(Value::Object))
        .with("within", of_each(&probes.within, within))
        .with(
            "cpu",
            of_each(&probes.cpu_ms, |one, ms| one.with("ms", *ms)),
        )
        .with("processes", of_each(&probes.processes, process))
        .set("cut", &probes.cut);
    object.into()
}

fn marks(marks: &Marks) -> Option<Value> {
    if *marks == Marks::default() {
        return None;
    }
    let object = Object::default()
        .set("inner_changed", &marks.inner_changed)
        .set("outer_changed", &marks.outer_changed)
        .set("partial", &marks.partial)
        .set("starved", &marks.starved)
        .set("unfollowed", &marks.unfollowed)
        .set("exchanged", &marks.exchanged);
    Some(object.into())
}

fn numbers(numbers: &Numbers) -> Value {
    let alike = numbers.alike(None);
    let each = alike.iter().map(|(alike, tasks)| {
        let (name, number) = match alike {
            Alike::Same(number) => ("number", *number),
            Alike::Away(by) => ("above_rank", *by),
        };
        Object::default().set("tasks", tasks).with(name, number)
    });
    Value::Array(each.map(Value::from).collect())
}

fn stack(stacks: &TaskStacks) -> Value {
    let threads = stacks.threads.iter().map(thread);
    let object = Object::default()
        .with("threads", threads.collect::<Vec<_>>())
        .with("helpers", Some(stacks.helpers).filter(|count| *count > 0));
    object.into()
}

fn thread(thread: &ThreadStack) -> Value {
    let frames = thread.frames.iter().map(frame);
    let object = Object::default()
        .with("main", thread.main)
        .with("count", Some(thread.count).filter(|count| *count != 1))
        .with("frames", frames.collect::<Vec<_>>());
    object.into()
}

fn frame(frame: &StackFrame) -> Value {
    let object = Object::default()
        .with("module", frame.module.as_str())
        .with("function", frame.function.as_str())
        .with("file", frame.file.as_str())
        .with("line", Some(frame.line).filter(|line| *line > 0))
        .with("repeat", Some(frame.repeat).filter(|count| *count != 1));
    object.into()
}

fn within(object: Object, within: &Within) -> Object {
    object
        .with("depth", within.depth)
        .with("frame", frame(&within.frame))
        .with("changed", within.changed)
        .with("noted", within.noted)
}

fn process(object: Object, process: &ProcessState) -> Object {
    object
        .with("state", process.letter.to_string())
        .with("wait_channel", process.wait_channel.as_str())
}

fn waits(object: Object, waits: &TaskWaits) -> Object {
    let threads = waits.threads.iter().map(thread_wait);
    let window_locks = waits.window_locks.iter().map(|lock| {
        let object = Object::default().with("window", lock.window);
        Value::from(object.with("target", lock.target))
    });
    object
        .with("call", waits.call.as_ref().map(call))
        .with("threads", threads.collect::<Vec<_>>())
        .with("window_locks", window_locks.collect::<Vec<_>>())
}

fn call(call: &Call) -> Value {
    let arguments = call.arguments.iter().map(argument);
    let object = Object::default()
        .with("function", call.function.as_str())
        .with("place", frame(&call.place))
        .with("source", call.source.as_str())
        .with("arguments", arguments.collect::<Vec<_>>());
    object.into()
}

fn argument(argument: &CallArgument) -> Value {
    let value = argument.value.as_ref().map(|value| {
        Object::default()
            .with("text", value.text.as_str())
            .with("whole_bytes", value.cut.map(|(bytes, _)| bytes))
            .with("whole_hash", value.cut.map(|(_, hash)| hash))
    });
    let object = Object::default()
        .with("role", word(&ROLES, &argument.role))
        .with("expression", argument.expression.as_str())
        .with("value", value.map(Value::from))
        .with("number", argument.number)
        .with("known", word(&KNOWN, &argument.known));
    object.into()
}

fn thread_wait(wait: &ThreadWait) -> Value {
    let object = Object::default().with("thread", wait.thread);
    let object = match &wait.what {
        WaitFor::Lock(wait) => object.with("lock", lock(wait)),
        WaitFor::SystemCall(name) => object.with("system_call", json!({ "name": name })),
        WaitFor::Resource(wait) => object.with("resource", resource(wait)),
        WaitFor::Join(wait) => {
            let join = Object::default().with("thread", wait.thread);
            object.with("join", join.with("place", frame(&wait.place)))
        }
        WaitFor::Polling => object.with("polling", true),
        WaitFor::Nobody => object.with("nobody", true),
    };
    object.into()
}

fn lock(wait: &LockWait) -> Value {
    let object = Object::default()
        .with("mutex", wait.mutex.as_str())
        .with("place", frame(&wait.place))
        .with("holder", wait.holder)
        .with("orphaned", wait.orphaned);
    object.into()
}

fn resource(wait: &ResourceWait) -> Value {
    let holders = wait.holders.iter().map(|holder| {
        Object::default()
            .with("pid", holder.pid)
            .with("name", holder.name.as_str())
            .with("state", holder.letter.to_string())
    });
    let object = Object::default()
        .with("call", wait.call.as_str())
        .with("what", wait.what.as_str())
        .with("holders", holders.map(Value::from).collect::<Vec<_>>());
    object.into()
}
