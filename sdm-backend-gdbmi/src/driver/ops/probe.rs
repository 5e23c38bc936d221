//! The probe: place, waits, arguments, processor time and the kernel's word on a task, in one answer.
//!
//! gdb is asked in GDB/MI's typed forms, each naming its thread and frame, so that nothing that is selected
//! changes; `/proc` says the rest. What a task remembers of one probe is compared at the next one.

use sdm_debug::calls::{call_arguments, is_harmless, is_lock, mpi_name, plain, roles};
use sdm_debug::command::ProbeSpec;
use sdm_debug::fold::{FoldRules, RawThread, fold_task, innermost_user_frame, is_whole};
use sdm_debug::probe::{
    ArgumentRole, Call, CallArgument, Known, LockWait, ProcessState, TaskProbe, TaskWaits,
    ThreadWait, WaitFor,
};
use sdm_debug::reply::{StackFrame, Value, Variable};
use sdm_debug::{Failure, FailureCode, Reply};

use super::frame_states::frame_states;
use super::frames::GdbFrame;
use super::kept::{Kept, kept};
use super::stack::{ReadThread, read_threads};
use crate::driver::gdb::Gdb;
use crate::driver::state::probed::{FrameState, Probed};
use crate::driver::text::{value, variable};
use crate::kernel;
use crate::mi::quote;

/// How many lines of source a call can have.
const CALL_LINES: u32 = 6;
/// Who was on a processor for less than this since the probe before has not been given one, as stopping and letting
/// go alone take about so long.
const STARVED_NS: u64 = 200_000;
/// MPICH's handle of the communicator of all.
const MPICH_WORLD: &str = "1140850688";
/// The most threads of one task whose waits are looked at.
const THREADS_MAX: usize = 64;
/// The most threads beside the main one whose calls of MPI's are compared.
const BESIDE_MAX: usize = 16;

/// Answers a probe. Of a task that runs only the kernel is asked.
pub(in crate::driver) async fn probe(gdb: &Gdb, spec: ProbeSpec) -> Result<Reply, Failure> {
    let (pid, stopped) = {
        let state = gdb.get();
        (state.pid(), state.activity.is_stopped())
    };
    let last = gdb.edit().probed.take().unwrap_or_default();
    let compared = Some(&last).filter(|last| spec.compare && last.is_whole);
    let cpu_ms = pid.and_then(|pid| gdb.host().cpu_ms(pid));
    let since = Some(&last).filter(|_| spec.compare);
    let spent = |before: &Probed| cpu_ms?.checked_sub(before.cpu_ms?);
    let process = pid.and_then(|pid| gdb.host().process_state(pid));
    let mut probe = TaskProbe {
        cpu_ms: since.and_then(spent),
        process: process.map(|(letter, wait_channel)| ProcessState {
            letter,
            wait_channel,
        }),
        ..TaskProbe::default()
    };
    let mut now = last.clone();
    if stopped {
        let selected = Selected::of(gdb).await?;
        now = look(gdb, spec, &mut probe, (&last, compared)).await?;
        drop(selected);
    }
    now.cpu_ms = cpu_ms;
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

/// Looks at a task that stands; where its main thread's stack is not whole, what was seen before is what the next
/// look is compared with.
async fn look(
    gdb: &Gdb,
    spec: ProbeSpec,
    probe: &mut TaskProbe,
    (last, before): (&Probed, Option<&Probed>),
) -> Result<Probed, Failure> {
    let (threads, beyond) = read_threads(gdb).await?;
    let config = gdb.get().config.clone();
    let fold = &config.fold;
    let raw: Vec<RawThread> = threads.iter().map(|thread| thread.raw.clone()).collect();
    let main = threads.iter().find(|thread| thread.raw.main);
    let mut now = last.clone();
    let thread = main.or(threads.first());
    let whole = thread.filter(|thread| {
        let outermost = thread.frames.last().map(GdbFrame::address);
        // Where nothing has a name, two looks that end at one address have both come to the end.
        let same_end = outermost.is_some() && last.outermost == outermost;
        now.outermost = outermost;
        same_end || is_whole(&thread.raw.frames, fold)
    });
    let Some(thread) = whole else {
        probe.partial = true;
        return Ok(now);
    };
    let mut stacks = fold_task(&raw, fold, false);
    stacks.helpers += beyond;
    probe.stacks = Some(stacks);
    now.frames = frame_states(gdb, thread, fold).await?;
    now.beside = beside(gdb, &threads, thread.id, fold).await?;
    now.thread = thread.kernel_id;
    now.is_whole = true;
    note_time(gdb, thread, probe, before, &mut now);
    if let Some(before) = before {
        let compared = now.since(before);
        probe.inner_changed = Some(compared.inner_changed);
        probe.outer_changed = Some(compared.outer_changed);
        probe.within = compared.within;
    }
    if spec.waits {
        probe.waits = Some(waits(gdb, &threads).await?);
    }
    Ok(now)
}

/// Where the other threads stand that are in a call of MPI's: any of them can be what its task goes on by.
async fn beside(
    gdb: &Gdb,
    threads: &[ReadThread],
    judged: u32,
    fold: &FoldRules,
) -> Result<Vec<(Option<i32>, Vec<FrameState>)>, Failure> {
    let in_mpi = |thread: &&ReadThread| {
        let user = innermost_user_frame(&thread.raw.frames, fold);
        let inside = user.and_then(|user| user.inside);
        thread.id != judged && inside.is_some_and(|call| mpi_name(&call).is_some())
    };
    let mut beside = Vec::new();
    for thread in threads.iter().filter(in_mpi).take(BESIDE_MAX) {
        let frames = frame_states(gdb, thread, fold).await?;
        beside.push((thread.kernel_id, frames));
    }
    Ok(beside)
}

/// Whether the main thread was on a processor since the probe before.
fn note_time(
    gdb: &Gdb,
    thread: &ReadThread,
    probe: &mut TaskProbe,
    before: Option<&Probed>,
    now: &mut Probed,
) {
    let (Some(pid), Some(id)) = (gdb.get().pid(), thread.kernel_id) else {
        return;
    };
    now.ran_ns = gdb.host().ran_ns(pid, id);
    let ran = |before: &Probed| now.ran_ns?.checked_sub(before.ran_ns?);
    let idle = before.and_then(ran).is_some_and(|ns| ns < STARVED_NS);
    let waits = match gdb.host().system_call(pid, id) {
        None => false,
        Some(number) => kernel::name_of(number).as_deref() != Some("sched_yield"),
    };
    probe.starved = idle && !waits;
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
            None => outside(gdb, thread),
        };
        let number = thread.number;
        waits.threads.extend(what.map(|what| ThreadWait {
            thread: number,
            what,
        }));
    }
    Ok(waits)
}

/// What the kernel says that a thread waits in; of the main one also for whom.
fn outside(gdb: &Gdb, thread: &ReadThread) -> Option<WaitFor> {
    let (pid, id) = (gdb.get().pid()?, thread.kernel_id?);
    let resource = match thread.raw.main {
        true => gdb.host().resource(pid, id),
        false => None,
    };
    let call = || kernel::name_of(gdb.host().system_call(pid, id)?);
    resource
        .map(WaitFor::Resource)
        .or_else(|| call().map(WaitFor::SystemCall))
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
    let in_source = call_arguments(&text, function);
    let own = match own_frame(thread, function, index) {
        Some(own) => arguments(gdb, thread, own).await?,
        None => Vec::new(),
    };
    let mut found = Vec::new();
    let mut copied = None;
    for (place, role) in roles {
        let expression = in_source.as_ref().and_then(|all| all.get(*place));
        let mut known = None;
        if let Some(text) = expression {
            let value = number(gdb, thread, user, (text, *role)).await?;
            known = value.map(|value| (text.clone(), value, Known::Source));
        }
        let callee = own.get(*place).filter(|one| is_known(&one.value));
        let callee = callee.map(|one| {
            let name = expression.unwrap_or(&one.name);
            (name.clone(), one.value.clone(), Known::Callee)
        });
        let (mut expression, mut value, mut known) = match (known.or(callee), expression) {
            (Some((expression, value, known)), _) => (expression, Some(value), known),
            (None, Some(expression)) => (expression.clone(), None, Known::Source),
            (None, None) => (String::new(), None, Known::Kept),
        };
        let named = *role == ArgumentRole::Communicator && expression == "MPI_COMM_WORLD";
        if value.is_none() && !named && *role != ArgumentRole::File {
            if copied.is_none() {
                copied = Some(kept(gdb, thread, index).await?);
            }
            if let Some(Some(kept)) = &copied {
                value = from_call(gdb, thread, kept, (*place, *role)).await?;
            }
            if value.is_none() && expression.is_empty() {
                continue;
            }
            if value.is_some() {
                known = Known::Kept;
            }
        }
        if expression.is_empty() {
            expression = "?".to_owned();
        }
        found.push(argument(*role, expression, value, known));
    }
    Ok(Some(Call {
        function: function.to_owned(),
        place: place_of(user),
        source: text.lines().next().unwrap_or_default().trim().to_owned(),
        arguments: found,
    }))
}

/// An argument that lies where the call has put it.
async fn from_call(
    gdb: &Gdb,
    thread: &ReadThread,
    kept: &Kept,
    (place, role): (usize, ArgumentRole),
) -> Result<Option<Value>, Failure> {
    let is_handle = role == ArgumentRole::Communicator;
    let bytes = if is_handle { 8 } else { 4 };
    let Some(number) = kept.argument(gdb, thread, (place, bytes)).await? else {
        return Ok(None);
    };
    let text = |text: String| Value { text, cut: None };
    if !is_handle {
        return Ok(Some(text(number.to_string())));
    }
    // MPICH has numbers of 32 bits, Open MPI addresses, of which gdb knows the names.
    let low = (number & i64::from(u32::MAX)).to_string();
    if low == MPICH_WORLD {
        return Ok(Some(text(low)));
    }
    let Some(innermost) = thread.frames.first() else {
        return Ok(None);
    };
    let named = format!("(void *) {number:#x}");
    evaluate(gdb, thread, innermost, &named).await
}

/// An argument as it travels: what differs from rank to rank and says nothing, an address, is left out.
fn argument(
    role: ArgumentRole,
    expression: String,
    value: Option<Value>,
    known: Known,
) -> CallArgument {
    let number = value.as_ref().and_then(|value| value.text.parse().ok());
    let mut argument = CallArgument {
        role,
        expression,
        value: value.filter(|_| number.is_none()),
        number,
        known,
    };
    if role == ArgumentRole::Communicator {
        let world = argument.is_world();
        (argument.value, argument.number) = (None, None);
        if world {
            argument.expression = "MPI_COMM_WORLD".to_owned();
        }
    }
    argument
}

/// False for what gdb says in place of a value that it does not have.
fn is_known(value: &Value) -> bool {
    !value.text.starts_with('<')
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
    unchecked(gdb, thread, frame, expression).await
}

/// The value of an expression that is known to change nothing.
async fn unchecked(
    gdb: &Gdb,
    thread: &ReadThread,
    frame: &GdbFrame,
    expression: &str,
) -> Result<Option<Value>, Failure> {
    let (id, level) = (thread.id, frame.level);
    let expression = quote(expression.as_bytes());
    let line = format!("-data-evaluate-expression --thread {id} --frame {level} {expression}");
    match gdb.mi(line).await {
        Ok(results) => Ok(results.text("value").map(value).filter(is_known)),
        // A macro's name, something optimised out: then it is not known.
        Err(failure) if failure.code == FailureCode::Gdb => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// The value of an argument; of what has a name in the program, as constants of an enumeration have, its number.
async fn number(
    gdb: &Gdb,
    thread: &ReadThread,
    frame: &GdbFrame,
    (expression, role): (&str, ArgumentRole),
) -> Result<Option<Value>, Failure> {
    let value = evaluate(gdb, thread, frame, expression).await?;
    let is_name = |value: &Value| value.text.starts_with(|c: char| c.is_alphabetic());
    let is_number = !matches!(role, ArgumentRole::Communicator | ArgumentRole::File);
    if !is_number || !value.as_ref().is_some_and(is_name) {
        return Ok(value);
    }
    let number = unchecked(gdb, thread, frame, &format!("(int) ({expression})")).await?;
    Ok(number.or(value))
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
    // Of a mutex that processes share the holder is elsewhere.
    let is_all = owner
        .zip(gdb.get().pid())
        .is_some_and(|(owner, pid)| gdb.host().thread_is_gone(pid, owner));
    let holder = owner.and_then(|owner| threads.iter().find(|t| t.kernel_id == Some(owner)));
    Ok(Some(LockWait {
        mutex,
        place: place_of(frame),
        holder: holder.map(|thread| thread.number),
        orphaned: owner.is_some_and(|owner| owner > 0) && holder.is_none() && is_all,
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
