//! A line of text becomes a [`Line`].

use sdm_debug::command::{FrameSelect, StepKind};

use super::cursor::Cursor;
use super::table::{self, Word};
use super::{CommandError, Line, SetExpr, UserCommand, args, info};

/// Reads one line.
///
/// # Errors
/// A line that is no command; the error points at the character where one is to blame.
pub fn parse(line: &str) -> Result<Line, CommandError> {
    let mut rest = Cursor::new(line);
    let to = prefix_set(&mut rest)?;
    if rest.is_empty() || rest.rest().starts_with('#') {
        if to.is_some() {
            return Err(rest.error("expected a command after the set"));
        }
        let comment = !rest.is_empty();
        return Ok(Line {
            to,
            command: UserCommand::Nothing { comment },
        });
    }
    let at = rest.at();
    let word = command_word(&mut rest);
    let (name, word) = table::find(word, at)?;
    let command = parse_command(name, word, &mut rest)?;
    Ok(Line { to, command })
}

/// A line with its command spelled out and without its set: `[0-3] c &` is `continue &`.
#[must_use]
pub fn spelled_out(line: &str) -> String {
    let mut rest = Cursor::new(line);
    let at = match prefix_set(&mut rest) {
        Ok(_) => rest.at(),
        Err(_) => return line.trim().to_owned(),
    };
    let word = command_word(&mut rest);
    let after = &line[at + word.len()..];
    match table::find(word, at) {
        Ok((name, _)) => format!("{name}{}", after.trim_end()),
        Err(_) => line.trim().to_owned(),
    }
}

/// `[SET]` at the start of a line.
fn prefix_set(rest: &mut Cursor<'_>) -> Result<Option<SetExpr>, CommandError> {
    let Some(inner) = rest.rest().strip_prefix('[') else {
        return Ok(None);
    };
    let Some(end) = inner.find(']') else {
        return Err(rest.error("expected `]` after the set"));
    };
    let text = &inner[..end];
    let blanks = text.len() - text.trim_start().len();
    let set = SetExpr::parse(text.trim(), rest.at() + 1 + blanks)?;
    rest.skip(end + 2);
    Ok(Some(set))
}

/// The command's word ends where a name would: `p*q` and `print/x y` have one.
fn command_word<'a>(rest: &mut Cursor<'a>) -> &'a str {
    let text = rest.rest();
    let end = text
        .find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-')
        .unwrap_or(text.len());
    if end == 0 {
        return rest.word();
    }
    rest.skip(end);
    &text[..end]
}

fn parse_command(
    name: &'static str,
    word: Word,
    rest: &mut Cursor<'_>,
) -> Result<UserCommand, CommandError> {
    use UserCommand as C;
    let command = match word {
        Word::Break => args::breakpoint(rest, name, (false, false))?,
        Word::Tbreak => args::breakpoint(rest, name, (true, false))?,
        Word::Hbreak => args::breakpoint(rest, name, (false, true))?,
        Word::Delete | Word::Enable | Word::Disable => numbered(name, word, rest)?,
        Word::Continue | Word::Finish | Word::Next | Word::Nexti | Word::Step | Word::Stepi => {
            return run_control(name, word, rest);
        }
        Word::Backtrace => return backtrace(name, rest),
        Word::Frame => return frame(name, rest),
        Word::Up => C::Frame(FrameSelect::Move(steps(rest, name)?)),
        Word::Down => C::Frame(FrameSelect::Move(-steps(rest, name)?)),
        Word::Info => info::parse_info(rest)?,
        Word::Print | Word::Call => return print(name, rest),
        Word::Set => return set(name, rest),
        Word::Thread => {
            let here = *rest;
            match args::count(rest, name, 0)? {
                0 => return Err(here.error("thread: expected a thread's number, from 1")),
                number => C::Thread(number),
            }
        }
        Word::Pass => C::Gdb(format!("{name}{}", passed_on(name, rest))),
        Word::Gdb if rest.is_empty() => {
            return Err(rest.error("gdb: expected a command for gdb"));
        }
        Word::Gdb => C::Gdb(rest.take_rest().to_owned()),
        Word::Send => args::send(rest)?,
        Word::Wait => args::wait(rest)?,
        Word::Output => C::Output(args::on_off(rest, name)?),
        Word::Focus => {
            let at = rest.at();
            match rest.take_rest() {
                "" => C::Focus(None),
                text => C::Focus(Some(SetExpr::parse(text, at)?)),
            }
        }
        Word::Stacks => C::Stacks {
            full: rest.take_word("--full"),
        },
        Word::Help => match rest.take_rest() {
            "" => C::Help(None),
            text => C::Help(Some(text.to_owned())),
        },
        Word::Source => match rest.take_rest() {
            "" => return Err(rest.error("source: expected a file")),
            file => C::Source(file.to_owned()),
        },
        Word::Run => {
            return Err(CommandError::new(format!(
                "{name}: the program is started by `sdm run`; end this session and say it again"
            )));
        }
        Word::Interrupt => C::Interrupt,
        Word::Ranks => C::Ranks,
        Word::Kill => C::Kill,
        Word::Detach => C::Detach,
        Word::Quit => C::Quit,
    };
    rest.finish(name)?;
    Ok(command)
}

fn numbered(name: &str, word: Word, rest: &mut Cursor<'_>) -> Result<UserCommand, CommandError> {
    rest.take_word("breakpoints");
    let numbers = args::numbers(rest, name)?;
    Ok(match word {
        Word::Delete => UserCommand::Delete(numbers),
        _ => UserCommand::Enable {
            numbers,
            enabled: word == Word::Enable,
        },
    })
}

fn run_control(name: &str, word: Word, rest: &mut Cursor<'_>) -> Result<UserCommand, CommandError> {
    let mut words: Vec<&str> = rest.rest().split_whitespace().collect();
    let mut background = false;
    if let Some(last) = words.pop() {
        let stripped = last.strip_suffix('&');
        background = stripped.is_some();
        words.extend(Some(stripped.unwrap_or(last)).filter(|word| !word.is_empty()));
    }
    let kind = match word {
        Word::Next => StepKind::Over,
        Word::Nexti => StepKind::InstructionOver,
        Word::Step => StepKind::Into,
        Word::Stepi => StepKind::Instruction,
        _ if !words.is_empty() => {
            return Err(rest.error(format!("{name}: takes no argument but &")));
        }
        Word::Finish => return Ok(UserCommand::Finish { background }),
        _ => return Ok(UserCommand::Continue { background }),
    };
    let count = match words[..] {
        [] => 1,
        [count] => count
            .parse()
            .ok()
            .filter(|count| *count > 0)
            .ok_or_else(|| {
                rest.error(format!(
                    "{name}: expected how often, 1 or more, not `{count}`"
                ))
            })?,
        _ => return Err(rest.error(format!("{name}: expected how often and &, no more"))),
    };
    Ok(UserCommand::Step {
        kind,
        count,
        background,
    })
}

fn backtrace(name: &str, rest: &mut Cursor<'_>) -> Result<UserCommand, CommandError> {
    // gdb's own `bt full` prints the locals of every frame; `--full` unfolds runtimes.
    if rest.rest().starts_with("full") || rest.rest().starts_with("-full") {
        return Ok(UserCommand::Gdb(format!("{name} {}", rest.take_rest())));
    }
    let full = rest.take_word("--full");
    let here = *rest;
    if here.rest().starts_with('-') {
        return Ok(UserCommand::Gdb(format!("{name} {}", rest.take_rest())));
    }
    let limit = args::count(rest, name, 0)?;
    if limit == 0 && !here.is_empty() {
        return Err(here.error(format!("{name}: expected how many frames, 1 or more")));
    }
    Ok(UserCommand::Backtrace { limit, full })
}

fn frame(name: &str, rest: &mut Cursor<'_>) -> Result<UserCommand, CommandError> {
    if rest.is_empty() {
        return Ok(UserCommand::Frame(FrameSelect::Current));
    }
    rest.take_word("level");
    let level = args::count(rest, name, 0)?;
    Ok(UserCommand::Frame(FrameSelect::Level(level)))
}

fn steps(rest: &mut Cursor<'_>, name: &str) -> Result<i32, CommandError> {
    let here = *rest;
    let count = args::count(rest, name, 1)?;
    i32::try_from(count)
        .ok()
        .filter(|count| *count > 0)
        .ok_or_else(|| here.error(format!("{name}: expected how many frames, 1 or more")))
}

fn print(name: &str, rest: &mut Cursor<'_>) -> Result<UserCommand, CommandError> {
    let format = match rest.rest().strip_prefix('/') {
        Some(after) => {
            let end = after.find(char::is_whitespace).unwrap_or(after.len());
            rest.skip(1 + end);
            Some(after[..end].to_owned())
        }
        None => None,
    };
    if rest.is_empty() {
        return Err(rest.error(format!("{name}: expected an expression")));
    }
    Ok(UserCommand::Print {
        format: format.filter(|format| !format.is_empty()),
        expression: rest.take_rest().to_owned(),
    })
}

fn set(name: &str, rest: &mut Cursor<'_>) -> Result<UserCommand, CommandError> {
    if rest.is_empty() {
        return Err(rest.error("set: expected `var EXPRESSION` or one of gdb's settings"));
    }
    let whole = rest.rest();
    let mut ahead = *rest;
    let word = ahead.word();
    if word.starts_with("var") && "variable".starts_with(word) {
        if ahead.is_empty() {
            return Err(ahead.error("set var: expected an assignment: NAME = VALUE"));
        }
        return Ok(UserCommand::SetVariable(ahead.take_rest().to_owned()));
    }
    if word == "breakpoint" && ahead.take_word("pending") {
        return match args::on_off(&mut ahead, "set breakpoint pending")? {
            Some(on) => Ok(UserCommand::SetPending(on)),
            None => Err(ahead.error("set breakpoint pending: expected on or off")),
        };
    }
    Ok(UserCommand::Gdb(format!("{name} {whole}")))
}

/// The arguments as gdb wants them: `x/4x p` has no blank before the slash.
fn passed_on(name: &str, rest: &mut Cursor<'_>) -> String {
    match rest.take_rest() {
        "" => String::new(),
        text if text.starts_with('/') && name != "list" => text.to_owned(),
        text => format!(" {text}"),
    }
}

#[cfg(test)]
mod tests;
