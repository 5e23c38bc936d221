//! A gdb without SDM that gets the commands of a session's gdb, and is killed, or left alone, at the same moment.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use sdm_tests::place::Place;
use sdm_tests::processes::{self, kill_if_there, wait_state};
use sdm_tests::relay::Relay;
use sdm_tests::sdm::command;

use super::{Cell, end_trials, waiting};

/// The settings on which the meaning of the commands depends.
const SETTINGS: [&str; 3] = ["set mi-async on", "set pagination off", "set confirm off"];

/// A gdb behind a relay.
struct Gdb {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Gdb {
    fn start(place: &Place, relay: &Relay) -> Self {
        let mut gdb = command(place, relay.gdb());
        gdb.args(["-q", "-nx", "-i=mi3"]);
        gdb.args(SETTINGS.iter().flat_map(|line| ["-iex", line]));
        gdb.stdin(Stdio::piped()).stderr(Stdio::null());
        let mut child = gdb.spawn().expect("it starts");
        let to = child.stdin.take().expect("it is a pipe");
        let from = BufReader::new(child.stdout.take().expect("it is a pipe"));
        Self { child, to, from }
    }

    fn send(&mut self, line: &str) {
        // A killed gdb reads no more.
        let _ = writeln!(self.to, "{line}");
    }

    /// Waits until a command has its answer.
    fn wait_answer(&mut self, line: &str) {
        let digits = line.trim_start_matches(|it: char| it.is_ascii_digit());
        let token = format!("{}^", &line[..line.len() - digits.len()]);
        let mut lines = (&mut self.from).lines().map_while(Result::ok);
        assert!(
            lines.any(|it| it.starts_with(&token)),
            "no answer to {line}"
        );
    }
}

/// True if a process stays stopped. `sent` are the commands of a session that was attached to `pid`.
pub(super) fn stays_stopped(cell: &Cell, sent: &[String], pid: u32) -> bool {
    let (place, elsewhere) = (Place::new(), Place::new());
    let mut process = waiting(&elsewhere);
    let own = process.id().to_string();
    let relay = Relay::new(&place, &cell.hold);
    let mut gdb = Gdb::start(&place, &relay);
    let mut lines = sent.iter().map(|line| line.replace(&pid.to_string(), &own));
    for line in lines.by_ref().take(cell.hold.number - 1) {
        gdb.send(&line);
        gdb.wait_answer(&line);
    }
    gdb.send(&lines.next().expect("the held command was sent"));
    let held = relay.wait_beside(gdb.child.id(), String::new);
    cell.wait_moment(&relay);
    lines.for_each(|line| gdb.send(&line));
    let Gdb {
        mut child,
        to,
        from,
    } = gdb;
    if cell.kills("gdb") {
        kill_if_there(held);
        wait_state(held, "ZX");
    }
    // It loses those who gave the commands and read the answers.
    drop((to, from));
    relay.release();
    child.wait().expect("it is a child");
    end_trials(&place);
    place.assert_gone();
    let state = processes::of(process.id()).state().expect("it is a child");
    process.kill().expect("it lives");
    process.wait().expect("it is a child");
    state.is_stopped()
}
