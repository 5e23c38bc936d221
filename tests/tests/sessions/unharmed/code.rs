//! The code of an inspected process is that of its files: a killed gdb leaves no breakpoint in it.

use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::PathBuf;
use std::process::Child;

use nix::sys::signal::Signal;
use sdm_tests::place::Place;
use sdm_tests::processes::{self, signal, tracer};
use sdm_tests::sdm::Sdm;

use super::{spinning, until};

/// Number of bytes of a process's code that differ from its files.
pub(in super::super) fn changed_bytes(pid: u32) -> usize {
    let process = processes::of(pid);
    let maps = process.maps().expect("it lives");
    let memory = fs::File::open(process.path("mem")).expect("it is ours");
    let mut changed = 0;
    for code in maps.iter().filter(|mapping| mapping.rights == "r-xp") {
        let Some(Ok(file)) = code.file().map(fs::File::open) else {
            continue;
        };
        let mut now = vec![0; usize::try_from(code.end - code.start).expect("a size")];
        let mut before = now.clone();
        memory
            .read_exact_at(&mut now, code.start)
            .expect("its code");
        let length = file.read_at(&mut before, code.offset).expect("its file");
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
fn process_between_two_samples_has_no_breakpoint() {
    let elsewhere = Place::new();
    for (count, slow) in [(1, false), (3, false), (1, true), (3, true)] {
        let mut processes = spinning(&elsewhere, count);
        let pids: Vec<u32> = processes.iter().map(Child::id).collect();
        let target: Vec<String> = pids.iter().map(ToString::to_string).collect();
        let place = Place::new();
        let mut watching =
            Sdm::new(&place, "stacks").args([&*target.join(","), "--watch=600", "--by", "gdb"]);
        if slow {
            watching = watching.args(["--gdb", slow_gdb(&place).to_str().expect("it is text")]);
        }
        let running = watching.spawn();
        running.out.wait(0, "spin () at work.c");
        for pid in &pids {
            until("it runs as it is in its files", || {
                let state = processes::of(*pid).state().expect("it lives");
                !state.is_held() && tracer(*pid).is_some() && changed_bytes(*pid) == 0
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
