//! A client that sends arbitrary bytes.

use std::time::{Duration, Instant};

use sdm_core::CommandId;
use sdm_debug::reply::{Stop, StopReason};
use sdm_debug::{Command, Reply};
use sdm_idset::IdSet;
use sdm_session::{Class, ClassAnswer, SessionEvent};

use crate::action::{Action, Opened};
use crate::adapter::Adapter;
use crate::frame::{Framed, Framer};

/// Maximum number of steps for one input.
const STEPS_MAX: usize = 4096;

/// Feeds arbitrary bytes to an adapter whose session carries out every action: no panic, and each output message is
/// well-formed.
///
/// # Panics
/// An output message is malformed, the adapter panics, or it is not over after its client.
pub fn fuzz_client(bytes: &[u8]) {
    let mut now = Instant::now();
    let mut adapter = Adapter::new(now);
    let mut output = Framer::default();
    let mut last = 0;
    for piece in bytes.chunks(61) {
        adapter.handle_bytes(now, piece);
        drain(&mut adapter, now, &mut last, &mut output);
        now += Duration::from_millis(100);
        if adapter.poll_timeout().is_some_and(|due| due <= now) {
            adapter.handle_timeout(now);
        }
    }
    adapter.handle_gone();
    drain(&mut adapter, now, &mut last, &mut output);
    assert!(adapter.is_over(), "a connection ends with its client");
}

/// Carries out the adapter's actions.
fn drain(adapter: &mut Adapter, now: Instant, last: &mut u64, output: &mut Framer) {
    for _ in 0..STEPS_MAX {
        while let Some(bytes) = adapter.poll_output() {
            output.handle_bytes(&bytes, &mut |framed| {
                let Framed::Body(body) = framed else {
                    panic!("an adapter's own message is framed");
                };
                let message = serde_json::from_slice::<serde_json::Value>(&body);
                assert!(message.is_ok_and(|message| message["seq"].as_i64() > Some(0)));
            });
        }
        let Some(action) = adapter.poll_action() else {
            return;
        };
        match action {
            Action::Open(_) => adapter.handle_opened(Ok(Opened {
                tasks: IdSet::all_below(3),
                begin: vec![(IdSet::all_below(3), Command::Continue)],
                notes: Vec::new(),
            })),
            Action::Send {
                ticket,
                to,
                command,
                ..
            } => {
                *last += 1;
                let id = CommandId(*last);
                adapter.handle_sent(ticket, id);
                let classes = vec![Class {
                    tasks: to,
                    answer: ClassAnswer::Reply(reply(&command)),
                }];
                let event = SessionEvent::Answer {
                    id,
                    classes,
                    missing: Vec::new(),
                    lost: IdSet::new(),
                    late: false,
                };
                adapter.handle_event(now, event);
                adapter.handle_event(now, SessionEvent::Complete { id });
            }
            Action::Close(_) => adapter.handle_closed(Ok(())),
            Action::ListJobs => adapter.handle_jobs(&[("7".to_owned(), "mpirun".to_owned())]),
            Action::Invite => adapter.handle_invited(Ok("here".to_owned())),
            Action::Relay { .. } => adapter.handle_unreached("nobody is there"),
            Action::Cancel(_) | Action::Join | Action::Pass(_) | Action::Leave => {}
        }
    }
}

fn reply(command: &Command) -> Reply {
    if command.is_run_control() {
        return Reply::Stopped(Stop {
            reason: StopReason::StepEnd,
            frame: None,
            inside: None,
            source: None,
        });
    }
    Reply::Done
}
