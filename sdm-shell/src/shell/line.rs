//! Execution of one line: its target set, its command, and the function that carries the command out.
use sdm_view::item::Item;

use super::invocation::Invocation;
use super::model::dialogue::{ListFrom, Question};
use super::{
    SessionHandle, Verdict, attach, breakpoints, define, diagnose, display, free_script,
    memory_use, notices, pagination, profile, program_input, queues, report, rerun, run, save,
    script, session_info, sets, stacks, system, thread_apply, values, working_directory,
};
use crate::commands::{self, Line, SetExpr, UserCommand as C};

/// Carries out one line. `depth` is the nesting depth of sourced files and user-defined commands around it.
pub(super) async fn execute(session: &SessionHandle, line: &str, depth: u32) -> Verdict {
    if let Some(question) = session.edit(|model| model.dialogue.question.take()) {
        return answer(session, question, line.trim()).await;
    }
    if session.read(|model| model.dialogue.collecting.is_some()) {
        return define::collect(session, line.trim()).await;
    }
    if let Some(verdict) = define::execute_defined(session, line, depth).await {
        return verdict;
    }
    let parsed = match commands::parse(line) {
        Ok(parsed) => parsed,
        Err(error) => return session.refuse(line, &error),
    };
    if parsed.command == (C::Nothing { comment: false }) {
        return match session.read(|model| model.dialogue.repeated.clone()) {
            Some(last) => Box::pin(execute(session, &last, depth)).await,
            None => Verdict::Done,
        };
    }
    execute_parsed(session, line, parsed, depth).await
}

/// Handles a line that answers a question. Another line is no answer: the question is asked again.
async fn answer(session: &SessionHandle, question: Question, line: &str) -> Verdict {
    if !question.is_answer(line) {
        session.say(question.wanted());
        session.edit(|model| model.dialogue.question = Some(question));
        return Verdict::Done;
    }
    match question {
        Question::Quit => rerun::answer_quit(session, line),
        Question::Rerun(again) => rerun::answer_rerun(session, again, line).await,
        // At a depth at which no line asks.
        Question::Confirm(asked) if rerun::is_yes(line) => {
            Box::pin(execute(session, &asked.line, 1)).await
        }
        Question::Confirm(asked) => {
            session.say(asked.refused);
            Verdict::Done
        }
        Question::Pending(asked) => breakpoints::answer_pending(session, asked, line).await,
    }
}

/// Carries out a parsed line.
async fn execute_parsed(session: &SessionHandle, line: &str, parsed: Line, depth: u32) -> Verdict {
    if let Some(verdict) = rerun::refuse_without_job(session, &parsed.command) {
        return verdict;
    }
    let to = match &parsed.to {
        None => Ok(session.read(|model| model.sets.focus.clone())),
        Some(set) => session.resolve(set).await,
    };
    let to = match to {
        Ok(to) => to,
        Err(error) => return session.refuse(line, &error),
    };
    if !matches!(parsed.command, C::Nothing { .. }) {
        let again = || match (&parsed.command, &parsed.to) {
            // As in gdb, a repeated `list` shows the lines that follow.
            (C::List(_), None) => "list".to_owned(),
            (C::List(_), Some(set)) => format!("[{}] list", set.text()),
            _ => line.to_owned(),
        };
        session.edit(|model| model.dialogue.repeated = parsed.repeats.then(again));
    }
    if let Some(set) = parsed.to.as_ref().filter(|_| to.is_empty()) {
        session.say(&format!("the set `{}` contains no rank", set.text()));
        return Verdict::Done;
    }
    let said = Invocation {
        line: line.trim(),
        to,
        named: parsed.to.is_some(),
        depth,
    };
    session.edit(|model| model.sets.happened.clear());
    let list_from = match parsed.command {
        C::List(_) => ListFrom::Listed,
        _ => ListFrom::Selected,
    };
    let thread = parsed.to.as_ref().and_then(SetExpr::thread);
    let is_ready = attach::needs_no_gdb(&parsed.command) && thread.is_none()
        || free_script::is_ready(session, &parsed)
        || attach::attach_as_needed(session, &said.to).await;
    let verdict = match thread {
        _ if !is_ready => Verdict::Failed,
        None => carry_out(session, &said, parsed.command).await,
        Some(thread) => thread_apply::with_thread(session, &said, thread, parsed.command).await,
    };
    notices::show_held(session);
    session.edit(|model| {
        model.dialogue.list_from = list_from;
        // The classes of the stops that ended the run become those of this command.
        let happened = std::mem::take(&mut model.sets.happened);
        model.sets.note_classes(happened);
    });
    verdict
}

/// Carries out one command.
pub(super) async fn carry_out(
    session: &SessionHandle,
    said: &Invocation<'_>,
    command: C,
) -> Verdict {
    match command {
        C::Nothing { .. } => Verdict::Done,
        C::Point(point) => breakpoints::insert_point(session, said, point).await,
        C::Condition { number, condition } => {
            breakpoints::set_condition(session, said, number, condition).await
        }
        C::Ignore { number, count } => breakpoints::set_ignore(session, said, number, count).await,
        C::Commands(numbers) => breakpoints::begin_commands(session, &numbers),
        C::Clear(place) => breakpoints::clear(session, said, &place).await,
        C::Delete(numbers) => breakpoints::delete_breakpoints(session, said, &numbers).await,
        C::Enable { numbers, enabled } => {
            breakpoints::enable_breakpoints(session, said, &numbers, enabled).await
        }
        C::Breakpoints { watchpoints } => breakpoints::show_breakpoints(session, watchpoints).await,
        C::SetPending(on) => breakpoints::set_pending(session, on),
        C::Pagination(on) => pagination::paginate(session, on),
        C::FullScreen(on) => pagination::show_full_screen(session, on),
        C::Ask(command) => run::ask(session, said, &command).await,
        C::Run {
            command,
            background,
        } => run::run(session, said, &command, background).await,
        C::Interrupt => run::interrupt(session, said).await,
        C::Kill => run::kill(session, said).await,
        C::Attach(set) => attach::attach_more(session, said, &set).await,
        C::Detach(set) => attach::detach(session, said, set.as_ref()).await,
        C::Quit => run::quit(session, said.depth),
        C::Focus(set) => sets::set_focus(session, said, set.as_ref()).await,
        C::Ranks(set) => run::show_ranks(session, said, set.as_ref()).await,
        C::DefineSet { name, set } => sets::define_set(session, said, name, &set).await,
        C::ForgetSet(name) => sets::forget_set(session, &name),
        C::Hold { to, on } => sets::hold(session, said, to.as_ref(), on).await,
        C::About(topic) => session_info::show_topic(session, topic).await,
        C::Stacks { full } => stacks::show_stacks(session, said, full).await,
        C::Profile(seconds) => profile::profile(session, said, seconds).await,
        C::More => run::more(session),
        C::List(what) => display::list(session, said, &what).await,
        C::Values(command) => values::about_values(session, said, command).await,
        C::Libraries => session_info::show_libraries(session, said).await,
        C::Memory => memory_use::show_memory(session, said).await,
        C::Queues => queues::queues(session, said).await,
        C::Diagnose(samples, over) => diagnose::diagnose(session, said, (samples, over)).await,
        C::Display(display) => display::display(session, said, display).await,
        C::Displays => display::show_all_displays(session),
        C::ThreadApply { threads, command } => {
            thread_apply::thread_apply(session, said, &threads, *command).await
        }
        C::SelectedThread => thread_apply::show_selected(session, said).await,
        C::Define(name) => define::define(session, &name),
        C::ShowDefined(name) => define::show_defined(session, name.as_deref()),
        C::System(command) => system::system(session, &command).await,
        C::Echo(text) => show_text(session, text),
        C::Undisplay(numbers) => display::undisplay(session, said, &numbers),
        C::Report(file) => report::write_report_to(session, &file).await,
        C::Save(file) => save::save(session, &file),
        C::Load(file) => script::source(session, &file, said.depth).await,
        C::Dump(file) => save::dump(session, said, &file).await,
        C::Job(command) => rerun::about_the_job(session, said, command).await,
        C::Outside(command) => working_directory::outside(session, &command),
        C::Send { to, text, eof } => {
            program_input::send_input(session, said, &to, &text, eof).await
        }
        C::Output(on) => run::switch_output(session, on),
        C::Wait { to, seconds } => run::wait_command(session, said, to.as_ref(), seconds).await,
        C::Source(file) => script::source(session, &file, said.depth).await,
        C::Help(word) => help(session, word.as_deref()),
    }
}

fn show_text(session: &SessionHandle, text: String) -> Verdict {
    session.show(&Item::Text(text));
    Verdict::Done
}

/// Carries out `help [WORD]`.
fn help(session: &SessionHandle, word: Option<&str>) -> Verdict {
    match commands::help(word) {
        Ok(text) => show_text(session, text),
        Err(error) => session.complain(error.message, ""),
    }
}
