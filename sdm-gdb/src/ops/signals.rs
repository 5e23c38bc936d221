//! `handle` and `info signals`: whether a signal stops the program, is reported, and is passed to it.

use nix::sys::signal::Signal;
use sdm_debug::reply::SignalView;
use sdm_debug::{Failure, FailureCode, Reply};

use super::output::of_line;
use crate::gdb::Gdb;
use crate::state::signals::Sigint;
use crate::text::console_line;
use sdm_child::is_handle;

/// Name for all signals except those that gdb uses itself.
const ALL: &str = "all";
/// Highest signal number that gdb accepts.
const NUMBER_MAX: i32 = 15;

/// The settings that `handle` changes; `None` leaves a setting as it is.
#[derive(Clone, Copy)]
pub(crate) struct Change {
    pub(crate) stop: Option<bool>,
    pub(crate) print: Option<bool>,
    pub(crate) pass: Option<bool>,
}

/// Answers with the settings of the named signals, or of all signals if none is named.
pub(crate) async fn list(gdb: &Gdb, names: &[String]) -> Result<Reply, Failure> {
    let line = console_line("info signals");
    let (result, printed) = gdb.send(line).capture().printed().await;
    result?;
    let all: Vec<SignalView> = printed.lines().filter_map(read_row).collect();
    if names.is_empty() {
        return Ok(Reply::Signals(all));
    }
    let mut wanted = Vec::new();
    for name in names {
        let name = full_name(name);
        let found = all.iter().find(|view| view.name == name);
        wanted.push(found.cloned().ok_or_else(|| unknown(&name))?);
    }
    Ok(Reply::Signals(wanted))
}

pub(crate) async fn handle(gdb: &Gdb, names: &[String], change: Change) -> Result<Reply, Failure> {
    let names: Vec<String> = names.iter().map(|name| full_name(name)).collect();
    refuse_own(&names)?;
    if names.is_empty() {
        return Err(Failure::new(
            FailureCode::BadCommand,
            "expected the name of a signal",
        ));
    }
    for name in &names {
        if !name.chars().all(|c| c.is_ascii_alphanumeric()) {
            return Err(unknown(name));
        }
    }
    // Looks up all signals before any is changed.
    list(gdb, &names).await?;
    let mut line = format!("handle {}", names.join(" "));
    for (wanted, yes, no) in [
        (change.pass, " pass", " nopass"),
        (change.print, " print", " noprint"),
        // This one is last, as `stop` implies `print`, and `noprint` implies `nostop`.
        (change.stop, " stop", " nostop"),
    ] {
        if let Some(wanted) = wanted {
            line.push_str(if wanted { yes } else { no });
        }
    }
    let asked = gdb.clone();
    gdb.finish_unbroken(async move {
        asked.mi(console_line(&line)).await?;
        let now = list(&asked, &names).await?;
        if let Reply::Signals(views) = &now {
            take_over(&asked, views);
            asked.edit().handling.said.extend(names);
        }
        Ok(now)
    })
    .await
}

/// Carries out a `handle` line of the user's, and updates the driver's copy of the settings; `None` for another line.
pub(crate) async fn handle_line(gdb: &Gdb, line: &str) -> Option<Result<String, Failure>> {
    if !is_handle(line) {
        return None;
    }
    Some(carry_out(gdb, line).await)
}

async fn carry_out(gdb: &Gdb, line: &str) -> Result<String, Failure> {
    let words = line.split_whitespace().skip(1);
    let mut names: Vec<String> = words.flat_map(named).collect();
    refuse_own(&names)?;
    let printed = of_line(gdb, console_line(line)).await?;
    // The driver uses SIGSTOP itself. It must never reach the program, even if `all` was changed.
    gdb.mi(console_line("handle SIGSTOP stop print nopass"))
        .await?;
    if let Reply::Signals(views) = list(gdb, &[]).await? {
        if names.iter().any(|name| name == ALL) {
            names.extend(views.iter().map(|view| view.name.clone()));
        }
        take_over(gdb, &views);
        gdb.edit().handling.said.extend(names);
    }
    Ok(printed)
}

/// The signals that an argument of `handle` names: one by name or number, several by a range of numbers, or all.
fn named(word: &str) -> Vec<String> {
    let (first, last) = word.split_once('-').unwrap_or((word, word));
    match (first.parse::<i32>(), last.parse::<i32>()) {
        (Ok(first), Ok(last)) => (first..=last.min(NUMBER_MAX))
            .filter_map(|number| Signal::try_from(number).ok())
            .map(|signal| signal.as_str().to_owned())
            .collect(),
        _ if word.eq_ignore_ascii_case("all") => vec![ALL.to_owned()],
        _ if word.starts_with("SIG") => vec![word.to_owned()],
        _ => Vec::new(),
    }
}

/// Refuses to change signals that gdb itself needs to control the program.
fn refuse_own(names: &[String]) -> Result<(), Failure> {
    let is_own = |name: &&String| matches!(name.as_str(), "SIGTRAP" | "SIGSTOP");
    match names.iter().find(is_own) {
        None => Ok(()),
        Some(name) => {
            let text =
                format!("{name} is reserved for the debugger, so its handling cannot be changed");
            Err(Failure::new(FailureCode::Unsupported, text))
        }
    }
}

/// Records which signals gdb now reports and passes to the program without a stop, and whether SIGINT stops the
/// program.
fn take_over(gdb: &Gdb, views: &[SignalView]) {
    let mut state = gdb.edit();
    for view in views {
        if view.print && view.pass && !view.stop {
            state.handling.passed.insert(view.name.clone());
        } else {
            state.handling.passed.remove(&view.name);
        }
        if view.name == "SIGINT" {
            state.handling.sigint = if view.stop {
                Sigint::Stops
            } else {
                Sigint::Passes
            };
        }
    }
}

fn full_name(name: &str) -> String {
    let name = name.to_ascii_uppercase();
    if name.starts_with("SIG") {
        name
    } else {
        format!("SIG{name}")
    }
}

fn unknown(name: &str) -> Failure {
    Failure::new(FailureCode::Gdb, format!("no signal {name}"))
}

/// Parses a row of gdb's table: name, stop, print, pass, meaning. `None` for another line.
fn read_row(line: &str) -> Option<SignalView> {
    let mut fields = line.split_ascii_whitespace();
    let name = fields.next()?;
    let mut yes = || match fields.next()? {
        "Yes" => Some(true),
        "No" => Some(false),
        _ => None,
    };
    let (stop, print, pass) = (yes()?, yes()?, yes()?);
    Some(SignalView {
        name: name.to_owned(),
        stop,
        print,
        pass,
        meaning: fields.collect::<Vec<_>>().join(" "),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signal_table_rows_are_parsed() {
        let row = read_row("SIGALRM       No\tNo\tYes\t\tAlarm clock").unwrap();
        let expect = SignalView {
            name: "SIGALRM".to_owned(),
            stop: false,
            print: false,
            pass: true,
            meaning: "Alarm clock".to_owned(),
        };
        assert_eq!(row, expect);
        let head = "Signal        Stop\tPrint\tPass to program\tDescription";
        assert_eq!(read_row(head), None);
        assert_eq!(read_row(""), None);
        assert_eq!(full_name("usr1"), "SIGUSR1");
    }

    #[test]
    fn handle_arguments_are_expanded_to_signal_names() {
        let check = |word: &str, expect: &[&str]| assert_eq!(named(word), expect, "{word}");
        check("SIGSEGV", &["SIGSEGV"]);
        check("11", &["SIGSEGV"]);
        check("4-6", &["SIGILL", "SIGTRAP", "SIGABRT"]);
        check("15-999999999", &["SIGTERM"]);
        check("all", &["all"]);
        check("nostop", &[]);
        assert!(refuse_own(&named("4-6")).is_err());
        assert!(refuse_own(&named("all")).is_ok());
    }
}
