//! Pending MPI messages: gdb finds the MPI library's data, and the library's own debug library reads them in a
//! separate process.

use std::collections::BTreeMap;
use std::time::Duration;

use sdm_debug::queues::{MessageKind, QueueMessage, QueueName, TaskQueues};
use sdm_debug::{Failure, FailureCode, Reply};
use sdm_foreign::queues::{ProcessQueues, QUEUES_VERSION, QueueKind, QueuesAsk, TypeLayout};
use sdm_inspect::memory::Memory;
use sdm_inspect::queues::{
    COMMUNICATORS, CheckedProcess, VARIABLES, WITH_CLASS, class_symbol, rows, table,
};
use sdm_mpi::symbols;

use super::python::address;
use crate::gdb::Gdb;

/// Maximum time until the debug library answers.
const WAIT: Duration = Duration::from_secs(10);
/// Interval of checks for the debug library's answer.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// Maximum number of debug libraries that a process may name.
const LIBRARIES_MAX: u64 = 16;
/// Maximum length of the path of a debug library, in bytes.
const PATH_BYTES_MAX: usize = 4096;
/// Bytes of a path read at once; the size of a page is a multiple of it.
const PATH_PIECE_BYTES: usize = 64;
/// The variables in which MPI libraries name their debug libraries: a null-terminated array of strings, and one
/// string.
const LIST: &str = "mpimsgq_dll_locations";
const NAME: &str = "MPIR_dll_name";
const OPEN_MPI: &str = symbols::OPEN_MPI_WORLD;
/// A program that defines this symbol wants no message queues to be shown.
const IGNORE: &str = "MPIR_Ignore_queues";

/// Answers with the message queues of the task.
pub(crate) async fn queues(gdb: &Gdb) -> Result<Reply, Failure> {
    let pid = gdb
        .get()
        .pid()
        .ok_or_else(|| Failure::new(FailureCode::NotRunning, "the rank has no process"))?;
    let memory = gdb.host().process_memory(pid);
    let memory =
        memory.ok_or_else(|| unsupported("the process belongs to another user and is not read"))?;
    let library = library(gdb, &*memory).await?;
    let root = gdb.host().root(pid);
    if root.is_some_and(|root| root.starts_with('/')) {
        return Err(unsupported(
            "the process runs in a container: its debug library cannot be loaded outside it",
        ));
    }
    let symbols = symbols(gdb).await;
    let types = match types(gdb).await? {
        Some(types) => types,
        None => table(),
    };
    let looked = CheckedProcess {
        memory: &*memory,
        symbols: &symbols,
        types: &types,
    };
    looked.check()?;
    let ask = QueuesAsk {
        version: QUEUES_VERSION,
        library,
        symbols: symbols.into_iter().collect(),
        types,
    };
    let mut asked = gdb.host().ask_debug_library(pid, &ask)?;
    let end = gdb.get().now + WAIT;
    loop {
        if let Some(answer) = asked.poll() {
            return answer.map(|found| Reply::Queues(told(found)));
        }
        if gdb.get().now >= end {
            let text = format!(
                "sdm-pmix, which has loaded the MPI library's debug library, did not answer within {} s",
                WAIT.as_secs()
            );
            return Err(Failure::new(FailureCode::TimedOut, text));
        }
        gdb.until_within(LOOK_EVERY, |_| None::<()>).await;
    }
}

/// Path of the first debug library that the process names and that exists.
async fn library(gdb: &Gdb, memory: &dyn Memory) -> Result<Vec<u8>, Failure> {
    let mut paths = Vec::new();
    if let Some(list) = symbol(gdb, LIST).await.and_then(|at| word(memory, at)) {
        let texts = (0..LIBRARIES_MAX).map_while(|at| {
            let text = word(memory, list.checked_add(8 * at)?)?;
            path(memory, text)
        });
        paths.extend(texts);
    }
    let name = symbol(gdb, NAME).await;
    paths.extend(name.and_then(|at| path(memory, at)));
    let there = paths.iter().find(|path| gdb.host().is_file(path));
    if let Some(path) = there {
        return Ok(path.clone());
    }
    if let Some(path) = paths.first() {
        let path = sdm_text::printable(path);
        return Err(unsupported(&format!(
            "the MPI library's debug library {path} is not installed"
        )));
    }
    for name in symbols::MPICH_VERSIONS {
        if symbol(gdb, name).await.is_some() {
            return Err(unsupported(
                "MPICH provides no debug library for message queues",
            ));
        }
    }
    Err(unsupported(match symbol(gdb, OPEN_MPI).await {
        Some(_) => "this Open MPI provides no debug library for message queues",
        None => "the program has no MPI library that provides a debug library",
    }))
}

/// Addresses of the variables that the debug library needs, and of those that check its layout. Missing ones are left
/// out.
async fn symbols(gdb: &Gdb) -> BTreeMap<String, u64> {
    let names = VARIABLES.into_iter().chain(COMMUNICATORS).chain([IGNORE]);
    let names = names.map(str::to_owned);
    let names = names.chain(WITH_CLASS.iter().map(|name| class_symbol(name)));
    let asked = names.map(|name| (gdb.send(symbol_line(&name)), name));
    let mut found = BTreeMap::new();
    for (answer, name) in asked.collect::<Vec<_>>() {
        let results = answer.await.ok();
        found.extend(results.and_then(|it| address(&it)).map(|at| (name, at)));
    }
    found
}

/// The types from the process's debug information; `None` unless it has all of them.
async fn types(gdb: &Gdb) -> Result<Option<Vec<TypeLayout>>, Failure> {
    let mut types = Vec::new();
    for (name, _, fields) in rows() {
        // gdb's size of an incomplete type is at most 1.
        let size = number(gdb, &format!("sizeof({name})")).await?;
        let Some(size_bytes) = size.filter(|size| *size > 1) else {
            return Ok(None);
        };
        let mut layout = TypeLayout {
            name: (*name).to_owned(),
            size_bytes,
            fields: Vec::new(),
        };
        for (field, _) in *fields {
            let expression = format!("(unsigned long) &(({name} *) 0)->{field}");
            let Some(at) = number(gdb, &expression).await? else {
                return Ok(None);
            };
            layout.fields.push(((*field).to_owned(), at));
        }
        types.push(layout);
    }
    Ok(Some(types))
}

async fn number(gdb: &Gdb, expression: &str) -> Result<Option<u32>, Failure> {
    match gdb
        .mi(format!("-data-evaluate-expression \"{expression}\""))
        .await
    {
        Ok(results) => Ok(results.text("value").and_then(|text| text.parse().ok())),
        Err(failure) if failure.code == FailureCode::Gdb => Ok(None),
        Err(failure) => Err(failure),
    }
}

async fn symbol(gdb: &Gdb, name: &str) -> Option<u64> {
    address(&gdb.mi(symbol_line(name)).await.ok()?)
}

fn symbol_line(name: &str) -> String {
    format!("-data-evaluate-expression \"(void *) &{name}\"")
}

fn word(memory: &dyn Memory, address: u64) -> Option<u64> {
    let mut bytes = [0; 8];
    memory.read(address, &mut bytes)?;
    Some(u64::from_ne_bytes(bytes)).filter(|word| *word != 0)
}

/// The absolute path stored at an address; `None` for any other text. The memory after it may be unmapped, so it is
/// read in pieces.
fn path(memory: &dyn Memory, address: u64) -> Option<Vec<u8>> {
    let mut path = Vec::new();
    while path.len() < PATH_BYTES_MAX {
        let at = address.checked_add(path.len() as u64)?;
        // Pieces are aligned, and the page size is a multiple of their size. So no piece crosses the end of a page.
        let mut piece = [0; PATH_PIECE_BYTES];
        let behind = usize::try_from(at).ok()? % PATH_PIECE_BYTES;
        let piece = &mut piece[..PATH_PIECE_BYTES - behind];
        memory.read(at, piece)?;
        let end = piece.iter().position(|byte| *byte == 0);
        path.extend_from_slice(&piece[..end.unwrap_or(piece.len())]);
        if end.is_some() {
            return Some(path).filter(|path| path.starts_with(b"/"));
        }
    }
    None
}

fn unsupported(text: &str) -> Failure {
    Failure::new(FailureCode::Unsupported, text)
}

fn told(found: ProcessQueues) -> TaskQueues {
    let mut messages = Vec::new();
    for communicator in found.communicators {
        messages.extend(communicator.messages.into_iter().map(|it| QueueMessage {
            kind: MessageKind {
                queue: match it.kind {
                    QueueKind::Send => QueueName::Sends,
                    QueueKind::Receive => QueueName::Receives,
                    QueueKind::Unexpected => QueueName::Unexpected,
                },
                is_matched: it.is_matched,
                communicator: communicator.name.clone(),
                is_remote: it.is_remote,
                any_peer: it.peer.is_none(),
                tag: it.tag,
                length_bytes: it.length_bytes,
            },
            world_peer: it.world_peer,
            peer: it.peer,
            buffer: it.buffer,
        }));
    }
    // The place where the library keeps a request is meaningless. Sorted by peer, the messages of similar ranks are
    // alike.
    messages.sort();
    TaskQueues {
        messages,
        more: found.more,
        knows_unexpected: found.knows_unexpected,
    }
}
