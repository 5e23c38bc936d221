//! Sessions whose processes are started by hand or by a site's own launcher, and the choice of
//! a launcher where none is named.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use sdm_tests::place::{Compiler, MARK_VARIABLE, Place, script};
use sdm_tests::sdm::Sdm;

#[test]
fn printed_commands_start_a_session() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    let sdm = Sdm::run(&place, 3)
        .args(["--launcher", "manual", "--port", "23400"])
        .env("XDG_RUNTIME_DIR", place.runtime())
        .lines(&["break twice", "continue", "print number"])
        .program(&work, &[])
        .spawn();
    let said = sdm.err.wait(0, "--id 2 --port 23402");
    let commands: Vec<&str> = said
        .lines()
        .map(str::trim_start)
        .filter(|line| line.contains("--handover"))
        .collect();
    let commands = &commands[commands.len() - 4..];
    let key = commands[0].split(' ').nth(2).expect("its file");
    let mode = fs::metadata(key).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "{key}");
    let mut started: Vec<Child> = Vec::new();
    for (index, line) in commands.iter().enumerate() {
        let mut command = Command::new("/bin/sh");
        // One server gets the key on its standard input.
        let line = match index {
            3 => format!("exec {} <{key}", line.replace(key, "-")),
            _ => format!("exec {line}"),
        };
        command
            .args(["-c", &line])
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        command.env(MARK_VARIABLE, place.mark());
        started.push(command.spawn().expect("a shell"));
    }
    let done = sdm.finish().code(0);
    done.expect_part(
        "continue",
        "ranks 0-2 (3): stopped at breakpoint 1, twice () at work.c:",
    );
    done.expect("print number", "ranks 0-2 (3): 0\n");
    for mut child in started {
        assert!(child.wait().expect("it ends").success());
    }
    assert!(!Path::new(key).exists(), "{key} stays");
}

/// No server is started: the missing ones are named, with the time waited.
#[test]
fn missing_servers_are_named_after_the_wait() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    let done = Sdm::run(&place, 2)
        .args(["--launcher", "manual", "--start-wait", "1"])
        .env("XDG_RUNTIME_DIR", place.runtime())
        .program(&work, &[])
        .finish()
        .code(124);
    let said = "neither sdm-master nor the sdm-servers of ranks 0-1 answered within 1s";
    assert!(done.err.contains(said), "{done}");
}

#[test]
fn site_specific_launcher_starts_a_session() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/sdm-launch-example");
    fs::copy(example, place.path().join("sdm-launch-ours")).expect("a copy");
    let path = std::env::var("PATH").expect("a path");
    let path = format!("{}:{path}", place.path().display());
    let run = || {
        Sdm::run(&place, 3)
            .env("PATH", &path)
            .args(["--launcher", "ours"])
    };
    let done = run()
        .lines(&["break twice", "continue", "print number"])
        .program(&work, &[])
        .finish()
        .code(0);
    done.expect("print number", "ranks 0-2 (3): 0\n");
    let done = run()
        .args(["--launcher-option", "--no-such-option"])
        .program(&work, &[])
        .finish()
        .code(124);
    assert!(
        done.err
            .contains("ours exited with code 2 before all servers"),
        "{done}"
    );
    assert!(
        done.err.contains("unknown option --no-such-option"),
        "{done}"
    );
    let unknown = Sdm::run(&place, 1)
        .args(["--launcher", "nobodys"])
        .program(&work, &[]);
    let done = unknown.finish().code(124);
    assert!(done.err.contains("launcher nobodys: unknown"), "{done}");
}

/// Stand-ins for the launch commands of four sites, with the options in each command's manual. None passes on its
/// caller's environment where the real command does not.
const STAND_INS: [(&str, &str); 4] = [
    (
        "flux",
        r#"echo "flux $*" >>"$LOG"
case $1 in
submit)
    shift
    count= directory=
    while :; do
        case $1 in
        --ntasks=*) count=${1#*=} ;;
        --cwd=*) directory=${1#*=} ;;
        --requires=host:a,b) ;;
        -*) echo "flux-submit: unrecognized arguments: $1" >&2; exit 1 ;;
        *) break ;;
        esac
        shift
    done
    printf '%s\n' "$count" "$directory" "$1" >"$JOBS/f1"
    echo f1 ;;
job)
    [ "$2 $3" = "attach f1" ] || exit 1
    { read -r count; read -r directory; read -r program; } <"$JOBS/f1"
    cd "$directory"
    rank=0
    while [ "$rank" -lt "$count" ]; do
        FLUX_TASK_RANK=$rank FLUX_TASK_LOCAL_ID=$rank "$program" &
        echo $! >>"$JOBS/f1.pids"
        rank=$((rank + 1))
    done
    wait ;;
cancel) [ "$2" = f1 ] && kill $(cat "$JOBS/f1.pids") ;;
esac"#,
    ),
    (
        "pbs_tmrsh",
        r#"echo "pbs_tmrsh $*" >>"$LOG"
host=$1
shift
cd / && exec env -i HOME="$HOME" PATH="$PATH" SDM_TEST_PLACE="$SDM_TEST_PLACE" PBS_HOST="$host" "$@""#,
    ),
    (
        "blaunch",
        r#"echo "blaunch $*" >>"$LOG"
[ "$1" = -no-shell ] || exit 1
host=$2
shift 2
cd / && exec env -i HOME="$HOME" PATH="$PATH" SDM_TEST_PLACE="$SDM_TEST_PLACE" LSB_HOST="$host" "$@""#,
    ),
    (
        "mpiexec",
        r#"echo "mpiexec $*" >>"$LOG"
[ "$1" = -n ] || exit 1
count=$2
shift 2
[ "$1" != --hosts ] || shift 2
rank=0
while [ "$rank" -lt "$count" ]; do
    PALS_RANKID=$rank PALS_LOCAL_RANKID=$rank "$@" &
    rank=$((rank + 1))
done
wait"#,
    ),
];

#[test]
fn site_launchers_for_flux_pbs_lsf_and_pals_start_sessions() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    let (tools, home) = (place.path().join("tools"), place.path().join("home"));
    fs::create_dir(&tools).expect("a folder");
    fs::create_dir(&home).expect("a folder");
    for (name, text) in STAND_INS {
        script(&tools, name, text);
    }
    let site = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/sdm-launch-site");
    let slots = place.path().join("slots");
    fs::write(&slots, "a\na\nb\n").expect("a file");
    let path = format!(
        "{}:{}",
        tools.display(),
        std::env::var("PATH").expect("a path")
    );
    for (name, begins) in [
        ("flux", "flux submit --ntasks=4 --cwd="),
        ("pbs", "pbs_tmrsh a "),
        ("lsf", "blaunch -no-shell a "),
        ("pals", "mpiexec -n 4 --hosts a,b "),
    ] {
        fs::copy(&site, tools.join(format!("sdm-launch-{name}"))).expect("a copy");
        let log = place.path().join(format!("{name}.log"));
        let hosts: &[&str] = match name {
            "flux" | "pals" => &["--host", "a,b"],
            _ => &[],
        };
        let done = Sdm::run(&place, 4)
            .env("PATH", &path)
            .env("HOME", &home)
            .env("JOBS", place.path())
            .env("LOG", &log)
            .env("PBS_NODEFILE", &slots)
            .env("LSB_DJOB_HOSTFILE", &slots)
            .args(["--launcher", name, "--tasks-per-server", "2"])
            .args(hosts)
            .lines(&["break twice", "continue", "print number"])
            .program(&work, &[])
            .finish()
            .code(0);
        done.expect("print number", "ranks 0-3 (4): 0\n");
        let said = fs::read_to_string(&log).expect("it was started");
        assert_eq!(
            said.contains("--requires=host:a,b "),
            name == "flux",
            "{said}"
        );
        assert!(said.contains(begins), "{name}: {said}");
        assert!(!said.contains("SDM_KEY"), "{name}: {said}");
        if ["pbs", "lsf"].contains(&name) {
            let on_b = said.lines().filter(|line| line.contains(" b ")).count();
            assert_eq!((said.lines().count(), on_b), (4, 1), "{name}: {said}");
        }
        let left: Vec<_> = fs::read_dir(&home)
            .expect("it is there")
            .flatten()
            .collect();
        assert!(left.is_empty(), "{name}: {left:?}");
    }
    let done = Sdm::run(&place, 2)
        .env("PATH", &path)
        .env("HOME", &home)
        .without("PBS_NODEFILE")
        .args(["--launcher", "pbs"])
        .program(&work, &[])
        .finish()
        .code(124);
    assert!(done.err.contains("pbs: not within a job"), "{done}");
}

#[test]
fn sdm_chooses_the_launcher_of_the_linked_mpi() {
    for (compiler, said) in [
        (Compiler::OpenMpi, "[launcher] mpirun, because "),
        (Compiler::Mpich, "[launcher] mpiexec, because "),
    ] {
        let place = Place::new();
        let sum = place.compile("mpi_sum", compiler);
        let done = Sdm::run(&place, 2)
            .lines(&["break add_up", "continue", "print contribution"])
            .program(&sum, &[])
            .finish()
            .code(0);
        assert!(done.err.contains(said), "{done}");
        done.expect("print contribution", "rank 0: 1\nrank 1: 2\n");
    }
}
