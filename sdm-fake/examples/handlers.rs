//! Handlers for the input and output of programs ("PTP new SDM, I/O Forwarding"), over a scripted backend. The input of
//! two tasks is turned into capitals. Their output gets their number in front, and their standard error is dropped.

use std::io::Write;
use std::time::{Duration, Instant};

use sdm_core::CommandId;
use sdm_debug::command::{StartSpec, StopAt};
use sdm_debug::forwarding::Forwarding;
use sdm_debug::{Backend, BackendOutput, Command, Event};
use sdm_fake::{FakeBackend, Scenario};
use sdm_idset::IdSet;

const SCENARIO: &str = "[all]
start = 0
continue = 1s exit 0
stdin = echo
stderr = 100ms an error
";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let tasks = IdSet::all_below(2);
    let scenario = Scenario::parse(SCENARIO)?;
    let mut backend = Forwarding::new(FakeBackend::new(scenario.into(), &tasks));
    backend.set_stdin_handler(Box::new(|_, bytes| bytes.make_ascii_uppercase()));
    backend.set_stdout_handler(Box::new(|task, line| {
        [format!("{}: ", task.0).as_bytes(), &line].concat()
    }));
    backend.set_stderr_handler(Box::new(|_, _| Vec::new()));
    let start = Command::Start(StartSpec {
        program: b"echo".to_vec(),
        stop: StopAt::Nowhere,
        ..StartSpec::default()
    });
    let line = Command::Stdin {
        offset: 0,
        bytes: b"hello\n".to_vec(),
        eof: false,
    };
    // The script's clock is simulated: two seconds pass at once.
    let mut now = Instant::now();
    let end = now + Duration::from_secs(2);
    backend.execute(now, CommandId(1), &tasks, start);
    backend.execute(now, CommandId(2), &tasks, line);
    while let Some(next) = backend.poll_timeout().filter(|next| *next < end) {
        now = now.max(next);
        backend.handle_timeout(now);
        while let Some(output) = backend.poll_output() {
            if let BackendOutput::Event {
                event: Event::Output { bytes, .. },
                ..
            } = output
            {
                std::io::stdout().write_all(&bytes)?;
            }
        }
    }
    Ok(())
}
