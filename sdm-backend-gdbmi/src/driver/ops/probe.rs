//! The probe: place, waits, arguments, processor time and the kernel's word on a task, in one answer.
//!
//! gdb is asked in GDB/MI's typed forms, each naming its thread and frame, so that nothing that is selected
//! changes; `/proc` says the rest. What a task remembers of one probe is compared at the next one.

use sdm_debug::calls::{call_arguments, is_harmless, is_lock, mpi_name, plain, roles};
use sdm_debug::command::ProbeSpec;
use sdm_debug::fold::{RawThread, fold_task, innermost_user_frame};
use sdm_debug::probe::{
    Call, CallArgument, LockWait, ProcessState, TaskProbe, TaskWaits, ThreadWait, WaitFor,
};
use sdm_debug::reply::{StackFrame, Value, Variable};
use sdm_debug::{Failure, FailureCode, Reply, wire};
use xxhash_rust::xxh3::xxh3_128;

use super::frames::GdbFrame;
use super::stack::{ReadThread, read_threads};
use crate::driver::gdb::Gdb;
use crate::driver::state::probed::Probed;
use crate::driver::text::{value, variable};
use crate::kernel;
use crate::mi::quote;

/// How many lines of source a call can have.
const CALL_LINES: u32 = 6;
/// The most threads of one task whose waits are looked at.
const THREADS_MAX: usize = 64;

/// Answers a probe. Of a task that runs only the kernel is asked.
pub(in crate::driver) async fn probe(gdb: &Gdb, spec: ProbeSpec) -> Result<Reply, Failure> {
    let (pid, stopped) = {
        let state = gdb.get();
        (state.pid(), state.activity.is_stopped())
    };
    let before = gdb.edit().probed.take().filter(|_| spec.compare);
    let mut now = before.clone().unwrap_or_default();
    now.cpu_ms = pid.and_then(|pid| gdb.host().cpu_ms(pid));
    let spent = |before: &Probed| now.cpu_ms?.checked_sub(before.cpu_ms?);
    let process = pid.and_then(|pid| gdb.host().process_state(pid));
    let mut probe = TaskProbe {
        cpu_ms: before.as_ref().and_then(spent),
        process: process.map(|(letter, wait_channel)| ProcessState {
            letter,
            wait_channel,
        }),
        ..TaskProbe::default()
    };
    if stopped {
        let selected = Selected::of(gdb).await?;
        look(gdb, spec, &mut probe, &mut now).await?;
        drop(selected);
        if let Some(before) = before {
            probe.inner_changed = Some(before.inner != now.inner);
            probe.outer_changed = Some(before.outer != now.outer);
        }
    }
    gdb.edit().probed = Some(now);
    Ok(Reply::Probe(Box::new(probe)))
}

/// What is selected in gdb: up to gdb 12 a command that names a thread leaves it selected. Dropped, it is
/// selected again.
struct Selected {
    gdb: Gdb,
    /// The commands that select it; none where a gdb holds several tasks, in which what is selected is in the books
    /// only.
    lines: Vec<String>,
}

impl Selected {
    async fn of(gdb: &Gdb) -> Result<Self, Failure> {
        let mut lines = Vec::new();
        if gdb.get().origin.scope().is_none() {
            let info = gdb.mi("-thread-info").await?;
            let frame = gdb.mi("-stack-info-frame").await?;
            let level = frame.tuple("frame").and_then(|frame| frame.number("level"));
            let current = info.number::<u32>("current-thread-id");
            if let Some((thread, level)) = current.zip(level) {
                let level: u32 = level;
                lines.push(format!("-thread-select {thread}"));
                lines.push(format!("-stack-select-frame {level}"));
            }
        }
        Ok(Self {
            gdb: gdb.clone(),
            lines,
        })
    }
}

impl Drop for Selected {
    fn drop(&mut self) {
        for line in &self.lines {
            self.gdb.post(line);
        }
    }
}

async fn look(
    gdb: &Gdb,
    spec: ProbeSpec,
    probe: &mut TaskProbe,
    now: &mut Probed,
) -> Result<(), Failure> {
    let (threads, beyond) = read_threads(gdb).await?;
    let config = gdb.get().config.clone();
    let fold = &config.fold;
    let raw: Vec<RawThread> = threads.iter().map(|thread| thread.raw.clone()).collect();
    let mut stacks = fold_task(&raw, fold, false);
    stacks.helpers += beyond;
    probe.stacks = Some(stacks);
    let main = threads.iter().find(|thread| thread.raw.main);
    if let Some(thread) = main.or(threads.first()) {
        let user = innermost_user_frame(&thread.raw.frames, fold);
        let at = user.map_or(0, |user| user.index);
        let mut frames = thread.frames[at.min(thread.frames.len())..].iter();
        now.inner = match frames.next() {
            Some(frame) => Some(fingerprint(&variables(gdb, thread, frame).await?)),
            None => None,
        };
        let around = frames.take(2);
        let is_outermost = around.len() == 0;
        let mut outer = Vec::new();
        for frame in around {
            outer.extend(variables(gdb, thread, frame).await?);
        }
        now.outer = (!is_outermost).then(|| fingerprint(&outer));
    }
    if spec.waits {
        probe.waits = Some(waits(gdb, &threads).await?);
    }
    Ok(())
}

fn fingerprint(variables: &Vec<Variable>) -> u128 {
    xxh3_128(&wire::encode(variables))
}

/// The variables of a frame, arguments included.
async fn variables(
    gdb: &Gdb,
    thread: &ReadThread,
    frame: &GdbFrame,
) -> Result<Vec<Variable>, Failure> {
    let (id, level) = (thread.id, frame.level);
    let line = format!("-stack-list-variables --thread {id} --frame {level} --all-values");
    let results = gdb.mi(line).await?;
    Ok(results.tuples("variables").map(variable).collect())
}

async fn waits(gdb: &Gdb, threads: &[ReadThread]) -> Result<TaskWaits, Failure> {
    let config = gdb.get().config.clone();
    let fold = &config.fold;
    let mut waits = TaskWaits::default();
    for thread in threads.iter().take(THREADS_MAX) {
        let Some(user) = innermost_user_frame(&thread.raw.frames, fold) else {
            continue;
        };
        if thread.raw.main
            && let Some(function) = &user.inside
        {
            waits.call = call(gdb, thread, function, user.index).await?;
        }
        let what = match lock(gdb, thread, threads).await? {
            Some(lock) => Some(WaitFor::Lock(lock)),
            // MPI polls: which system call it is in just now says nothing.
            None if user
                .inside
                .as_deref()
                .is_some_and(|f| mpi_name(f).is_some()) =>
            {
                None
            }
            None => system_call(gdb, thread).map(WaitFor::SystemCall),
        };
        let number = thread.number;
        waits.threads.extend(what.map(|what| ThreadWait {
            thread: number,
            what,
        }));
    }
    Ok(waits)
}

fn system_call(gdb: &Gdb, thread: &ReadThread) -> Option<String> {
    let pid = gdb.get().pid()?;
    let number = gdb.host().system_call(pid, thread.kernel_id?)?;
    kernel::name_of(number)
}

/// The call that a thread is in, which its user's frame of this index has made.
async fn call(
    gdb: &Gdb,
    thread: &ReadThread,
    function: &str,
    index: usize,
) -> Result<Option<Call>, Failure> {
    let roles = roles(function);
    let Some(user) = thread.frames.get(index).filter(|_| !roles.is_empty()) else {
        return Ok(None);
    };
    let text = source_from(gdb, user);
    let mut written = Written::Nowhere;
    if let Some(expressions) = call_arguments(&text, function) {
        written = Written::InSource(expressions);
    } else if let Some(own) = own_frame(thread, function, index) {
        written = Written::InFrame(arguments(gdb, thread, own).await?);
    }
    let mut found = Vec::new();
    for (place, role) in roles {
        let argument = match &written {
            Written::InSource(all) => match all.get(*place) {
                Some(text) => Some((text.clone(), evaluate(gdb, thread, user, text).await?)),
                None => None,
            },
            Written::InFrame(all) => all.get(*place).map(|variable| {
                let Variable { name, value } = variable.clone();
                (name, Some(value))
            }),
            Written::Nowhere => None,
        };
        found.extend(argument.map(|(expression, value)| CallArgument {
            role: *role,
            expression,
            value,
        }));
    }
    Ok(Some(Call {
        function: function.to_owned(),
        place: place_of(user),
        source: text.lines().next().unwrap_or_default().trim().to_owned(),
        arguments: found,
    }))
}

/// Where the arguments of a call are known from.
enum Written {
    /// As expressions of the caller's.
    InSource(Vec<String>),
    /// From the debug information of the function that is called.
    InFrame(Vec<Variable>),
    Nowhere,
}

/// The frame of the runtime's function itself, where it has debug information.
fn own_frame<'a>(thread: &'a ReadThread, function: &str, index: usize) -> Option<&'a GdbFrame> {
    let is_own = |name: &str| match mpi_name(function) {
        Some(wanted) => mpi_name(name) == Some(wanted),
        None => plain(name) == plain(function),
    };
    let at = thread.raw.frames[..index].iter().rposition(|raw| {
        let name = raw.function.as_deref();
        raw.file.is_some() && name.is_some_and(is_own)
    })?;
    thread.frames.get(at)
}

async fn arguments(
    gdb: &Gdb,
    thread: &ReadThread,
    frame: &GdbFrame,
) -> Result<Vec<Variable>, Failure> {
    let (id, level) = (thread.id, frame.level);
    let line = format!("-stack-list-arguments --thread {id} 1 {level} {level}");
    let results = gdb.mi(line).await?;
    let arguments = results
        .tuples("stack-args")
        .flat_map(|frame| frame.tuples("args"));
    Ok(arguments.map(variable).collect())
}

/// The value of an expression in a frame; none where it has none, or could change the program.
async fn evaluate(
    gdb: &Gdb,
    thread: &ReadThread,
    frame: &GdbFrame,
    expression: &str,
) -> Result<Option<Value>, Failure> {
    if !is_harmless(expression) {
        return Ok(None);
    }
    let (id, level) = (thread.id, frame.level);
    let expression = quote(expression.as_bytes());
    let line = format!("-data-evaluate-expression --thread {id} --frame {level} {expression}");
    match gdb.mi(line).await {
        Ok(results) => Ok(results.text("value").map(value)),
        // A macro's name, something optimised out: then it is not known.
        Err(failure) if failure.code == FailureCode::Gdb => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// The mutex that a thread waits for: what the user's frame next to a function that locks has given it.
async fn lock(
    gdb: &Gdb,
    thread: &ReadThread,
    threads: &[ReadThread],
) -> Result<Option<LockWait>, Failure> {
    let raw = &thread.raw.frames;
    let function = |index: usize| raw[index].function.as_deref().unwrap_or_default();
    let Some(at) = (0..raw.len()).find(|index| is_lock(function(*index))) else {
        return Ok(None);
    };
    let Some(user) = (at + 1..raw.len()).find(|index| raw[*index].line > 0) else {
        return Ok(None);
    };
    let frame = &thread.frames[user];
    let text = source_from(gdb, frame);
    let mutex = call_arguments(&text, plain(function(at))).and_then(|all| all.into_iter().next());
    let Some(mutex) = mutex else {
        return Ok(None);
    };
    let owner = format!("({mutex})->__data.__owner");
    let owner = match is_harmless(&mutex) {
        true => evaluate(gdb, thread, frame, &owner).await?,
        false => None,
    };
    let owner: Option<i32> = owner.and_then(|owner| owner.text.parse().ok());
    let holder = owner.and_then(|owner| threads.iter().find(|t| t.kernel_id == Some(owner)));
    Ok(Some(LockWait {
        mutex,
        place: place_of(frame),
        holder: holder.map(|thread| thread.number),
    }))
}

/// Some lines of source from where a frame stands.
fn source_from(gdb: &Gdb, frame: &GdbFrame) -> String {
    let lines = frame.source_lines(gdb, CALL_LINES + 1);
    lines.join("\n")
}

fn place_of(frame: &GdbFrame) -> StackFrame {
    let raw = frame.raw();
    StackFrame {
        module: raw.module,
        ..StackFrame::own(
            raw.function.unwrap_or_default(),
            raw.file.unwrap_or_default(),
            raw.line,
        )
    }
}
