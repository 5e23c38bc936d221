//! A process that is looked at runs as it is in its files: a gdb that is killed leaves no breakpoint in it.

use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::PathBuf;
use std::process::Child;

use nix::sys::signal::Signal;
use sdm_tests::place::Place;
use sdm_tests::processes::signal;
use sdm_tests::sdm::Sdm;

use super::{spinning, tracer, until};

/// How many bytes of a process's code are not those of its files.
pub(super) fn changed_bytes(pid: u32) -> usize {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).expect("it lives");
    let memory = fs::File::open(format!("/proc/{pid}/mem")).expect("it is ours");
    let mut changed = 0;
    for line in maps.lines() {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let [range, "r-xp", offset, _, _, path] = fields[..] else {
            continue;
        };
        let Ok(file) = fs::File::open(path) else {
            continue;
        };
        let number = |text: &str| u64::from_str_radix(text, 16).expect("an address");
        let (start, end) = range.split_once('-').expect("a range");
        let mut now = vec![0; usize::try_from(number(end) - number(start)).expect("a size")];
        let mut before = now.clone();
        memory
            .read_exact_at(&mut now, number(start))
            .expect("its code");
        let length = file.read_at(&mut before, number(offset)).expect("its file");
        let pairs = now[..length].iter().zip(&before[..length]);
        changed += pairs.filter(|(now, before)| now != before).count();
    }
    changed
}

/// A gdb that is slow between saying that it lets a process run and doing so, as any gdb is on a busy machine.
fn slow_gdb(place: &Place) -> PathBuf {
    let path = place.path().join("slow-gdb");
    let script = "import gdb, time; gdb.events.cont.connect(lambda event: time.sleep(0.2))";
    let text = format!("#!/bin/sh\nexec gdb -iex 'python {script}' \"$@\"\n");
    fs::write(&path, text).expect("a file");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it is ours");
    path
}

#[test]
fn who_runs_between_two_looks_has_no_breakpoint_in_it() {
    let elsewhere = Place::new();
    for (count, slow) in [(1, false), (3, false), (1, true), (3, true)] {
        let mut processes = spinning(&elsewhere, count);
        let pids: Vec<u32> = processes.iter().map(Child::id).collect();
        let target: Vec<String> = pids.iter().map(ToString::to_string).collect();
        let place = Place::new();
        let mut watching = Sdm::new(&place, "stacks").args([&*target.join(","), "--watch=600"]);
        if slow {
            watching = watching.args(["--gdb", slow_gdb(&place).to_str().expect("it is text")]);
        }
        let running = watching.spawn();
        running.out.wait(0, "spin () at work.c");
        for pid in &pids {
            until("it runs as it is in its files", || {
                let state = fs::read_to_string(format!("/proc/{pid}/stat")).expect("it lives");
                let runs = !state
                    .rsplit_once(") ")
                    .is_some_and(|(_, rest)| rest.starts_with('t'));
                runs && tracer(*pid) != 0 && changed_bytes(*pid) == 0
            });
        }
        signal(running.pid(), Signal::SIGINT);
        let _ = running.finish().code(130);
        for process in &mut processes {
            process.kill().expect("it lives");
            process.wait().expect("it is a child");
        }
    }
}
