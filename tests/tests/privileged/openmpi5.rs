//! Open MPI 5 on several hosts.

use std::process::Command;

use sdm_tests::job::{Folder, HeldJob, look, running};
use sdm_tests::parts::{self, Part};
use sdm_tests::place::{Compiler, Place};
use sdm_tests::sdm::Sdm;

use super::ssh::CONFIG;

#[test]
fn a_job_on_several_hosts_is_found_through_its_pmix_server() {
    let Some(mpi) = parts::openmpi5() else {
        return;
    };
    let Some(_hosts) = Part::hosts() else { return };
    let place = Place::new();
    let folder = Folder::new("prterun-hosts");
    let program = folder.compile(Compiler::OpenMpi5, "mpi_held");
    let mut mpirun = Command::new(mpi.join("bin/mpirun"));
    let net = "10.77.0.0/24";
    mpirun.args(["--prtemca", "plm_ssh_agent", &format!("ssh -F {CONFIG}")]);
    mpirun.args(["--prtemca", "prte_if_include", net, "--prefix"]);
    mpirun.arg(&mpi).args(["--mca", "pml", "ob1"]);
    mpirun.args([
        "--mca",
        "btl",
        "self,tcp",
        "--mca",
        "btl_tcp_if_include",
        net,
    ]);
    mpirun.args(["--host", "10.77.0.1:2,10.77.0.2:2", "-n", "4"]);
    let job = HeldJob::start(mpirun, &folder, &program, 4);
    let ranks = running(&program);
    let looks = || ranks.iter().map(|pid| look(*pid)).collect::<Vec<_>>();
    let before = looks();
    let starter = job.starter().to_string();
    let options = ["--launcher-option", "-F", "--launcher-option", CONFIG];
    let sdm = |verb| Sdm::new(&place, verb).args(options);
    let done = sdm("stacks").args([&starter]).finish().code(1);
    assert!(done.out.contains("ranks 0,2-3 (3): main ()"), "{done}");
    assert!(done.out.contains("rank 1: main ()"), "{done}");
    // Its gdbs on the hosts may take longer to let go than `sdm` waits for them.
    assert_eq!(looks(), before);
    let none = sdm("stacks").args(["pmix:nobodys@1"]).finish().code(2);
    let (_, known) = none.err.split_once("(known: ").expect("it lists them");
    // Others may be known, or not be asked.
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
    assert_eq!(looks(), before);
    // More than one tool would keep it from ending.
    job.finish();
}
