//! Tests of the search for a job, in directories that look like `/proc`, with the environment variables that each
//! launcher sets.

use super::processes::tests::Proc;
use super::*;

fn find(proc: &Proc, target: &str) -> Result<Job, JobError> {
    find_in(&proc.0, &target.parse().unwrap())
}

fn ranks(job: &Job) -> Vec<(u32, i32)> {
    job.processes.iter().map(|it| (it.rank, it.pid)).collect()
}

/// Pids above Linux's maximum, so that the memory of no real process is read.
const BASE: i32 = 1 << 23;

#[test]
fn hydra_job_is_found_by_its_process_tree() {
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
    // A process that a rank starts is no rank.
    describe(&proc, BASE + 10, Some("libmpich.so.12"), 0);
    proc.add(
        BASE + 20,
        BASE + 10,
        "helper",
        "SLURM_PROCID=0 PMI_RANK=0 PMI_SIZE=3",
    );
    let job = find(&proc, &starter.to_string()).unwrap();
    assert_eq!(ranks(&job), [(0, BASE + 10), (1, BASE + 9), (2, BASE + 8)]);
    assert!(
        job.ranked && job.source.contains("descendant processes of mpiexec.hydra"),
        "{job:?}"
    );
    assert_eq!(
        (&*job.processes[0].program, &job.incomplete),
        ("halo", &None)
    );
}

#[test]
fn ranks_on_other_hosts_are_reported_missing() {
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
        error.starts_with("none of your PMIx servers on this machine"),
        "{error}"
    );
}

#[test]
fn shell_wrapper_of_a_rank_is_skipped() {
    let proc = Proc::new("shell");
    proc.add(BASE, 1, "prterun -n 1 sh -c ./halo", "");
    proc.add(BASE + 1, BASE, "sh -c ./halo", "OMPI_COMM_WORLD_RANK=0");
    proc.add(BASE + 2, BASE + 1, "./halo", "OMPI_COMM_WORLD_RANK=0");
    let job = find(&proc, &BASE.to_string()).unwrap();
    assert_eq!(ranks(&job), [(0, BASE + 2)]);
}

#[test]
fn only_jobs_without_a_debugger_are_attachable() {
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
fn process_name_selects_programs_and_launchers() {
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
    // A part of a word matches no process: unrelated ones could contain it.
    check("olver", "none of your processes has the name `olver`");
    proc.add(BASE + 9, 1, "vim /home/me/solver.py", "");
    check(
        "solver.py",
        &format!("{} (python3), {} (vim)", BASE + 6, BASE + 9),
    );
    let job = find(&proc, "mpirun").unwrap();
    assert_eq!(ranks(&job), [(0, BASE + 4), (1, BASE + 3)]);
    check("nothing", "none of your processes has the name `nothing`");
    check(
        "orterun",
        &format!(
            "give one pid: {} (orterun), {} (orterun)",
            BASE + 7,
            BASE + 8
        ),
    );
    check(
        &(BASE + 7).to_string(),
        "orterun (pid 8388615) has not started any process",
    );
    check("8388999", "process 8388999: no such process");
    let thread = proc.0.join("8388998");
    std::fs::create_dir(&thread).unwrap();
    let status = format!("Tgid:\t{}\n", BASE + 6);
    std::fs::write(thread.join("status"), status).unwrap();
    check(
        "8388998",
        "8388998 is a thread of python3 (pid 8388614): give that pid",
    );
    check(&format!("{},8388999", BASE + 6), "process 8388999: no such");
    let job = find(&proc, &format!("{},{}", BASE + 6, BASE + 3)).unwrap();
    assert_eq!(
        (ranks(&job), job.ranked),
        (vec![(0, BASE + 3), (1, BASE + 6)], false)
    );
    assert_eq!(
        job.notes,
        [
            "these processes are not ranks of one job and are listed by pid: mpirun (pid 8388610): ranks 1 (pid 8388611); \
          without a rank: pid 8388614"
        ]
    );
}

/// The variables of each supported launcher, for ranks 2 and 3 of a job.
#[test]
fn processes_by_pid_have_their_ranks_in_the_job() {
    for variables in [
        "OMPI_COMM_WORLD_RANK=R OMPI_COMM_WORLD_SIZE=4 PMIX_RANK=R PMIX_NAMESPACE=1@1",
        "OMPI_COMM_WORLD_RANK=R OMPI_COMM_WORLD_SIZE=4 OMPI_MCA_ess_base_jobid=71",
        "PMI_RANK=R PMI_SIZE=4 PMI_FD=9",
        "PMI_ID=R PMI_PORT=h:7",
        "PMI_RANK=R PMI_SIZE=4 PMI_JOBID=7 SLURM_STEP_ID=0 SLURM_PROCID=R",
        "PMIX_RANK=R PMIX_NAMESPACE=slurm.pmix.7.0 SLURM_PROCID=R",
        "SLURM_PROCID=R SLURM_NTASKS=4 SLURM_JOB_ID=7 SLURM_STEP_ID=1",
        "RANK=R WORLD_SIZE=4 TORCHELASTIC_RUN_ID=none",
    ] {
        let proc = Proc::new("pids");
        proc.add(BASE, 1, "starter", "");
        // Their pids are in another order than their ranks.
        for (rank, pid) in [(0, 4), (1, 3), (2, 2), (3, 1)] {
            let own = variables.replace("=R", &format!("={rank}"));
            proc.add(BASE + pid, BASE, "./halo", &own);
        }
        let job = find(&proc, &format!("{},{}", BASE + 1, BASE + 2)).unwrap();
        assert_eq!(ranks(&job), [(2, BASE + 2), (3, BASE + 1)], "{variables}");
        assert!(job.ranked && job.notes.is_empty(), "{job:?}");
        let job = find(&proc, &(BASE + 1).to_string()).unwrap();
        assert_eq!((ranks(&job), job.ranked), (vec![(3, BASE + 1)], true));
    }
}

#[test]
fn program_name_of_several_jobs_is_refused_with_their_pids() {
    for (first, second) in [("PMIX_NAMESPACE=1@1", "PMIX_NAMESPACE=2@1"), ("", "")] {
        let proc = Proc::new("jobs");
        for (starter, job) in [(BASE, first), (BASE + 10, second)] {
            proc.add(starter, 1, "mpirun -n 2 ./halo", "");
            for rank in 0..2 {
                let own = format!("OMPI_COMM_WORLD_RANK={rank} OMPI_COMM_WORLD_SIZE=2 {job}");
                proc.add(starter + 1 + rank, starter, "./halo", own.trim());
            }
        }
        let error = find(&proc, "halo").unwrap_err().to_string();
        assert_eq!(
            error,
            "halo runs in several jobs: give the pid of one launcher, or the processes by --pids: mpirun (pid \
             8388608): ranks 0 (pid 8388609), 1 (pid 8388610); mpirun (pid 8388618): ranks 0 (pid 8388619), 1 (pid \
             8388620)"
        );
        // Ranks of different jobs do not form one job, even if their numbers fit together.
        let job = find(&proc, &format!("{},{}", BASE + 1, BASE + 12)).unwrap();
        assert!(!job.ranked && job.notes.len() == 1, "{job:?}");
        let job = find(&proc, &format!("{},{}", BASE + 11, BASE + 12)).unwrap();
        assert!(job.ranked && job.notes.is_empty(), "{job:?}");
        // A further process of the program outside of a launcher is not a part of the job.
        proc.add(BASE + 20, 1, "./halo", "");
        let error = find(&proc, "halo").unwrap_err().to_string();
        assert!(error.ends_with("without a rank: pid 8388628"), "{error}");
    }
}

/// Processes started by `MPI_Comm_spawn` have ranks of their own, below the same launcher.
#[test]
fn spawned_processes_are_reported_apart_from_the_job() {
    for starter in ["mpiexec.hydra -n 2 ./halo", "prterun -n 2 ./halo"] {
        let proc = Proc::new("spawned");
        proc.add(BASE, 1, starter, "");
        for (proxy, job) in [(BASE + 1, 1), (BASE + 4, 2)] {
            proc.add(proxy, BASE, "hydra_pmi_proxy", "");
            for rank in 0..2 {
                let own = match starter.starts_with("prterun") {
                    true => format!("PMIX_RANK={rank} PMIX_NAMESPACE=prterun@{job}"),
                    false => format!("PMI_RANK={rank} PMI_SIZE=2"),
                };
                proc.add(proxy + 1 + rank, proxy, "./halo", &own);
            }
        }
        let job = find(&proc, &BASE.to_string()).unwrap();
        assert_eq!(ranks(&job), [(0, BASE + 2), (1, BASE + 3)]);
        let notes = job.notes.join("; ");
        assert!(
            notes.contains("have started 2 more processes (MPI_Comm_spawn)")
                && notes.ends_with("use --pids 8388613,8388614"),
            "{notes}"
        );
        let job = find(&proc, &format!("{},{}", BASE + 5, BASE + 6)).unwrap();
        assert_eq!(
            (ranks(&job), job.ranked),
            (vec![(0, BASE + 5), (1, BASE + 6)], true)
        );
    }
}

/// Writes a process's mapped library and its processor time.
fn describe(proc: &Proc, pid: i32, library: Option<&str>, ticks: u64) {
    let folder = proc.0.join(pid.to_string());
    let maps = format!(
        "1000-2000 r-xp 00000000 08:01 1 /lib/{}\n",
        library.unwrap_or("libc.so.6")
    );
    std::fs::write(folder.join("maps"), maps).unwrap();
    let stat = std::fs::read_to_string(folder.join("stat")).unwrap();
    let stat = format!("{stat} 0 0 0 0 0 0 0 {ticks} 0 0 0 0 0 0 0 {pid}");
    std::fs::write(folder.join("stat"), stat).unwrap();
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn program_is_found_behind_its_wrappers() {
    const MPI: Option<&str> = Some("libmpi.so.40.30.4");
    const MPICH: Option<&str> = Some("libmpich.so.12.2.2");
    type Shape<'a> = &'a [(i32, i32, &'a str, Option<&'a str>, u64)];
    let check = |tree: Shape<'_>, expect: i32, doubt: &str| {
        let proc = Proc::new("wrapped");
        proc.add(BASE, 1, "prterun -n 1 x", "");
        for (pid, parent, command, library, ticks) in tree {
            let environment = match command.starts_with("./bare") {
                true => "HOME=/",
                false => "PMIX_RANK=0 PMIX_NAMESPACE=a@1",
            };
            proc.add(BASE + pid, BASE + parent, command, environment);
            describe(&proc, BASE + pid, *library, *ticks);
        }
        let job = find(&proc, &BASE.to_string()).unwrap();
        assert_eq!(ranks(&job), [(0, BASE + expect)], "{tree:?}");
        let notes = job.notes.join("; ").replace("83886", "");
        assert_eq!(notes, doubt, "{tree:?}");
    };
    check(&[(1, 0, "./halo", MPI, 9)], 1, "");
    for wrapper in [
        "python3 wrapper.py ./halo",
        "timeout 9 ./halo",
        "strace ./halo",
        "zsh -c ./halo",
        "apptainer run x",
    ] {
        check(
            &[(1, 0, wrapper, None, 9), (2, 1, "./halo", MPICH, 0)],
            2,
            "",
        );
    }
    // Through several, and through a shell that has forked itself.
    check(
        &[
            (1, 0, "bash w", None, 5),
            (2, 1, "bash w", None, 0),
            (3, 2, "timeout 9 ./halo", None, 0),
            (4, 3, "./halo", MPI, 0),
        ],
        4,
        "",
    );
    // Processes that the program itself has started, or forked.
    check(
        &[(1, 0, "./halo", MPI, 9), (2, 1, "sleep 9", None, 0)],
        1,
        "",
    );
    check(
        &[(1, 0, "./halo", MPI, 1), (2, 1, "./halo", MPI, 99)],
        1,
        "",
    );
    // Without MPI the one that uses the processor.
    let doubt = "several processes have rank 0: sum (pid 10) is used, not w (pid 09) (--pids selects others)";
    check(
        &[(1, 0, "w ./sum", None, 2), (2, 1, "./sum", None, 700)],
        2,
        doubt,
    );
    let doubt = "several processes have rank 0: sum (pid 09) is used, not cat (pid 10) (--pids selects others)";
    check(
        &[(1, 0, "./sum", None, 700), (2, 1, "cat", None, 1)],
        1,
        doubt,
    );
    // A wrapper that has started nothing yet, and one whose program has no rank.
    let doubt = "rank 0 is timeout (pid 09), which has no MPI library: a wrapper may not have started its program yet";
    check(&[(1, 0, "timeout 9 ./halo", None, 1)], 1, doubt);
    let doubt = "rank 0 is sh (pid 09): sdm does not use its descendants without a rank in the environment (bare (pid 11)) (--pids selects others)";
    check(
        &[
            (1, 0, "sh x", None, 1),
            (2, 1, "./bare-timeout", None, 0),
            (3, 2, "./bare", MPI, 90),
        ],
        1,
        doubt,
    );
    // Two programs with the same parent.
    let doubt =
        "several processes have rank 0: b (pid 11) is used, not a (pid 10) (--pids selects others)";
    check(
        &[
            (1, 0, "sh x", None, 2),
            (2, 1, "./a", MPI, 10),
            (3, 1, "./b", MPI, 20),
        ],
        3,
        doubt,
    );
}

/// A process below a rank that has another rank belongs to another job.
#[test]
fn program_of_a_nested_job_is_not_taken_for_the_rank() {
    let proc = Proc::new("inner");
    proc.add(BASE, 1, "prterun -n 1 x", "");
    proc.add(BASE + 1, BASE, "./steer", "PMIX_RANK=0 PMIX_NAMESPACE=a@1");
    proc.add(
        BASE + 2,
        BASE + 1,
        "mpirun ./halo",
        "PMIX_RANK=0 PMIX_NAMESPACE=a@1",
    );
    proc.add(
        BASE + 3,
        BASE + 2,
        "./halo",
        "PMIX_RANK=0 PMIX_NAMESPACE=b@1 OMPI_COMM_WORLD_RANK=0",
    );
    for (pid, library, ticks) in [(1, None, 9), (2, None, 3), (3, Some("libmpi.so.40"), 99)] {
        describe(&proc, BASE + pid, library, ticks);
    }
    let job = find(&proc, &BASE.to_string()).unwrap();
    assert_eq!(ranks(&job), [(0, BASE + 1)]);
}

#[test]
fn two_jobs_below_one_process_are_ambiguous() {
    let proc = Proc::new("two");
    proc.add(BASE, 1, "bash run.sh", "");
    proc.add(BASE + 1, BASE, "halo", "PMI_RANK=0");
    proc.add(BASE + 2, BASE, "halo", "PMI_RANK=0");
    let error = find(&proc, &BASE.to_string()).unwrap_err().to_string();
    assert!(
        error.contains("have rank 0 (pids 8388609 and 8388610)"),
        "{error}"
    );
    // A search by name is ambiguous.
    let error = find(&proc, "halo").unwrap_err().to_string();
    assert!(
        error.ends_with("a job: ranks 0 (pid 8388609), 0 (pid 8388610)"),
        "{error}"
    );
}

#[test]
fn malformed_host_name_is_refused_with_job_and_rank() {
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
        notes: Vec::new(),
    };
    assert!(check_hosts(&job("node2")).is_ok());
    let long = "n".repeat(256);
    for (host, expect) in [
        ("(null)", "host \"(null)\": not a host name or address"),
        (
            "-oProxyCommand=x",
            "host \"-oProxyCommand=x\": a host name cannot begin with a dash",
        ),
        ("a,b", "host \"a,b\": not a host name or address"),
        (
            "a\nb\x1b[2J",
            "host \"a\\nb\\u{1b}[2J\": not a host name or address",
        ),
        (&long, "nnn\"...: the host name is longer than 255 bytes"),
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
