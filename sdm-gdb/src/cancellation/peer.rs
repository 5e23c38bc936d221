//! A simulated gdb, in memory, with the state of a real one.
//!
//! Tracks breakpoints, variable objects, signal settings, whether the program runs, and the interrupts that have not
//! taken effect yet.

use std::collections::{BTreeMap, VecDeque};

/// A simulated gdb: it reads a line, carries it out, and emits its records one by one.
#[derive(Default)]
pub(super) struct Peer {
    /// Lines that the driver has written and the peer has not read.
    inbox: VecDeque<String>,
    /// Records that are written and not read yet, in order.
    said: VecDeque<String>,
    pub(super) points: BTreeMap<u32, PeerPoint>,
    pub(super) objects: BTreeMap<String, String>,
    /// Settings of the signals, by name.
    pub(super) signals: BTreeMap<String, Flags>,
    pub(super) runs: bool,
    /// Number of interrupts that have not stopped the program yet.
    pub(super) interrupts: u32,
    /// True after a SIGSTOP that has not stopped the program yet.
    pub(super) halted: bool,
    last_point: u32,
    /// True after a SIGINT that aborts the next command.
    gives_up: bool,
    /// True if the simulated gdb refuses to run the program.
    pub(super) refuses_to_run: bool,
}

/// A breakpoint of the simulated gdb.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PeerPoint {
    pub(super) condition: String,
    pub(super) ignore: u32,
    pub(super) disabled: bool,
}

/// The three flags of gdb's `handle` for one signal: stop, print, pass.
pub(super) type Flags = [bool; 3];

impl Peer {
    pub(super) fn new() -> Self {
        let signals = ["SIGINT", "SIGALRM", "SIGUSR1"].map(|name| (name.to_owned(), [true; 3]));
        Self {
            signals: BTreeMap::from(signals),
            ..Self::default()
        }
    }

    pub(super) fn write(&mut self, line: &str) {
        self.inbox.push_back(line.trim_end().to_owned());
    }

    /// Receives a SIGINT. If `in_time` is set, the SIGINT aborts the command that gdb executes.
    pub(super) fn interrupt(&mut self, in_time: bool) {
        self.gives_up = in_time;
    }

    /// Performs one step, and returns the emitted record, or `Some(None)` for a step without a record. `None` if there
    /// is nothing to do.
    pub(super) fn step(&mut self) -> Option<Option<String>> {
        if let Some(record) = self.said.pop_front() {
            return Some(Some(record));
        }
        if let Some(line) = self.inbox.pop_front() {
            self.carry_out(&line);
            return Some(None);
        }
        if self.runs && self.interrupts > 0 {
            self.interrupts = 0;
            if self.signals["SIGINT"][0] {
                self.stop("reason=\"signal-received\",signal-name=\"SIGINT\"");
            } else {
                self.say("~\"\\nProgram\"");
                self.say("~\" received signal SIGINT, Interrupt.\\n\"");
            }
            return Some(None);
        }
        if self.runs && std::mem::take(&mut self.halted) {
            self.stop("reason=\"signal-received\",signal-name=\"SIGSTOP\"");
            return Some(None);
        }
        None
    }

    /// Stops the program, and reports the stop.
    pub(super) fn stop(&mut self, reason: &str) {
        self.runs = false;
        let frame =
            "frame={level=\"0\",addr=\"0x1\",func=\"f\",file=\"f.c\",fullname=\"/f.c\",line=\"3\"}";
        self.say(&format!("*stopped,{reason},{frame}"));
    }

    fn say(&mut self, record: &str) {
        self.said.push_back(record.to_owned());
    }

    fn carry_out(&mut self, line: &str) {
        let digits = line.find(|c: char| !c.is_ascii_digit()).unwrap();
        let (token, command) = line.split_at(digits);
        let given_up = std::mem::take(&mut self.gives_up);
        let result = if given_up {
            Err("Quit".to_owned())
        } else {
            self.effect(command)
        };
        match result {
            Ok(answer) => self.say(&format!("{token}^{answer}")),
            Err(text) => self.say(&format!("{token}^error,msg=\"{text}\"")),
        }
        if self
            .said
            .back()
            .is_some_and(|said| said.contains("^running"))
        {
            self.say("*running,thread-id=\"all\"");
        }
    }

    fn effect(&mut self, command: &str) -> Result<String, String> {
        let (name, rest) = command.split_once(' ').unwrap_or((command, ""));
        match name {
            "-break-insert" => {
                let number = self.make(rest);
                let place = "addr=\"0x1\",func=\"f\",file=\"f.c\",line=\"3\"";
                Ok(format!("done,bkpt={{number=\"{number}\",{place}}}"))
            }
            "-break-watch" => {
                let number = self.make("");
                Ok(format!("done,wpt={{number=\"{number}\",exp=\"x\"}}"))
            }
            "-break-delete" => {
                for number in numbers(rest) {
                    self.points.remove(&number).ok_or("No breakpoint")?;
                }
                Ok("done".to_owned())
            }
            "-break-enable" | "-break-disable" => {
                for number in numbers(rest) {
                    self.point(number)?.disabled = name == "-break-disable";
                }
                Ok("done".to_owned())
            }
            "-break-condition" => {
                let (number, condition) = rest.split_once(' ').unwrap_or((rest, ""));
                if condition.contains("wrong") {
                    return Err("No symbol".to_owned());
                }
                condition.clone_into(&mut self.point(number.parse().unwrap())?.condition);
                Ok("done".to_owned())
            }
            "-break-after" => {
                let words = numbers(rest);
                self.point(words[0])?.ignore = words[1];
                Ok("done".to_owned())
            }
            "-symbol-info-functions" => {
                let symbols = ["f", "g", "h"].map(|name| format!("{{name=\"{name}\"}}"));
                let symbols = symbols.join(",");
                Ok(format!(
                    "done,symbols={{debug=[{{filename=\"f.c\",symbols=[{symbols}]}}]}}"
                ))
            }
            "-var-create" => {
                let (name, expression) = rest.split_once(' ').unwrap();
                self.objects.insert(name.to_owned(), expression.to_owned());
                Ok(format!("done,name=\"{name}\",numchild=\"0\",value=\"1\""))
            }
            "-var-delete" => {
                let name = rest.trim_matches('"');
                self.objects.remove(name).ok_or("No object")?;
                Ok("done".to_owned())
            }
            "-exec-interrupt" => {
                self.interrupts += 1;
                Ok("done".to_owned())
            }
            _ if name.starts_with("-exec-") => self.run(),
            "-interpreter-exec" => {
                let line = rest.trim_start_matches("console ").trim_matches('"');
                self.console(line)
            }
            "-thread-info" => Ok("done,threads=[{id=\"1\"}],current-thread-id=\"1\"".to_owned()),
            _ => Ok("done,frame={level=\"0\",addr=\"0x1\",func=\"f\"}".to_owned()),
        }
    }

    fn run(&mut self) -> Result<String, String> {
        if self.refuses_to_run {
            return Err("Cannot execute this command".to_owned());
        }
        self.runs = true;
        Ok("running".to_owned())
    }

    fn console(&mut self, line: &str) -> Result<String, String> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "catch" | "tcatch" | "watch" | "rwatch" | "awatch" => {
                let number = self.make("");
                self.say(&format!("=breakpoint-created,bkpt={{number=\"{number}\"}}"));
            }
            "handle" => {
                let words: Vec<&str> = rest.split(' ').collect();
                let has = |word: &str| words.contains(&word);
                for (name, flags) in &mut self.signals {
                    if words.contains(&name.as_str()) {
                        for (flag, word) in flags.iter_mut().zip(["stop", "print", "pass"]) {
                            *flag = has(word) || (*flag && !has(&format!("no{word}")));
                        }
                    }
                }
            }
            "info" => {
                let word = |flag: bool| if flag { "Yes" } else { "No" };
                let rows = self.signals.iter().map(|(name, flags)| {
                    let [stop, print, pass] = flags.map(word);
                    format!("~\"{name} {stop} {print} {pass} text\\n\"")
                });
                self.said.extend(rows);
            }
            "print" | "call" => self.say("~\"$1 = 1\\n\""),
            "continue" | "until" | "advance" | "jump" | "signal" => return self.run(),
            _ => {}
        }
        Ok("done".to_owned())
    }

    fn make(&mut self, words: &str) -> u32 {
        self.last_point += 1;
        let condition = words.split("-c ").nth(1).unwrap_or_default();
        let point = PeerPoint {
            condition: condition.to_owned(),
            ..PeerPoint::default()
        };
        self.points.insert(self.last_point, point);
        self.last_point
    }

    fn point(&mut self, number: u32) -> Result<&mut PeerPoint, String> {
        let point = self.points.get_mut(&number);
        point.ok_or_else(|| format!("No breakpoint number {number}."))
    }
}

fn numbers(words: &str) -> Vec<u32> {
    let words = words.split_ascii_whitespace();
    words.map(|word| word.parse().unwrap()).collect()
}
