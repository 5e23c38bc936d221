//! Replays recorded sessions with real gdbs, one transcript each, without a gdb.
//!
//! `UPDATE_GOLDEN=1` records them anew, with the gdb on `PATH` and with the one of `scripts/gdb18`.
//! `tests/golden/gdbN/` holds the records of a gdb of that major version.

mod list;
mod player;

use std::path::{Path, PathBuf};
use std::process::Command as Process;

use sdm_debug::Command;

use player::{Player, Source, record};

/// A recorded session between a front-end and a program.
struct Story {
    /// The behaviour that the session shows.
    name: &'static str,
    /// The program: a file in tests/fixtures.
    fixture: &'static str,
    beginning: Beginning,
    steps: Vec<StoryStep>,
}

/// The origin of the task.
enum Beginning {
    /// Started with these arguments, and stopped at `main`.
    Start(&'static str),
    /// Attached to as a running process.
    Attach,
    /// The core file that the program has left by its abort.
    Core,
}

enum StoryStep {
    /// Sends a command and waits for its answer.
    Ask(Command),
    /// Sends a command without waiting for its answer.
    Send(Command),
    /// Plays until gdb sends a line with this prefix.
    Until(&'static str),
    /// Plays until every command is answered.
    Answers,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

#[test]
fn recorded_gdb_sessions_replay_unchanged() {
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        record_all();
    }
    for version in ["gdb13", "gdb18"] {
        for story in list::stories() {
            let path = folder().join(version).join(story.name).with_extension("mi");
            let told = std::fs::read_to_string(&path)
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            for cut in [usize::MAX, 1, 7] {
                check(&story, &told, cut, &path);
            }
        }
    }
}

/// Replays a transcript and compares the result. gdb's lines arrive in pieces of `cut` bytes.
fn check(story: &Story, told: &str, cut: usize, path: &Path) {
    let lines = told.lines().filter_map(|line| line.strip_prefix("< "));
    let lines = lines.filter(|line| *line != "end").map(str::to_owned);
    let pid = told.strip_prefix("$ attach ").and_then(|rest| {
        let end = rest.find('\n')?;
        rest[..end].parse().ok()
    });
    let source = Source::Lines(lines.collect());
    let log = Player::play(story, source, pid.unwrap_or(0), cut);
    for (number, (now, then)) in log.iter().zip(told.lines()).enumerate() {
        let at = format!("{}:{}", path.display(), number + 1);
        assert_eq!(now, then, "{at}, in pieces of {cut}");
    }
    assert_eq!(log.len(), told.lines().count(), "{}", path.display());
}

fn record_all() {
    let newer = Process::new("../scripts/gdb18").output().unwrap();
    assert!(newer.status.success(), "scripts/gdb18: {newer:?}");
    let newer = String::from_utf8(newer.stdout).unwrap();
    for gdb in [Path::new("gdb"), Path::new(newer.trim_end())] {
        let folder = folder().join(format!("gdb{}", major(gdb)));
        std::fs::create_dir_all(&folder).unwrap();
        for story in list::stories() {
            let log = record(&story, gdb);
            let path = folder.join(story.name).with_extension("mi");
            std::fs::write(path, log.join("\n") + "\n").unwrap();
        }
    }
}

/// The major version of a gdb.
fn major(gdb: &Path) -> u32 {
    let said = Process::new(gdb).arg("--version").output().unwrap();
    let said = String::from_utf8(said.stdout).unwrap();
    // The line is like `GNU gdb (Debian 13.1-3) 13.1`.
    let version = said
        .lines()
        .next()
        .and_then(|line| line.split(' ').next_back());
    let major = version.and_then(|version| version.split('.').next());
    major.and_then(|major| major.parse().ok()).unwrap()
}
