//! Opens core files: the state of a program at its end.

use sdm_text::{printable, printable_name};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use sdm_core::CommandId;
use sdm_debug::event::Phase;
use sdm_debug::reply::StopReason;
use sdm_debug::{Event, Failure, FailureCode, Reply, TaskState};

use super::current_signal::current_signal;
use super::end::not_begun;
use super::start::no_program;
use super::stop::place_stop;
use crate::gdb::Gdb;
use crate::text::base_name;
use crate::text::console_bytes;
use crate::text::{escape_path, with_path};
use crate::wording::names;
use sdm_mi::Results;

/// A core file and its program.
#[derive(Clone, Debug)]
pub struct CoreFile {
    /// The core file's path.
    pub core: PathBuf,
    /// Path of the program that the core file is of.
    pub program: PathBuf,
}

pub(crate) async fn open(gdb: Gdb, id: CommandId, file: CoreFile) {
    let result = open_file(&gdb, &file).await;
    if result.is_err() {
        not_begun(&gdb);
    }
    gdb.answer(id, result);
}

async fn open_file(gdb: &Gdb, file: &CoreFile) -> Result<Reply, Failure> {
    let program = file.program.as_os_str().as_bytes();
    let name = printable(program);
    gdb.edit().program_name = base_name(&name).to_owned();
    let answers = super::start::prepare(gdb);
    super::registers::look(gdb).await?;
    for answer in answers {
        answer.await?;
    }
    gdb.tell(Event::Progress(Phase::Gdb));
    let wait = gdb.get().config.symbols_wait;
    gdb.send_within(with_path("-file-exec-and-symbols", "file", program), wait)
        .await
        .map_err(|failure| no_program(&name, failure))?;
    gdb.tell(Event::Progress(Phase::Symbols));
    let core = file.core.as_os_str().as_bytes();
    let results = read_core(gdb, core).await.map_err(|failure| {
        let core = printable_name(&file.core);
        Failure::new(failure.code, format!("{core}: {}", failure.text))
    })?;
    gdb.edit().set_task(TaskState::Stopped);
    let reason = StopReason::Core {
        signal: current_signal(gdb).await.unwrap_or_default(),
        meaning: String::new(),
    };
    let frame = match results.tuple("frame") {
        Some(_) => results,
        None => gdb
            .mi("-stack-info-frame")
            .await
            .unwrap_or_else(|_| Results::default()),
    };
    Ok(Reply::Stopped(place_stop(gdb, reason, &frame).await))
}

/// Reads the core file. Up to gdb 15 the file name is taken literally; from gdb 16 on it is parsed as a word of the
/// command line. A name for which the two differ is tried in both forms. It is sent by the command line, where no
/// character ends a command.
async fn read_core(gdb: &Gdb, core: &[u8]) -> Result<Results, Failure> {
    let wait = gdb.get().config.symbols_wait;
    let word = escape_path(core);
    if word == core {
        let line = with_path("-target-select core", "core-file", core);
        return gdb.send_within(line, wait).await;
    }
    let line = |name: &[u8]| console_bytes(&[b"core-file ", name].concat());
    let Err(failure) = gdb.send_within(line(&word), wait).await else {
        return Ok(Results::default());
    };
    match gdb.send_within(line(core), wait).await {
        // The second attempt has not found the file, so the first failure is reported.
        Err(_) if names(&failure.text, core) => Err(failure),
        result => result,
    }
}

/// The failure of a command that needs a process.
pub(crate) fn refusal(command: &str) -> Failure {
    let text = format!("{command}: not possible with a core file");
    Failure::new(FailureCode::Unsupported, text)
}
