//! `gcore FILE`: gdb writes the core file of a process into a new private file, which then gets its name.
//!
//! gdb by itself follows links, and makes the file readable for everyone.

use std::env;
use std::path::{Path, PathBuf};

use sdm_debug::{Failure, FailureCode};
use sdm_text::printable_name;

use super::output::of_line;
use crate::gdb::Gdb;
use crate::text::{console_bytes, escape_path};

/// Writes a core file of this process.
pub(super) async fn write(gdb: &Gdb, file: &str, pid: i32) -> Result<String, Failure> {
    let path = whole(gdb, file, pid).await?;
    let shown = printable_name(&path);
    let failed = |error| {
        let text = format!("gcore: cannot write {shown}: {error}");
        Failure::new(FailureCode::System, text)
    };
    let core = gdb.host().new_core(&path).map_err(failed)?;
    let place = core.place();
    let line = [
        b"gcore ",
        escape_path(place.as_os_str().as_encoded_bytes()).as_slice(),
    ]
    .concat();
    let told = |text: &str| text.replace(&*place.to_string_lossy(), &shown);
    match of_line(gdb, console_bytes(&line)).await {
        Ok(printed) => {
            core.finish().map_err(failed)?;
            Ok(told(&printed))
        }
        Err(failure) => {
            let text = told(&failure.text);
            Err(Failure { text, ..failure })
        }
    }
}

/// Absolute path of the file, as gdb derives it from a name.
pub(super) async fn whole(gdb: &Gdb, file: &str, pid: i32) -> Result<PathBuf, Failure> {
    if let Some(below) = file.strip_prefix("~/") {
        let home = env::var_os("HOME").unwrap_or_default();
        return Ok(Path::new(&home).join(below));
    }
    let results = gdb.mi("-environment-pwd").await?;
    let folder = Path::new(results.text("cwd").unwrap_or_default());
    Ok(match file {
        "" => folder.join(format!("core.{pid}")),
        file => folder.join(file),
    })
}
