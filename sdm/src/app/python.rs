//! Scripts in the place of Python, as the shims of pyenv: gdb debugs the interpreter that they start.

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use sdm_system::run_bounded::{self, Bounds};
use sdm_system::{files, programs};
use sdm_text::printable_name;

use crate::sink::complain;

/// Maximum length of the line that names a script's interpreter, in bytes.
const LINE_BYTES_MAX: usize = 128;
/// Time limit for the script to tell the interpreter that it starts.
const ANSWER_WAIT: Duration = Duration::from_secs(20);
/// Maximum number of lines of the script's answer.
const LINES_MAX: usize = 100;

/// Replaces a script by the Python that it starts, and says so. Other programs remain.
pub(super) fn replace(directory: Option<&Path>, program: &mut OsString) {
    if let Some(python) = python_of(directory, program) {
        complain(format_args!(
            "[program] {} is a script that starts {}, which is debugged",
            printable_name(&*program),
            printable_name(&python)
        ));
        *program = python;
    }
}

/// The Python interpreter that a script with the name of this program starts. `None` for other programs.
fn python_of(directory: Option<&Path>, program: &OsStr) -> Option<OsString> {
    let name = Path::new(program).file_name()?.to_str()?;
    let version = name.strip_prefix("python")?;
    if !version.chars().all(|c| c.is_ascii_digit() || c == '.') {
        return None;
    }
    let mut path = programs::find(program, &files::search_path()).ok()?;
    if let Some(directory) = directory {
        path = directory.join(path);
    }
    script_line(&path)?;
    let mut command = programs::at(&path);
    command.args(["-c", "import sys; print(sys.executable)"]);
    let bounds = Bounds {
        wait: ANSWER_WAIT,
        lines_max: LINES_MAX,
    };
    let said = run_bounded::run(&mut command, &[], bounds).ok()?;
    let python = said.lines.last()?;
    let is_python = files::is_program(python.as_ref()) && script_line(python.as_ref()).is_none();
    is_python.then(|| python.into())
}

/// The first line of a script, which names its interpreter, without the `#!`. `None` for other files.
pub(super) fn script_line(path: &Path) -> Option<Vec<u8>> {
    let mut head = [0; LINE_BYTES_MAX];
    let mut file = files::open(path).ok()?;
    let length = file.read(&mut head).ok()?;
    let line = head[..length].strip_prefix(b"#!")?;
    let line = line.split(|byte| *byte == b'\n').next()?;
    Some(line.to_vec())
}
