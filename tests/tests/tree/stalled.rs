//! A front-end that stops reading while its tasks print as fast as they can: its memory stays bounded, and no output is
//! lost.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use sdm_core::limits::{BULK_WINDOW_BYTES, LINK_BULK_BYTES_MAX};
use sdm_debug::event::Stream;
use sdm_debug::{Command, Event};
use sdm_idset::TaskId;
use sdm_session::{DebugSession, SendOptions, SessionEvent};
use sdm_tests::processes;
use sdm_tests::run::{BOUND, Run, fake};

const _: () = sdm_tests::run::test_group("crowded", "servers that print without end");

const TASKS: u32 = 16;
/// The scenario: each task prints 100 lines of 64 bytes a millisecond, which is 100 MB/s together.
const NOISY: &str = "continue = never\noutput_lines = 100\n\
    output = 1ms {n} of {rank} .................................................\n";
/// Time for which the front-end does not read.
const STALL: Duration = Duration::from_secs(3);
/// Time without output after which all has arrived.
const QUIET: Duration = Duration::from_secs(2);
/// Number of lines that a task writes at once.
const AT_ONCE: u64 = 100;
/// Maximum number of bytes in flight to the front-end when it reads again: windows of all members, and the buffers of
/// the system's sockets. Without credit it would be everything printed, 300 MB.
const UNDER_WAY_MAX: usize = 32 << 20;
/// Maximum growth of a member's memory, in bytes.
const GROWTH_MAX: u64 = 16 << 20;

/// The output of a task so far: the number of its whole lines, which must be in order, and the incomplete line.
#[derive(Default)]
struct Lines {
    rest: Vec<u8>,
    count: u64,
}

impl Lines {
    fn push(&mut self, task: TaskId, bytes: &[u8]) {
        self.rest.extend_from_slice(bytes);
        let mut from = 0;
        while let Some(length) = self.rest[from..].iter().position(|byte| *byte == b'\n') {
            let line = &self.rest[from..from + length];
            let expect = format!("{} of {task} ", self.count);
            assert!(
                line.starts_with(expect.as_bytes()),
                "expected `{expect}`, got `{}`",
                String::from_utf8_lossy(line)
            );
            self.count += 1;
            from += length + 1;
        }
        self.rest.drain(..from);
    }

    /// True if the task's last write has arrived completely.
    fn is_whole(&self) -> bool {
        self.rest.is_empty() && self.count.is_multiple_of(AT_ONCE)
    }
}

#[derive(Default)]
struct Heard {
    lines: BTreeMap<TaskId, Lines>,
    bytes: usize,
    complete: Vec<sdm_core::CommandId>,
}

impl Heard {
    /// Takes the next event; false if none arrives in time.
    fn turn(&mut self, run: &mut Run, wait: Duration) -> bool {
        let Some(event) = run.session.next_event(Some(wait)) else {
            return false;
        };
        match event {
            SessionEvent::Events(events) => {
                for (tasks, event) in events {
                    let Event::Output { stream, bytes } = event else {
                        continue;
                    };
                    assert_eq!(stream, Stream::Stdout);
                    self.bytes += bytes.len();
                    for task in &tasks {
                        self.lines.entry(task).or_default().push(task, &bytes);
                    }
                }
            }
            SessionEvent::Complete { id } => self.complete.push(id),
            SessionEvent::Answer { missing, lost, .. } => {
                assert!(missing.is_empty() && lost.is_empty(), "{missing:?} {lost}");
            }
            SessionEvent::Health { tasks, why, .. } => panic!("{tasks}: {why}"),
            _ => {}
        }
        true
    }
}

fn peaks(run: &Run) -> BTreeMap<String, u64> {
    let servers = processes::servers(run.mark());
    let mut peaks: BTreeMap<String, u64> = servers
        .into_iter()
        .map(|(number, pid)| (format!("server {number}"), processes::peak_bytes(pid)))
        .collect();
    let mut below = processes::below(std::process::id()).into_iter();
    let master = below.find(|(pid, _)| processes::name(*pid) == "sdm-master");
    let master = processes::peak_bytes(master.expect("a master").0);
    peaks.insert("master".to_owned(), master);
    peaks
}

#[test]
fn stalled_reader_bounds_memory_and_loses_nothing() {
    const { assert!(GROWTH_MAX < LINK_BULK_BYTES_MAX as u64 && BULK_WINDOW_BYTES <= 256 << 10) };
    let mut config = fake(TASKS, NOISY);
    // A stop for a while must not count as silence, even on a busy machine.
    config.config.ping_after = Duration::from_secs(30);
    let mut run = Run::start(&config);
    run.start_tasks();
    let before = peaks(&run);
    let all = run.all();
    let mut heard = Heard::default();
    let going = run
        .session
        .send(&all, &Command::Continue, &SendOptions::default());
    while heard.lines.len() < TASKS as usize {
        assert!(heard.turn(&mut run, BOUND), "output");
    }
    // No output is read, and the session is not driven.
    std::thread::sleep(STALL);
    for (who, peak) in peaks(&run) {
        let grown = peak - before[&who];
        println!("{who}: grown by {} KiB", grown >> 10);
        assert!(grown < GROWTH_MAX, "{who}: {grown} bytes");
    }
    let so_far = heard.bytes;
    let stop = run
        .session
        .send(&all, &Command::Interrupt, &SendOptions::default());
    while !(heard.complete.contains(&stop) && heard.complete.contains(&going)) {
        assert!(
            heard.turn(&mut run, BOUND),
            "the interrupt: {:?}",
            heard.complete
        );
    }
    let under_way = heard.bytes - so_far;
    println!("{} KiB came before all had stopped", under_way >> 10);
    assert!(under_way < UNDER_WAY_MAX, "{under_way} bytes");
    // The rest of the printed output arrives, and no further output.
    let begun = Instant::now();
    while heard.turn(&mut run, QUIET) || !heard.lines.values().all(Lines::is_whole) {
        let cut = heard.lines.iter().filter(|(_, lines)| !lines.is_whole());
        let cut: Vec<_> = cut.map(|(task, _)| task).collect();
        assert!(begun.elapsed() < BOUND, "the rest of what {cut:?} wrote");
    }
    let total: u64 = heard.lines.values().map(|lines| lines.count).sum();
    println!("{total} lines in order, {} KiB", heard.bytes >> 10);
    run.close();
}
