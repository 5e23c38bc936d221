//! Order of gdb's commands, such that gdb can be interrupted without harm to a program.
//!
//! gdb passes on to the program a SIGINT that comes while gdb attaches or detaches, and it kills the program once
//! nothing traces it. So commands are of two kinds. A question only reads. A deed is any other command: it may detach
//! from a program, attach to it or resume it. A deed is written only when no question is open. A SIGINT is sent only
//! when nothing but questions is open.
//!
//! An attach ends when all threads have stopped, not when gdb has answered it; until then gdb takes a SIGINT to be
//! meant for the program. After a SIGINT gdb receives no more commands until it has answered the open ones and a
//! barrier question. gdb reads the barrier after the signal, so that the SIGINT has been handled by then.

use std::collections::{BTreeSet, VecDeque};

use super::mi_tokens::Numbers;
use sdm_mi::{Record, ResultClass, Results, Value};

/// Token of the barrier question after a SIGINT; no driver uses such a high token.
const BARRIER: u64 = u64::MAX;
/// The barrier question. It is cheap, may be answered with "Quit" without harm, and prints nothing to the console,
/// where output belongs to another question.
const BARRIER_LINE: &str = "-gdb-show confirm\n";

/// The effect that an MI line can have on the debugged programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The line only reads, from processes that gdb holds.
    Question,
    /// Any other line.
    Deed,
    /// The line attaches. It is sent only when gdb has nothing else to do, so that waiting attaches can be withdrawn.
    Attach,
}

/// A line that gdb has not received yet.
#[derive(Debug)]
struct QueuedLine {
    token: u64,
    kind: Kind,
    text: String,
}

/// State of the last interrupt of gdb.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Interrupt {
    /// No interrupt is pending.
    #[default]
    None,
    /// gdb was sent SIGINT while it executed the question with this token.
    Sent(u64),
    /// All commands from before the SIGINT are answered, and the barrier question is sent.
    Barrier,
}

/// State of gdb's last attach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Attach {
    /// No attach is under way.
    #[default]
    Over,
    /// An attach was sent, and not all threads have stopped.
    UnderWay,
    /// All threads have stopped, and a barrier question makes sure that gdb has noticed.
    Settling,
}

/// The state of a command whose answer is no longer wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AbandonedCommand {
    /// The command was never sent to gdb: there is no answer to wait for.
    Withdrawn,
    /// gdb has the command, or will receive it because it is neither a query nor an attach. gdb will answer it.
    UnderWay,
}

/// The commands that one gdb receives.
#[derive(Debug, Default)]
pub struct InterruptGate {
    waiting: VecDeque<QueuedLine>,
    /// Commands that gdb has received and not answered, oldest first.
    under_way: VecDeque<(u64, Kind)>,
    /// Tokens of open questions whose answers are no longer wanted.
    unwanted: BTreeSet<u64>,
    interrupt: Interrupt,
    attach: Attach,
    numbers: Numbers,
}

impl InterruptGate {
    /// Adds a line for gdb, which begins with the driver's token.
    pub fn push(&mut self, line: &str) {
        let (token, command) = split(line);
        self.waiting.push_back(QueuedLine {
            token,
            kind: kind_of(command),
            text: command.to_owned(),
        });
    }

    /// The next line to send to gdb now, with a short token; `None` if no line may be sent.
    pub fn poll_line(&mut self) -> Option<String> {
        match self.interrupt {
            Interrupt::None => {}
            Interrupt::Sent(_) if self.under_way.is_empty() => {
                self.interrupt = Interrupt::Barrier;
                return Some(self.tell(BARRIER, Kind::Deed, BARRIER_LINE));
            }
            Interrupt::Sent(_) | Interrupt::Barrier => return None,
        }
        if self.attach == Attach::Settling && !self.is_asked() {
            return Some(self.tell(BARRIER, Kind::Deed, BARRIER_LINE));
        }
        let first = self.waiting.front()?;
        let may_go = match first.kind {
            Kind::Question => true,
            Kind::Deed => self
                .under_way
                .iter()
                .all(|(_, kind)| *kind != Kind::Question),
            Kind::Attach => self.under_way.is_empty(),
        };
        let line = if may_go {
            self.waiting.pop_front()?
        } else {
            return None;
        };
        if line.kind == Kind::Attach {
            self.attach = Attach::UnderWay;
        }
        Some(self.tell(line.token, line.kind, &line.text))
    }

    fn tell(&mut self, token: u64, kind: Kind, command: &str) -> String {
        self.under_way.push_back((token, kind));
        format!("{}{command}", self.numbers.take(token))
    }

    fn is_asked(&self) -> bool {
        self.under_way.iter().any(|(token, _)| *token == BARRIER)
    }

    /// The drivers call this when they know of no attach that is still under way.
    pub fn all_attached(&mut self) {
        if self.attach == Attach::UnderWay {
            self.attach = Attach::Settling;
        }
    }

    /// Takes a record of gdb. Returns it with the driver's token. `None` for a barrier's answer or an unknown token.
    pub fn receive(&mut self, mut record: Record) -> Option<Record> {
        if let Record::Result { token, .. } | Record::TooLong { token, .. } = &mut record
            && let Some(number) = *token
        {
            *token = self.numbers.free(number);
            if !token.is_some_and(|token| self.answered(token)) {
                return None;
            }
        }
        Some(record)
    }

    /// Handles an answer; false if it is that of a barrier question.
    fn answered(&mut self, token: u64) -> bool {
        let at = self.under_way.iter().position(|(known, _)| *known == token);
        if let Some(at) = at {
            self.under_way.remove(at);
        }
        if token == BARRIER {
            self.interrupt = Interrupt::None;
            if self.attach == Attach::Settling {
                self.attach = Attach::Over;
            }
            return false;
        }
        self.unwanted.remove(&token);
        true
    }

    /// Abandons a command whose answer is no longer wanted; withdraws a question or an attach that gdb does not have.
    pub fn break_off(&mut self, token: u64) -> AbandonedCommand {
        let waits = self.waiting.iter().position(|line| line.token == token);
        if let Some(at) = waits.filter(|at| self.waiting[*at].kind != Kind::Deed) {
            self.waiting.remove(at);
            return AbandonedCommand::Withdrawn;
        }
        if self.under_way.contains(&(token, Kind::Question)) {
            self.unwanted.insert(token);
        }
        AbandonedCommand::UnderWay
    }

    /// True if gdb must be sent SIGINT now.
    pub fn poll_interrupt(&mut self) -> bool {
        // A command with an effect is never written after a question. So none follows this question.
        let Some((token, Kind::Question)) = self.under_way.front().copied() else {
            return false;
        };
        let again = self.interrupt == Interrupt::Sent(token);
        if again || self.attach != Attach::Over || !self.unwanted.contains(&token) {
            return false;
        }
        self.interrupt = Interrupt::Sent(token);
        true
    }

    /// True until gdb has answered the interrupted question: the interrupt may be repeated.
    pub fn is_interrupted(&self) -> bool {
        let Interrupt::Sent(token) = self.interrupt else {
            return false;
        };
        self.under_way.front() == Some(&(token, Kind::Question))
    }
}

/// The record that replaces gdb's answer to a line that was never sent to gdb.
pub fn withdrawn(token: u64) -> Record {
    let text = "the command was cancelled before gdb began it".to_owned();
    Record::Result {
        token: Some(token),
        class: ResultClass::Error,
        results: Results(vec![("msg".to_owned(), Value::Text(text))]),
    }
}

/// The token in front of a line, and the rest of the line.
pub fn split(line: &str) -> (u64, &str) {
    let digits = line
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(line.len());
    let (number, rest) = line.split_at(digits);
    (number.parse().unwrap_or(0), rest)
}

/// Prefixes of MI commands that only read. A command that reads a program's file has no process to harm.
const QUESTIONS: [&str; 9] = [
    "-stack-",
    "-data-",
    "-var-",
    "-thread-",
    "-list-",
    "-symbol-",
    "-file-",
    "-gdb-show",
    "-break-list",
];
/// Commands of gdb's command line that only read, or that call a function of a stopped program. Any other command, such
/// as a script or a user-defined one, may resume the program.
const LOOKS: [&str; 27] = [
    "print",
    "p",
    "inspect",
    "call",
    "output",
    "printf",
    "echo",
    "x",
    "info",
    "i",
    "backtrace",
    "bt",
    "where",
    "list",
    "l",
    "frame",
    "f",
    "up",
    "down",
    "ptype",
    "whatis",
    "disassemble",
    "show",
    "display",
    "explore",
    "find",
    "sharedlibrary",
];
/// gdb's commands that apply another command to several threads or frames.
const APPLIES: [&str; 5] = ["thread", "frame", "taas", "faas", "tfaas"];

fn kind_of(command: &str) -> Kind {
    let command = command.trim();
    if command.starts_with("-target-attach") {
        return Kind::Attach;
    }
    if is_question(command) {
        return Kind::Question;
    }
    let console = command
        .strip_prefix("-interpreter-exec ")
        .and_then(|rest| rest.split_once("console "));
    match console {
        Some((_, text)) if looks(text.trim_matches('"')) => Kind::Question,
        _ => Kind::Deed,
    }
}

fn is_question(command: &str) -> bool {
    QUESTIONS.iter().any(|name| command.starts_with(name))
}

/// True if a line of gdb's command line only reads.
fn looks(text: &str) -> bool {
    let is_end = |c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_';
    let name = |text: &str| text.split(is_end).next().unwrap_or("").to_owned();
    let text = text.trim_start();
    let first = name(text);
    if first == "with" {
        // `with` restores the setting when the command after it ends, in any way.
        let command = text.split_once(" -- ");
        return command.is_some_and(|(_, command)| looks(command));
    }
    if first == "interpreter-exec" {
        let command = text.split_once(r#"\""#);
        return command.is_some_and(|(_, command)| is_question(command));
    }
    if !APPLIES.contains(&first.as_str()) {
        return LOOKS.contains(&first.as_str());
    }
    // `frame 3` and `thread 2` apply no command. For the others every word that could be a command is checked.
    let rest = text[first.len()..].split_ascii_whitespace();
    let mut commands = rest.map(name).filter(|word| {
        let begins = word.starts_with(|c: char| c.is_ascii_alphabetic());
        begins && !matches!(word.as_str(), "apply" | "all" | "level" | "function")
    });
    commands
        .next()
        .is_none_or(|word| LOOKS.contains(&word.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sdm_mi::parse_line;

    fn gate(lines: &[&str]) -> InterruptGate {
        let mut gate = InterruptGate::default();
        for line in lines {
            gate.push(line);
        }
        gate
    }

    /// The lines that the gate releases now, as tokens of the drivers.
    fn written(gate: &mut InterruptGate) -> Vec<u64> {
        let before = gate.under_way.len();
        while gate.poll_line().is_some() {}
        let told = gate.under_way.iter().skip(before);
        told.map(|(token, _)| *token).collect()
    }

    #[test]
    fn commands_are_classified_by_their_effect() {
        let check = |line: &str, expect: Kind| assert_eq!(kind_of(line), expect, "{line}");
        check("-stack-list-frames --thread 1 0 9\n", Kind::Question);
        check("-data-evaluate-expression \"f(1)\"", Kind::Question);
        check("-target-attach --thread-group i2 77", Kind::Attach);
        for deed in [
            "-target-detach",
            "-exec-continue --all",
            "-exec-interrupt",
            "-break-insert f",
            "-add-inferior",
            "-gdb-set non-stop on",
        ] {
            check(deed, Kind::Deed);
        }
        let console =
            |text: &str| kind_of(&format!("-interpreter-exec --thread 2 console \"{text}\""));
        for look in [
            "print f(1)",
            "p/x n",
            "info threads",
            "x/4i $pc",
            "thread apply all bt full",
            "frame 2",
            "frame apply 3 -q p n",
            "with print elements 3 -- with print max-depth 0 -- output a -- b",
            r#"with print elements 3 -- interpreter-exec mi3 \"-stack-list-locals 1\""#,
        ] {
            assert_eq!(console(look), Kind::Question, "{look}");
        }
        for deed in [
            "detach",
            "kill",
            "c",
            "python gdb.execute('detach')",
            "thread apply all detach",
            "taas det",
            "source f",
            "printer",
            "with print elements 3",
            "with print elements 3 -- detach",
            r#"interpreter-exec mi3 \"-exec-continue\""#,
        ] {
            assert_eq!(console(deed), Kind::Deed, "{deed}");
        }
    }

    #[test]
    fn interrupt_gate_gives_gdb_short_unique_tokens() {
        let mut gate = gate(&["70001-data-x\n", "70002-data-y\n"]);
        assert_eq!(gate.poll_line().as_deref(), Some("1-data-x\n"));
        assert_eq!(gate.poll_line().as_deref(), Some("2-data-y\n"));
        for (said, expect) in [("2^done", "70002^done"), ("1^error", "70001^error")] {
            let record = gate.receive(parse_line(said.as_bytes()));
            assert_eq!(record, Some(parse_line(expect.as_bytes())));
        }
        assert!(gate.under_way.is_empty());
        let stray = gate.receive(parse_line(b"8^done"));
        assert_eq!(stray, None, "nobody has asked");
        let record = parse_line(b"*stopped");
        assert_eq!(gate.receive(record.clone()), Some(record));
    }

    #[test]
    fn command_with_effect_waits_for_open_queries() {
        let mut gate = gate(&[
            "1-exec-continue",
            "2-break-list",
            "3-stack-info-frame",
            "4-target-detach",
        ]);
        assert_eq!(written(&mut gate), [1, 2, 3]);
        assert!(gate.answered(1) && gate.answered(2));
        assert_eq!(written(&mut gate), []);
        assert!(gate.answered(3));
        assert_eq!(written(&mut gate), [4]);
    }

    #[test]
    fn nothing_is_written_until_gdb_handled_the_interrupt() {
        let mut gate = gate(&["1-stack-info-frame", "2-data-x", "3-target-detach"]);
        assert_eq!(written(&mut gate), [1, 2]);
        assert!(!gate.poll_interrupt(), "nobody wants it");
        assert_eq!(gate.break_off(1), AbandonedCommand::UnderWay);
        assert!(gate.poll_interrupt() && !gate.poll_interrupt(), "once");
        assert!(gate.is_interrupted());
        gate.push("4-stack-info-frame");
        assert!(gate.answered(1));
        assert!(!gate.is_interrupted());
        assert_eq!(written(&mut gate), []);
        assert_eq!(gate.break_off(2), AbandonedCommand::UnderWay);
        assert!(gate.poll_interrupt(), "the next one is unwanted, too");
        assert!(gate.answered(2));
        assert_eq!(written(&mut gate), [BARRIER]);
        assert!(!gate.poll_interrupt());
        assert!(!gate.answered(BARRIER), "nobody else hears of it");
        assert_eq!(written(&mut gate), [3, 4]);
    }

    #[test]
    fn command_with_effect_is_never_interrupted() {
        for deed in ["1-add-inferior", "1-target-detach", "1-exec-continue"] {
            let mut gate = gate(&[deed, "2-stack-info-frame"]);
            assert_eq!(written(&mut gate), [1, 2]);
            assert_eq!(gate.break_off(1), AbandonedCommand::UnderWay);
            assert_eq!(gate.break_off(2), AbandonedCommand::UnderWay);
            assert!(!gate.poll_interrupt(), "{deed}");
            assert!(gate.answered(1));
            assert!(gate.poll_interrupt(), "gdb is at the question now");
        }
    }

    #[test]
    fn gdb_is_not_interrupted_until_attached_tasks_are_stopped() {
        let mut gate = gate(&["1-target-attach 7"]);
        assert_eq!(written(&mut gate), [1]);
        assert!(gate.answered(1));
        gate.push("2-stack-info-frame");
        assert_eq!(written(&mut gate), [2]);
        assert_eq!(gate.break_off(2), AbandonedCommand::UnderWay);
        assert!(!gate.poll_interrupt());
        gate.all_attached();
        assert_eq!(written(&mut gate), [BARRIER]);
        assert!(!gate.poll_interrupt());
        // gdb answers in order. After this answer it may be executing a later question.
        assert!(!gate.answered(BARRIER));
        assert!(gate.poll_interrupt());
        gate.push("3-target-attach 8");
        assert!(gate.answered(2));
        assert_eq!(written(&mut gate), [BARRIER]);
        assert!(!gate.answered(BARRIER));
        assert_eq!(written(&mut gate), [3]);
        gate.all_attached();
        assert!(gate.answered(3));
        assert_eq!(written(&mut gate), [BARRIER]);
    }

    #[test]
    fn queued_attach_is_withdrawn_by_cancel() {
        let mut gate = gate(&["1-target-attach 7", "2-target-attach 8", "3-exec-continue"]);
        assert_eq!(written(&mut gate), [1]);
        assert_eq!(gate.break_off(2), AbandonedCommand::Withdrawn);
        assert_eq!(
            gate.break_off(3),
            AbandonedCommand::UnderWay,
            "a run goes on"
        );
        assert_eq!(written(&mut gate), [3]);
    }
}
