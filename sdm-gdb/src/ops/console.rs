//! Commands passed through to gdb: for its own command line, and of GDB/MI.

use std::borrow::Cow;

use nix::sys::signal::Signal;
use sdm_debug::{Failure, FailureCode, Reply};

use super::end::{End, program_ended};
use super::history;
use super::intercepted_lines::own_way;
use super::lines::output;
use super::output::text_of;
use super::pointers;
use super::strides::is_harmless;
use super::values::in_value;
use crate::gdb::Gdb;
use crate::state::console_capture::CapturedOutput;
use crate::text::console_line;
use sdm_mi::Results;

pub(crate) async fn console(gdb: &Gdb, line: &str) -> Result<Reply, Failure> {
    let line = history::own(gdb, line)?;
    if let Some(text) = own_way(gdb, &line).await {
        return text.map(Reply::Text);
    }
    let valued = pointers::in_line(gdb, &line).await?;
    // A value may be asked for with more elements than usual.
    let after = line.rfind("-- output ").map_or(0, |at| at + 3);
    let value = output(&line[after..]);
    let is_print = is_print_with_options(&line);
    let (result, printed) = match shell_line(&valued) {
        Some(line) => run_shell(gdb, console_line(&line)).await,
        None => pass_through(gdb, console_line(&valued), value.is_some() || is_print).await,
    };
    history::note(gdb, &printed);
    let text = text_of(result, printed)?;
    if is_print {
        // Its number differs between tasks.
        return Ok(Reply::Text(history::shown(&text).to_owned()));
    }
    let expression = match value {
        Some(expression) if after > 0 || is_harmless(gdb, expression).await => expression,
        _ => return Ok(Reply::Text(text)),
    };
    let mut printed = CapturedOutput::default();
    printed.push(&text);
    let followed = in_value(gdb, "", (expression, &valued), printed).await?;
    Ok(Reply::Text(followed.into_text()))
}

/// True for gdb's `print` with options, which the shell passes on: `print -elements 3 -- name`.
fn is_print_with_options(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let is_print = matches!(words.next(), Some("print" | "p" | "inspect" | "call"));
    is_print && words.next().is_some_and(|word| word.starts_with('-'))
}

/// Executes a GDB/MI command of the user.
pub(crate) async fn mi(gdb: &Gdb, line: &str) -> Result<Reply, Failure> {
    let line = line.trim();
    let bad = |text: &str| Failure::new(FailureCode::BadCommand, format!("{line:?}: {text}"));
    if line.contains(['\n', '\r', '\0']) {
        return Err(bad("an MI command must be one line"));
    }
    let name = line.strip_prefix('-').unwrap_or_default();
    if !name.starts_with(|first: char| first.is_ascii_lowercase()) {
        return Err(bad("an MI command must begin with - and its name"));
    }
    if name == "gdb-exit" {
        let hint = "use `kill`, `detach` or `quit`";
        return Err(bad("only the session may end gdb").with_hint(hint));
    }
    let (result, printed) = pass_through(gdb, line.to_owned(), false).await;
    let results = result?;
    let class = if gdb.get().activity.is_executing() {
        "running"
    } else {
        "done"
    };
    let comma = if results.0.is_empty() { "" } else { "," };
    let result = format!("^{class}{comma}{results}");
    Ok(Reply::Mi { result, printed })
}

/// The line to send for a command of gdb that starts a shell; `None` for other lines. The shell's output comes between
/// gdb's own lines. The shell also prints a newline at the end, because gdb's answer follows.
fn shell_line(line: &str) -> Option<Cow<'_, str>> {
    let end = |c: char| !c.is_ascii_alphabetic();
    let (word, rest) = line.split_at(line.find(end).unwrap_or(line.len()));
    match word {
        "make" => Some(Cow::Borrowed(line)),
        "shell" if rest.trim().is_empty() => Some(Cow::Borrowed(line)),
        "shell" | "pipe" => Some(format!("{line}\n(s=$?; echo; exit $s)").into()),
        _ if line.starts_with(['|', '!']) => Some(format!("{line}\n(s=$?; echo; exit $s)").into()),
        _ => None,
    }
}

/// Sends a line that starts a shell; returns gdb's answer, and what gdb and the shell print.
async fn run_shell(gdb: &Gdb, line: String) -> (Result<Results, Failure>, String) {
    let asked = gdb.clone();
    let waited = async move { asked.send(line).capture_lines().printed().await };
    let (result, printed) = gdb.finish(waited).await;
    (result, printed.into_text().trim_end().to_owned())
}

/// Sends the user's line; returns gdb's answer and its console output, for a value without warnings.
async fn pass_through(
    gdb: &Gdb,
    line: String,
    is_value: bool,
) -> (Result<Results, Failure>, String) {
    let asked = gdb.clone();
    gdb.finish(async move {
        let answer = asked.send(line);
        let answer = match is_value {
            true => answer.capture(),
            false => answer.capture_all(),
        };
        let (result, printed) = answer.printed().await;
        // The line may have ended the program.
        let ended = {
            let state = asked.get();
            let begun = state.activity.is_live() && !state.activity.is_starting();
            begun && state.pid().is_none() && !state.origin.is_core_file()
        };
        if ended {
            program_ended(&asked, End::Signalled(Signal::SIGKILL.as_str().to_owned()));
        }
        (result, printed.into_text())
    })
    .await
}
