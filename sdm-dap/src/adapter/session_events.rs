//! Handles the events of the session: answers, output, stops, ends and lost servers.

use sdm_core::message::Health;
use sdm_debug::event::{UNCHECKED_NOTICE, world_notice};
use sdm_debug::{Event, Reply};
use sdm_idset::IdSet;
use sdm_session::{Class, ClassAnswer, SessionEvent};
use serde_json::json;

use super::{breakpoints, disconnect, goto, multi_client, prompt, state};
use crate::connection::{Connection, Phase};
use crate::jobs::Purpose;
use crate::tasks::Condition;
use crate::values::set_name;

/// The exit code of a task that a signal has terminated, as a shell reports it: 128 plus the signal's number. 128 for a
/// signal that is not in the list.
fn code_of(signal: &str) -> i64 {
    const NAMES: [(&str, i64); 12] = [
        ("SIGHUP", 1),
        ("SIGINT", 2),
        ("SIGQUIT", 3),
        ("SIGILL", 4),
        ("SIGTRAP", 5),
        ("SIGABRT", 6),
        ("SIGBUS", 7),
        ("SIGFPE", 8),
        ("SIGKILL", 9),
        ("SIGSEGV", 11),
        ("SIGPIPE", 13),
        ("SIGTERM", 15),
    ];
    let known = NAMES.iter().find(|(name, _)| *name == signal);
    128 + known.map_or(0, |(_, number)| *number)
}

/// Handles an event of the session.
pub(super) fn handle_event(connection: &mut Connection, event: SessionEvent) {
    let Some(event) = multi_client::own_part(connection, event) else {
        return;
    };
    prompt::hear(connection, &event);
    match event {
        SessionEvent::Answer {
            id,
            classes,
            missing,
            lost,
            ..
        } => {
            let moves = connection.jobs.purpose(id).is_some_and(Purpose::moves);
            if moves {
                hear_moves(connection, &classes);
            }
            connection.jobs.take(id, classes, missing, &lost);
        }
        SessionEvent::Complete { id } => {
            connection.jobs.complete(id);
        }
        SessionEvent::Events(events) => {
            for (tasks, event) in events {
                hear(connection, &tasks, event);
            }
        }
        SessionEvent::Health { tasks, health, why } => {
            if matches!(health, Health::Lost) {
                connection.say("important", &format!("{} lost: {why}\n", set_name(&tasks)));
                state::ended(connection, &tasks, Condition::Gone);
            }
        }
        SessionEvent::Launcher { line } => {
            connection.say(
                "console",
                &format!("[launcher] {}\n", sdm_text::printable(line.as_bytes())),
            );
        }
        SessionEvent::Passed { stderr, bytes } => {
            let category = if stderr { "stderr" } else { "stdout" };
            let text = String::from_utf8_lossy(&bytes).into_owned();
            connection.event("output", json!({"category": category, "output": text}));
        }
        SessionEvent::LauncherEnded {
            status, last_words, ..
        } => {
            let words = last_words.join("\n");
            connection.say("important", &format!("the launcher {status}\n{words}\n"));
        }
        SessionEvent::Woken => {}
        SessionEvent::Ended(why) => disconnect::session_ended(connection, &why),
    }
}

/// Handles answers that report the end of a run.
fn hear_moves(connection: &mut Connection, classes: &[Class]) {
    let stops = classes.iter().filter_map(|class| match &class.answer {
        ClassAnswer::Reply(Reply::Stopped(stop)) => Some((class.tasks.clone(), stop.clone())),
        _ => None,
    });
    state::stopped(connection, stops.collect());
    for Class { tasks, answer } in classes {
        match answer {
            ClassAnswer::Reply(Reply::Exited { code, .. }) => {
                state::ended(connection, tasks, Condition::Ended(i64::from(*code)));
            }
            ClassAnswer::Reply(Reply::Signalled { signal }) => {
                state::ended(connection, tasks, Condition::Ended(code_of(signal)));
            }
            ClassAnswer::Reply(Reply::Detached) => {
                let condition = match connection.phase {
                    Phase::Leaving => Condition::Left,
                    _ => Condition::Gone,
                };
                let tasks = tasks.intersection(&connection.tasks.live());
                state::ended(connection, &tasks, condition);
            }
            _ => {}
        }
    }
}

fn hear(connection: &mut Connection, tasks: &IdSet, event: Event) {
    match event {
        Event::Output { stream, bytes } => {
            connection
                .output
                .take(connection.now, tasks, stream, &bytes);
        }
        Event::OutputEnd { stream } => connection.ending.note_end(tasks, stream),
        Event::Stopped(stop) => state::stopped(connection, vec![(tasks.clone(), stop)]),
        Event::Exited { code } => {
            state::ended(connection, tasks, Condition::Ended(i64::from(code)))
        }
        Event::Signalled { signal } => {
            state::ended(connection, tasks, Condition::Ended(code_of(&signal)))
        }
        Event::GdbDied { text } => {
            let ranks = set_name(tasks);
            connection.say("important", &format!("{ranks} gdb has ended: {text}\n"));
            state::ended(connection, tasks, Condition::Gone);
        }
        Event::SignalPassed { name } => state::tell(
            connection,
            tasks,
            &format!("signal {name} was passed on to the program"),
        ),
        Event::Aborted { by, status, text } => {
            let why = match text.is_empty() {
                true => String::new(),
                false => format!(": {text}"),
            };
            let said = format!("rank {by} ends the job with status {status}{why}\n");
            connection.say("important", &said);
        }
        Event::World { size: 1, .. } if connection.tasks.all().len() == 1 => {}
        Event::World { rank, size } => state::tell(connection, tasks, &world_notice(rank, size)),
        Event::Unchecked => state::tell(connection, tasks, UNCHECKED_NOTICE),
        Event::Joined(joined) => goto::join(connection, tasks, &joined),
        Event::Notice { text } => state::tell(connection, tasks, &text),
        Event::Printed { text, .. } => state::tell(connection, tasks, text.trim_end_matches('\n')),
        Event::BreakpointPlaced(place) => breakpoints::placed(connection, tasks, &place),
        Event::BreakpointRefused { text, .. } => state::tell(connection, tasks, &text),
        Event::Progress(_) | Event::OutputComplete { .. } => {}
    }
}
