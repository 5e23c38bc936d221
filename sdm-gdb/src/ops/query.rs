//! Commands whose reply is made of gdb's answers.

use sdm_debug::{Command, Failure, FailureCode, Reply};

use super::{
    absent, breakpoints, console, memory, objects, probe, queues, signals, source, stack, strides,
    values,
};
use crate::gdb::Gdb;

/// Carries out a command whose reply is gdb's answer.
pub(crate) async fn query(gdb: &Gdb, command: &Command) -> Result<Reply, Failure> {
    strides::refuse_in(gdb, command).await?;
    let answer = asked(gdb, command).await;
    absent::in_words(gdb, command, answer).await
}

async fn asked(gdb: &Gdb, command: &Command) -> Result<Reply, Failure> {
    match command {
        Command::Backtrace(_)
        | Command::Stacks { .. }
        | Command::Threads
        | Command::SelectThread { .. }
        | Command::SelectFrame(_)
        | Command::Locals
        | Command::Arguments
        | Command::Probe(_) => look(&gdb.for_a_look(), command).await,
        Command::BreakInsert(spec) => breakpoints::insert(gdb, spec.clone()).await,
        Command::BreakDelete { number } => breakpoints::delete(gdb, *number).await,
        Command::BreakEnable { number, enabled } => {
            breakpoints::enable(gdb, *number, *enabled).await
        }
        Command::Evaluate { expression } => values::evaluate(gdb, expression).await,
        Command::SetVariable { expression } => values::set_variable(gdb, expression).await,
        Command::Print { format, expression } => values::print(gdb, format, expression).await,
        Command::Call { expression } => values::call(gdb, expression).await,
        Command::Return { value } => stack::return_now(gdb, value.as_deref()).await,
        Command::MemoryRead { address, length } => memory::read(gdb, address, *length).await,
        Command::MemoryWrite { address, bytes } => memory::write(gdb, address, bytes).await,
        Command::Registers { names, format } => memory::registers(gdb, names, *format).await,
        Command::Disassemble { address } => memory::disassemble(gdb, address.as_deref()).await,
        Command::List { what } => source::list(gdb, what).await,
        Command::Libraries => source::libraries(gdb).await,
        Command::TypeOf { expression, full } => source::type_of(gdb, expression, *full).await,
        Command::Signals { names } => signals::list(gdb, names).await,
        Command::SignalHandle {
            names,
            stop,
            print,
            pass,
        } => {
            let (stop, print, pass) = (*stop, *print, *pass);
            signals::handle(gdb, names, signals::Change { stop, print, pass }).await
        }
        other => query_more(gdb, other).await,
    }
}

/// The further commands of [`asked`]: breakpoints, variable objects, and raw gdb commands.
async fn query_more(gdb: &Gdb, command: &Command) -> Result<Reply, Failure> {
    match command {
        Command::BreakCondition { number, condition } => {
            breakpoints::condition(gdb, *number, condition.clone()).await
        }
        Command::BreakIgnore { number, count } => breakpoints::ignore(gdb, *number, *count).await,
        Command::BreakCommands { number, lines } => {
            breakpoints::commands(gdb, *number, lines.clone())
        }
        Command::Breakpoints => breakpoints::list(gdb).await,
        Command::WatchInsert(spec) => breakpoints::insert_watch(gdb, spec.clone()).await,
        Command::CatchInsert(spec) => breakpoints::insert_catch(gdb, spec.clone()).await,
        Command::VarCreate { name, expression } => objects::create(gdb, name, expression).await,
        Command::VarChildren { name, from, count } => {
            objects::children(gdb, name, *from, *count).await
        }
        Command::VarAssign { name, value } => objects::assign(gdb, name, value).await,
        Command::VarDelete { name } => objects::delete(gdb, name).await,
        Command::Queues => queues::queues(gdb).await,
        Command::Console { line } => console::console(gdb, line).await,
        Command::Mi { line } => console::mi(gdb, line).await,
        other => Err(unknown(other)),
    }
}

/// Carries out a command that inspects the task, within a budget.
async fn look(gdb: &Gdb, command: &Command) -> Result<Reply, Failure> {
    match command {
        Command::Backtrace(spec) => stack::backtrace(gdb, spec).await,
        Command::Stacks { full } => stack::stacks(gdb, *full).await,
        Command::Threads => stack::threads(gdb).await,
        Command::SelectThread { number } => stack::select_thread(gdb, *number).await,
        Command::SelectFrame(select) => stack::select_frame(gdb, *select).await,
        Command::Locals => values::variables(gdb, false).await,
        Command::Arguments => values::variables(gdb, true).await,
        Command::Probe(spec) => probe::probe(gdb, *spec).await,
        other => Err(unknown(other)),
    }
}

fn unknown(command: &Command) -> Failure {
    let name = command.name();
    let text = format!("the gdb backend does not support the command {name}");
    Failure::new(FailureCode::Unsupported, text)
}
