//! `sdm doctor` on a faulty system. Each fault is planted for real, as far as an ordinary user can, and must be
//! found with its remedy. Faults of kernel settings are planted in namespaces, where a test may mount files over
//! the kernel's.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};

use sdm_doctor::Check;
use sdm_tests::doctor::{assert_found, bad, unknown};
use sdm_tests::fixture::Compiler;
use sdm_tests::job::Folder;
use sdm_tests::place::{Place, script};
use sdm_tests::sdm::{Done, Sdm};
use sdm_tests::{binaries, ordinary, parts, processes};

/// Namespaces of a test's own, in which it is root.
pub(super) const OWN: [&str; 8] = [
    "unshare",
    "--user",
    "--map-root-user",
    "--mount",
    "--pid",
    "--fork",
    "--mount-proc",
    "--kill-child",
];

/// Runs `sdm doctor --json` after a script in namespaces of its own; `None`, with a message, where namespaces are not
/// allowed.
fn in_namespaces(place: &Place, more: &[&str], planting: &str) -> Option<Done> {
    let prefix = [&OWN[..], more].concat();
    let output = Command::new(prefix[0])
        .args(&prefix[1..])
        .args(["sh", "-ec", planting])
        .output()
        .expect("unshare is there");
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr).into_owned();
        println!(
            "SKIP: this machine lets an ordinary user plant no such fault: {}",
            why.trim()
        );
        return None;
    }
    let line = format!("{planting}\nexec setpriv --bounding-set=-sys_ptrace \"$0\" \"$@\"");
    let prefix = [&prefix[..], &["sh", "-ec", &line]].concat();
    Some(
        Sdm::wrapped(&prefix, place, "doctor")
            .args(["--json"])
            .finish(),
    )
}

#[test]
fn kernel_restrictions_are_found() {
    let place = Place::new();
    let scope = |value: u32| {
        format!(
            "mount -t tmpfs none /proc/sys/kernel; mkdir /proc/sys/kernel/yama; \
             echo {value} >/proc/sys/kernel/yama/ptrace_scope"
        )
    };
    let check = Check::PtraceScope;
    let hidden = "mount -t proc -o hidepid=2 proc /proc".to_owned();
    let cases = [
        (
            scope(1),
            bad(check, "is 1: `sdm attach`", "ask root to set it to 0"),
        ),
        (scope(2), bad(check, "only root", "ask root to set it to 0")),
        (scope(3), bad(check, "no process can be debugged", "reboot")),
        (
            hidden,
            unknown(Check::Hidepid, "hidepid=", "its owner or root must run sdm"),
        ),
    ];
    for (planting, expected) in cases {
        if let Some(done) = in_namespaces(&place, &[], &planting) {
            assert_found(&done, &expected);
        }
    }
}

#[test]
fn forbidden_stack_sampling_is_found() {
    let place = Place::new();
    let restricted = place.compile("restricted", Compiler::C);
    let prefix = [restricted.to_str().expect("text"), "2"];
    let done = Sdm::wrapped(&prefix, &place, "doctor").args(["--json"]);
    let forbidden = "stacks cannot be read without gdb: ptrace: Operation not permitted";
    let expected = bad(Check::Looks, forbidden, "allow ptrace and process_vm_readv");
    assert_found(&done.finish(), &expected);
}

#[test]
fn too_little_memory_is_found() {
    let place = Place::new();
    let info = place.path().join("meminfo");
    fs::write(&info, "MemTotal: 9999 kB\nMemAvailable:    2048 kB\n").expect("there is room");
    let planting = format!("mount --bind {} /proc/meminfo", info.display());
    if let Some(done) = in_namespaces(&place, &[], &planting) {
        assert_found(
            &done,
            &bad(Check::Memory, "2 MiB of memory are available", "--ranks"),
        );
    }
}

#[test]
fn firewall_of_the_own_address_is_found() {
    let place = Place::new();
    let planting = "PATH=$PATH:/usr/sbin:/sbin; ip link set lo up; ip link add d0 type veth peer name d1; \
                    ip address add 10.9.9.9/24 dev d0; ip link set d0 up; ip link set d1 up; nft add table inet t; \
                    nft 'add chain inet t i { type filter hook input priority 0; }'; \
                    nft add rule inet t i ip daddr 10.9.9.9 reject";
    if let Some(done) = in_namespaces(&place, &["--net"], planting) {
        let said = "this machine cannot connect to its own address 10.9.9.9:";
        assert_found(&done, &bad(Check::Ports, said, "--port FIRST-LAST"));
    }
}

#[test]
fn occupied_port_range_is_found() {
    let place = Place::new();
    let taken = TcpListener::bind("0.0.0.0:0").expect("a port");
    let port = taken.local_addr().expect("it is bound").port();
    let done = Sdm::new(&place, "doctor")
        .args(["--json", "--port", &format!("{port}-{port}")])
        .finish();
    let said = format!("no free port among 1 from {port} on");
    assert_found(&done, &bad(Check::Ports, &said, "--port FIRST-LAST"));
    let done = Sdm::new(&place, "doctor")
        .args(["--json", "--interface", "nosuch0"])
        .finish();
    assert_found(
        &done,
        &bad(
            Check::Ports,
            "--interface matches no address of this host",
            "--interface",
        ),
    );
}

/// Without any process to spare, doctor reports that instead of failing itself.
#[test]
fn too_few_processes_are_found() {
    let place = Place::new();
    let done = Sdm::wrapped(&["prlimit", "--nproc=1"], &place, "doctor")
        .args(["--json"])
        .finish();
    if nix::unistd::geteuid().is_root() {
        println!("SKIP: root may have as many processes as it likes");
        return;
    }
    assert_found(
        &done,
        &bad(
            Check::Processes,
            "ulimit -u is 1",
            "ask root to raise the limit",
        ),
    );
}

#[test]
fn missing_gdb_features_are_found() {
    let place = Place::new();
    let done = |gdb: &Path, path: &str| {
        let sdm = Sdm::new(&place, "doctor")
            .args(["--json", "--gdb"])
            .args([gdb]);
        sdm.env("PATH", path).finish()
    };
    let path = std::env::var("PATH").expect("a path");
    // As `gdb-minimal`, which knows the word and refuses it.
    let line = "for it do shift; case $it in python*) it='python-interactive nosuch'; esac; set -- \"$@\" \"$it\"; done\n\
                exec gdb \"$@\"";
    let bare = script(place.path(), "bare-gdb", line);
    assert_found(
        &done(&bare, &path),
        &bad(Check::GdbPython, "has no Python", "gdb-minimal"),
    );
    if let Some(deaf) = parts::crippled_gdb(&place, &["--deaf"]) {
        let found = done(&deaf, &path);
        let report = &found.out;
        // A script around gdb may pass on the fault that its environment sets.
        assert!(report.contains("cannot write"), "{found}");
    }
    // The process on which gdb is tried is not dumpable.
    let folder = Folder::new("shut");
    let shut = folder.compile(Compiler::C, "undumpable");
    fs::copy(&shut, place.path().join("cat")).expect("a copy");
    let found = done(
        Path::new("gdb"),
        &format!("{}:{path}", place.path().display()),
    );
    assert_found(
        &found,
        &bad(Check::Attach, "ptrace", "see the check `ptrace-scope`"),
    );
}

/// An installation with a program of another version, and with some that are absent.
#[test]
fn mismatched_sdm_programs_are_found() {
    let place = Place::new();
    let folder = place.path().join("bin");
    fs::create_dir(&folder).expect("there is room");
    let own = |name: &str| {
        fs::copy(binaries::folder().join(name), folder.join(name)).expect("a copy");
    };
    let doctor = || {
        let mut command = sdm_tests::sdm::command(&place, folder.join("sdm"));
        let output = command
            .args(["doctor", "--json"])
            .output()
            .expect("it runs");
        let [out, err] =
            [output.stdout, output.stderr].map(|it| String::from_utf8_lossy(&it).into_owned());
        let code = output.status.code();
        Done { code, out, err }
    };
    own("sdm");
    let done = doctor();
    assert_found(
        &done,
        &bad(
            Check::Programs,
            "sdm-master was found neither in the folder of sdm nor on PATH",
            "one folder",
        ),
    );
    assert_found(
        &done,
        &unknown(
            Check::Pmix,
            "sdm-pmix is not installed",
            "install it in the folder of sdm",
        ),
    );
    own("sdm-master");
    script(&folder, "sdm-server", "echo sdm-server 0.0.9");
    let said = "reports 'sdm-server 0.0.9'";
    assert_found(
        &doctor(),
        &bad(Check::Programs, said, "one version into one folder"),
    );
    script(
        &folder,
        "sdm-server",
        "echo 'Exec format error' >&2; exit 126",
    );
    assert_found(
        &doctor(),
        &bad(Check::Programs, "Exec format error", "one version"),
    );
}

#[test]
fn failing_ssh_is_found() {
    let place = Place::new();
    let path = std::env::var("PATH").expect("a path");
    let doctor = || {
        let sdm = Sdm::new(&place, "doctor").args(["--json"]);
        sdm.env("PATH", format!("{}:{path}", place.path().display()))
    };
    // The real ssh, and a host that does not exist.
    if Command::new("ssh").arg("-V").output().is_ok() {
        let done = doctor().args(["--host", "nosuch.invalid"]).finish();
        assert_found(
            &done,
            &bad(
                Check::Ssh,
                "ssh cannot connect to the host",
                "check the spelling of the host name",
            ),
        );
    }
    script(
        place.path(),
        "ssh",
        "echo 'OpenSSL version mismatch' >&2; exit 255",
    );
    let done = doctor().args(["--host", "node7"]).finish();
    assert_found(
        &done,
        &bad(
            Check::Ssh,
            "OpenSSL version mismatch",
            "another one first on PATH",
        ),
    );
    assert_found(
        &done,
        &bad(
            Check::Ssh,
            "ssh cannot connect to the host: OpenSSL",
            "check the host",
        ),
    );
    // ssh reaches the host, where SDM is not installed.
    script(
        place.path(),
        "ssh",
        "echo 'sh: 1: sdm-server: not found' >&2; exit 127",
    );
    let done = doctor().args(["--host", "node7"]).finish();
    assert_found(
        &done,
        &bad(Check::Server, "does not run on the host", "--server-path"),
    );
}

#[test]
fn missing_cluster_and_slurm_are_found() {
    let place = Place::new();
    let path = std::env::var("PATH").expect("a path");
    script(place.path(), "srun", "exit 1");
    script(
        place.path(),
        "scontrol",
        "echo 'Slurmctld(primary) at head is DOWN'",
    );
    let done = Sdm::new(&place, "doctor")
        .args(["--json", "--cluster", "nosuch"])
        .env("PATH", format!("{}:{path}", place.path().display()))
        .finish();
    assert_found(
        &done,
        &bad(Check::Slurm, "is DOWN", "ask your administrator"),
    );
    assert_found(&done, &bad(Check::Cluster, "nosuch", "`sdm cluster list`"));
    // Only half of Slurm.
    fs::remove_file(place.path().join("scontrol")).expect("it is ours");
    let done = Sdm::new(&place, "doctor")
        .args(["--json"])
        .env("PATH", place.path())
        .finish();
    assert_found(
        &done,
        &unknown(Check::Slurm, "scontrol was not", "Slurm's other commands"),
    );
}

#[test]
fn another_debugger_is_found() {
    let place = Place::new();
    // Processes in a place must have ended when a command ends; this one runs on, so it is elsewhere.
    let folder = Folder::new("traced");
    let program = folder.compile(Compiler::C, "loop");
    let mut loops = Command::new(&program);
    let mut loops = ordinary::lower(&mut loops)
        .stdout(Stdio::null())
        .spawn()
        .expect("it runs");
    let pid = loops.id();
    let mut gdb = Command::new("gdb");
    let gdb = ordinary::lower(gdb.args(["-nx", "-q", "-p", &pid.to_string()]));
    let mut gdb = gdb
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("there is a gdb");
    processes::wait_state(pid, "t");
    let done = Sdm::new(&place, "doctor")
        .args(["--json", &pid.to_string()])
        .finish();
    assert_found(
        &done,
        &bad(Check::Target, "traced", "end the other debugger"),
    );
    drop(gdb.stdin.take());
    gdb.wait().expect("it ends");
    loops.kill().expect("it runs");
    loops.wait().expect("it ends");
}

/// The error of a failed start or attach names the check that explains it.
#[test]
fn failed_start_and_attach_name_their_check() {
    let place = Place::new();
    let program = place.compile("work", Compiler::C);
    let bare = place.path().join("nothing");
    fs::create_dir(&bare).expect("there is room");
    let fails = |prefix: &[&str], path: Option<&Path>, words: &[&str], check: &str| {
        let mut sdm = Sdm::behind(prefix, &place, 2).args(words);
        if let Some(path) = path {
            sdm = sdm.env("PATH", path);
        }
        let done = sdm.lines(&["quit"]).program(&program, &[]).finish();
        let said = format!("{}{}", done.out, done.err);
        assert!(done.code != Some(0), "{words:?}: {done}");
        let named = said
            .lines()
            .any(|it| it.contains("sdm doctor") && it.trim_end().ends_with(check));
        assert!(named, "{words:?} do not name {check}: {done}");
    };
    let as_ever: &[&str] = &["/usr/bin/env"];
    fails(
        as_ever,
        Some(&bare),
        &["--launcher", "mpirun"],
        "checks this (mpi)",
    );
    fails(
        as_ever,
        Some(&bare),
        &["--launcher", "srun"],
        "checks this (slurm)",
    );
    fails(
        as_ever,
        Some(&bare),
        &["--launcher", "ssh", "--host", "node7,node8"],
        "checks this (ssh)",
    );
    fails(as_ever, None, &["--gdb", "/nosuch/gdb"], "(gdb)");
    let old = script(
        place.path(),
        "old-gdb",
        "gdb \"$@\" | sed -u 's/^~\"GNU gdb .*/~\"GNU gdb (GDB) 7.6\\\\n\"/'",
    );
    fails(
        as_ever,
        None,
        &["--gdb", &old.to_string_lossy()],
        "checks this (gdb)",
    );
    let few = ["/bin/sh", "-c", "ulimit -n 30; exec \"$0\" \"$@\""];
    fails(&few, None, &[], "checks this (descriptors)");
    // No check explains a process that is not there.
    let done = Sdm::new(&place, "stacks").args(["999999999"]).finish();
    assert!(done.err.contains("no such process"), "{done}");
    assert!(!done.err.contains("sdm doctor"), "{done}");
}

/// The page names every check, and the tests that plant its faults.
#[test]
fn doctor_page_lists_every_check() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |name: &str| fs::read_to_string(folder.join(name)).expect("it is there");
    let page = read("../docs/doctor.md");
    for check in Check::ALL {
        let row = format!("\n| `{}` | ", check.name());
        assert_eq!(page.matches(&row).count(), 1, "{row}");
    }
    let tests = [
        "sessions/doctor.rs",
        "sessions/doctor_faults.rs",
        "sessions/containers.rs",
        "sessions/killed_together.rs",
        "privileged/ssh/doctor.rs",
        "privileged/slurm.rs",
    ];
    let tests = tests.map(|it| read(&format!("tests/{it}"))).concat();
    let rows = page.split("| test |\n").nth(1).expect("there is a table");
    let rows = rows.lines().skip(1).take_while(|row| row.starts_with('|'));
    let named = rows.filter_map(|row| row.trim_end_matches(" |").rsplit(" | ").next());
    let mut count = 0;
    for name in named.flat_map(|names| names.split(", ")) {
        let function = format!("fn {}(", name.trim_matches('`'));
        assert!(tests.contains(&function), "{function}");
        count += 1;
    }
    assert!(count > 20, "{count}");
}
