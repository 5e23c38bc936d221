//! Execution of lines in order, from a user, a script, or a sourced file.

use super::controls::{Control, LineSource, ScriptLine};
use super::exit::{Ending, ending_of_failure};
use super::line;
use super::run::{self};
use super::{SessionHandle, Verdict, define, exit, notices, wait};
use sdm_view::item::Item;

/// Maximum nesting depth of `source` and of user-defined commands, counted together.
pub(super) const SOURCE_DEPTH_MAX: u32 = 16;

/// Carries out lines until the source ends, the session is over, or a signal has warned of the time limit. A script
/// ends at its first line that fails.
pub(super) async fn run_lines(session: &SessionHandle, source: &mut dyn LineSource) -> Ending {
    while !session.is_over() && !session.read(|model| model.requests.warned) {
        let (prompt, is_question) =
            session.read(|model| (model.prompt(), model.dialogue.question.is_some()));
        source.request(&prompt, is_question);
        let line = match wait::next_line(session, prompt, source).await {
            Some(Control::Line(line)) => line,
            Some(Control::Cleared) => {
                define::abandon_input(session);
                continue;
            }
            Some(Control::Eof) if session.read(|model| model.dialogue.collecting.is_some()) => {
                ScriptLine {
                    text: "end".to_owned(),
                    ..ScriptLine::default()
                }
            }
            Some(Control::Eof) if session.read(|model| model.options.interactive) => {
                run::end_of_input(session);
                continue;
            }
            Some(Control::Eof) => break,
            _ => continue,
        };
        let verdict = carry_out_line(session, &line, 0).await;
        if verdict != Verdict::Done
            && !session.read(|model| model.options.interactive)
            && !session.is_over()
        {
            return ending_of_failure(session, verdict, &line);
        }
    }
    notices::show_held(session);
    notices::show_gone(session);
    exit::ending_of_lines(session)
}

/// Carries out a line of a user or script. `depth` is the nesting depth of sourced files and user-defined
/// commands around it.
pub(super) async fn carry_out_line(
    session: &SessionHandle,
    line: &ScriptLine,
    depth: u32,
) -> Verdict {
    let text = line.text.trim();
    if session.read(|model| model.options.echo) && !line.origin.is_empty() && !text.is_empty() {
        let line = text.to_owned();
        session.show(&Item::Echo { line });
    }
    // In a script an empty line is nothing: only a person repeats by it.
    if !line.origin.is_empty() && text.is_empty() {
        return Verdict::Done;
    }
    let verdict = line::execute(session, &line.text, depth).await;
    session.edit(|model| {
        model.glance.lines += 1;
        model.glance.changes += 1;
    });
    verdict
}

/// Carries out `source FILE`.
pub(super) async fn source(session: &SessionHandle, file: &str, depth: u32) -> Verdict {
    if depth == SOURCE_DEPTH_MAX {
        return session.complain(format!("{file}: sourced files are nested too deeply"), "");
    }
    let text = session.machine(|machine| machine.read_text(file.as_ref()));
    let text = match text {
        Ok(text) => text,
        Err(error) => return session.complain(format!("{file}: {error}"), ""),
    };
    let mut verdict = Verdict::Done;
    for line in ScriptLine::of_file(file, &text) {
        verdict = Box::pin(carry_out_line(session, &line, depth + 1)).await;
        if session.is_over() {
            break;
        }
        if verdict != Verdict::Done {
            let said = format!("{}: `{}` failed", line.origin, line.text.trim());
            session.complain(said, "");
            break;
        }
    }
    verdict
}
