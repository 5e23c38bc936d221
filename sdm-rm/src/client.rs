//! Client of the clusters' background processes: starts them and sends them requests.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::process::Stdio;
use std::time::{Duration, Instant};

use sdm_system::{own_program, programs};

use crate::answer::{Answer, Question};
use crate::definition::Definition;
use crate::error::{AgentError, RmError};
use crate::json_line::{self, ANSWER_BYTES_MAX, LineError, QUESTION_BYTES_MAX};
use crate::process::READY;
use crate::socket_path;
use sdm_runtime::states::Manager;

/// Program of the background process.
const PROGRAM: &str = "sdm-rm";
/// Time limit for a process in ERROR to end before it is restarted.
const END_WAIT: Duration = Duration::from_secs(20);

/// Starts the manager of a cluster, and waits until its elements are known or it is in ERROR. A manager that already
/// runs stays as it is. A manager in ERROR is restarted.
///
/// # Errors
/// The process cannot be started, or reaches neither state in time.
pub fn start(definition: &Definition, wait: Duration) -> Result<Answer, RmError> {
    definition.check()?;
    let until = Instant::now() + wait;
    let name = &definition.name;
    match ask(name, &Question::State, wait) {
        Ok(answer) if answer.manager.state == Manager::Error => {
            ask(name, &Question::Stop, END_WAIT)?;
        }
        Ok(_) | Err(RmError::NotStarted(_)) => {}
        Err(error) => return Err(error),
    }
    spawn(definition)?;
    let mut since = 0;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let wait_ms = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
        let question = Question::Changed { since, wait_ms };
        let answer = ask(name, &question, left + END_WAIT)?;
        match answer.manager.state {
            Manager::Started | Manager::Error => return Ok(answer),
            _ if left.is_zero() => {
                return Err(RmError::NoAnswer {
                    name: name.clone(),
                    seconds: wait.as_secs(),
                });
            }
            _ => since = answer.version,
        }
    }
}

/// Starts the background process of a cluster. After success a process answers requests: the new one, or one that
/// already ran.
fn spawn(definition: &Definition) -> Result<(), RmError> {
    let program = own_program(PROGRAM, None);
    let program = program.ok_or_else(|| AgentError::Missing(PROGRAM.to_owned()))?;
    let no_start = |said: String| RmError::NoStart {
        name: definition.name.clone(),
        said,
    };
    let mut child = programs::at(program)
        .arg(&definition.name)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| no_start(format!("{PROGRAM}: {error}")))?;
    let text = json_line::encode(definition, QUESTION_BYTES_MAX);
    let text = text.map_err(|error| no_start(error.to_string()))?;
    if let Some(mut input) = child.stdin.take() {
        // If the process does not read, its output has the reason.
        let _ = input.write_all(&text);
    }
    let mut said = String::new();
    if let Some(output) = child.stdout.take() {
        let mut output = BufReader::new(output).take(1000);
        output
            .read_line(&mut said)
            .map_err(|error| no_start(error.to_string()))?;
    }
    if said.trim_end() == READY {
        return Ok(());
    }
    let mut said = String::new();
    if let Some(errors) = child.stderr.take() {
        // A truncated message is better than none.
        let _ = errors.take(2000).read_to_string(&mut said);
    }
    let _ = child.wait();
    let last = said
        .lines()
        .last()
        .unwrap_or("the process of the cluster ended at once without a message");
    Err(no_start(last.trim_start_matches("sdm-rm: ").to_owned()))
}

/// Sends a request to the background process of a cluster, and returns the answer.
///
/// # Errors
/// The cluster's process is not started, or does not answer in time.
pub fn ask(name: &str, question: &Question, wait: Duration) -> Result<Answer, RmError> {
    let until = Instant::now() + wait;
    let io = || RmError::io(format!("cluster '{name}'"));
    let stream = socket_path::connect(name).map_err(io())?;
    let mut stream = stream.ok_or_else(|| RmError::NotStarted(name.to_owned()))?;
    let bad = |error: LineError| RmError::BadAnswer {
        name: name.to_owned(),
        what: error.to_string(),
    };
    let text = json_line::encode(question, QUESTION_BYTES_MAX).map_err(bad)?;
    let late = || RmError::NoAnswer {
        name: name.to_owned(),
        seconds: wait.as_secs(),
    };
    let timed = |error: std::io::Error| match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => late(),
        _ => io()(error),
    };
    stream
        .set_write_timeout(Some(wait.max(Duration::from_secs(1))))
        .map_err(io())?;
    stream.write_all(&text).map_err(timed)?;
    let mut answer = Vec::new();
    let mut piece = vec![0; 256 << 10];
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(late());
        }
        stream.set_read_timeout(Some(left)).map_err(io())?;
        let count = match stream.read(&mut piece) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            read => read.map_err(timed)?,
        };
        answer.extend_from_slice(&piece[..count]);
        // Only the new bytes can contain the end of the line.
        let is_whole = piece[..count].contains(&b'\n') || answer.len() >= ANSWER_BYTES_MAX;
        if is_whole
            && let Some(answer) = json_line::decode(&answer, ANSWER_BYTES_MAX).map_err(bad)?
        {
            return Ok(answer);
        }
        if count == 0 {
            return Err(bad(LineError::Closed));
        }
    }
}

/// True if a cluster's process runs.
#[must_use]
pub fn is_running(name: &str) -> bool {
    socket_path::connect(name).is_ok_and(|stream| stream.is_some())
}
