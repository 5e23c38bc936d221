//! Programs under Valgrind, which checks each memory access.
//!
//! gdb cannot trace such a process, as it would see Valgrind itself. gdb talks to Valgrind's gdbserver in the process
//! by `vgdb`. gdb starts a shell, which starts the program under Valgrind and `vgdb` beside it. When `vgdb` ends in any
//! way the program ends too, and the directory with their pipes is removed. It is a new private directory, since
//! Valgrind's usual pipe names can be guessed by other users.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use sdm_debug::{Failure, FailureCode};
use sdm_system::{files, proc};
use sdm_text::shell_word_of_bytes;

/// The name of an exec wrapper that stands for Valgrind.
pub(super) const WORD: &[u8] = b"valgrind";
/// Options of Valgrind. gdb stops the program before its first instruction and before its end, and reports the
/// errors. Stops at errors are enabled later: a forked child has no debugger, and would wait for one for ever.
const OPTIONS: &str = "--tool=memcheck -q --vgdb=yes --vgdb-error=999999999 --vgdb-stop-at=startup,exit --num-callers=50 \
                       --log-file=/dev/null --trace-children=no";
/// Path of Open MPI's suppressions, below its installation directory.
const OPENMPI_SUPPRESSIONS: &str = "share/openmpi/openmpi-valgrind.supp";
/// Time that Valgrind has to start the program, in seconds.
const WAIT_SECONDS: u32 = 60;
/// Maximum number of levels at which Valgrind's shell is searched, below the process that was started as gdb.
const DEPTH_MAX: usize = 8;

/// The shell command line that starts a program by this exec wrapper under Valgrind, and with which gdb communicates.
///
/// # Errors
/// Valgrind is not installed.
pub(super) fn line(starter: &[u8], program: &Path, args: &[u8]) -> Result<Vec<u8>, Failure> {
    let [valgrind, vgdb] = [found("valgrind")?, found("vgdb")?];
    let word = |path: &Path| shell_word_of_bytes(path.as_os_str().as_bytes());
    let (valgrind, vgdb, program) = (word(&valgrind), word(&vgdb), word(program));
    let suppressions = suppressions().map(|path| {
        let option = [b"--suppressions=", path.as_os_str().as_bytes()].concat();
        [b" ", shell_word_of_bytes(&option).as_slice()].concat()
    });
    let folder = word(&files::temporary_folder().join("sdm-memcheck-XXXXXX"));
    // The shell has the program's `PATH`, so SDM's own commands are given by absolute path.
    let [mktemp, rm] = [word(&found("mktemp")?), word(&found("rm")?)];
    let folder = [
        b"umask 077; d=$(",
        mktemp.as_slice(),
        b" -d ",
        folder.as_slice(),
        b") || exit; rm=",
        rm.as_slice(),
        b"; ",
    ]
    .concat();
    let begin = b"trap '\"$rm\" -rf \"$d\"' EXIT; trap : TERM; (exec ";
    let prefix = b" --vgdb-prefix=\"$d/v\" ";
    let wait = format!("--wait={WAIT_SECONDS} --pid=$!; kill -KILL $! 2>/dev/null");
    let parts: [&[u8]; 16] = [
        &folder,
        begin,
        starter,
        b" ",
        &valgrind,
        b" ",
        OPTIONS.as_bytes(),
        suppressions.as_deref().unwrap_or_default(),
        prefix,
        &program,
        b" ",
        args,
        b") & ",
        &vgdb,
        prefix,
        wait.as_bytes(),
    ];
    Ok(parts.concat())
}

/// The suppressions file of the Open MPI whose commands are found first on `PATH`; `None` if there is none. Files of
/// other users are ignored.
fn suppressions() -> Option<PathBuf> {
    let command = files::search("ompi_info")?;
    let path = command.parent()?.parent()?.join(OPENMPI_SUPPRESSIONS);
    let found = path.metadata().ok()?;
    (found.is_file() && files::is_own(&found)).then_some(path)
}

fn found(name: &str) -> Result<PathBuf, Failure> {
    files::search(OsStr::new(name)).ok_or_else(|| {
        let text = format!("--memcheck: {name} was not found on this host");
        Failure::new(FailureCode::NotFound, text)
            .with_hint("install Valgrind: its package has both programs")
    })
}

/// The pid of the program that Valgrind runs for the gdb with this pid; `None` if it is not found. `gdb` may be a
/// script that has started gdb. The program is found by the `vgdb` process below it.
pub fn program_of(gdb: i32) -> Option<i32> {
    let is_vgdb = |pid: &i32| {
        let program = proc::of(*pid).program().unwrap_or_default();
        program.file_name() == Some(OsStr::new("vgdb"))
    };
    let mut pid = gdb;
    for _ in 0..DEPTH_MAX {
        let all = children(pid);
        if all.iter().any(is_vgdb) {
            return all.into_iter().find(|child| !is_vgdb(child));
        }
        pid = *all.first()?;
    }
    None
}

fn children(pid: i32) -> Vec<i32> {
    let process = proc::of(pid);
    let threads = process.thread_ids().into_iter().flatten();
    threads
        .flat_map(|id| process.children_of_thread(id).unwrap_or_default())
        .collect()
}
