//! `define` and `commands`: reading lines up to `end`, and user-defined commands.
use sdm_view::item::Item;

use super::model::dialogue::{Collected, Collecting, DEFINED_MAX, LINES_MAX, Purpose};
use super::script::SOURCE_DEPTH_MAX;
use super::{SessionHandle, Verdict, breakpoints, line};
use crate::commands;

/// `define NAME`: collects the lines up to `end`.
pub(super) fn define(session: &SessionHandle, name: &str) -> Verdict {
    let is_full = session.read(|model| {
        let defined = &model.dialogue.defined;
        !defined.contains_key(name) && defined.len() == DEFINED_MAX
    });
    if is_full {
        return session.complain(
            format!("define: {DEFINED_MAX} commands are defined, no more are allowed"),
            "",
        );
    }
    collect_for(session, Purpose::Command(name.to_owned()));
    Verdict::Done
}

/// Begins to collect the following lines, up to `end`.
pub(super) fn collect_for(session: &SessionHandle, purpose: Purpose) {
    session.edit(|model| model.dialogue.collecting = Some(Collecting::new(purpose)));
}

/// Handles a line of a block, or its `end`.
pub(super) async fn collect(session: &SessionHandle, line: &str) -> Verdict {
    let Some(collecting) = session.edit(|model| model.dialogue.collecting.take()) else {
        return Verdict::Done;
    };
    match collecting.take(line) {
        Collected::More(collecting) => {
            session.edit(|model| model.dialogue.collecting = Some(collecting));
            Verdict::Done
        }
        Collected::All(Purpose::Breakpoints(numbers), lines) => {
            breakpoints::set_commands(session, &numbers, &lines).await
        }
        Collected::All(Purpose::Command(name), lines) => {
            session.edit(|model| model.dialogue.defined.insert(name, lines));
            Verdict::Done
        }
        Collected::TooMany => session.complain(
            format!("more than {LINES_MAX} lines before `end`: all are discarded"),
            "",
        ),
    }
}

/// Handles Ctrl-C at a prompt: drops an unfinished block or an open question.
pub(super) fn abandon_input(session: &SessionHandle) {
    session.edit(|model| model.dialogue.collecting = None);
    if session.edit(|model| model.dialogue.question.take().is_some()) {
        session.say("nothing done");
    }
}

/// Carries out a line that calls a user-defined command. None for other lines.
pub(super) async fn execute_defined(
    session: &SessionHandle,
    line: &str,
    depth: u32,
) -> Option<Verdict> {
    if session.read(|model| model.dialogue.defined.is_empty()) {
        return None;
    }
    let called = commands::called(line)?;
    let lines = session.read(|model| model.dialogue.defined.get(called.word).cloned())?;
    let word = called.word;
    if depth == SOURCE_DEPTH_MAX {
        let text = format!("{word}: user-defined commands are nested too deeply");
        return Some(session.complain(text, ""));
    }
    let to = match &called.to {
        None => session.read(|model| model.sets.focus.clone()),
        Some(set) => match session.resolve(set).await {
            Ok(to) => to,
            Err(error) => return Some(session.refuse(line, &error)),
        },
    };
    if to.is_empty() {
        session.say(&format!("{word}: the set contains no rank"));
        return Some(Verdict::Done);
    }
    let before = session.edit(|model| std::mem::replace(&mut model.sets.focus, to.clone()));
    let mut verdict = Verdict::Done;
    for line in lines {
        let line = with_arguments(&line, called.rest);
        verdict = Box::pin(line::execute(session, &line, depth + 1)).await;
        if verdict != Verdict::Done || session.is_over() {
            break;
        }
    }
    session.edit(|model| {
        // A `focus` among the lines stays.
        if model.sets.focus == to {
            model.sets.focus = before;
        }
        model.dialogue.repeated = Some(line.to_owned());
    });
    Some(verdict)
}

/// Carries out `show user [NAME]`.
pub(super) fn show_defined(session: &SessionHandle, name: Option<&str>) -> Verdict {
    let one = |(name, lines): (&String, &Vec<String>)| {
        let lines: String = lines.iter().map(|line| format!("\n  {line}")).collect();
        format!("User command \"{name}\":{lines}")
    };
    let text: Vec<_> = session.read(|model| {
        let defined = model.dialogue.defined.iter();
        let meant = defined.filter(|(known, _)| name.is_none_or(|name| name == *known));
        meant.map(one).collect()
    });
    match (name, text.is_empty()) {
        (Some(name), true) => session.complain(format!("Not a user command: \"{name}\"."), ""),
        (None, true) => Verdict::Done,
        _ => {
            session.show(&Item::Text(text.join("\n")));
            Verdict::Done
        }
    }
}

/// A line in which `$argc`, `$argv` (all arguments) and `$arg0` to `$arg9` are replaced. `$argN` stays if there is no
/// such argument.
fn with_arguments(line: &str, rest: &str) -> String {
    let words: Vec<&str> = rest.split_whitespace().collect();
    let mut line = line
        .replace("$argc", &words.len().to_string())
        .replace("$argv", rest);
    for (index, word) in words.iter().enumerate().take(10) {
        line = line.replace(&format!("$arg{index}"), word);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_replace_arg0_and_argc_in_defined_commands() {
        let line = with_arguments("print $arg0 + $arg1 * $argc, $arg2 ($argv)", "x y->z");
        assert_eq!(line, "print x + y->z * 2, $arg2 (x y->z)");
    }
}
