//! Tests of sets, of comparisons and statistics of values, and of commands for one thread.

use sdm_debug::reply::{FrameView, StopReason, ThreadView};
use sdm_debug::{Command, Reply};
use sdm_idset::IdSet;

use super::super::fake::*;
use crate::shell::Options;

use super::check;

/// Eight ranks in two places, with values of several kinds.
fn values() -> Responder {
    Box::new(|id, to, command| {
        let per_rank = |text: fn(u32) -> String| {
            let classes = to
                .iter()
                .map(|task| class(&task.0.to_string(), Reply::Value(value(&text(task.0)))));
            let mut gathered: Vec<(IdSet, Reply)> = Vec::new();
            for one in classes {
                let sdm_session::ClassAnswer::Reply(reply) = one.answer else {
                    continue;
                };
                match gathered.iter_mut().find(|(_, known)| *known == reply) {
                    Some((set, _)) => set.union_with(&one.tasks),
                    None => gathered.push((one.tasks, reply)),
                }
            }
            let gathered = gathered.into_iter();
            all(
                id,
                gathered
                    .map(|(tasks, reply)| class(&tasks.to_string(), reply))
                    .collect(),
            )
        };
        match command {
            Command::Start(_) => at_main(id, to),
            Command::Continue => {
                let at = |tasks: &str, number, line| {
                    let tasks = set(tasks).intersection(to).to_string();
                    let reason = StopReason::Breakpoint { number };
                    class(&tasks, stop(reason, "exchange", line, "  swap();"))
                };
                all(id, vec![at("0-2,4-7", 1, 40), at("3", 2, 51)])
            }
            Command::Evaluate { expression } | Command::Print { expression, .. } => {
                match expression.as_str() {
                    "rank % 2" => per_rank(|rank| (rank % 2).to_string()),
                    "step" => per_rank(|rank| if rank == 3 { "59" } else { "60" }.to_owned()),
                    "rank" => per_rank(|rank| rank.to_string()),
                    "heat" | "heat()" => per_rank(|rank| match rank {
                        5 => "-nan(0x8000000000000)".to_owned(),
                        6 => "<optimized out>".to_owned(),
                        rank => format!("{}.5", rank * rank),
                    }),
                    _ => per_rank(|rank| match rank {
                        3 => "{n = 4, cells = {0 <repeats 12 times>, 1, 2}}".to_owned(),
                        _ => "{n = 4, cells = {0 <repeats 14 times>}}".to_owned(),
                    }),
                }
            }
            Command::Threads => {
                let thread = |number| ThreadView {
                    number,
                    name: "halo".to_owned(),
                    frame: Some(frame("exchange", 40)),
                    current: number == 1,
                };
                let threads = Reply::Threads(vec![thread(1), thread(2)]);
                all(id, vec![class(&to.to_string(), threads)])
            }
            Command::SelectThread { .. } => {
                let view = FrameView {
                    frame: frame("worker", 9),
                    source: None,
                };
                all(id, vec![class(&to.to_string(), Reply::Frame(view))])
            }
            _ => all(id, vec![class(&to.to_string(), Reply::Text("gdb".into()))]),
        }
    })
}

#[test]
fn sets_and_values_match_their_golden_file() {
    check(
        "values",
        8,
        &[
            "hold 7",
            "continue",
            "[@2] print rank",
            "[@halo.c:40!@1] print rank",
            "release 7",
            "defset odd @if:(rank % 2)",
            "[@odd&0-4] outliers rank",
            "[1.2] info line",
            "focus @odd",
            "focus @prev",
            "focus",
            "outliers step",
            "outliers rank",
            "[0-5,7] stats heat",
            "compare rod",
            "compare rank % 1 * 0 + n",
            "info sets",
            "[@crashed] bt",
            "[@nobody] bt",
        ],
        values,
    );
}

#[test]
fn thread_in_a_set_is_selected_for_one_command_only() {
    let run = run((2, 80), Options::default(), &["[1.2] info line"], values());
    let expect = [
        "0-1 start",
        "1 threads",
        "1 select_thread",
        "1 console",
        "1 select_thread",
    ];
    assert_eq!(run.sent, expect);
}

/// The histogram takes a second evaluation, except for an expression that calls a function.
#[test]
fn statistics_call_a_function_once() {
    for (line, times) in [("stats heat", 2), ("stats heat()", 1)] {
        let run = run((8, 80), Options::default(), &[line], values());
        let asked = run.sent.iter().filter(|sent| sent.ends_with(" evaluate"));
        assert_eq!(asked.count(), times, "{line}: {:?}", run.sent);
    }
}
