//! Lines by which gdb writes a file that the user names: `dump`, `append`, `save`, `record save` and `set logging`.
//!
//! gdb by itself follows links of other users. So the file is opened here, and gdb gets a path to the open file.

use sdm_debug::{Failure, FailureCode};
use sdm_text::printable_name;

use super::gcore::whole;
use super::output::of_line;
use crate::gdb::Gdb;
use crate::text::console_line;

/// File formats of `dump` and `append`.
const FORMATS: [&str; 5] = ["binary", "ihex", "srec", "tekhex", "verilog"];
/// Contents of `dump` and `append`.
const CONTENTS: [&str; 2] = ["memory", "value"];
/// Contents of the files of `save`.
const SAVED: [&str; 2] = ["breakpoints", "tracepoints"];
/// The words that turn on logging.
const ON: [&str; 4] = ["on", "1", "yes", "enable"];

/// A line that writes a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Writing<'a> {
    /// The name of the file, and the text around it.
    Named(&'a str, &'a str, &'a str),
    /// The line turns on gdb's log.
    Log,
}

/// Recognizes a line that writes a file. gdb accepts the beginnings of its words.
pub(super) fn writing(line: &str) -> Option<Writing<'_>> {
    let line = line.trim();
    let mut rest = line;
    let mut words = std::iter::from_fn(|| {
        let (word, behind) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        rest = behind.trim_start();
        (!word.is_empty()).then_some((word, rest))
    });
    let (first, _) = words.next()?;
    let mut next = words.next()?;
    let is_dump = is_one("dump", first, 2) || is_one("append", first, 2);
    if is_dump && is_any(&FORMATS, next.0) {
        next = words.next()?;
    }
    let is_named = is_dump && is_any(&CONTENTS, next.0)
        || is_one("save", first, 2) && is_any(&SAVED, next.0)
        || is_one("record", first, 3) && is_one("save", next.0, 1);
    if is_named {
        let (file, behind) = words.next()?;
        let from = line.len() - next.1.len();
        return Some(Writing::Named(&line[..from], file, behind));
    }
    let is_log = first == "set" && is_one("logging", next.0, 4);
    let (setting, _) = words.next().filter(|_| is_log)?;
    let value = words.next().map(|(word, _)| word);
    let is_on = match is_one("enabled", setting, 1) {
        true => value.is_none_or(|value| ON.contains(&value)),
        false => ON.contains(&setting),
    };
    is_on.then_some(Writing::Log)
}

fn is_one(name: &str, word: &str, letters_min: usize) -> bool {
    word.len() >= letters_min && name.starts_with(word)
}

fn is_any(names: &[&str], word: &str) -> bool {
    names.iter().any(|name| is_one(name, word, 1))
}

/// Carries out such a line.
pub(super) async fn write(gdb: &Gdb, line: &str, writing: Writing<'_>) -> Result<String, Failure> {
    let logged;
    let (before, file, behind) = match writing {
        Writing::Named(before, file, behind) => (before, file, behind),
        Writing::Log => {
            let shown = of_line(gdb, console_line("show logging file")).await?;
            logged = shown.split('"').nth(1).unwrap_or_default().to_owned();
            ("set logging file ", &*logged, "")
        }
    };
    let path = whole(gdb, file, 0).await?;
    let shown = printable_name(&path);
    let lent = gdb.host().own_file(&path).map_err(|error| {
        let text = format!("cannot write {shown}: {error}");
        Failure::new(FailureCode::System, text)
    })?;
    let place = lent.place().to_string_lossy().into_owned();
    let told = |text: String| text.replace(&place, &shown);
    let mut written = of_line(gdb, console_line(&format!("{before}{place} {behind}"))).await;
    if matches!(writing, Writing::Log) {
        written = of_line(gdb, console_line(line)).await;
        // gdb has opened the file. The setting keeps its name.
        of_line(gdb, console_line(&format!("set logging file {file}"))).await?;
    }
    written.map(told).map_err(|failure| Failure {
        text: told(failure.text.clone()),
        ..failure
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_write_a_file_are_recognized() {
        for (line, before, file, behind) in [
            ("dump memory /tmp/a 1 2", "dump memory ", "/tmp/a", "1 2"),
            (" du bin val a  n + 1 ", "du bin val ", "a", "n + 1"),
            ("dump ihex  memory a 1 2", "dump ihex  memory ", "a", "1 2"),
            ("append value a n", "append value ", "a", "n"),
            ("save breakpoints all", "save breakpoints ", "all", ""),
            ("rec save a", "rec save ", "a", ""),
        ] {
            assert_eq!(
                writing(line),
                Some(Writing::Named(before, file, behind)),
                "{line:?}"
            );
        }
        for line in [
            "set logging on",
            "set logging enabled on",
            "set logging enabled",
            "set logg en 1",
        ] {
            assert_eq!(writing(line), Some(Writing::Log), "{line:?}");
        }
        for line in [
            "",
            "dump",
            "dump memory",
            "print dump",
            "save gdb-index a",
            "set logging off",
            "set logging file a",
            "set logging enabled off",
            "record",
        ] {
            assert_eq!(writing(line), None, "{line:?}");
        }
    }
}
