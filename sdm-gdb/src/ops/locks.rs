//! The lock for which a thread waits, or the thread whose end it waits for.

use sdm_debug::Failure;
use sdm_debug::calls::{
    call_arguments, is_harmless, is_join, is_lock, is_mutex, is_once, is_openmp_lock, plain,
};
use sdm_debug::fold::{RawFrame, is_of_standard_library};
use sdm_debug::probe::{Holder, JoinWait, LOCK_ON, LockWait, ResourceWait, WaitFor};
use sdm_inspect::kernel;
use sdm_inspect::snapshot::LOCK_BYTES;

use super::call::source_from;
use super::evaluate::{evaluate, unchecked};
use super::frames::GdbFrame;
use super::threads::ReadThread;
use crate::gdb::Gdb;

/// True for a function that calls another locking function for its caller.
fn passes_on(function: &str) -> bool {
    is_lock(function) || is_once(function) || is_of_standard_library(function)
}

/// The number of a system call and its arguments.
type SystemCall = (i64, [u64; 6]);

/// Offset in bytes, in glibc's `pthread_mutex_t`, of the owner's kernel thread id. The futex word is at offset 0.
const OWNER: usize = 8;

/// The lock or thread that a thread waits for, if it is in a locking or joining function; `user` indexes its
/// innermost frame that the user wrote.
///
/// The object is the argument of the call, as the source writes it. The call is that of the innermost calling frame
/// with a source line, or else, and for a call-once function, of the frame of `user`. Without source the object is the
/// futex that the kernel reports.
pub(super) async fn lock(
    gdb: &Gdb,
    thread: &ReadThread,
    threads: &[ReadThread],
    user: usize,
) -> Result<Option<WaitFor>, Failure> {
    let raw = &thread.raw.frames;
    let function = |index: usize| raw[index].function.as_deref().unwrap_or_default();
    let Some(at) = (0..raw.len()).find(|index| is_lock(function(*index))) else {
        return Ok(None);
    };
    let is_once = is_once(function(at));
    let with_source = (at + 1..raw.len()).find(|index| raw[*index].line > 0);
    // Between a call-once function and its caller are templates of the standard library.
    let with_source = with_source.filter(|_| !is_once);
    let Some(caller) = with_source.or(Some(user).filter(|user| *user > at)) else {
        return Ok(None);
    };
    let frame = &thread.frames[caller];
    let call = system_call(gdb, thread);
    let word = call.and_then(kernel::futex_wait);
    // A thread that passes through a free mutex waits for nothing.
    if is_mutex(function(at)) && call.is_some() && word.is_none() {
        return Ok(None);
    }
    if is_join(function(at)) {
        // The futex word of a join holds the id of the thread until that thread ends.
        let number = word.and_then(|(_, number)| i32::try_from(number).ok());
        let waited = of_kernel(threads, number).filter(|one| one.id != thread.id);
        return Ok(waited.map(|one| {
            WaitFor::Join(JoinWait {
                thread: one.number,
                place: frame.stack_frame(),
            })
        }));
    }
    // Where a library's functions are in between, the lines of source can have a call for another lock.
    let mut in_source = None;
    if (at + 1..caller).all(|index| passes_on(function(index))) {
        let text = source_from(gdb, frame);
        let all = call_arguments(&text, plain(function(at)));
        in_source = all.and_then(|all| all.into_iter().next());
    }
    let once = in_once(threads, function(at));
    let is_openmp = is_openmp_lock(function(at));
    let word = word.filter(|_| is_openmp || is_mutex(function(at)));
    let owner = match is_openmp {
        true => None,
        false => owner(gdb, thread, frame, in_source.as_deref(), word).await?,
    };
    let symbol = match word {
        Some((address, _)) => symbol_at(gdb, thread, frame, address).await?,
        None => None,
    };
    let Some(mutex) = name(in_source, symbol, word.is_some(), is_once) else {
        return Ok(None);
    };
    // A process-shared mutex can be held by a thread of another process.
    let is_all = owner
        .zip(gdb.get().pid())
        .is_some_and(|(owner, pid)| gdb.host().thread_is_gone(pid, owner));
    let holder = of_kernel(threads, owner).or(once);
    if let (Some(owner), None, Some((address, _))) = (owner, holder, word)
        && let Some(other) = in_another_process(gdb, owner, address)
    {
        return Ok(Some(WaitFor::Resource(ResourceWait {
            call: "futex".to_owned(),
            what: format!("{LOCK_ON}{mutex}"),
            holders: vec![other],
        })));
    }
    Ok(Some(WaitFor::Lock(LockWait {
        mutex,
        place: frame.stack_frame(),
        holder: holder.map(|thread| thread.number),
        orphaned: owner.is_some_and(|owner| owner > 0) && holder.is_none() && is_all,
    })))
}

/// The thread that executes a call-once function for which another thread waits. `None` unless exactly one thread has
/// called a function of the program from it.
fn in_once<'a>(threads: &'a [ReadThread], function: &str) -> Option<&'a ReadThread> {
    if !is_once(function) {
        return None;
    }
    let inside = |one: &&ReadThread| {
        let frames = &one.raw.frames;
        let is_it = |name: &Option<String>| name.as_deref().is_some_and(is_once);
        let mut places = (0..frames.len()).filter(|at| is_it(&frames[*at].function));
        // The waiting thread may itself be inside the function and call it recursively.
        places.any(|at| has_own(&frames[..at]))
    };
    let mut calling = threads.iter().filter(inside);
    calling.next().filter(|_| calling.next().is_none())
}

/// True if one of these frames is a function of the program.
fn has_own(frames: &[RawFrame]) -> bool {
    let own = |frame: &RawFrame| {
        let function = frame.function.as_deref().unwrap_or_default();
        frame.line > 0 && frame.module.is_empty() && !is_of_standard_library(function)
    };
    frames.iter().any(own)
}

/// The other process whose thread holds a mutex in shared memory; `None` if the mutex is not shared, or its holder is
/// in this process.
fn in_another_process(gdb: &Gdb, owner: i32, address: u64) -> Option<Holder> {
    let pid = gdb.get().pid()?;
    let is_shared = owner > 0 && gdb.host().is_shared(pid, address);
    let other = is_shared.then(|| gdb.host().process_of(owner))??;
    (other.pid != pid).then_some(other)
}

/// The thread with this kernel id; `None` if there is none.
fn of_kernel(threads: &[ReadThread], number: Option<i32>) -> Option<&ReadThread> {
    let number = number?;
    threads.iter().find(|one| one.kernel_id == Some(number))
}

/// The system call in which a thread is. None if it cannot be read.
fn system_call(gdb: &Gdb, thread: &ReadThread) -> Option<SystemCall> {
    let (pid, id) = (gdb.get().pid()?, thread.kernel_id?);
    gdb.host().system_call(pid, id)
}

/// Kernel id of the thread that holds a mutex, read at the futex word, or else by the mutex's expression in the source.
/// `None` if it is not known.
async fn owner(
    gdb: &Gdb,
    thread: &ReadThread,
    frame: &GdbFrame,
    in_source: Option<&str>,
    word: Option<(u64, u64)>,
) -> Result<Option<i32>, Failure> {
    if let Some((address, _)) = word {
        let waiter = gdb.get().pid().zip(thread.kernel_id);
        let lock = waiter.and_then(|(pid, id)| gdb.host().lock(pid, id, address));
        return Ok(lock.and_then(holder));
    }
    let Some(mutex) = in_source.filter(|mutex| is_harmless(mutex)) else {
        return Ok(None);
    };
    let owner_of = format!("({mutex})->__data.__owner");
    let known = evaluate(gdb, thread, frame, &owner_of).await?;
    Ok(known.and_then(|owner| owner.text.parse::<i32>().ok()))
}

/// Kernel id of the thread that holds a locked mutex, from the mutex's bytes; `None` if no owner is recorded.
fn holder(lock: [u8; LOCK_BYTES]) -> Option<i32> {
    let owner = <[u8; 4]>::try_from(lock.get(OWNER..)?).ok()?;
    Some(i32::from_ne_bytes(owner)).filter(|owner| *owner > 0)
}

/// Text for a lock: its expression in the source, or the symbol at its address. None if nothing is known of it.
fn name(
    in_source: Option<String>,
    symbol: Option<String>,
    has_address: bool,
    is_once: bool,
) -> Option<String> {
    Some(match (in_source, symbol) {
        // One expression can mean another lock in each thread.
        (Some(lock), Some(symbol)) if lock.trim_start_matches('&') != symbol => {
            format!("{lock} ({symbol})")
        }
        (Some(lock), _) => lock,
        (None, Some(symbol)) if !symbol.contains('+') => format!("&{symbol}"),
        (None, _) if has_address => "a mutex".to_owned(),
        (None, _) if is_once => "the call_once function".to_owned(),
        (None, _) => return None,
    })
}

/// The symbol at a lock's address, with the offset in it: `cells+48`. None without a symbol there.
async fn symbol_at(
    gdb: &Gdb,
    thread: &ReadThread,
    frame: &GdbFrame,
    address: u64,
) -> Result<Option<String>, Failure> {
    let named = unchecked(gdb, thread, frame, &format!("(void *) {address}")).await?;
    Ok(named.as_ref().and_then(|value| {
        let (_, symbol) = value.text.split_once('<')?;
        symbol.strip_suffix('>').map(str::to_owned)
    }))
}
