//! Distinguishes a program's own signal handlers from those of runtimes: the kernel shows which signals have a handler,
//! and not whose handler it is.
//!
//! Open MPI, UCX and Fortran's libraries install handlers that report a crash and then let the program die. If no other
//! code of a process can have installed a handler, the crash is shown at its place.

use std::collections::BTreeSet;

use object::{Object, ObjectSymbol, ReadCache};
use sdm_debug::fold::FoldRules;
use sdm_system::files;
use sdm_system::proc::Process;

/// The library functions that install signal handlers.
const INSTALLERS: [&str; 9] = [
    "sigaction",
    "__sigaction",
    "signal",
    "__sysv_signal",
    "sysv_signal",
    "bsd_signal",
    "ssignal",
    "sigset",
    "sigvec",
];
/// Libraries that install handlers for the signals of a terminal only. MPICH loads libbsd through a plugin of hwloc.
const FOR_TERMINALS: [&str; 4] = ["libbsd.so", "libncurses", "libreadline.so", "libtinfo.so"];
/// Maximum number of files of a process that are examined.
const FILES_MAX: usize = 1024;

/// True if code of the process outside of runtime libraries may install a signal handler. Also true if that cannot be
/// determined.
#[must_use]
pub fn may_have_own_handlers(process: &Process, rules: &FoldRules) -> bool {
    let Ok(maps) = process.maps() else {
        return true;
    };
    let code = maps.iter().filter(|mapping| mapping.is_executable());
    let paths: BTreeSet<_> = code.filter_map(|mapping| mapping.file()).collect();
    let mut own = paths.into_iter().filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_for_terminals = FOR_TERMINALS.iter().any(|it| name.starts_with(it));
        !is_for_terminals && !rules.is_runtime_module(&name)
    });
    let mut files = own.by_ref().take(FILES_MAX);
    let is_found = files.any(|path| installs(&process.inside(path)));
    is_found || own.next().is_some()
}

/// True if a file imports a function that installs signal handlers. Also true if the file cannot be read, or has no
/// dynamic symbols and may contain such a function.
fn installs(path: &std::path::Path) -> bool {
    let Ok(file) = files::open(path) else {
        return true;
    };
    let cache = ReadCache::new(file);
    let Ok(object) = object::File::parse(&cache) else {
        return true;
    };
    let mut symbols = object.dynamic_symbols().peekable();
    symbols.peek().is_none()
        || symbols.any(|symbol| {
            let name = symbol.name().unwrap_or_default();
            symbol.is_undefined() && INSTALLERS.contains(&name)
        })
}
