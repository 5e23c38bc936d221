//! The fake's answers to questions about the program, in place of gdb: plausible, deterministic, and equal on equal
//! tasks.

use sdm_debug::command::{CatchEvent, FrameSelect};
use sdm_debug::reply::{
    BreakpointPlace, BreakpointView, Instruction, Library, MEMORY_BYTES_MAX, MemoryBlock, Reply,
    SignalView, SourceText, VarObject, Variable,
};
use sdm_debug::{Command, Failure, FailureCode};
use sdm_idset::TaskId;

use super::points::Quiet;
use super::scenario::Scenario;
use super::task::{Task, no_such, value};

/// Number of lines that `list` prints.
const LIST_LINES: u32 = 10;
/// Made-up addresses of the program's code and data.
const CODE: u64 = 0x40_1000;
const DATA: u64 = 0x60_0000;
/// The names of the fake's registers.
const REGISTERS: [&str; 3] = ["pc", "sp", "fp"];
/// Maximum number of watchpoints, of catchpoints and of variable objects of one task.
const THINGS_MAX: usize = 256;

fn gdb(text: impl Into<String>) -> Failure {
    Failure::new(FailureCode::Gdb, text)
}

impl Task {
    /// The answer to a command that does not concern frames, threads or values.
    pub(super) fn data(
        &mut self,
        scenario: &Scenario,
        id: TaskId,
        command: &Command,
    ) -> Result<Reply, Failure> {
        match command {
            Command::Call { expression } => {
                let text = self.evaluate(scenario, id, expression)?;
                Ok(Reply::Value(value(&text)))
            }
            Command::Return { value } => self.leave_frame(scenario, id, value.as_deref()),
            Command::MemoryRead { address, length } => {
                let start = self.address(scenario, id, address)?;
                check_length(u64::from(*length))?;
                // Each byte is the low byte of its address.
                let bytes = (start..)
                    .take(*length as usize)
                    .map(|at| at.to_le_bytes()[0]);
                let bytes = bytes.collect();
                Ok(Reply::Memory(vec![MemoryBlock { start, bytes }]))
            }
            Command::MemoryWrite { address, bytes } => {
                self.address(scenario, id, address)?;
                check_length(bytes.len() as u64)?;
                Ok(Reply::Done)
            }
            Command::Registers { names, .. } => self.registers(names),
            Command::Disassemble { .. } => {
                let function = self.innermost(scenario, id).0;
                Ok(Reply::Instructions(instructions(&function)))
            }
            Command::List { what } => self.list(scenario, id, what),
            Command::Libraries => {
                let libraries = ["/lib/ld.so", "/lib/libc.so.6"].map(|path| Library {
                    path: path.to_owned(),
                    symbols: true,
                });
                Ok(Reply::Libraries(libraries.to_vec()))
            }
            Command::Signals { names } => signals(names),
            Command::SignalHandle { names, .. } if names.is_empty() => {
                Err(Failure::new(FailureCode::BadCommand, "expected a signal"))
            }
            Command::SignalHandle {
                names,
                stop,
                print,
                pass,
            } => {
                let Reply::Signals(mut views) = signals(names)? else {
                    return Err(gdb("no signals"));
                };
                for view in &mut views {
                    view.stop = stop.unwrap_or(view.stop);
                    view.print = print.unwrap_or(view.print);
                    view.pass = pass.unwrap_or(view.pass);
                }
                Ok(Reply::Signals(views))
            }
            Command::TypeOf { expression, .. } => {
                let text = self.evaluate(scenario, id, expression)?;
                Ok(Reply::Text(format!("type = {}", type_of(&text))))
            }
            Command::Mi { line } if !is_mi(line) => {
                let text = "no GDB/MI command: it begins with `-` and a name";
                Err(Failure::new(FailureCode::BadCommand, text))
            }
            Command::Mi { .. } => Ok(Reply::Mi {
                result: "^done".to_owned(),
                printed: String::new(),
            }),
            other => self.object(scenario, id, other),
        }
    }

    /// Carries out commands for variable objects, and refuses all others. Every variable object here is a value without
    /// children.
    fn object(
        &mut self,
        scenario: &Scenario,
        id: TaskId,
        command: &Command,
    ) -> Result<Reply, Failure> {
        let known = |task: &Self, name: &str| {
            let found = task.life.objects.get(name).cloned();
            found.ok_or_else(|| no_such(format!("no variable object {name}")))
        };
        match command {
            Command::VarCreate {
                name, expression, ..
            } => {
                let text = self.evaluate(scenario, id, expression)?;
                if self.life.objects.len() >= THINGS_MAX {
                    let text = format!("at most {THINGS_MAX} variable objects");
                    return Err(Failure::new(FailureCode::Limit, text));
                }
                let seen = (expression.clone(), text.clone());
                self.life.objects.insert(name.clone(), seen);
                Ok(Reply::VarObject(VarObject {
                    name: name.clone(),
                    expression: expression.clone(),
                    type_name: type_of(&text).to_owned(),
                    value: value(&text),
                    children: 0,
                    more: false,
                    pretty: false,
                }))
            }
            Command::VarChildren { name, .. } => known(self, name).map(|_| Reply::VarChildren {
                children: Vec::new(),
                more: false,
            }),
            Command::VarAssign { name, value: right } => {
                let (expression, _) = known(self, name)?;
                self.set_variable(scenario, id, &format!("{expression} = {right}"))?;
                let now = self.evaluate(scenario, id, &expression)?;
                Ok(Reply::Value(value(&now)))
            }
            Command::VarDelete { name } => {
                known(self, name)?;
                self.life.objects.remove(name);
                Ok(Reply::Done)
            }
            other => {
                let text = format!("the fake cannot {}", other.name());
                Err(Failure::new(FailureCode::Unsupported, text))
            }
        }
    }

    /// Sets a watchpoint or a catchpoint.
    pub(super) fn insert_quiet(&mut self, command: &Command) -> Result<Reply, Failure> {
        let (number, kind, what) = match command {
            Command::WatchInsert(spec) => (spec.number, "hw watchpoint", spec.expression.clone()),
            Command::CatchInsert(spec) => (spec.number, "catchpoint", event_name(&spec.event)),
            other => return Err(gdb(format!("the fake cannot {}", other.name()))),
        };
        if self.quiet.len() >= THINGS_MAX {
            let text = format!("at most {THINGS_MAX} watchpoints and catchpoints");
            return Err(Failure::new(FailureCode::Limit, text));
        }
        self.quiet.push(Quiet {
            number,
            enabled: true,
            kind,
            what,
        });
        Ok(Reply::Breakpoint(nowhere(number)))
    }

    /// All watchpoints and catchpoints in the form of `info breakpoints`. No scripted run stops at them.
    pub(super) fn quiet_views(&self) -> impl Iterator<Item = BreakpointView> {
        self.quiet.iter().map(|quiet| BreakpointView {
            place: nowhere(quiet.number),
            kind: quiet.kind.to_owned(),
            what: quiet.what.clone(),
            enabled: quiet.enabled,
            temporary: false,
            condition: None,
            ignore: 0,
            hits: 0,
        })
    }

    fn leave_frame(
        &mut self,
        scenario: &Scenario,
        id: TaskId,
        value: Option<&str>,
    ) -> Result<Reply, Failure> {
        if let Some(value) = value {
            self.evaluate(scenario, id, value)?;
        }
        if self.frames(scenario, id).len() < 2 {
            return Err(gdb("Can not force return in the outermost frame."));
        }
        (self.life.finished, self.life.steps, self.life.level) = (self.life.finished + 1, 0, 0);
        self.select_frame(scenario, id, FrameSelect::Current)
    }

    /// The address that a text gives as a number, or the fake address of a variable for `&NAME`.
    fn address(&self, scenario: &Scenario, id: TaskId, text: &str) -> Result<u64, Failure> {
        let text = text.trim();
        if let Some(name) = text.strip_prefix('&') {
            self.evaluate(scenario, id, name)?;
            return Ok(DATA);
        }
        let address = match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None => self.evaluate(scenario, id, text)?.parse().ok(),
        };
        address
            .filter(|address| *address >= CODE)
            .ok_or_else(|| gdb("Unable to read memory."))
    }

    fn registers(&self, names: &[String]) -> Result<Reply, Failure> {
        let known = |name: &str| {
            let at = REGISTERS.iter().position(|known| *known == name)?;
            let text = format!(
                "{:#x}",
                CODE + u64::from(self.life.steps) + (at as u64) * 0x1000
            );
            Some(Variable {
                name: name.to_owned(),
                value: value(&text),
            })
        };
        if names.is_empty() {
            let all = REGISTERS.iter().filter_map(|name| known(name));
            return Ok(Reply::Variables(all.collect()));
        }
        let named = names.iter().map(|name| {
            known(name.trim_start_matches('$'))
                .ok_or_else(|| no_such(format!("no register {name}")))
        });
        Ok(Reply::Variables(named.collect::<Result<_, _>>()?))
    }

    /// Function, file and line of the selected frame.
    fn innermost(&self, scenario: &Scenario, id: TaskId) -> (String, String, u32) {
        let frames = self.frames(scenario, id);
        let frame = frames.into_iter().nth(self.life.level as usize);
        frame.map_or_else(Default::default, |frame| {
            (frame.function, frame.file, frame.line)
        })
    }

    fn list(&mut self, scenario: &Scenario, id: TaskId, what: &str) -> Result<Reply, Failure> {
        let (_, file, line) = self.innermost(scenario, id);
        let around = |line: u32| line.saturating_sub(LIST_LINES / 2).max(1);
        let first = match what.rsplit(':').next().unwrap_or_default().trim() {
            "" if self.life.listed > 0 => self.life.listed,
            "" => around(line),
            "-" => self.life.listed.saturating_sub(2 * LIST_LINES).max(1),
            number => around(
                number
                    .split(',')
                    .next()
                    .and_then(|number| number.parse().ok())
                    .ok_or_else(|| gdb(format!("Function \"{number}\" not defined.")))?,
            ),
        };
        self.life.listed = first.saturating_add(LIST_LINES);
        Ok(Reply::Source(SourceText {
            path: format!("/fake/{file}"),
            file,
            first,
            lines: (first..self.life.listed)
                .map(|n| format!("line {n}"))
                .collect(),
        }))
    }
}

fn check_length(length: u64) -> Result<(), Failure> {
    match length {
        0 => Err(Failure::new(
            FailureCode::BadCommand,
            "expected a length of at least 1 byte",
        )),
        length if length > u64::from(MEMORY_BYTES_MAX) => {
            let text = format!("{length} bytes requested, the maximum is {MEMORY_BYTES_MAX}");
            Err(Failure::new(FailureCode::Limit, text))
        }
        _ => Ok(()),
    }
}

fn nowhere(number: u32) -> BreakpointPlace {
    BreakpointPlace {
        number,
        pending: false,
        places: Vec::new(),
    }
}

fn event_name(event: &CatchEvent) -> String {
    let text = format!("{event:?}");
    let end = text.find('(').unwrap_or(text.len());
    text[..end].to_lowercase()
}

fn type_of(text: &str) -> &'static str {
    if text.parse::<i128>().is_ok() {
        "int"
    } else if text.parse::<f64>().is_ok() {
        "double"
    } else {
        "char *"
    }
}

fn instructions(function: &str) -> Vec<Instruction> {
    let texts = ["push %rbp", "mov %rsp,%rbp", "call work", "ret"];
    let one = |(offset, text): (u32, &&str)| Instruction {
        address: CODE + u64::from(offset),
        function: function.to_owned(),
        offset,
        text: (*text).to_owned(),
        current: offset == 8,
    };
    (0..).step_by(4).zip(&texts).map(one).collect()
}

fn signals(names: &[String]) -> Result<Reply, Failure> {
    let rows = [
        ("SIGINT", (true, true, false), "Interrupt"),
        ("SIGFPE", (true, true, true), "Arithmetic exception"),
        ("SIGSEGV", (true, true, true), "Segmentation fault"),
        ("SIGUSR1", (false, true, true), "User defined signal 1"),
        ("SIGUSR2", (false, true, true), "User defined signal 2"),
        ("SIGTERM", (false, true, true), "Terminated"),
    ];
    let all = rows.map(|(name, (stop, print, pass), meaning)| SignalView {
        name: name.to_owned(),
        stop,
        print,
        pass,
        meaning: meaning.to_owned(),
    });
    if names.is_empty() {
        return Ok(Reply::Signals(all.to_vec()));
    }
    let named = names.iter().map(|name| {
        let found = all.iter().find(|view| view.name == *name).cloned();
        found.ok_or_else(|| gdb(format!("no signal {name}")))
    });
    Ok(Reply::Signals(named.collect::<Result<_, _>>()?))
}

/// True if a line has the form of a GDB/MI command without a token.
fn is_mi(line: &str) -> bool {
    let name = line.strip_prefix('-');
    name.is_some_and(|name| name.starts_with(|first: char| first.is_ascii_lowercase()))
}
