//! The commands of a breakpoint: lines for gdb's command line, with `if` and `while`.
//!
//! gdb would read the lines of a block from its input, which carries MI commands, and a `continue` in a block would
//! stop it reading. So the driver interprets the blocks, and gdb gets one line after another.

use std::borrow::Cow;

use sdm_debug::quotes::referred;
use sdm_debug::{Failure, FailureCode};

use super::evaluate::truth;
use super::intercepted_lines::own_way;
use super::values::{evaluated, in_value};
use super::{history, pointers, references, strides};
use crate::gdb::Gdb;
use crate::state::console_capture::PRINTED_BYTES_MAX;
use crate::text::console_line;

/// Maximum nesting depth of blocks.
const DEPTH_MAX: usize = 32;
/// Maximum number of steps carried out at one stop, which bounds an endless loop.
const STEPS_MAX: u32 = 100_000;

/// A step of compiled breakpoint commands.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    /// Executes a line in gdb.
    Do(String),
    /// Jumps to this step if the expression is false.
    Unless(String, usize),
    GoTo(usize),
    /// Resumes the task.
    Continue,
}

/// An `if` or `while` block whose `end` has not come yet.
struct Block {
    is_loop: bool,
    /// Index of the block's first step.
    begins: usize,
    /// Index of the step that jumps past the block if its expression is false; `None` after `else`.
    test: Option<usize>,
    /// Indices of the jumps past the block's `end`: the jump before `else`, and those of `loop_break`.
    leaving: Vec<usize>,
}

/// Checks that lines are valid breakpoint commands.
pub(crate) fn check(lines: &[String]) -> Result<(), Failure> {
    compile(lines).map(drop)
}

fn compile(lines: &[String]) -> Result<Vec<Step>, Failure> {
    let mut steps = Vec::new();
    let mut blocks: Vec<Block> = Vec::new();
    let bad = |text: String| Failure::new(FailureCode::BadCommand, text);
    for line in lines.iter().map(|line| line.trim()) {
        let (word, rest) = line
            .split_once(|c: char| c.is_whitespace() || c == '(')
            .unwrap_or((line, ""));
        let stray = || bad(format!("`{line}` is allowed inside a block only"));
        match word {
            "" | "silent" => {}
            "continue" | "c" | "fg" if rest.is_empty() => steps.push(Step::Continue),
            "if" | "while" => {
                if blocks.len() == DEPTH_MAX {
                    return Err(bad(format!("more than {DEPTH_MAX} nested blocks")));
                }
                let expression = line[word.len()..].trim().to_owned();
                if expression.is_empty() {
                    return Err(bad(format!("expected an expression after `{word}`")));
                }
                blocks.push(Block {
                    is_loop: word == "while",
                    begins: steps.len(),
                    test: Some(steps.len()),
                    leaving: Vec::new(),
                });
                steps.push(Step::Unless(expression, 0));
            }
            "else" => {
                let open = blocks.last_mut().filter(|block| !block.is_loop);
                let Some((block, test)) = open.and_then(|b| b.test.take().map(|test| (b, test)))
                else {
                    return Err(stray());
                };
                block.leaving.push(steps.len());
                steps.push(Step::GoTo(0));
                lead(&mut steps, test);
            }
            "end" => end(&mut steps, blocks.pop().ok_or_else(stray)?),
            "loop_break" | "loop_continue" => {
                let block = blocks.iter_mut().rev().find(|block| block.is_loop);
                let block = block.ok_or_else(stray)?;
                if word == "loop_break" {
                    block.leaving.push(steps.len());
                }
                steps.push(Step::GoTo(block.begins));
            }
            _ => steps.push(Step::Do(line.to_owned())),
        }
    }
    match blocks.is_empty() {
        true => Ok(steps),
        false => Err(bad("a block is not closed by `end`".to_owned())),
    }
}

fn end(steps: &mut Vec<Step>, block: Block) {
    if block.is_loop {
        steps.push(Step::GoTo(block.begins));
    }
    for step in block.test.into_iter().chain(block.leaving) {
        lead(steps, step);
    }
}

/// Sets the target of a jump to the step that will be added next. Steps are the compiled lines of a breakpoint's
/// commands.
fn lead(steps: &mut [Step], step: usize) {
    let next = steps.len();
    if let Some(Step::Unless(_, to) | Step::GoTo(to)) = steps.get_mut(step) {
        *to = next;
    }
}

/// The result of a breakpoint's commands.
#[derive(Default)]
pub(crate) struct LinesResult {
    /// Output of the commands, including the error of one that failed.
    pub(crate) text: String,
    /// True if the task must be resumed.
    pub(crate) goes_on: bool,
}

/// Carries out the commands of a breakpoint, until one of them resumes the task or fails.
pub(crate) async fn carry_out(gdb: &Gdb, lines: &[String]) -> LinesResult {
    let mut carried = LinesResult::default();
    // The lines were checked when they were set.
    let steps = compile(lines).unwrap_or_default();
    let mut at = 0;
    for _ in 0..STEPS_MAX {
        let Some(step) = steps.get(at) else {
            return carried;
        };
        at += 1;
        let failed = match step {
            Step::Do(line) => match history::own(gdb, line) {
                Ok(line) => {
                    let (result, printed) = said(gdb, &line).await;
                    carried.print(&printed);
                    result.err().map(|failure| (failure, printed.is_empty()))
                }
                Err(failure) => Some((failure, true)),
            },
            Step::Unless(expression, to) => match holds(gdb, expression).await {
                Ok(true) => None,
                Ok(false) => {
                    at = *to;
                    None
                }
                Err(failure) => Some((failure, true)),
            },
            Step::GoTo(to) => {
                at = *to;
                None
            }
            Step::Continue => {
                carried.goes_on = true;
                return carried;
            }
        };
        if let Some((failure, unsaid)) = failed {
            if unsaid {
                carried.print(&format!("{}\n", failure.text));
            }
            return carried;
        }
        if gdb.get().activity.is_executing() || !gdb.get().activity.is_live() {
            return carried;
        }
    }
    carried.print(&format!(
        "the breakpoint's commands were ended after {STEPS_MAX} steps\n"
    ));
    carried
}

/// Carries out a line; returns the result, and gdb's output. A value is shown without its number, and with the objects
/// of references.
async fn said(gdb: &Gdb, line: &str) -> (Result<(), Failure>, String) {
    if let Err(failure) = strides::refuse(gdb, "", line).await {
        return (Err(failure), String::new());
    }
    match own_way(gdb, line).await {
        Some(Ok(text)) => return (Ok(()), text),
        Some(Err(failure)) => return (Err(failure), String::new()),
        None => {}
    }
    let valued = match pointers::in_line(gdb, line).await {
        Ok(valued) => valued,
        Err(failure) => return (Err(failure), String::new()),
    };
    let told = console_line(&at_once(&valued));
    let (result, printed) = gdb.send(told).capture().printed().await;
    history::note(gdb, &printed);
    let result = result.map(drop);
    let (_, expression) = line.split_once(' ').unwrap_or((line, ""));
    let number = history::number(&printed);
    let printed = match (number, output(line)) {
        (Some(number), _) => {
            let again = format!("output ${number}");
            references::followed(gdb, "", (expression, &again), printed).await
        }
        (None, Some(expression)) => in_value(gdb, "", (expression, &valued), printed).await,
        (None, None) => return (result, printed.to_owned()),
    };
    let printed = match printed {
        Ok(printed) => printed,
        Err(failure) => return (Err(failure), String::new()),
    };
    let text = match number {
        Some(_) => format!("{}\n", history::shown(&printed).trim_end_matches('\n')),
        None => referred(&printed).to_owned(),
    };
    (result, text)
}

/// The line in a form whose output gdb flushes at once: an `echo` that ends in a blank and a backslash would be held
/// back.
fn at_once(line: &str) -> Cow<'_, str> {
    match line.strip_prefix("echo ").and(line.strip_suffix(" \\")) {
        Some(text) => Cow::Owned(format!("{text}\\040")),
        None => Cow::Borrowed(line),
    }
}

/// The expression of a line that only prints a value, as tracing lines do; `None` for another line.
pub(super) fn output(line: &str) -> Option<&str> {
    let behind = line.strip_prefix("output")?;
    let is_end = behind.starts_with([' ', '/']);
    is_end.then(|| {
        behind
            .split_once(' ')
            .map_or("", |(_, expression)| expression)
    })
}

impl LinesResult {
    fn print(&mut self, text: &str) {
        if self.text.len() + text.len() <= PRINTED_BYTES_MAX {
            self.text.push_str(text);
        }
    }
}

async fn holds(gdb: &Gdb, expression: &str) -> Result<bool, Failure> {
    let expression = history::own(gdb, expression)?;
    let value = evaluated(gdb, "", &expression).await?;
    truth(&value.text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(lines: &str, expect: Result<&[Step], &str>) {
        let lines: Vec<String> = lines.split(';').map(ToOwned::to_owned).collect();
        let steps = compile(&lines).map_err(|failure| failure.text);
        assert_eq!(
            steps.as_deref().map_err(String::as_str),
            expect,
            "{lines:?}"
        );
    }

    #[test]
    fn trailing_backslash_of_gdb_echo_becomes_a_space() {
        assert_eq!(at_once(r"echo cell = \"), r"echo cell =\040");
        for same in [r"echo \n", "echo a", r"output a \", r"echo a\"] {
            assert_eq!(at_once(same), same);
        }
    }

    #[test]
    fn if_and_while_in_breakpoint_commands_become_jumps() {
        let line = |text: &str| Step::Do(text.to_owned());
        let unless = |text: &str, to| Step::Unless(text.to_owned(), to);
        check(
            "silent; print n ;continue;",
            Ok(&[line("print n"), Step::Continue]),
        );
        check(
            "if n > 2;print 1;else;if(m);c;end;end;print 3",
            Ok(&[
                unless("n > 2", 3),
                line("print 1"),
                Step::GoTo(5),
                unless("(m)", 5),
                Step::Continue,
                line("print 3"),
            ]),
        );
        check(
            "while i;if j;loop_break;end;loop_continue;end",
            Ok(&[
                unless("i", 5),
                unless("j", 3),
                Step::GoTo(5),
                Step::GoTo(0),
                Step::GoTo(0),
            ]),
        );
        let stray = |word| format!("`{word}` is allowed inside a block only");
        for word in ["end", "else", "loop_break", "while 1;else"] {
            let said = stray(word.rsplit(';').next().unwrap());
            check(word, Err(&said));
        }
        check("if 1;else;else;end", Err(&stray("else")));
        check("if 1", Err("a block is not closed by `end`"));
        check("if", Err("expected an expression after `if`"));
        let deep = "if 1;".repeat(DEPTH_MAX + 1);
        check(&deep, Err("more than 32 nested blocks"));
    }
}
