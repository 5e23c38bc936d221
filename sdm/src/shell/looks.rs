//! Commands that ask every task the same and show what is answered.

use sdm_debug::Command;
use sdm_debug::command::BacktraceSpec;

use crate::commands::UserCommand as C;

/// The question that a command asks; absent for commands that do something else.
pub(super) fn question(command: C) -> Option<Command> {
    Some(match command {
        C::Backtrace { limit, full } => Command::Backtrace(BacktraceSpec {
            limit,
            args: true,
            full,
        }),
        C::Stacks { full } => Command::Stacks { full },
        C::Frame(select) => Command::SelectFrame(select),
        C::Thread(number) => Command::SelectThread { number },
        C::Locals => Command::Locals,
        C::Arguments => Command::Arguments,
        C::Threads => Command::Threads,
        C::Print {
            format: None,
            expression,
        } => Command::Evaluate { expression },
        // gdb's `print` numbers what it prints, its `output` does not: equal stays equal.
        C::Print {
            format: Some(format),
            expression,
        } => Command::Console {
            line: format!("output/{format} {expression}"),
        },
        C::SetVariable(expression) => Command::SetVariable { expression },
        C::Gdb(line) => Command::Console { line },
        _ => return None,
    })
}
