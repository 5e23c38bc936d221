//! Jobs found in directories that look like `/proc`, with the environments of the recipes' launchers.

use super::processes::tests::Proc;
use super::*;

fn find(proc: &Proc, target: &str) -> Result<Job, JobError> {
    find_in(&proc.0, &target.parse().unwrap())
}

fn ranks(job: &Job) -> Vec<(u32, i32)> {
    job.processes.iter().map(|it| (it.rank, it.pid)).collect()
}

/// Pids beyond what Linux gives, so that no real process is asked for its memory.
const BASE: i32 = 1 << 23;

#[test]
fn hydra_is_known_by_its_tree() {
    let proc = Proc::new("hydra");
    let [starter, proxy] = [BASE, BASE + 1];
    proc.add(
        starter,
        1,
        "mpiexec.hydra -n 3 ./halo",
        "SLURM_PROCID=0 HOME=/",
    );
    proc.add(
        proxy,
        starter,
        "/usr/bin/hydra_pmi_proxy --x",
        "SLURM_PROCID=0",
    );
    for rank in 0..3 {
        let environment = format!("SLURM_PROCID=0 PMI_RANK={rank} PMI_SIZE=3");
        proc.add(BASE + 10 - rank, proxy, "./halo 7", &environment);
    }
    // What a rank starts is no rank.
    proc.add(
        BASE + 20,
        BASE + 10,
        "helper",
        "SLURM_PROCID=0 PMI_RANK=0 PMI_SIZE=3",
    );
    let job = find(&proc, &starter.to_string()).unwrap();
    assert_eq!(ranks(&job), [(0, BASE + 10), (1, BASE + 9), (2, BASE + 8)]);
    assert!(
        job.ranked && job.source.contains("below mpiexec.hydra"),
        "{job:?}"
    );
    assert_eq!(
        (&*job.processes[0].program, &job.incomplete),
        ("halo", &None)
    );
}

#[test]
fn ranks_that_run_elsewhere_are_missed() {
    let proc = Proc::new("elsewhere");
    proc.add(BASE, 1, "mpiexec.hydra -hosts a,b ./halo", "");
    proc.add(BASE + 1, BASE, "hydra_pmi_proxy", "");
    for rank in 0..2 {
        let environment = format!("PMI_RANK={rank} PMI_SIZE=5");
        proc.add(BASE + 2 + rank, BASE + 1, "./halo", &environment);
    }
    let job = find(&proc, &BASE.to_string()).unwrap();
    assert_eq!(ranks(&job), [(0, BASE + 2), (1, BASE + 3)]);
    let incomplete = job.incomplete.unwrap();
    assert!(
        incomplete.starts_with("3 of the 5 ranks run on other hosts"),
        "{incomplete}"
    );
    let error = find(&proc, "pmix:a@1").unwrap_err().to_string();
    assert!(
        error.starts_with("no PMIx server on this machine"),
        "{error}"
    );
}

#[test]
fn a_shell_around_a_rank_is_looked_through() {
    let proc = Proc::new("shell");
    proc.add(BASE, 1, "prterun -n 1 sh -c ./halo", "");
    proc.add(BASE + 1, BASE, "sh -c ./halo", "OMPI_COMM_WORLD_RANK=0");
    proc.add(BASE + 2, BASE + 1, "./halo", "OMPI_COMM_WORLD_RANK=0");
    let job = find(&proc, &BASE.to_string()).unwrap();
    assert_eq!(ranks(&job), [(0, BASE + 2)]);
}

#[test]
fn jobs_that_nobody_debugs_can_be_picked() {
    let proc = Proc::new("picked");
    proc.add(BASE, 1, "mpirun -n 2 ./halo 100", "");
    proc.add(BASE + 1, BASE, "./halo 100", "PMIX_RANK=0");
    proc.add(BASE + 2, 1, "sdm run -n 2 ./halo", "");
    proc.add(BASE + 3, BASE + 2, "mpirun -n 2 sdm-server", "");
    proc.add(BASE + 4, 1, "mpiexec -n 1 ./x", "");
    proc.add(BASE + 5, BASE + 4, "mpiexec.hydra -n 1 ./x", "");
    proc.add(BASE + 6, 1, "bash", "");
    let uid = nix::unistd::geteuid().as_raw();
    let found = super::attachable_in(&proc.0, uid).unwrap();
    let found: Vec<_> = found.iter().map(|it| (it.pid, it.line.as_str())).collect();
    assert_eq!(
        found,
        [
            (BASE, "mpirun -n 2 ./halo 100"),
            (BASE + 4, "mpiexec -n 1 ./x")
        ]
    );
}

#[test]
fn names_mean_programs_and_starters() {
    let proc = Proc::new("names");
    let own = i32::try_from(std::process::id()).unwrap();
    proc.add(BASE, 1, "bash -c sdm stacks halo", "");
    proc.add(own, BASE, "sdm stacks halo", "");
    proc.add(BASE + 2, 1, "mpirun -n 2 ./halo", "");
    proc.add(BASE + 4, BASE + 2, "./halo 100", "PMIX_RANK=0");
    proc.add(BASE + 3, BASE + 2, "/opt/bin/halo 100", "PMIX_RANK=1");
    proc.add_as(BASE + 5, BASE + 2, ('Z', "halo"), "./halo", "PMIX_RANK=2");
    proc.add(BASE + 6, 1, "python3 solver.py", "");
    proc.add(BASE + 7, 1, "orterun -n 1 ./x", "");
    proc.add(BASE + 8, 1, "orterun -n 1 ./x", "");
    let job = find(&proc, "halo").unwrap();
    assert_eq!(ranks(&job), [(0, BASE + 4), (1, BASE + 3)]);
    assert!(job.ranked);
    let job = find(&proc, "solver.py").unwrap();
    assert_eq!((ranks(&job), job.ranked), (vec![(0, BASE + 6)], false));
    let check = |target: &str, expect: &str| {
        let error = find(&proc, target).unwrap_err().to_string();
        assert!(error.contains(expect), "{target}: {error}");
    };
    // A part of a word means nobody: that takes in whoever happens to have it.
    check("olver", "no process of yours is called `olver`");
    proc.add(BASE + 9, 1, "vim /home/me/solver.py", "");
    check(
        "solver.py",
        &format!("{} (python3), {} (vim)", BASE + 6, BASE + 9),
    );
    let job = find(&proc, "mpirun").unwrap();
    assert_eq!(ranks(&job), [(0, BASE + 4), (1, BASE + 3)]);
    check("nothing", "no process of yours is called `nothing`");
    check(
        "orterun",
        &format!("which one: {} (orterun), {} (orterun)", BASE + 7, BASE + 8),
    );
    check(
        &(BASE + 7).to_string(),
        "orterun (pid 8388615) has started nothing",
    );
    check("8388999", "process 8388999: no such process");
    check(&format!("{},8388999", BASE + 6), "process 8388999: no such");
    let job = find(&proc, &format!("{},{}", BASE + 6, BASE + 3)).unwrap();
    assert_eq!(
        (ranks(&job), job.ranked),
        (vec![(0, BASE + 3), (1, BASE + 6)], false)
    );
}

#[test]
fn two_jobs_below_one_process_are_told_apart_by_the_user() {
    let proc = Proc::new("two");
    proc.add(BASE, 1, "bash run.sh", "");
    proc.add(BASE + 1, BASE, "halo", "PMI_RANK=0");
    proc.add(BASE + 2, BASE, "halo", "PMI_RANK=0");
    let error = find(&proc, &BASE.to_string()).unwrap_err().to_string();
    assert!(
        error.contains("two processes of rank 0, 8388609 and 8388610"),
        "{error}"
    );
    // By name they are pids: their ranks do not tell them apart.
    let job = find(&proc, "halo").unwrap();
    assert_eq!(
        (ranks(&job), job.ranked),
        (vec![(0, BASE + 1), (1, BASE + 2)], false)
    );
}

#[test]
fn what_a_table_calls_a_host_and_is_none_is_refused_with_job_and_rank() {
    let entry = |(rank, host): (u32, &str)| JobProcess {
        rank,
        host: host.to_owned(),
        program: "halo".to_owned(),
        pid: BASE,
    };
    let job = |host: &str| Job {
        source: "the process table of mpirun (pid 7)".to_owned(),
        processes: (0..).zip(["", "node1", host]).map(entry).collect(),
        ranked: true,
        slurm: None,
        incomplete: None,
    };
    assert!(check_hosts(&job("node2")).is_ok());
    let long = "n".repeat(256);
    for (host, expect) in [
        ("(null)", "host \"(null)\": no host name or address"),
        (
            "-oProxyCommand=x",
            "host \"-oProxyCommand=x\": no host name begins with a dash",
        ),
        ("a,b", "host \"a,b\": no host name or address"),
        (
            "a\nb\x1b[2J",
            "host \"a\\nb\\u{1b}[2J\": no host name or address",
        ),
        (&long, "nnn\"...: longer than any host name (255 bytes)"),
    ] {
        let error = check_hosts(&job(host)).unwrap_err().to_string();
        let begin = "the process table of mpirun (pid 7): rank 2: host \"";
        assert!(
            error.starts_with(begin) && error.ends_with(expect),
            "{error}"
        );
        assert!(error.len() < 200, "{error}");
    }
}
