//! Lines by which gdb writes a file that the user names.
//!
//! gdb by itself follows links of other users. So the file is opened here, and gdb gets a path to the open file.

use sdm_debug::written_files::Writing;
use sdm_debug::{Failure, FailureCode};
use sdm_text::printable_name;

use super::gcore;
use super::output::of_line;
use crate::gdb::Gdb;
use crate::host::NewCore;
use crate::state::commands::OpenedFile;
use crate::text::console_line;

/// gdb's name for its log, if the user has set none.
const LOG: &str = "gdb.txt";

/// Carries out a line that writes a file of a process, or of gdb without one; `None` if gdb can do it by itself.
pub(super) async fn own_way(
    gdb: &Gdb,
    line: &str,
    pid: Option<i32>,
) -> Option<Result<String, Failure>> {
    match Writing::parse(line)? {
        Writing::Core(file) => Some(gcore::write(gdb, file, pid?).await),
        Writing::Named(before, file, behind) => Some(named(gdb, (before, file, behind)).await),
        Writing::LogOn => Some(log(gdb, line, pid).await),
        Writing::LogName(..) | Writing::Log => Some(of_log(gdb, line).await),
    }
}

/// Carries out a line about gdb's log. gdb names the path that it has opened.
async fn of_log(gdb: &Gdb, line: &str) -> Result<String, Failure> {
    let told = of_line(gdb, console_line(line)).await;
    let log = gdb.get().commands.log.clone();
    match log {
        Some(log) => renamed(told, &log),
        None => told,
    }
}

/// Writes the file of this name, which stands between these texts.
async fn named(gdb: &Gdb, (before, file, behind): (&str, &str, &str)) -> Result<String, Failure> {
    let (_lent, opened) = open(gdb, file).await?;
    let line = format!("{before}{} {behind}", opened.place);
    renamed(of_line(gdb, console_line(&line)).await, &opened)
}

/// Turns on gdb's log. The setting keeps the user's name.
async fn log(gdb: &Gdb, line: &str, pid: Option<i32>) -> Result<String, Failure> {
    let shown = of_line(gdb, console_line("show logging file")).await?;
    let mut file = shown.split('"').nth(1).unwrap_or_default().to_owned();
    if let (LOG, Some(pid)) = (&*file, pid) {
        // The gdbs of all ranks have this name.
        file = format!("{LOG}.{pid}");
    }
    let (_lent, opened) = open(gdb, &file).await?;
    let set = |name: &str| console_line(&format!("set logging file {name}"));
    of_line(gdb, set(&opened.place)).await?;
    let told = of_log(gdb, line).await;
    of_line(gdb, set(&file)).await?;
    // A log that was on already stays at its file.
    let is_used = matches!(&told, Ok(text) if text.contains(&opened.place));
    let told = renamed(told, &opened);
    if is_used {
        gdb.edit().commands.log = Some(opened);
    }
    told
}

/// Opens the file of this name for gdb, which can open it as long as the first value lives.
async fn open(gdb: &Gdb, file: &str) -> Result<(Box<dyn NewCore>, OpenedFile), Failure> {
    let path = gcore::whole(gdb, file, 0).await?;
    let shown = printable_name(&path);
    let lent = gdb.host().own_file(&path).map_err(|error| {
        let text = format!("cannot write {shown}: {error}");
        Failure::new(FailureCode::System, text)
    })?;
    let place = lent.place().to_string_lossy().into_owned();
    Ok((lent, OpenedFile { place, shown }))
}

/// gdb's answer with the user's name of the file.
fn renamed(told: Result<String, Failure>, opened: &OpenedFile) -> Result<String, Failure> {
    let named = |text: &str| text.replace(&opened.place, &opened.shown);
    told.map(|text| named(&text)).map_err(|failure| Failure {
        text: named(&failure.text),
        ..failure
    })
}
