//! Files that another user plants where gdb looks for files while a process is stopped: they neither keep the
//! process stopped nor are taken for the right ones.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use sdm_tests::neighbour::{Neighbour, Who, said};

use super::planted::{NO_GDB, Running, build, compile};

/// C source of a program that is planted where gdb looks for another one. Its function `EVIL` must not be shown.
const EVIL: &str = "int EVIL(void) { for (;;) ; } int main(void) { return EVIL(); }";

/// A script that starts gdb and records its calls of `open`, `openat` and `ptrace`. Returns the script and the file of
/// the calls.
fn traced_gdb(users: &Neighbour) -> (PathBuf, PathBuf) {
    let log = users.home(Who::User).join("calls");
    // The gdb stays the child that was started.
    let line = format!(
        "#!/bin/sh\nexec strace -D -o {} -e trace=open,openat,ptrace gdb \"$@\"\n",
        log.display()
    );
    let gdb = users.plant(Who::User, "traced-gdb", 0o755, line);
    (gdb, log)
}

/// A copy of the user's program where all can write, whose debug information has another file.
fn stripped(users: &Neighbour, program: &Path, name: &str) -> PathBuf {
    let folder = program.parent().expect("a folder");
    let debug = format!("{name}.debug");
    fs::copy(program, folder.join(name)).expect("a copy");
    compile("objcopy", &["--only-keep-debug", name, &debug], folder);
    let link = format!("--add-gnu-debuglink={debug}");
    compile("objcopy", &["--strip-debug", &link, name], folder);
    users.plant_copy(
        Who::User,
        users.shared().join(name),
        0o755,
        folder.join(name),
    )
}

fn plant_fifo(users: &Neighbour, path: &Path) {
    mkfifo(path, Mode::from_bits_truncate(0o644)).expect("a FIFO");
    users.give(Who::Neighbour, path, 0o644);
}

/// The calls by which gdb, once attached, opens a planted file by its name; opens with `O_PATH` read nothing and do not
/// count.
fn opens<'a>(calls: &'a str, planted: &Path) -> Vec<&'a str> {
    let name = format!("\"{}\"", planted.display());
    let held = calls
        .lines()
        .skip_while(|line| !line.contains("PTRACE_ATTACH"));
    held.filter(|line| line.contains(&name) && !line.contains("O_PATH"))
        .collect()
}

fn attach(users: &Neighbour, running: &Running, gdb: &Path) -> String {
    let gdb = gdb.to_str().expect("a path of text");
    let args = [
        "attach",
        &running.pid(),
        "--gdb",
        gdb,
        "-c",
        "bt",
        "-c",
        "detach",
    ];
    let done = users.sdm(Who::User, args).output().expect("sdm runs");
    let text = said(&done);
    assert!(
        done.status.success() && text.contains("detached, still running"),
        "{text}"
    );
    text
}

/// Output of `sdm stacks` without gdb.
fn sample(users: &Neighbour, running: &Running) -> String {
    let args = ["stacks", &running.pid(), "--gdb", NO_GDB];
    let done = users.sdm(Who::User, args).output().expect("sdm runs");
    let text = said(&done);
    assert!(
        done.status.success() && text.contains(": main ()"),
        "{text}"
    );
    text
}

/// The debug file of a process is read without gdb, unless another user has planted it or could change it.
#[test]
fn snapshot_ignores_debug_files_of_other_users() {
    let Some(users) = Neighbour::new() else {
        return;
    };
    let program = build(&users, Who::User, "waits", "none.py", "pass");
    let folder = program.parent().expect("a folder");
    fs::write(folder.join("evil.c"), EVIL).expect("a file");
    compile("cc", &["-g", "-o", "evil", "evil.c"], folder);
    let evil = folder.join("evil");
    let linked = stripped(&users, &program, "linked");
    let running = Running::start(&users, Who::User, &linked);
    let debug = users.shared().join("linked.debug");
    let own = folder.join("linked.debug");
    plant_fifo(&users, &debug);
    assert!(!sample(&users, &running).contains("prog.c:"));
    let group = |who: Who| Some(nix::unistd::Gid::from_raw(who.uid()));
    for (who, mode, of, is_read) in [
        (Who::Neighbour, 0o644, Who::Neighbour, false),
        (Who::User, 0o666, Who::User, false),
        (Who::User, 0o664, Who::Neighbour, false),
        (Who::User, 0o644, Who::Neighbour, true),
        (Who::User, 0o664, Who::User, true),
    ] {
        fs::remove_file(&debug).expect("it is there");
        users.plant_copy(who, &debug, mode, &own);
        nix::unistd::chown(&debug, None, group(of)).expect("a group");
        let text = sample(&users, &running);
        let what = format!("{who:?} {mode:o} {of:?}: {text}");
        assert_eq!(text.contains("prog.c:"), is_read, "{what}");
    }
    drop(running);
    for planted in [None, Some(evil)] {
        let path = users.shared().join("taken");
        let taken = users.plant_copy(Who::User, &path, 0o755, &program);
        let running = Running::start(&users, Who::User, &taken);
        fs::remove_file(&taken).expect("it is there");
        let gone = PathBuf::from(format!("{} (deleted)", taken.display()));
        match &planted {
            Some(evil) => drop(users.plant_copy(Who::Neighbour, &gone, 0o755, evil)),
            None => plant_fifo(&users, &gone),
        }
        let text = sample(&users, &running);
        assert!(text.contains(": main () at prog.c:"), "{planted:?}: {text}");
        fs::remove_file(&gone).expect("it is there");
    }
    users.assert_gone();
}

#[test]
fn gdb_attach_opens_no_debug_files_of_other_users() {
    let Some(users) = Neighbour::new() else {
        return;
    };
    if Command::new("strace").arg("-V").output().is_err() {
        println!("SKIP: no strace");
        return;
    }
    let (gdb, log) = traced_gdb(&users);
    let program = build(&users, Who::User, "waits", "none.py", "pass");
    let folder = program.parent().expect("a folder");
    fs::write(folder.join("evil.c"), EVIL).expect("a file");
    compile("cc", &["-g", "-o", "evil", "evil.c"], folder);
    let linked = stripped(&users, &program, "linked");
    let replaced = users.plant_copy(Who::User, users.shared().join("replaced"), 0o755, &program);
    let taken = users.plant_copy(Who::User, users.shared().join("taken"), 0o755, &program);
    let gone = |path: &Path| PathBuf::from(format!("{} (deleted)", path.display()));
    for (path, planted, is_evil) in [
        (&linked, users.shared().join("linked.debug"), false),
        (&replaced, gone(&replaced), false),
        (&taken, gone(&taken), true),
    ] {
        let running = Running::start(&users, Who::User, path);
        if path != &linked {
            fs::remove_file(path).expect("it is there");
        }
        match is_evil {
            true => drop(users.plant_copy(Who::Neighbour, &planted, 0o755, folder.join("evil"))),
            false => plant_fifo(&users, &planted),
        }
        let text = attach(&users, &running, &gdb);
        assert!(!text.contains("EVIL"), "{}: {text}", planted.display());
        let calls = fs::read_to_string(&log).expect("strace has written it");
        assert!(calls.contains("PTRACE_ATTACH"), "{calls}");
        assert_eq!(opens(&calls, &planted), [""; 0], "{}", planted.display());
        fs::remove_file(&log).expect("it is there");
    }
    // One's own are read as ever.
    let own = folder.join("linked.debug");
    let debug = users.shared().join("linked.debug");
    fs::remove_file(&debug).expect("it is there");
    users.plant_copy(Who::User, &debug, 0o644, &own);
    fs::set_permissions(&debug, fs::Permissions::from_mode(0o644)).expect("it is there");
    let running = Running::start(&users, Who::User, &linked);
    let text = attach(&users, &running, &gdb);
    assert!(text.contains("prog.c:"), "{text}");
    drop(running);
    users.assert_gone();
}
