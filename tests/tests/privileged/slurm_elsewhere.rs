//! Jobs of Slurm's whose `srun` `sdm` cannot see, as on a login node: `sdm` runs in a pid namespace of its own, and
//! `srun` is a child of the batch step outside of it. The nodes' servers are outside, too.

use std::process::{Command, Output};

use sdm_tests::binaries;
use sdm_tests::job::{Folder, running};
use sdm_tests::ordinary;
use sdm_tests::parts::Part;
use sdm_tests::place::Compiler;
use sdm_tests::run::until;

const _: () = sdm_tests::run::test_group("slurm", "one controller, and all its nodes");

const CONFIG: &str = "/tmp/sdm-slurm/slurm.conf";

fn stacks(folder: &Folder, target: &str) -> Output {
    let (user, group) = (
        format!("--reuid={}", ordinary::USER),
        format!("--regid={}", ordinary::USER),
    );
    let mut command = Command::new("unshare");
    command.args(["--pid", "--fork", "--kill-child", "--mount-proc", "setpriv"]);
    command.args([&*user, &*group, "--clear-groups"]);
    command.arg(binaries::folder().join("sdm"));
    command.args(["stacks", target]);
    command.env("SLURM_CONF", CONFIG).env("HOME", &folder.0);
    command
        .env("TMPDIR", &folder.0)
        .env_remove("XDG_RUNTIME_DIR");
    command.output().expect("unshare runs")
}

/// Submits a job, and waits until `steps` of its steps report that their ranks are held.
fn submit(folder: &Folder, options: &[&str], script: &str, steps: usize) {
    let out = folder.0.join(format!("out{}", options.concat()));
    let mut command = Command::new("sbatch");
    command
        .args(["--output", out.to_str().expect("text"), "--wrap", script])
        .args(options);
    command.env("SLURM_CONF", CONFIG).current_dir(&folder.0);
    let status = ordinary::lower(&mut command).status();
    assert!(status.expect("sbatch runs").success());
    until("the ranks are held", || {
        let said = std::fs::read_to_string(&out).unwrap_or_default();
        said.matches("held ").count() == steps
    });
}

#[test]
fn job_is_found_on_a_host_without_its_srun() {
    let Some(_slurm) = Part::slurm() else { return };
    let folder = Folder::new("slurm-elsewhere");
    let program = folder.compile(Compiler::Mpich, "mpi_held");
    let held = format!("{} {}", program.display(), folder.0.join("go").display());
    submit(
        &folder,
        &["-N2", "-n4"],
        &format!("srun --mpi=pmi2 -n4 {held}"),
        1,
    );
    let two = format!("srun -N1 -n1 {held} 0 & srun -N1 -n1 --overlap {held} 0 & wait");
    submit(&folder, &["-N2", "-n2"], &two, 2);
    let array = format!("srun --mpi=pmi2 -n2 {held}");
    submit(&folder, &["-N1", "-n2", "--array=3"], &array, 1);
    assert_eq!(running(&program).len(), 8);
    let seen = |target: &str| {
        let output = stacks(&folder, target);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text + &String::from_utf8_lossy(&output.stderr)
    };
    for (target, expect) in [
        ("slurm:1", "main ()"),
        ("slurm:2.1", "rank 0: main ()"),
        ("slurm:3_3", "main ()"),
        ("slurm:2", "has several steps; name one: slurm:2."),
        ("1", "use --pids 1 or slurm:1"),
    ] {
        let text = seen(target);
        assert!(text.contains(expect), "{target}: {text}");
    }
    std::fs::write(folder.0.join("go"), "").expect("a file");
    until("the jobs end", || running(&program).is_empty());
}
