//! The parser of scenario texts.

use std::time::Duration;

use sdm_debug::{Failure, FailureCode};

use super::scenario::{
    Delay, DelayKey, End, Place, RunEnd, SCENARIO_BYTES_MAX, Scenario, ScenarioError, Section,
};

/// Maximum number of lines printed at once.
const OUTPUT_LINES_MAX: u32 = 10_000;

/// An error in a line of a scenario.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Wrong {
    /// The text is longer than [`SCENARIO_BYTES_MAX`].
    #[error("longer than {SCENARIO_BYTES_MAX} bytes")]
    TooLong,
    /// The line has something else than is expected at this place.
    #[error("expected {0}")]
    Expected(&'static str),
    /// The seed is set inside a section, but belongs to the whole scenario.
    #[error("`seed` must stand before the first section")]
    LateSeed,
    /// An invalid set of tasks.
    #[error("'{text}' is not a set of tasks: {source}")]
    Set {
        /// The text in place of a set.
        text: String,
        /// The reason why the set is invalid.
        source: sdm_idset::ParseError,
    },
    /// A number of output lines outside the permitted range.
    #[error("output_lines: expected a number from 1 to {OUTPUT_LINES_MAX}")]
    OutputLines,
    /// A value of `stdin` other than `echo` and `ignore`.
    #[error("expected echo or ignore, not '{0}'")]
    Stdin(String),
    /// A name must follow the key.
    #[error("expected a name after the key, as in `{0} NAME = ...`")]
    NoName(String),
    /// An unknown key.
    #[error("the key '{0}' is unknown")]
    Key(String),
    /// An unknown command.
    #[error("unknown command '{0}'")]
    Command(String),
    /// A malformed or too large number.
    #[error("'{0}' is not a number, or too large")]
    Number(String),
    /// A range of times whose end is before its start.
    #[error("the range of times '{0}' ends before it begins")]
    Range(String),
    /// A malformed time.
    #[error("'{0}' is not a time: expected 250us, 10ms, 2s or 0")]
    Time(String),
    /// A malformed stack frame.
    #[error("'{0}' is not a frame: expected FUNCTION or FUNCTION FILE:LINE")]
    Frame(String),
    /// A pause of 0 between outputs.
    #[error("a program cannot print all the time: expected a time above 0")]
    AllTheTime,
}

pub(super) fn parse(text: &str) -> Result<Scenario, ScenarioError> {
    if text.len() > SCENARIO_BYTES_MAX {
        return Err(ScenarioError {
            line: 1,
            what: Wrong::TooLong,
        });
    }
    let mut scenario = Scenario {
        seed: 0,
        sections: vec![Section::default()],
    };
    for (index, line) in text.lines().enumerate() {
        read_line(&mut scenario, line.trim()).map_err(|what| ScenarioError {
            line: index + 1,
            what,
        })?;
    }
    Ok(scenario)
}

/// Feeds arbitrary text to the parser of scenarios. Checks that it does not panic, and that an error names an
/// existing line.
///
/// # Panics
/// If a check fails.
pub fn fuzz_scenario(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Err(error) = parse(&text) {
        assert!((1..=text.lines().count().max(1)).contains(&error.line));
        assert!(!error.to_string().is_empty());
    }
}

fn read_line(scenario: &mut Scenario, line: &str) -> Result<(), Wrong> {
    if line.is_empty() || line.starts_with('#') {
        return Ok(());
    }
    if let Some(head) = line.strip_prefix('[') {
        let head = head.strip_suffix(']').ok_or(Wrong::Expected("]"))?;
        scenario.sections.push(Section {
            tasks: read_tasks(head)?,
            ..Section::default()
        });
        return Ok(());
    }
    let (key, value) = line
        .split_once('=')
        .ok_or(Wrong::Expected("`key = value` or `[section]`"))?;
    let (key, value) = (key.trim(), value.trim());
    if key == "seed" {
        if scenario.sections.len() > 1 {
            return Err(Wrong::LateSeed);
        }
        scenario.seed = number(value)?;
        return Ok(());
    }
    let section = scenario.sections.last_mut().expect("one from the start");
    match key.split_once(char::is_whitespace) {
        Some((key, name)) => read_named(section, key, name.trim(), value),
        None => read_plain(section, key, value),
    }
}

fn read_tasks(head: &str) -> Result<Option<sdm_idset::IdSet>, Wrong> {
    if head == "all" {
        return Ok(None);
    }
    let set = head
        .strip_prefix("tasks ")
        .ok_or(Wrong::Expected("[all] or [tasks SET]"))?;
    let set = set.trim();
    set.parse().map(Some).map_err(|source| Wrong::Set {
        text: set.to_owned(),
        source,
    })
}

fn read_plain(section: &mut Section, key: &str, value: &str) -> Result<(), Wrong> {
    match key {
        "start" => section.delays.push((DelayKey::Start, delay(value)?)),
        "answer" => section.delays.push((DelayKey::Answer, delay(value)?)),
        "step" => section.delays.push((DelayKey::Step, delay(value)?)),
        "shut_down" => section.delays.push((DelayKey::ShutDown, delay(value)?)),
        "gdb_dies" => section.delays.push((DelayKey::GdbDies, delay(value)?)),
        "interrupt" => {
            section.refuses_interrupt = Some(value == "never");
            if value != "never" {
                section.delays.push((DelayKey::Interrupt, delay(value)?));
            }
        }
        "continue" => section.runs.push(run_end(value)?),
        "stack" => section.stacks.push(stack(value)?),
        "thread" => section.threads.push(stack(value)?),
        "helpers" => section.helpers = Some(number(value)?),
        "mute" => {
            let names = value.split(',').map(|name| command_name(name.trim()));
            section.mute = Some(names.collect::<Result<_, _>>()?);
        }
        "output" => section.outputs[0] = Some(output(value)?),
        "stderr" => section.outputs[1] = Some(output(value)?),
        "output_lines" => {
            let lines = number(value)?;
            if !(1..=OUTPUT_LINES_MAX).contains(&lines) {
                return Err(Wrong::OutputLines);
            }
            section.output_lines = Some(lines);
        }
        "stdin" => {
            section.stdin_echo = Some(match value {
                "echo" => true,
                "ignore" => false,
                _ => return Err(Wrong::Stdin(value.to_owned())),
            });
        }
        "value" | "local" | "arg" | "fail" => return Err(Wrong::NoName(key.to_owned())),
        _ => return Err(Wrong::Key(key.to_owned())),
    }
    Ok(())
}

fn read_named(section: &mut Section, key: &str, name: &str, value: &str) -> Result<(), Wrong> {
    let pair = || (name.to_owned(), value.to_owned());
    match key {
        "value" => section.values.push(pair()),
        "local" => section.locals.push(pair()),
        "arg" => section.args.push(pair()),
        "answer" => {
            let key = DelayKey::AnswerTo(command_name(name)?);
            section.delays.push((key, delay(value)?));
        }
        "fail" => {
            let failure = Failure::new(FailureCode::Gdb, value);
            section.fails.push((command_name(name)?, failure));
        }
        _ => return Err(Wrong::Key(format!("{key} {name}"))),
    }
    Ok(())
}

/// The names of all commands, and `all`.
const COMMAND_NAMES: &[&str] = &[
    "all",
    "start",
    "attach",
    "detach",
    "kill",
    "break_insert",
    "break_delete",
    "break_enable",
    "continue",
    "step",
    "finish",
    "interrupt",
    "backtrace",
    "stacks",
    "select_frame",
    "locals",
    "arguments",
    "threads",
    "select_thread",
    "evaluate",
    "set_variable",
    "stdin",
    "status",
    "console",
    "mi",
    "break_condition",
    "break_ignore",
    "break_commands",
    "breakpoints",
    "watch_insert",
    "catch_insert",
    "continue_past",
    "until",
    "advance",
    "jump",
    "continue_signal",
    "reverse_continue",
    "reverse_step",
    "call",
    "return",
    "memory_read",
    "memory_write",
    "registers",
    "disassemble",
    "list",
    "libraries",
    "signals",
    "signal_handle",
    "type_of",
    "var_create",
    "var_children",
    "var_assign",
    "var_delete",
    "load_core",
];

fn command_name(name: &str) -> Result<String, Wrong> {
    if COMMAND_NAMES.contains(&name) {
        return Ok(name.to_owned());
    }
    Err(Wrong::Command(name.to_owned()))
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, Wrong> {
    text.parse().map_err(|_| Wrong::Number(text.to_owned()))
}

/// Parses `10ms`, `2s`, `250us`, `0`, or a range `1ms..5ms`.
fn delay(text: &str) -> Result<Delay, Wrong> {
    let (low, high) = text.split_once("..").unwrap_or((text, text));
    let (low, high) = (duration(low)?, duration(high)?);
    if low > high {
        return Err(Wrong::Range(text.to_owned()));
    }
    Ok(low..=high)
}

fn duration(text: &str) -> Result<Duration, Wrong> {
    let bad = || Wrong::Time(text.to_owned());
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let unit = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(bad)?;
    let (count, unit) = text.split_at(unit);
    let count: u32 = count.parse().map_err(|_| bad())?;
    let unit = match unit {
        "us" => Duration::from_micros(1),
        "ms" => Duration::from_millis(1),
        "s" => Duration::from_secs(1),
        _ => return Err(bad()),
    };
    Ok(unit * count)
}

fn run_end(text: &str) -> Result<RunEnd, Wrong> {
    if text == "never" {
        return Ok(RunEnd::Never);
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    let (&time, words) = words
        .split_first()
        .ok_or(Wrong::Expected("a time and an end"))?;
    let end = match words {
        ["breakpoint"] => End::Breakpoint,
        ["exit", code] => {
            let code: u8 = number(code)?;
            End::Exit(code.into())
        }
        ["signal", name] => End::Signal((*name).to_owned()),
        ["stop", name] => End::Stop((*name).to_owned()),
        _ => {
            return Err(Wrong::Expected(
                "breakpoint, exit N, signal NAME or stop NAME after the time",
            ));
        }
    };
    Ok(RunEnd::After(delay(time)?, end))
}

fn stack(text: &str) -> Result<Vec<Place>, Wrong> {
    text.split('>').map(|part| place(part.trim())).collect()
}

fn place(text: &str) -> Result<Place, Wrong> {
    let bad = || Wrong::Frame(text.to_owned());
    let (function, at) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let (file, line) = match at.trim() {
        "" => ("", 0),
        at => {
            let (file, line) = at.rsplit_once(':').ok_or_else(bad)?;
            (file, line.parse().map_err(|_| bad())?)
        }
    };
    if function.is_empty() {
        return Err(bad());
    }
    Ok(Place {
        function: function.to_owned(),
        file: file.to_owned(),
        line,
    })
}

fn output(text: &str) -> Result<(Delay, String), Wrong> {
    let (time, line) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let delay = delay(time)?;
    if delay.start().is_zero() {
        return Err(Wrong::AllTheTime);
    }
    Ok((delay, line.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn scenario_parser_never_panics(
            text in "([a-z_]{1,12}( [a-z]{1,4})? = [0-9a-z:.>{}% ]{0,12}|\\[[a-z0-9 ,-]{0,9}\\]|.{0,9}\n){0,6}",
        ) {
            let _ = Scenario::parse(&text);
        }
    }

    #[test]
    fn scenario_error_names_the_line_and_the_fault() {
        for (text, expect) in [
            ("\n# x\nfoo = 1", "line 3: the key 'foo' is unknown"),
            ("foo", "line 1: expected `key = value` or `[section]`"),
            ("[tasks 0-", "line 1: expected ]"),
            ("[task 3]", "line 1: expected [all] or [tasks SET]"),
            (
                "[all]\nseed = 1",
                "line 2: `seed` must stand before the first section",
            ),
            ("seed = x", "line 1: 'x' is not a number, or too large"),
            (
                "answer = 5",
                "line 1: '5' is not a time: expected 250us, 10ms, 2s or 0",
            ),
            (
                "answer = 5ms..1ms",
                "line 1: the range of times '5ms..1ms' ends before it begins",
            ),
            ("answer foo = 5ms", "line 1: unknown command 'foo'"),
            ("mute = evaluate,foo", "line 1: unknown command 'foo'"),
            (
                "continue = 1ms exit 256",
                "line 1: '256' is not a number, or too large",
            ),
            (
                "continue = 1ms explode",
                "line 1: expected breakpoint, exit N, signal NAME or stop NAME after the time",
            ),
            (
                "stack = main m.c",
                "line 1: 'main m.c' is not a frame: expected FUNCTION or FUNCTION FILE:LINE",
            ),
            (
                "stack = main m.c:3 >",
                "line 1: '' is not a frame: expected FUNCTION or FUNCTION FILE:LINE",
            ),
            (
                "value = 3",
                "line 1: expected a name after the key, as in `value NAME = ...`",
            ),
            (
                "output = 0 x",
                "line 1: a program cannot print all the time: expected a time above 0",
            ),
            (
                "output_lines = 0",
                "line 1: output_lines: expected a number from 1 to 10000",
            ),
            (
                "stdin = maybe",
                "line 1: expected echo or ignore, not 'maybe'",
            ),
        ] {
            let error = Scenario::parse(text).unwrap_err().to_string();
            assert_eq!(error, format!("scenario, {expect}"));
        }
    }
}
