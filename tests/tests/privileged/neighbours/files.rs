//! Files at places where others can write: links, FIFOs and files of theirs.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use nix::sys::stat::Mode;
use sdm_tests::neighbour::{Neighbour, Outcome, Who};

/// How far behind this process's pid the next ones are, at most, on a busy machine.
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
fn a_report_follows_no_link_and_is_the_users_alone() {
    let Some(neighbour) = Neighbour::new() else {
        return;
    };
    // Without the sticky bit the kernel protects nobody from links.
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
fn a_report_is_not_written_over_what_is_anothers() {
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
        "write {}: is a FIFO of user 65533's, not a file",
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

/// Whoever opens one waits until somebody writes to it.
#[test]
fn a_fifo_in_the_place_of_a_file_keeps_nobody() {
    let Some(neighbour) = Neighbour::new() else {
        return;
    };
    let path = neighbour.home(Who::Neighbour).join("fifo");
    fifo(&neighbour, &path);
    let fifo = path.to_str().expect("a plain name");
    let said = "is a FIFO of user 65533's, not a file";
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
    assert!(told.said.contains("it is no file"), "{told:?}");
}

#[test]
fn a_key_of_another_users_is_none() {
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
    assert!(told.said.contains("it belongs to user 65533"), "{told:?}");
}
