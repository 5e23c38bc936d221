//! Programs that Valgrind runs, which looks at each access to memory.
//!
//! gdb cannot hold such a process: what it would see is Valgrind. It speaks to the debugging server that Valgrind has in the process, by
//! `vgdb`, which is started by gdb and starts the program. When gdb lets `vgdb` go, however it ends, the program ends too, and the
//! folder with their pipes is removed. It is a new one of the user's own: Valgrind's usual names for them are anybody's to guess.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use sdm_debug::{Failure, FailureCode};
use sdm_system::{files, proc};
use sdm_text::shell_word_of_bytes;

/// What stands for it where a command that starts the program is named.
pub(super) const WORD: &[u8] = b"valgrind";
/// What Valgrind is told: gdb holds the program before it begins and before its end; what is printed of errors is told by gdb. That it stops
/// at an error it is told later: a process that the program forks has no debugger, and would wait for one for ever.
const OPTIONS: &str = "--tool=memcheck -q --vgdb=yes --vgdb-error=999999999 --vgdb-stop-at=startup,exit --num-callers=50 \
                       --log-file=/dev/null --trace-children=no";
/// Where Open MPI says which errors are its own, below where it is installed.
const OPENMPI_SUPPRESSIONS: &str = "share/openmpi/openmpi-valgrind.supp";
/// How long a program may take until Valgrind runs it, in seconds.
const WAIT_SECONDS: u32 = 60;
/// How far below what was started as gdb its shell is looked for.
const DEPTH_MAX: usize = 8;

/// The line for the shell that starts a program by these words, and is what gdb speaks to.
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
    // The shell has the program's PATH: what it starts for us has whole names.
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

/// The file that comes with the Open MPI whose commands are found first; nobody else's is read.
fn suppressions() -> Option<PathBuf> {
    let command = files::search("ompi_info")?;
    let path = command.parent()?.parent()?.join(OPENMPI_SUPPRESSIONS);
    let found = path.metadata().ok()?;
    (found.is_file() && files::is_own(&found)).then_some(path)
}

fn found(name: &str) -> Result<PathBuf, Failure> {
    files::search(OsStr::new(name)).ok_or_else(|| {
        let text = format!("{name}: not found on this host, for --memcheck");
        Failure::new(FailureCode::NotFound, text).with_hint("install valgrind, which has both")
    })
}

/// The process of a program that Valgrind runs for the gdb of this process, which may be a script that has started gdb: it is where
/// `vgdb` is.
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
