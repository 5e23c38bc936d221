//! Files that `sdm` reads or writes where other users can write: links, FIFOs and files that another user has planted.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use nix::sys::stat::Mode;
use sdm_tests::neighbour::{Neighbour, Outcome, Who};

/// Maximum distance from this process's pid to the next ones, on a busy machine.
const PIDS_AHEAD: u32 = 4000;

fn fifo(neighbour: &Neighbour, path: &Path) {
    nix::unistd::mkfifo(path, Mode::empty()).expect("a FIFO");
    neighbour.give(Who::Neighbour, path, 0o666);
}

fn report(neighbour: &Neighbour, path: &Path) -> Outcome {
    let path = path.to_str().expect("a plain name");
    let args = [
        "run",
        "--batch",
        "--report",
        path,
        "-n",
        "1",
        "--",
        "/bin/true",
    ];
    Outcome::of(&mut neighbour.sdm(Who::User, args))
}

#[test]
fn report_follows_no_link_and_is_private() {
    let Some(neighbour) = Neighbour::new() else {
        return;
    };
    // Without the sticky bit the kernel does not protect users from links.
    let shared = neighbour.shared();
    fs::set_permissions(&shared, Permissions::from_mode(0o777)).expect("it is ours");
    let victim = neighbour.plant(Who::User, "victim", 0o600, "the user's own");
    let page = shared.join("report.html");
    let first = std::process::id();
    for pid in first..first + PIDS_AHEAD {
        for name in ["report.html", "report.txt", "report.json"] {
            symlink(&victim, shared.join(format!(".{name}.{pid}.new"))).expect("a link");
        }
    }
    symlink(&victim, &page).expect("a link");
    let told = report(&neighbour, &page);
    assert_eq!(
        fs::read_to_string(&victim).expect("it is there"),
        "the user's own"
    );
    assert_eq!(told.code, Some(0), "{told:?}");
    for name in ["report.html", "report.txt", "report.json"] {
        let found = fs::symlink_metadata(shared.join(name)).expect("a report");
        assert!(found.is_file() && found.uid() == Who::User.uid(), "{name}");
        assert_eq!(found.mode() & 0o777, 0o600, "{name}");
    }
}

#[test]
fn report_does_not_overwrite_a_foreign_file() {
    let Some(neighbour) = Neighbour::new() else {
        return;
    };
    let page = neighbour.shared().join("report.html");
    fs::write(&page, "theirs").expect("a file");
    neighbour.give(Who::Neighbour, &page, 0o666);
    let told = report(&neighbour, &page);
    let why = format!(
        "write {}: belongs to user 65533 and you are",
        page.display()
    );
    assert!(told.said.contains(&why), "{told:?}");
    assert_eq!(fs::read_to_string(&page).expect("it is there"), "theirs");
    let page = neighbour.shared().join("fifo.html");
    fifo(&neighbour, &page);
    let told = report(&neighbour, &page);
    let why = format!(
        "write {}: is a FIFO of user 65533, not a regular file",
        page.display()
    );
    assert!(told.said.contains(&why), "{told:?}");
    // Nothing of the tries is left.
    let names = fs::read_dir(neighbour.shared())
        .expect("it is there")
        .flatten();
    let left = names.filter(|it| it.file_name().to_string_lossy().ends_with(".new"));
    assert_eq!(left.count(), 0);
}

/// A file of the user's, and a link to it that the neighbour has put into a folder writable by all; returns both.
fn trap(neighbour: &Neighbour, name: &str) -> (PathBuf, PathBuf) {
    let shared = neighbour.shared();
    // With the sticky bit the kernel itself may refuse to follow the link.
    fs::set_permissions(&shared, Permissions::from_mode(0o777)).expect("it is ours");
    let victim = neighbour.plant(Who::User, "victim", 0o600, "the user's own");
    let link = shared.join(name);
    symlink(&victim, &link).expect("a link");
    (victim, link)
}

/// Checks that the written file is the user's alone, in the place of the link, and that the link's target is unchanged.
fn check_trap((victim, link): &(PathBuf, PathBuf), begins: &[u8]) {
    let kept = fs::read_to_string(victim).expect("it is there");
    assert_eq!(kept, "the user's own", "{}", link.display());
    let found = fs::symlink_metadata(link).expect("a file");
    let owner = (found.is_file(), found.uid(), found.mode() & 0o777);
    assert_eq!(owner, (true, Who::User.uid(), 0o600), "{}", link.display());
    assert!(fs::read(link).expect("a file").starts_with(begins));
    let folder = link.parent().expect("a folder");
    let mut names = fs::read_dir(folder).expect("it is there").flatten();
    let left = names.find(|it| it.file_name().to_string_lossy().ends_with(".new"));
    assert!(left.is_none(), "{left:?}");
}

#[test]
fn diagnose_graph_follows_no_link() {
    let Some(neighbour) = Neighbour::new() else {
        return;
    };
    let trap = trap(&neighbour, "graph.dot");
    let mut own = neighbour.command(Who::User, "/bin/sleep");
    let mut own = own.arg("1000").spawn().expect("it starts");
    let (pid, graph) = (own.id().to_string(), trap.1.to_str().expect("text"));
    let args = ["diagnose", "--samples", "2", "--dot", graph, &pid];
    let told = Outcome::of(&mut neighbour.sdm(Who::User, args));
    assert!(told.code < Some(2), "{told:?}");
    check_trap(&trap, b"digraph");
    let _ = own.kill();
    let _ = own.wait();
}

#[test]
fn gcore_follows_no_link_and_writes_a_private_file() {
    let Some(neighbour) = Neighbour::new() else {
        return;
    };
    let trap = trap(&neighbour, "core.0");
    let stem = neighbour.shared().join("core");
    let run = |lines: [&str; 2]| {
        let start = ["run", "--batch", "--no-report", "-n", "1"];
        let commands = ["-c", lines[0], "-c", lines[1]];
        let args = [&start[..], &commands, &["--", "/bin/sleep", "0"]].concat();
        let mut sdm = neighbour.sdm(Who::User, args);
        Outcome::of(sdm.env("TMPDIR", neighbour.home(Who::User)))
    };
    let told = run([&format!("gcore {}", stem.display()), "gcore here"]);
    let saved = format!("Saved corefile {}\n", trap.1.display());
    told.expect(0, &saved);
    check_trap(&trap, b"\x7fELF");
    // In the folder where gdb runs.
    let here = neighbour.home(Who::User).join("here.0");
    assert_eq!(
        fs::metadata(&here).expect("a core file").mode() & 0o777,
        0o600
    );
    let theirs = neighbour.plant(
        Who::Neighbour,
        neighbour.shared().join("theirs.0"),
        0o666,
        "x",
    );
    neighbour.give(Who::Root, &neighbour.shared(), 0o1777);
    let told = run([
        &format!("gcore {}/theirs", neighbour.shared().display()),
        "where",
    ]);
    let why = format!(
        "gcore: cannot write {}: belongs to user 65533 and you are",
        theirs.display()
    );
    assert!(told.said.contains(&why), "{told:?}");
    assert_eq!(fs::read(&theirs).expect("it is there"), b"x");
}

#[test]
fn files_that_gdb_writes_are_behind_no_link() {
    let Some(neighbour) = Neighbour::new() else {
        return;
    };
    let (victim, link) = trap(&neighbour, "link");
    let run = |lines: &[String]| {
        let start = ["run", "--batch", "--no-report", "-n", "1"];
        let lines: Vec<&str> = lines.iter().flat_map(|line| ["-c", line]).collect();
        let args = [&start[..], &lines, &["--", "/bin/sleep", "0"]].concat();
        let mut sdm = neighbour.sdm(Who::User, args);
        Outcome::of(sdm.env("TMPDIR", neighbour.home(Who::User)))
    };
    let lines = |file: &str| {
        [
            vec![format!("gdb dump memory {file} $sp $sp+8")],
            vec![format!("gdb append memory {file} $sp $sp+8")],
            vec![
                format!("gdb set logging file {file}"),
                "gdb set logging enabled on".to_owned(),
                "gdb print 40 + 2".to_owned(),
                "gdb set logging enabled off".to_owned(),
            ],
        ]
    };
    for lines in lines(link.to_str().expect("text")) {
        let told = run(&lines);
        let why = format!("cannot write {}: is a symbolic link", link.display());
        assert!(told.said.contains(&why), "{lines:?}: {told:?}");
        assert_eq!(
            fs::read_to_string(&victim).expect("it is there"),
            "the user's own"
        );
    }
    let own = neighbour.home(Who::User).join("own");
    let mut sizes = Vec::new();
    for lines in lines(own.to_str().expect("text")) {
        run(&lines).expect(0, "");
        let found = fs::metadata(&own).expect("it is there");
        sizes.push(found.len());
        assert_eq!(found.mode() & 0o777, 0o600, "{lines:?}");
    }
    assert_eq!(sizes[..2], [8, 16]);
    let log = fs::read(&own).expect("it is there");
    assert!(
        String::from_utf8_lossy(&log[16..]).contains("$1 = 42"),
        "{log:?}"
    );
}

/// The commands of a breakpoint are lines for gdb.
#[test]
fn gcore_of_a_breakpoint_follows_no_link() {
    let Some(neighbour) = Neighbour::new() else {
        return;
    };
    let trap = trap(&neighbour, "core");
    let gcore = format!("gcore {}", trap.1.display());
    let start = ["run", "--batch", "--no-report", "-n", "1"];
    let lines = [
        "set breakpoint pending on",
        "break clock_nanosleep",
        "commands 1",
        &gcore,
        "continue",
        "end",
    ];
    let lines: Vec<&str> = lines.iter().flat_map(|line| ["-c", *line]).collect();
    let args = [&start[..], &lines, &["--", "/bin/sleep", "0"]].concat();
    let mut sdm = neighbour.sdm(Who::User, args);
    let told = Outcome::of(sdm.env("TMPDIR", neighbour.home(Who::User)));
    told.expect(0, &format!("Saved corefile {}\n", trap.1.display()));
    check_trap(&trap, b"\x7fELF");
}

/// Opening a FIFO waits for a writer: the open must not block.
#[test]
fn fifo_instead_of_a_file_does_not_block() {
    let Some(neighbour) = Neighbour::new() else {
        return;
    };
    let path = neighbour.home(Who::Neighbour).join("fifo");
    fifo(&neighbour, &path);
    let fifo = path.to_str().expect("a plain name");
    let said = "is a FIFO of user 65533, not a regular file";
    let run = ["run", "--batch", "--no-report", "-n", "1"];
    let check = |args: &[&str], expect: &str| {
        let told = Outcome::of(&mut neighbour.sdm(Who::User, args));
        assert!(
            told.code != Some(0) && told.said.contains(expect),
            "{args:?}: {told:?}"
        );
    };
    check(&[&run[..], &["-x", fifo, "--", "/bin/true"]].concat(), said);
    check(
        &[&run[..], &["--hostfile", fifo, "--", "/bin/true"]].concat(),
        said,
    );
    let sourced = format!("source {fifo}");
    check(
        &[&run[..], &["-c", &sourced, "--", "/bin/true"]].concat(),
        said,
    );
    let saved = format!("save {fifo}");
    check(
        &[&run[..], &["-c", &saved, "--", "/bin/true"]].concat(),
        said,
    );
    check(&["emulate", "--scenario", fifo], said);
    check(&["core", "/bin/true", fifo], said);
    check(&["core", fifo, fifo], "no such program");
    check(&[&run[..], &["--", fifo]].concat(), said);
    let mut settings = neighbour.sdm(Who::User, ["settings"]);
    Outcome::of(settings.env("SDM_CONFIG", fifo)).expect(2, said);
    let server = neighbour.binaries().join("sdm-server");
    let mut server = neighbour.command(Who::User, server);
    let told = Outcome::of(server.args(["--id", "0", "--handover", fifo]));
    assert!(told.said.contains("the path is not a file"), "{told:?}");
}

#[test]
fn key_file_of_another_user_is_refused() {
    let Some(neighbour) = Neighbour::new() else {
        return;
    };
    let key = format!(
        "SDM_SESSION={}\nSDM_KEY={}\n",
        "0".repeat(16),
        "0".repeat(64)
    );
    let path = neighbour.plant(Who::Neighbour, "key", 0o600, key);
    let server = neighbour.binaries().join("sdm-server");
    let mut server = neighbour.command(Who::Root, server);
    let told = Outcome::of(server.args(["--id", "0", "--handover"]).arg(path));
    assert!(told.code != Some(0), "{told:?}");
    assert!(
        told.said.contains("the file belongs to user 65533"),
        "{told:?}"
    );
}

/// The kernel gives a traced program no privileges by its file. A batch says so, and runs it without them.
#[test]
fn set_user_program_of_a_batch_has_no_privileges_and_says_so() {
    let Some(neighbour) = Neighbour::new() else {
        return;
    };
    let program = neighbour.plant_copy(Who::Neighbour, "ids", 0o755, "/usr/bin/id");
    // The change of the owner has removed this bit.
    fs::set_permissions(&program, Permissions::from_mode(0o4755)).expect("root may");
    let program = program.to_str().expect("a plain path");
    let args = [
        "run",
        "--batch",
        "--no-report",
        "-n",
        "1",
        "--",
        program,
        "-u",
    ];
    let told = Outcome::of(&mut neighbour.sdm(Who::User, args));
    let [user, owner] = [Who::User, Who::Neighbour].map(Who::uid);
    told.expect(0, &format!("[0] {user}\n"));
    let refused = format!("ids is set-user-ID {owner}, but runs as user {user}: a traced program");
    told.expect(0, &refused);
}
