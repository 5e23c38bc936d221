//! Open MPI 5 on several hosts.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use sdm_tests::control;
use sdm_tests::job::{Folder, HeldJob, look, look_after_kill, running};
use sdm_tests::parts::{self, Part};
use sdm_tests::place::{Compiler, Place};
use sdm_tests::sdm::Sdm;

use super::ssh::CONFIG;

const _: () = sdm_tests::run::test_group("hosts", "hosts in namespaces, with one sshd each");

const HOSTS: &str = "10.77.0.1:2,10.77.0.2:2";

/// Options by which `mpirun` reaches the hosts.
fn reaching_hosts(mpi: &Path) -> Vec<String> {
    let net = "10.77.0.0/24";
    let agent = format!("ssh -F {CONFIG}");
    let prefix = mpi.to_string_lossy();
    let words: [&str; 16] = [
        "--prtemca",
        "plm_ssh_agent",
        &agent,
        "--prtemca",
        "prte_if_include",
        net,
        "--prefix",
        &prefix,
        "--mca",
        "pml",
        "ob1",
        "--mca",
        "btl",
        "self,tcp",
        "--mca",
        "btl_tcp_if_include",
    ];
    words.into_iter().chain([net]).map(str::to_owned).collect()
}

/// Ranks that `prterun`'s daemons hold on other hosts are attached to there, before their first instruction.
#[test]
fn ranks_are_held_on_all_hosts_until_attach() {
    let Some(mpi) = parts::openmpi5() else {
        return;
    };
    let Some(_hosts) = Part::hosts() else { return };
    let place = Place::new();
    // Acts as a user's own ~/.ssh/config, for the servers that are started on the ranks' hosts.
    let ssh = place.path().join("ssh");
    fs::write(
        &ssh,
        format!("#!/bin/sh\nexec /usr/bin/ssh -F {CONFIG} \"$@\"\n"),
    )
    .expect("a file");
    fs::set_permissions(&ssh, fs::Permissions::from_mode(0o755)).expect("it is ours");
    let path = std::env::var("PATH").expect("a path");
    let path = format!("{}:{path}", place.path().display());
    let mpirun = mpi.join("bin/mpirun").to_string_lossy().into_owned();
    let sdm = |count| {
        Sdm::run(&place, count)
            .env("PATH", path.clone())
            .args(["--launcher", &mpirun, "--control", "pmix", "--host", HOSTS])
            .args(
                reaching_hosts(&mpi)
                    .iter()
                    .flat_map(|it| ["--launcher-option", it]),
            )
    };
    let sum = place.compile("mpi_sum", Compiler::OpenMpi5);
    let whose = r#"printf "%s\n", (char *) getenv("PMIX_HOSTNAME")"#;
    let to_main = ["tbreak main", "continue", whose];
    let done = control::four_ranks_add_up(sdm(4), &sum, &to_main);
    // Two ranks on either host, whichever name PRRTE has for it.
    for pair in ["ranks 0-1 (2): ", "ranks 2-3 (2): "] {
        done.expect_part(whose, pair);
    }
    control::held_ranks_end_well(&place, Compiler::OpenMpi5, &sdm);
}

#[test]
fn multi_host_job_is_found_through_its_pmix_server() {
    let Some(mpi) = parts::openmpi5() else {
        return;
    };
    let Some(_hosts) = Part::hosts() else { return };
    let place = Place::new();
    let folder = Folder::new("prterun-hosts");
    let program = folder.compile(Compiler::OpenMpi5, "mpi_held");
    let mut mpirun = Command::new(mpi.join("bin/mpirun"));
    mpirun.args(reaching_hosts(&mpi));
    mpirun.args(["--host", HOSTS, "-n", "4"]);
    let job = HeldJob::start(mpirun, &folder, &program, 4);
    let ranks = running(&program);
    let looks = || ranks.iter().map(|pid| look(*pid)).collect::<Vec<_>>();
    let looks_later = || {
        ranks
            .iter()
            .map(|pid| look_after_kill(*pid))
            .collect::<Vec<_>>()
    };
    let before = looks();
    let starter = job.starter().to_string();
    let options = ["--launcher-option", "-F", "--launcher-option", CONFIG];
    let sdm = |verb| Sdm::new(&place, verb).args(options);
    let done = sdm("stacks").args([&starter]).finish().code(1);
    assert!(done.out.contains("ranks 0,2-3 (3): main ()"), "{done}");
    assert!(done.out.contains("rank 1: main ()"), "{done}");
    // The gdbs on the hosts may take longer to detach than `sdm` waits for them.
    assert_eq!(looks_later(), before);
    let none = sdm("stacks").args(["pmix:nobodys@1"]).finish().code(2);
    let (_, known) = none.err.split_once("(known: ").expect("it lists them");
    // Other namespaces may be known, or their servers not queried.
    let own = format!("-{starter}@1");
    let namespace = known.split([',', ')']).map(str::trim);
    let namespace = namespace.into_iter().find(|name| name.ends_with(&own));
    let namespace = namespace.unwrap_or_else(|| panic!("{none}"));
    let done = sdm("attach")
        .args([&*format!("pmix:{namespace}"), "--ranks", "2-3"])
        .lines(&["print 1", "detach"])
        .finish()
        .code(0);
    done.expect("print 1", "ranks 2-3 (2): 1\n");
    assert_eq!(looks_later(), before);
    // More than one tool would keep it from ending.
    job.finish();
}
