//! Files that another user plants where gdb looks for files while a process is stopped: they neither keep the
//! process stopped nor are taken for the right ones.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use sdm_tests::neighbour::{Neighbour, Who, said};

use super::planted::{NO_GDB, Running, build, compile};

/// C source of a program that is planted where gdb looks for another one. Its function `EVIL` must not be shown.
const EVIL: &str = "int EVIL(void) { for (;;) ; } int main(void) { return EVIL(); }";

/// A script that starts gdb and records its calls that look at files, and of `ptrace`. Returns the script and the file of
/// the calls.
fn traced_gdb(users: &Neighbour) -> (PathBuf, PathBuf) {
    let log = users.home(Who::User).join("calls");
    // The gdb stays the child that was started. Its own children are not traced (`-f`): it tries out tracing on one, and
    // waits for that child for ever if another process traces it. A child that opens a FIFO keeps the attach from ending.
    let line = format!(
        "#!/bin/sh\nexec strace -D -o {} -e trace=open,openat,stat,newfstatat,ptrace gdb \"$@\"\n",
        log.display()
    );
    let gdb = users.plant(Who::User, "traced-gdb", 0o755, line);
    (gdb, log)
}

/// A copy of the user's program where all can write, whose debug information has another file.
pub(super) fn stripped(users: &Neighbour, program: &Path, name: &str) -> PathBuf {
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

/// The program where all can write, with its debug information in a file that is gone, so that gdb looks for a package of
/// such files.
fn split(users: &Neighbour, folder: &Path) -> PathBuf {
    let rpath = format!("-Wl,-rpath,{}", folder.display());
    let options = [
        "-g",
        "-gsplit-dwarf",
        "-o",
        "split",
        "prog.c",
        "-L.",
        "-lanswer",
    ];
    compile("cc", &[&options[..], &[&rpath]].concat(), folder);
    fs::remove_file(folder.join("split-prog.dwo")).expect("it was made");
    users.plant_copy(
        Who::User,
        users.shared().join("split"),
        0o755,
        folder.join("split"),
    )
}

/// The program where all can write, whose debug information names an alternate file.
fn alternate(users: &Neighbour, folder: &Path) -> PathBuf {
    let named = users.shared().join("alternate.debug");
    let link = [named.as_os_str().as_bytes(), b"\0", &[7; 20]].concat();
    fs::write(folder.join("link"), link).expect("a file");
    let section = [
        "--add-section",
        ".gnu_debugaltlink=link",
        "prog",
        "alternate",
    ];
    compile("objcopy", &section, folder);
    users.plant_copy(
        Who::User,
        users.shared().join("alternate"),
        0o755,
        folder.join("alternate"),
    )
}

/// The program, with its library where all can write.
fn loading(users: &Neighbour, folder: &Path) -> PathBuf {
    let library = users.shared().join("libanswer.so");
    users.plant_copy(Who::User, &library, 0o755, folder.join("libanswer.so"));
    let rpath = format!("-Wl,-rpath,{}", users.shared().display());
    let program = ["-g", "-o", "loading", "prog.c", "-L.", "-lanswer", &rpath];
    compile("cc", &program, folder);
    users.give(Who::User, &folder.join("loading"), 0o755);
    folder.join("loading")
}

fn plant_fifo(users: &Neighbour, path: &Path) {
    mkfifo(path, Mode::from_bits_truncate(0o644)).expect("a FIFO");
    users.give(Who::Neighbour, path, 0o644);
}

/// The calls with which gdb, once attached, looks at a planted file (`stat`, `O_PATH`), and those with which it opens it.
fn opens<'a>(calls: &'a str, planted: &Path) -> (Vec<&'a str>, Vec<&'a str>) {
    let name = format!("\"{}\"", planted.display());
    let held = calls
        .lines()
        .skip_while(|line| !line.contains("PTRACE_ATTACH"));
    held.filter(|line| line.contains(&name))
        .partition(|line| line.contains("O_PATH") || line.contains("stat"))
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
    let split = split(&users, folder);
    let alternate = alternate(&users, folder);
    let loading = loading(&users, folder);
    let replaced = users.plant_copy(Who::User, users.shared().join("replaced"), 0o755, &program);
    let taken = users.plant_copy(Who::User, users.shared().join("taken"), 0o755, &program);
    let shared = |name: &str| users.shared().join(name);
    for (path, removed, planted, is_evil) in [
        (&linked, None, shared("linked.debug"), false),
        (&split, None, shared("split.dwp"), true),
        (&alternate, None, shared("alternate.debug"), false),
        (
            &loading,
            Some(shared("libanswer.so")),
            shared("libanswer.so"),
            false,
        ),
        (
            &replaced,
            Some(replaced.clone()),
            shared("replaced (deleted)"),
            false,
        ),
        (&taken, Some(taken.clone()), shared("taken (deleted)"), true),
    ] {
        let running = Running::start(&users, Who::User, path);
        if let Some(removed) = removed {
            fs::remove_file(removed).expect("it is there");
        }
        match is_evil {
            true => drop(users.plant_copy(Who::Neighbour, &planted, 0o755, folder.join("evil"))),
            false => plant_fifo(&users, &planted),
        }
        let text = attach(&users, &running, &gdb);
        assert!(!text.contains("EVIL"), "{}: {text}", planted.display());
        let calls = fs::read_to_string(&log).expect("strace has written it");
        let (looks, reads) = opens(&calls, &planted);
        assert!(!looks.is_empty(), "{}: {calls}", planted.display());
        assert_eq!(reads, [""; 0], "{}", planted.display());
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
