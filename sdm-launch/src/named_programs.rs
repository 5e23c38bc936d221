//! Programs that are named in the arguments of another program: `/bin/sh ./run.sh`, `sh -c './a.out 7'`.

use std::ffi::{OsStr, OsString};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use sdm_hosts::mpi::Linked;
use sdm_system::files;

/// Maximum length of a script that is searched, in bytes; a longer one is not read as a script.
const SCRIPT_BYTES: u64 = 64 << 10;
/// Maximum number of files that are examined.
const FILES_MAX: usize = 64;
/// The first bytes of a program in the ELF format.
const ELF: &[u8] = b"\x7fELF";

/// The first program with MPI that the arguments name, directly or in a script, and its libraries; `None` if there is
/// none. The started program runs it as a child: before the start nothing else shows that ranks will call MPI.
pub(crate) fn find(
    arguments: &[OsString],
    lookup: &dyn Fn(&str) -> Option<OsString>,
) -> Option<(PathBuf, Linked)> {
    let words = arguments.iter().flat_map(|argument| {
        let script = text_of(argument);
        let text = script.unwrap_or_else(|| argument.to_string_lossy().into_owned());
        words(&text)
    });
    let programs = words.map(PathBuf::from).filter(|path| is_program(path));
    let mut examined = programs.take(FILES_MAX).map(|path| {
        let linked = Linked::of(&path, lookup);
        (path, linked)
    });
    examined.find(|(_, linked)| linked.mpi.is_some())
}

/// The text of an argument that is the path of a script; `None` for any other argument, and for a script longer than
/// [`SCRIPT_BYTES`].
fn text_of(argument: &OsStr) -> Option<String> {
    let file = files::open(argument.as_ref()).ok()?;
    files::text_of(file, SCRIPT_BYTES).ok()
}

/// The words of a shell's text that can be paths.
fn words(text: &str) -> Vec<String> {
    let is_end = |c: char| c.is_whitespace() || "\"'`;()&|<>$={}".contains(c);
    let words = text.split(is_end).filter(|word| word.contains('/'));
    words.map(str::to_owned).collect()
}

fn is_program(path: &Path) -> bool {
    let mut head = [0; ELF.len()];
    let read = files::open(path).and_then(|mut file| file.read_exact(&mut head));
    read.is_ok() && head == ELF
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn program_paths_are_found_in_a_shell_script() {
        let text = "#!/bin/sh\nexec \"./a.out\" -n 7; (../b/c&&/bin/true)|cat >$HOME/out\n";
        let found = words(text);
        let expect = ["#!/bin/sh", "./a.out", "../b/c", "/bin/true", "HOME/out"];
        assert_eq!(found, expect);
    }
}
