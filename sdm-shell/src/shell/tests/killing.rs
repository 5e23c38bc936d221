//! Tests of `kill`: the end of each task is reported once, whatever the order of events.
use sdm_core::CommandId;
use sdm_debug::reply::StopReason;
use sdm_debug::{Command, Event, FailureCode, Reply};
use sdm_session::SessionEvent;

use super::fake::*;
use crate::shell::Options;

const KILLED: &str = "SIGKILL";

fn killed(tasks: &str) -> sdm_session::Class {
    let signal = KILLED.to_owned();
    class(tasks, Reply::Signalled { signal })
}

fn ended_by_itself(tasks: &str) -> Said {
    let signal = KILLED.to_owned();
    let event = (set(tasks), Event::Signalled { signal });
    Said::Event(SessionEvent::Events(vec![event]))
}

fn not_running(id: CommandId, tasks: &str) -> Said {
    let text = "not running (ended by SIGKILL)";
    answer(id, vec![failed(tasks, FailureCode::NotRunning, text)])
}

fn launcher_ended() -> Said {
    Said::Event(SessionEvent::LauncherEnded {
        status: "exited with code 137".to_owned(),
        code: Some(137),
        last_words: Vec::new(),
    })
}

/// Every order of `count` events.
fn orders(count: usize) -> Vec<Vec<usize>> {
    let mut orders = vec![Vec::new()];
    for at in 0..count {
        let longer = orders.iter().flat_map(|order: &Vec<usize>| {
            (0..=at).map(|place| {
                let mut order = order.clone();
                order.insert(place, at);
                order
            })
        });
        orders = longer.collect();
    }
    orders
}

/// The ranks in lines that report a kill, each as often as it is reported.
fn said_killed(screen: &str) -> Vec<u32> {
    let lines = screen.lines();
    let sets = lines.filter_map(|line| line.strip_suffix(": killed (SIGKILL)"));
    let ids = sets.flat_map(|said| {
        let said = said.split_once(' ').expect("ranks and a set").1;
        let ids = said.split(" (").next().expect("a set");
        let ids: Vec<_> = set(ids).iter().map(|id| id.0).collect();
        ids
    });
    let mut ids: Vec<u32> = ids.collect();
    ids.sort_unstable();
    ids
}

/// Rank 1's gdb has not yet resumed the rank when the `kill` arrives, and then refuses the run.
#[test]
fn run_overtaken_by_a_kill_is_not_reported() {
    for order in orders(5) {
        let mut run_id = None;
        let shown = order.clone();
        let respond: Responder = Box::new(move |id, to, command| match command {
            Command::Start(_) => at_main(id, to),
            Command::Continue => {
                run_id = Some(id);
                Vec::new()
            }
            Command::Kill => {
                let begun = run_id.expect("it was let run");
                let things = [
                    ended_by_itself("1"),
                    not_running(begun, "1"),
                    answer(begun, vec![killed("0")]),
                    answer(id, vec![class("0-1", Reply::Done)]),
                    launcher_ended(),
                ];
                let at = |place| 1 + u64::try_from(place).expect("few");
                let places = order.iter().map(|place| at(*place));
                let mut said: Vec<_> = places.zip(things).collect();
                said.extend([(6, complete(begun)), (at(order[3]), complete(id))]);
                said
            }
            _ => Vec::new(),
        });
        let lines = ["continue &", "kill", "ranks"];
        let run = run((2, 80), Options::default(), &lines, respond);
        let screen = &run.screen;
        assert_eq!(said_killed(screen), [0, 1], "{shown:?}: {screen}");
        assert!(!screen.contains("not running"), "{shown:?}: {screen}");
        let ranks = "ranks 0-1 (2)  signalled ";
        assert!(screen.contains(ranks), "{shown:?}: {screen}");
        assert!(!screen.contains("failed"), "{shown:?}: {screen}");
    }
}

/// A launcher ends the job and its servers when the first rank has ended. The others end before the `kill`
/// reaches them, or their servers are lost before they answer it.
#[test]
fn task_ending_before_its_kill_is_reported_as_ended() {
    for (order, answers) in orders(3)
        .into_iter()
        .flat_map(|order| [true, false].map(|answers| (order.clone(), answers)))
    {
        let shown = format!("{order:?}, answers: {answers}");
        let respond: Responder = Box::new(move |id, to, command| match command {
            Command::Start(_) => at_main(id, to),
            Command::Kill => {
                let things = [
                    answer(id, vec![class("0", Reply::Done)]),
                    ended_by_itself("1"),
                    launcher_ended(),
                ];
                let at = |place| 1 + u64::try_from(place).expect("few");
                let places = order.iter().map(|place| at(*place));
                let mut said: Vec<_> = places.zip(things).collect();
                // A server's messages about a task arrive in order; the loss of the task comes last.
                said.push((
                    4,
                    if answers {
                        not_running(id, "1")
                    } else {
                        lost(id)
                    },
                ));
                said.push((5, complete(id)));
                said
            }
            _ => Vec::new(),
        });
        let run = run((2, 80), Options::default(), &["kill", "ranks"], respond);
        let screen = &run.screen;
        assert_eq!(said_killed(screen), [0, 1], "{shown}: {screen}");
        for word in ["not running", "no answer", "failed"] {
            assert!(!screen.contains(word), "{shown}: {screen}");
        }
    }
}

fn lost(id: CommandId) -> Said {
    Said::Event(SessionEvent::Answer {
        id,
        classes: Vec::new(),
        missing: Vec::new(),
        lost: set("1"),
        late: false,
    })
}

/// A task that had ended before reports why it cannot be killed.
#[test]
fn kill_of_an_ended_task_fails() {
    let respond: Responder = Box::new(|id, to, command| match command {
        Command::Start(_) => at_main(id, to),
        Command::Continue => {
            let mut said = all(id, vec![killed("1")]);
            said.insert(0, (1, answer(id, vec![class("0", interrupted())])));
            said
        }
        Command::Kill => vec![(1, not_running(id, "1")), (1, complete(id))],
        _ => Vec::new(),
    });
    let lines = ["continue", "[1] kill"];
    let run = run((2, 80), Options::default(), &lines, respond);
    let said = "rank 1: not running (ended by SIGKILL)\n";
    assert!(run.screen.contains(said), "{}", run.screen);
    assert_eq!(said_killed(&run.screen), [1], "{}", run.screen);
}

fn interrupted() -> Reply {
    stop(StopReason::Interrupted, "main", 70, "  work();")
}
