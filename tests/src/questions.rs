//! The questions of a test to a session or a job. A repeated question fails the test unless the test gives a reason.

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

/// Commands of the prompt that inspect tasks and change nothing.
const LOOKS: &[&str] = &[
    "backtrace",
    "bt",
    "compare",
    "diagnose",
    "i",
    "info",
    "outliers",
    "p",
    "print",
    "profile",
    "queues",
    "ranks",
    "stacks",
    "stats",
    "where",
    "x",
];

/// Looks of which the answer does not depend on the selected thread and frame.
const LOOKS_AT_ALL: &[&str] = &[
    "diagnose", "outliers", "profile", "queues", "ranks", "stacks",
];

/// The commands that select another thread or frame.
const SELECTS: &[&str] = &["down", "f", "frame", "t", "thread", "up"];

/// The commands after which each answer may be another one. A prefix of one is one, too.
const CHANGES: &[&str] = &[
    "advance",
    "attach",
    "awatch",
    "break",
    "call",
    "catch",
    "clear",
    "commands",
    "condition",
    "continue",
    "define",
    "defset",
    "delete",
    "detach",
    "disable",
    "enable",
    "finish",
    "focus",
    "freeze",
    "gdb",
    "handle",
    "hbreak",
    "ignore",
    "interrupt",
    "jump",
    "kill",
    "load",
    "make",
    "next",
    "nexti",
    "ni",
    "quit",
    "rbreak",
    "return",
    "reverse-continue",
    "reverse-next",
    "reverse-step",
    "run",
    "rwatch",
    "send",
    "set",
    "shell",
    "si",
    "signal",
    "source",
    "start",
    "step",
    "stepi",
    "tbreak",
    "tcatch",
    "thaw",
    "thbreak",
    "trace",
    "undefset",
    "until",
    "watch",
];

/// The commands that neither count as a question nor change an answer. Unknown words are among these.
const OTHERS: &[&str] = &[
    "cd",
    "disassemble",
    "display",
    "echo",
    "export",
    "gcore",
    "h",
    "help",
    "list",
    "more",
    "output",
    "plot",
    "printf",
    "ptype",
    "pwd",
    "report",
    "save",
    "show",
    "tui",
    "undisplay",
    "wait",
    "whatis",
];

/// True for a command that one of the lists has by its full name.
#[must_use]
pub fn is_listed(word: &str) -> bool {
    [LOOKS, SELECTS, CHANGES, OTHERS]
        .iter()
        .any(|list| list.contains(&word))
}

/// True for a command that may change each answer.
fn is_change(word: &str) -> bool {
    let is_short = || CHANGES.iter().any(|change| change.starts_with(word));
    CHANGES.contains(&word) || !is_listed(word) && is_short()
}

/// The words of a shell's command lines that list or inspect and change nothing.
const LISTING_VERBS: &[&[&str]] = &[
    &["cluster", "list"],
    &["dap", "--jobs"],
    &["diagnose"],
    &["doctor"],
    &["jobs"],
    &["logs"],
    &["nodes"],
    &["pmix", "list"],
    &["pmix", "query"],
    &["profile"],
    &["ps"],
    &["queues"],
    &["sessions"],
    &["show"],
    &["stacks"],
    &["target"],
];

/// The requests of an editor that read and change nothing.
const READING_REQUESTS: &[&str] = &[
    "completions",
    "disassemble",
    "evaluate",
    "exceptionInfo",
    "loadedSources",
    "modules",
    "readMemory",
    "scopes",
    "source",
    "stackTrace",
    "threads",
    "variables",
];

/// The verbs of `sdm` that inspect a job.
const LOOKING_VERBS: &[&str] = &["diagnose", "stacks"];

/// The command lines by which this process has inspected jobs, without the name of the test's folder.
static LOOKED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// The questions of one session since the test last changed the state that they ask about.
///
/// A question that is repeated until the answer suits proves nothing: an answer that is right once in a hundred
/// passes. So a test waits for the situation, by data of the kernel or the program, and asks once. A command that
/// changes the state, such as `next` or `continue`, allows each question again, and so does `wait` while tasks run.
/// One that selects a frame allows the questions about a frame. Other commands, such as `help`, allow none.
/// `continue &` and `interrupt` do not: a question may be asked once of running tasks, and once of interrupted
/// ones.
#[derive(Default)]
pub struct Questions {
    asked: BTreeSet<(Moment, String)>,
    moment: Moment,
    is_granted: bool,
}

/// A line without the tasks in front of it.
fn bare(words: &str) -> &str {
    match words.strip_prefix('[') {
        Some(rest) => rest.split_once("] ").map_or(rest, |(_, bare)| bare),
        None => words,
    }
}

/// State of a session's tasks since the last change: resumed, interrupted, or neither.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Moment {
    is_resumed: bool,
    /// True once running tasks were stopped by `interrupt`: they had run before.
    is_interrupted: bool,
}

impl Questions {
    /// Allows the next question to repeat an earlier one. `tests/ask-again.md` lists the `reason` as well.
    pub fn ask_again(&mut self, _reason: &str) {
        self.is_granted = true;
    }

    /// Records a line that the session is given.
    ///
    /// # Panics
    /// If it repeats an earlier question.
    pub fn enter(&mut self, line: &str) {
        let words = line.trim();
        let bare = bare(words);
        let first = bare.split([' ', '/']).next().unwrap_or_default();
        match first {
            "wait" if self.moment.is_resumed => self.changed(),
            "#" | "wait" | "" => {}
            "interrupt" => self.interrupted(),
            "continue" | "c" if bare.ends_with('&') => self.moment.is_resumed = true,
            look if LOOKS.contains(&look) => self.ask(words),
            select if SELECTS.contains(&select) => self.selected(),
            word if is_change(word) => self.changed(),
            _ => {}
        }
    }

    /// Records a question that changes nothing.
    ///
    /// # Panics
    /// If it was asked before.
    pub fn ask(&mut self, question: &str) {
        let is_new = self.asked.insert((self.moment, question.to_owned()));
        let is_granted = std::mem::take(&mut self.is_granted);
        assert!(is_new || is_granted, "`{question}` {AGAIN}");
    }

    /// Records a command of a shell, given by the words behind `sdm`. One that does not only list or inspect is a
    /// change.
    ///
    /// # Panics
    /// If it asks what was asked before.
    pub fn enter_words(&mut self, words: &[&str]) {
        let listed = |known: &[&str]| words.starts_with(known);
        match LISTING_VERBS.iter().any(|known| listed(known)) {
            true => self.ask(&words.join(" ")),
            false => self.changed(),
        }
    }

    /// Records a request of an editor. A line of its console is one of the prompt, and a request that does not only
    /// read is a change.
    ///
    /// # Panics
    /// If it asks what was asked before.
    pub fn enter_request(&mut self, request: &str, arguments: &Value) {
        let line = arguments["expression"].as_str();
        match (request, line) {
            ("evaluate", Some(line)) if arguments["context"] == "repl" => self.enter(line),
            (read, _) if READING_REQUESTS.contains(&read) => {
                self.ask(&format!("{read} {arguments}"));
            }
            _ => self.changed(),
        }
    }

    /// Records that another thread or frame is selected. Questions whose answer depends on that are allowed again.
    fn selected(&mut self) {
        let is_kept = |question: &String| {
            let bare = bare(question);
            let first = bare.split([' ', '/']).next().unwrap_or_default();
            LOOKS_AT_ALL.contains(&first)
        };
        self.asked.retain(|(_, question)| is_kept(question));
    }

    /// Enters the lines that a command line gives, each as `-c LINE`.
    ///
    /// # Panics
    /// If one asks what was asked before.
    pub fn enter_given(&mut self, command: &Command) {
        let mut words = command.get_args().map(|word| word.to_string_lossy());
        while let Some(word) = words.next() {
            if word == "--" {
                break;
            }
            if word == "-c"
                && let Some(line) = words.next()
            {
                self.enter(&line);
            }
        }
    }

    /// Records that the tasks were interrupted wherever they were.
    pub fn interrupted(&mut self) {
        if !std::mem::take(&mut self.moment.is_resumed) {
            self.moment.is_interrupted = true;
        }
    }

    /// Records that the test has changed the state of the session. Each question is allowed again.
    pub fn changed(&mut self) {
        *self = Self::default();
    }
}

/// The reason for which a question is refused.
const AGAIN: &str = "was asked before: wait for what is to be seen and ask once, or say `ask_again` with the reason";

/// A host or a network of the jobs was changed, so that each inspection may have another result.
pub fn changed_outside() {
    let mut looked = LOOKED.lock().unwrap_or_else(PoisonError::into_inner);
    looked.clear();
}

/// Records a command line of `sdm` that inspects a job from outside.
///
/// # Panics
/// If the same command line was already recorded for this job.
pub(crate) fn enter_look(mark: &str, verb: &str, command: &Command, is_granted: bool) {
    if !LOOKING_VERBS.contains(&verb) {
        return;
    }
    let (arguments, variables) = (command.get_args(), command.get_envs());
    let words = format!("{:?} {variables:?}", arguments.collect::<Vec<_>>());
    // The folder of the test does not distinguish two questions.
    let words = words.replace(mark, "");
    // A watch is no question with one answer.
    if words.contains("--watch") {
        return;
    }
    let mut looked = LOOKED.lock().unwrap_or_else(PoisonError::into_inner);
    let is_new = looked.insert(words.clone());
    assert!(is_new || is_granted, "{words} {AGAIN}");
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Enters the lines; returns whether the last one is refused. An earlier refusal is a panic.
    fn is_refused(lines: &[&str]) -> bool {
        let mut questions = Questions::default();
        let (last, before) = lines.split_last().expect("some lines");
        before.iter().for_each(|line| questions.enter(line));
        let entered = std::panic::AssertUnwindSafe(|| questions.enter(last));
        std::panic::catch_unwind(entered).is_err()
    }

    #[test]
    fn test_that_repeats_a_query_without_a_change_is_refused() {
        assert!(is_refused(&["stacks", "print x", "stacks"]));
        assert!(is_refused(&["[1] bt", "wait 0-3 20", "# waited", "[1] bt"]));
        let pair = ["continue &", "interrupt"];
        assert!(is_refused(&["stacks", pair[0], pair[1], "stacks"]));
        assert!(is_refused(&[pair[0], "stacks", pair[0], "stacks"]));
        let both = [pair[0], "print x", pair[1], "print x"];
        assert!(is_refused(&[both, both].concat()[..6]));
        assert!(is_refused(&["interrupt", "bt", "interrupt", "bt"]));
        for between in ["help", "echo a", "list", "whatis x", "show width", "report"] {
            assert!(is_refused(&["diagnose", between, "diagnose"]), "{between}");
        }
        assert!(is_refused(&["diagnose", "up", "[2] frame 1", "diagnose"]));
        assert!(!is_refused(&["[1] bt", "[2] bt"]));
    }

    #[test]
    fn repeated_query_on_a_command_line_is_refused() {
        let refused = |words: &[&str]| {
            let mut command = Command::new("sdm");
            command.args(words);
            let mut questions = Questions::default();
            let entered = std::panic::AssertUnwindSafe(|| questions.enter_given(&command));
            std::panic::catch_unwind(entered).is_err()
        };
        assert!(refused(&["run", "-c", "bt", "-c", "bt", "--", "./work"]));
        assert!(!refused(&["run", "-c", "bt", "-c", "next", "-c", "bt"]));
        assert!(!refused(&["run", "-c", "bt", "--", "./work", "-c", "bt"]));
    }

    #[test]
    fn query_is_allowed_again_after_a_change() {
        assert!(!is_refused(&[
            "continue &",
            "print x",
            "interrupt",
            "print x"
        ]));
        assert!(!is_refused(&["bt", "interrupt", "bt"]));
        assert!(!is_refused(&["bt", "continue &", "wait", "bt"]));
        for change in [
            "next",
            "continue",
            "break f",
            "[1] set var x = 1",
            "continue &",
            "up",
            "b f",
            "del 1",
        ] {
            assert!(!is_refused(&["print x", change, "print x"]), "{change}");
        }
    }

    #[test]
    fn repeated_query_of_a_shell_is_refused() {
        let refused = |lines: &[&str]| {
            let mut questions = Questions::default();
            let entered = std::panic::AssertUnwindSafe(|| {
                for line in lines {
                    let words: Vec<&str> = line.split(' ').collect();
                    questions.enter_words(&words);
                }
            });
            std::panic::catch_unwind(entered).is_err()
        };
        for query in [
            "jobs --json",
            "ps 1",
            "pmix list",
            "cluster list",
            "dap --jobs",
        ] {
            assert!(refused(&[query, "sessions", query]), "{query}");
            assert!(!refused(&[query, "cancel 1", query]), "{query}");
        }
        assert!(!refused(&[
            "ps 1",
            "ps 2",
            "cluster start a",
            "cluster start a"
        ]));
    }

    #[test]
    fn repeated_request_of_an_editor_is_refused() {
        let refused = |requests: &[(&str, Value)]| {
            let mut questions = Questions::default();
            let entered = std::panic::AssertUnwindSafe(|| {
                for (request, arguments) in requests {
                    questions.enter_request(request, arguments);
                }
            });
            std::panic::catch_unwind(entered).is_err()
        };
        let read = |request: &'static str| (request, json!({"threadId": 1}));
        assert!(refused(&[
            read("stackTrace"),
            read("threads"),
            read("stackTrace")
        ]));
        assert!(!refused(&[
            read("stackTrace"),
            read("next"),
            read("stackTrace")
        ]));
        let line = |line: &str| ("evaluate", json!({"expression": line, "context": "repl"}));
        assert!(refused(&[line("stacks"), line("stacks")]));
        assert!(!refused(&[line("stacks"), line("next"), line("stacks")]));
    }

    #[test]
    fn test_may_repeat_a_query_once_with_a_reason() {
        let mut questions = Questions::default();
        questions.enter("stacks");
        questions.ask_again("a test of this file");
        questions.enter("stacks");
        let entered = std::panic::AssertUnwindSafe(|| questions.enter("stacks"));
        assert!(std::panic::catch_unwind(entered).is_err());
    }
}
