//! A program sees the same under SDM as without, except for the differences that docs/guide.md lists under
//! "What differs for the program". A change of a list here needs the same change there.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use nix::sys::signal::Signal;
use sdm_tests::place::{Compiler, Place};
use sdm_tests::sdm::{Sdm, command};

/// Unusual inherited attributes: limits, umask, priority, signals ignored and blocked, a
/// descriptor. The session is a new one, so that the terminal of the test's own caller has no effect.
const INHERITED: &str = "ulimit -Sn 700; ulimit -c 0; umask 027; exec 7</dev/null; \
                         exec setsid -w nice -n 1 env --ignore-signal=HUP,USR2,QUIT \
                         --block-signal=USR1,TERM \"$@\"";

/// Signals 32 and 33 as bits of a mask. The C library of a program's parent sets their state, as the guide says.
const RESERVED: u64 = 0b11 << 31;

/// The program's view of its attributes: facts by name.
type Seen = BTreeMap<String, String>;

fn read(place: &Place, prefix: &str, rank: u32) -> Seen {
    let path = place.path().join(format!("{prefix}.{rank}"));
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    text.lines().map(fact).collect()
}

fn fact(line: &str) -> (String, String) {
    if let Some((name, value)) = line
        .strip_prefix("env ")
        .and_then(|variable| variable.split_once('='))
    {
        return (format!("env {name}"), value.to_owned());
    }
    let (name, value) = line.split_once(' ').expect("a name and a value");
    if !matches!(name, "SigBlk" | "SigIgn") {
        return (name.to_owned(), value.to_owned());
    }
    let mask = u64::from_str_radix(value.trim(), 16).expect("a mask");
    (name.to_owned(), format!("{:x}", mask & !RESERVED))
}

/// Runs the program without SDM, under the given launcher.
fn directly(place: &Place, prefix: &str, launcher: &[&str]) {
    let mut command = command(place, "sh");
    command.env_remove("SDM_XSTATE");
    command.args(["-c", INHERITED, "sh"]).args(launcher);
    command.args(["./sees", prefix]);
    let done = command.output().expect("sh runs");
    assert!(done.status.success(), "{launcher:?}: {done:?}");
}

/// `name: without -> with` for each fact that differs, but for those that differ between any two
/// runs.
fn differences(place: &Place, rank: u32) -> BTreeSet<String> {
    let [once, again, with] = ["once", "again", "with"].map(|prefix| read(place, prefix, rank));
    let of = |seen: &Seen, name: &str| seen.get(name).cloned().unwrap_or_else(|| "-".to_owned());
    let names: BTreeSet<_> = once.keys().chain(again.keys()).chain(with.keys()).collect();
    let steady = names
        .into_iter()
        .filter(|name| of(&once, name) == of(&again, name));
    steady
        .filter(|name| of(&once, name) != of(&with, name))
        .map(|name| format!("{name}: {} -> {}", of(&once, name), of(&with, name)))
        .collect()
}

/// Runs the program with and without SDM, and checks the differences on the last rank. `expect` has those beyond
/// the usual ones.
fn check(launcher: &str, direct: &[&str], rank: u32, parent: &str, expect: &[&str]) -> Seen {
    let place = Place::new();
    let program = place.compile("sees", Compiler::C);
    directly(&place, "once", direct);
    directly(&place, "again", direct);
    let _done = Sdm::behind(&["sh", "-c", INHERITED, "sh"], &place, rank + 1)
        .args(["--launcher", launcher])
        .lines(&["continue"])
        .program("./sees".as_ref(), &["with"])
        .finish()
        .code(0);
    let mut expected = BTreeSet::from([
        format!("argv0: ./sees -> {}", program.display()),
        format!("parent: {parent} -> gdb"),
        "randomised: 1 -> 0".to_owned(),
    ]);
    expected.extend(expect.iter().map(|&line| line.to_owned()));
    assert_eq!(differences(&place, rank), expected, "under {launcher}");
    let seen = read(&place, "with", rank);
    assert_eq!(seen["controlling-terminal"], "0");
    seen
}

#[test]
fn program_run_locally_sees_only_the_documented_differences() {
    let own = fs::read_to_string("/proc/self/comm").expect("the test's own name");
    let seen = check(
        "local",
        &[],
        0,
        own.trim_end(),
        &[
            "fd0: device -> pipe",
            "fd1: pipe -> terminal device",
            "own-session: 1 -> 0",
            "parents-session: 0 -> 1",
        ],
    );
    // The inherited attributes did reach `sdm`; other launchers change them.
    let mask = |name: &str| u64::from_str_radix(&seen[name], 16).expect("a mask");
    let bit = |signal: Signal| 1 << (signal as u64 - 1);
    let ignored = bit(Signal::SIGHUP) | bit(Signal::SIGUSR2) | bit(Signal::SIGQUIT);
    assert_eq!(mask("SigIgn") & ignored, ignored);
    let blocked = bit(Signal::SIGUSR1) | bit(Signal::SIGTERM);
    assert_eq!(mask("SigBlk") & blocked, blocked);
    assert_eq!(seen["limit7"].split(' ').next(), Some("700"));
    assert_eq!(seen["fd7"], "device");
}

#[test]
fn program_under_mpirun_sees_only_the_documented_differences() {
    let direct = ["mpirun.openmpi", "--oversubscribe", "-n", "2"];
    let mut expect = vec!["env OMPI_COMMAND: sees -> sdm-server"];
    if nix::unistd::geteuid().is_root() {
        expect.extend([
            "env PRTE_ALLOW_RUN_AS_ROOT: - -> 1",
            "env PRTE_ALLOW_RUN_AS_ROOT_CONFIRM: - -> 1",
        ]);
    }
    let _seen = check("mpirun", &direct, 1, "mpirun.openmpi", &expect);
}

#[test]
fn program_under_mpiexec_sees_only_the_documented_differences() {
    let _seen = check(
        "mpiexec",
        &["mpiexec.hydra", "-n", "2"],
        1,
        "hydra_pmi_proxy",
        &[
            "fd0: pipe -> device",
            "fd1: pipe -> terminal device",
            "own-session: 1 -> 0",
            "parents-session: 0 -> 1",
        ],
    );
}
