//! The call of an operation of PyTorch's package `torch.distributed`, with its process group and the ranks it names.

use std::collections::BTreeSet;
use std::hash::Hasher;

use sdm_debug::Failure;
use sdm_debug::probe::{ArgumentRole, Call, CallArgument};
use sdm_inspect::python::{ProcessGroup, TorchArguments};
use sdm_mpi::{
    ANY_SOURCE, COMM_WORLD, TORCH_PREFIX, is_of_group, torch_peer, torch_work, waits_for_requests,
};
use xxhash_rust::xxh3::Xxh3;

use super::python::runtime;
use super::ranks::{argument, memory, text_of, with_text};
use super::threads::ReadThread;
use crate::gdb::Gdb;

/// The call of an operation that a thread is in; `index` is that of the user's frame that has made it. `None` without
/// such a frame.
pub(super) async fn torch_call(
    gdb: &Gdb,
    thread: &ReadThread,
    function: &str,
    index: usize,
) -> Result<Option<Call>, Failure> {
    let Some(user) = thread.frames.get(index) else {
        return Ok(None);
    };
    let inside = thread.frames[..index].iter();
    let mut inside = inside.filter(|frame| frame.function() == Some(function));
    let own = inside.next_back().and_then(|frame| frame.python);
    let innermost = thread.frames.iter().find_map(|frame| frame.python);
    let memory = memory(gdb).map(|(_, memory)| memory);
    let read = match memory.zip(runtime(gdb).await) {
        Some((memory, runtime)) => match own {
            Some(own) => TorchArguments::read(&*memory, runtime, own.address),
            None => innermost
                .filter(|_| !is_of_message(function))
                .and_then(|it| TorchArguments::below(&*memory, runtime, it.address)),
        },
        None => None,
    };
    Ok(Some(Call {
        function: function.to_owned(),
        place: user.stack_frame(),
        source: user.source(gdb).unwrap_or_default().trim().to_owned(),
        arguments: read.map_or_else(Vec::new, |read| arguments(function, &read)),
    }))
}

/// True for functions that wait for a message, whose other end is unknown.
fn is_of_message(function: &str) -> bool {
    ["RecvWork", "SendWork"]
        .iter()
        .any(|class| function.contains(class))
}

/// The operations for which a call can wait, as arguments: those that other threads of the process carry out.
pub(super) fn operations(call: &Call, threads: &[ReadThread]) -> Vec<CallArgument> {
    if !call.function.starts_with(TORCH_PREFIX) || !waits_for_requests(&call.function) {
        return Vec::new();
    }
    let frames = threads.iter().flat_map(|thread| &thread.frames);
    let names = frames.filter_map(|frame| torch_work(frame.function()?));
    let names: BTreeSet<&str> = names.filter(|_| !is_of_message(&call.function)).collect();
    let names = names.into_iter();
    names
        .map(|name| argument(ArgumentRole::Operation, name, None))
        .collect()
}

/// The arguments that determine the awaited ranks.
fn arguments(function: &str, read: &TorchArguments) -> Vec<CallArgument> {
    use ArgumentRole as R;
    let mut found = Vec::new();
    if let Some((role, [of_job, of_group])) = torch_peer(function) {
        // Newer versions keep the rank in the group, whichever of the two the program has given.
        let within = read.number(of_group).map(|rank| match &read.group {
            Some(ProcessGroup::Made { ranks, .. }) => {
                let rank = usize::try_from(rank).ok();
                rank.and_then(|rank| ranks.get(rank))
                    .copied()
                    .map(i64::from)
            }
            Some(ProcessGroup::Default) => Some(rank),
            None => None,
        });
        let rank = read.number(of_job).or(within.flatten());
        match (rank, role) {
            (None, R::Source) if within.is_none() => found.push(argument(role, ANY_SOURCE, None)),
            (None, _) => {}
            (rank, _) => found.push(argument(role, of_job, rank)),
        }
        if role != R::Root {
            let tag = read.number("tag");
            found.extend(tag.map(|tag| argument(R::Tag, "tag", Some(tag))));
        }
    }
    if let Some(ranks) = read.ranks.as_ref().filter(|_| is_of_group(function))
        && let Some(text) = text_of(ranks, ranks.len())
    {
        found.push(with_text(
            R::Communicator,
            "the new PyTorch process group",
            text,
        ));
    }
    match &read.group {
        Some(ProcessGroup::Default) => found.push(argument(R::Communicator, COMM_WORLD, None)),
        Some(ProcessGroup::Made { name, ranks }) => {
            let called = format!("the process group `{name}`");
            if let Some(text) = text_of(ranks, ranks.len()) {
                found.push(with_text(R::Communicator, &called, text));
                found.push(CallArgument::hidden(R::Context, context(name)));
            }
        }
        None => {}
    }
    found
}

/// The number that stands for the name of a group, which is the same at all its ranks.
fn context(name: &str) -> i64 {
    let mut hash = Xxh3::new();
    hash.write(name.as_bytes());
    hash.finish().cast_signed()
}
