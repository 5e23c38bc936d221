//! Answers a probe's GDB/MI questions from a snapshot, as a gdb would that had stopped the process at that moment.
//!
//! A question that it does not know gets an error, as from gdb.

use sdm_inspect::memory::Memory;
use sdm_inspect::stack::{Inspection, StackFrame, ThreadStack};
use sdm_system::proc;

use sdm_gdb::{shown_count, unknown_caller};
use sdm_mi::{Record, ResultClass, Results, StreamKind, Value, parse_line};

/// DWARF's numbers of registers, indexed by gdb's numbers.
const OF_GDB: [u16; 17] = [0, 3, 2, 1, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];
/// Maximum number of bytes of memory per read.
const MEMORY_BYTES_MAX: usize = 1 << 20;

/// The substitute for a gdb.
pub(super) struct StandIn<'a> {
    inspection: &'a Inspection,
    threads: Vec<&'a ThreadStack>,
}

/// The results of a question, and the console output before them; `None` for a question that has no answer here.
type StandInReply = Option<(Results, String)>;

/// An MI command in words, with the thread and the frame that it names.
struct Question<'a> {
    words: Vec<&'a str>,
    /// Index of the thread, from 0.
    thread: usize,
    level: usize,
}

impl<'a> Question<'a> {
    fn of(line: &'a str) -> Self {
        let mut question = Self {
            words: Vec::new(),
            thread: 0,
            level: 0,
        };
        let mut words = line.split_ascii_whitespace();
        while let Some(word) = words.next() {
            let mut number = || words.next().and_then(|it| it.parse::<usize>().ok());
            match word {
                "--thread" => question.thread = number().unwrap_or(0).wrapping_sub(1),
                "--frame" => question.level = number().unwrap_or(usize::MAX),
                _ => question.words.push(word),
            }
        }
        question
    }

    fn word(&self, at: usize) -> Option<&'a str> {
        self.words.get(at).copied()
    }

    fn number(&self, at: usize) -> Option<u64> {
        number(self.word(at)?)
    }
}

impl<'a> StandIn<'a> {
    pub(super) fn of(inspection: &'a Inspection) -> Self {
        let threads = inspection.stacks().collect();
        Self {
            inspection,
            threads,
        }
    }

    /// The records that answer a GDB/MI line.
    pub(super) fn answer(&self, line: &str) -> Vec<Record> {
        let line = line.trim_end();
        let digits = line.bytes().take_while(u8::is_ascii_digit).count();
        let (token, command) = line.split_at(digits);
        let (class, results, printed) = match self.say(command) {
            Some((results, printed)) => (ResultClass::Done, results, printed),
            None => {
                let results = tuple(&[("msg", "not known".to_owned())]);
                (ResultClass::Error, results, String::new())
            }
        };
        let printed = (!printed.is_empty()).then_some(Record::Stream {
            kind: StreamKind::Console,
            text: printed,
        });
        let result = Record::Result {
            token: token.parse().ok(),
            class,
            results,
        };
        printed.into_iter().chain([result]).collect()
    }

    fn say(&self, command: &str) -> StandInReply {
        let (head, quoted) = match command.split_once('"') {
            Some((head, _)) => (head, unquoted(&command[head.len()..])),
            None => (command, None),
        };
        let question = Question::of(head);
        let results = match *question.words.first()? {
            "-thread-info" => self.thread_info(),
            "-stack-info-frame" => {
                let frame = self.frame(0, 0)?;
                named([("frame", Value::Tuple(frame))])
            }
            "-stack-list-variables" => self.variables(&question),
            "-stack-list-arguments" => self.arguments(&question)?,
            "-stack-list-frames" => self.frames(&question)?,
            "-data-list-register-values" => self.registers(&question)?,
            "-data-read-memory-bytes" => self.memory(&question)?,
            "-data-disassemble" => self.instructions(&question)?,
            "-data-evaluate-expression" => {
                let text = self.value(&question, &quoted?)?;
                tuple(&[("value", text)])
            }
            "-interpreter-exec" => return self.console(&question, &quoted?),
            "-gdb-set" | "-thread-select" | "-stack-select-frame" => Results::default(),
            _ => return None,
        };
        Some((results, String::new()))
    }

    fn console(&self, question: &Question<'_>, command: &str) -> StandInReply {
        if let Some((_, inner)) = command.split_once("interpreter-exec mi3 ") {
            return self.say(&unquoted(inner)?);
        }
        let printed = match command.split_once(' ')? {
            ("output", expression) => self.value(question, expression)?,
            // Functions cannot be called here, so each expression counts as an array. One that is not an array has no
            // elements and no value.
            ("whatis", _) => "type = (:)\n".to_owned(),
            ("backtrace", _) => {
                let thread = self.threads.get(question.thread)?;
                match thread.is_whole {
                    true => String::new(),
                    false => format!("{}\n", unknown_caller(thread.removed_file.as_deref())),
                }
            }
            _ => return None,
        };
        Some((Results::default(), printed))
    }

    fn thread_info(&self) -> Results {
        let process = proc::of(self.inspection.pid());
        let threads = self.threads.iter().enumerate().map(|(at, thread)| {
            let name = process.thread(thread.thread).name();
            Value::Tuple(tuple(&[
                ("id", (at + 1).to_string()),
                ("target-id", format!("LWP {}", thread.thread)),
                ("name", name.unwrap_or_default()),
            ]))
        });
        let threads = Value::List(threads.collect());
        let current = Value::Text("1".to_owned());
        named([("threads", threads), ("current-thread-id", current)])
    }

    fn frames(&self, question: &Question<'_>) -> Option<Results> {
        let [from, to] = [question.number(1)?, question.number(2)?];
        let from = usize::try_from(from).ok()?;
        let frames = &self.threads.get(question.thread)?.frames;
        let to = usize::try_from(to).ok()?.saturating_add(1);
        let shown = (from..to.min(shown_count(frames))).filter_map(|level| {
            let frame = self.frame(question.thread, level)?;
            Some(("frame".to_owned(), Value::Tuple(frame)))
        });
        let frames = Value::Named(Results(shown.collect()));
        Some(named([("stack", frames)]))
    }

    fn frame(&self, thread: usize, level: usize) -> Option<Results> {
        let frame: &StackFrame = self.threads.get(thread)?.frames.get(level)?;
        let mut all = vec![
            ("level", level.to_string()),
            ("addr", format!("{:#x}", frame.address)),
            (
                "func",
                frame.function.clone().unwrap_or_else(|| "??".to_owned()),
            ),
        ];
        all.extend(frame.file.clone().map(|file| ("file", file)));
        let path = self.inspection.path(thread, level);
        all.extend(path.map(|path| ("fullname", path.to_owned())));
        if frame.line > 0 {
            all.push(("line", frame.line.to_string()));
        }
        if !frame.module.is_empty() && frame.module != self.inspection.program() {
            all.push(("from", frame.module.clone()));
        }
        Some(tuple(&all))
    }

    fn registers(&self, question: &Question<'_>) -> Option<Results> {
        let registers = self.inspection.registers(question.thread, question.level)?;
        let values = question.words.iter().skip(2).filter_map(|word| {
            let number: usize = word.parse().ok()?;
            let value = registers.get(*OF_GDB.get(number)?);
            let value = value.map_or_else(|| "<not saved>".to_owned(), |it| format!("{it:#x}"));
            let pair = [("number", (*word).to_owned()), ("value", value)];
            Some(Value::Tuple(tuple(&pair)))
        });
        Some(named([("register-values", Value::List(values.collect()))]))
    }

    fn memory(&self, question: &Question<'_>) -> Option<Results> {
        let [begin, bytes] = [question.number(1)?, question.number(2)?];
        let bytes = usize::try_from(bytes).ok()?;
        let mut read = vec![0; bytes.min(MEMORY_BYTES_MAX)];
        let memory = self.inspection.memory(question.thread);
        memory.read(begin, &mut read)?;
        let digits = read.iter().map(|byte| format!("{byte:02x}"));
        let block = tuple(&[("contents", digits.collect())]);
        Some(named([("memory", Value::List(vec![Value::Tuple(block)]))]))
    }

    fn instructions(&self, question: &Question<'_>) -> Option<Results> {
        let option = |name| {
            let at = question.words.iter().position(|word| *word == name)?;
            question.number(at + 1)
        };
        let one = |at: u64, rest: (&str, String)| {
            Value::Tuple(tuple(&[("address", format!("{at:#x}")), rest]))
        };
        let all = match option("-a") {
            // All bytes together, and the calls that do not return.
            Some(address) => {
                let code = self.inspection.function_code(address)?;
                let digits = code.bytes.iter().map(|byte| format!("{byte:02x}"));
                let ends = code.ends.iter();
                let ends = ends.map(|at| one(*at, ("inst", "call 0x0 <abort>".to_owned())));
                let whole = one(code.begin, ("opcodes", digits.collect()));
                [whole].into_iter().chain(ends).collect()
            }
            None => {
                let name = self.inspection.called_before(option("-e")?)?;
                vec![one(option("-s")?, ("inst", format!("call 0x0 <{name}>")))]
            }
        };
        let all = Value::List(all);
        Some(named([("asm_insns", all)]))
    }

    /// The variables of a frame with their contents, which show whether they change.
    fn variables(&self, question: &Question<'_>) -> Results {
        let contents = self.inspection.contents(question.thread, question.level);
        let variables = contents.into_iter().map(|(name, bytes)| {
            let digits =
                bytes.map(|bytes| bytes.iter().map(|byte| format!("{byte:02x}")).collect());
            variable(name, digits)
        });
        named([("variables", Value::List(variables.collect()))])
    }

    fn arguments(&self, question: &Question<'_>) -> Option<Results> {
        let level = question.number(2)?;
        let at = usize::try_from(level).ok()?;
        let parameters = self.inspection.parameters(question.thread, at);
        let args = parameters
            .into_iter()
            .map(|(name, text)| variable(name, text));
        let frame = Value::Tuple(named([
            ("level", Value::Text(level.to_string())),
            ("args", Value::List(args.collect())),
        ]));
        let frames = Results(vec![("frame".to_owned(), frame)]);
        Some(named([("stack-args", Value::Named(frames))]))
    }

    /// The value of an expression; `None` if it has none. For `(void *) &NAME` and `(void *) NUMBER` it is an address.
    fn value(&self, question: &Question<'_>, expression: &str) -> Option<String> {
        let (thread, level) = (question.thread, question.level);
        let value = self.inspection.evaluate(thread, level, expression);
        value.or_else(|| self.address(expression))
    }

    /// The address in `(void *) &NAME` or `(void *) NUMBER`, as gdb prints it; `None` for other expressions. `NAME` is
    /// a linker name: this needs no debug information.
    fn address(&self, expression: &str) -> Option<String> {
        let pointer = expression.strip_prefix("(void")?.trim_start();
        let pointer = pointer.strip_prefix("*)")?.trim_start();
        let address = match pointer.strip_prefix('&') {
            Some(name) => self.inspection.variable(name)?,
            None => number(pointer)?,
        };
        Some(self.inspection.address_text(address))
    }
}

fn variable(name: String, text: Option<String>) -> Value {
    let text = text.unwrap_or_else(|| "<optimized out>".to_owned());
    Value::Tuple(tuple(&[("name", name), ("value", text)]))
}

/// The text of a C string literal in the notation of GDB/MI; `None` for other text.
fn unquoted(quoted: &str) -> Option<String> {
    match parse_line(format!("~{quoted}").as_bytes()) {
        Record::Stream { text, .. } => Some(text),
        _ => None,
    }
}

/// A number in decimal, or in hexadecimal after `0x`; `None` for other text.
fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

fn tuple(pairs: &[(&str, String)]) -> Results {
    let pairs = pairs.iter();
    Results(
        pairs
            .map(|(name, text)| ((*name).to_owned(), Value::Text(text.clone())))
            .collect(),
    )
}

fn named<const N: usize>(pairs: [(&str, Value); N]) -> Results {
    Results(pairs.map(|(name, value)| (name.to_owned(), value)).into())
}
