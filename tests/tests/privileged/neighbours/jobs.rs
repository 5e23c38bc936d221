//! Running jobs: a user, or root who supports users, inspects processes that another user has prepared as a trap.

use std::path::Path;
use std::process::{Child, Stdio};

use sdm_tests::neighbour::{Neighbour, Outcome, Who};

use super::compile;

/// C source of a launcher with an MPIR process table: for each argument a local process with that pid, and a remote
/// one.
const STARTER: &str = r#"
#include <stdlib.h>
#include <unistd.h>
struct entry { const char *host, *program; int pid; };
struct entry entries[16], *MPIR_proctable = entries;
int MPIR_proctable_size;
int main(int count, char **words)
{
    for (int i = 1; i < count; i++)
        entries[MPIR_proctable_size++] = (struct entry){"localhost", "halo", atoi(words[i])};
    entries[MPIR_proctable_size++] = (struct entry){"far.invalid", "halo", 1};
    for (;;)
        pause();
}
"#;

/// A library that records each load by a user other than the one who planted it.
const LIBRARY: &str = r#"
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>
int planted(void) { return 1; }
__attribute__((constructor)) static void loaded(void)
{
    char program[4096] = {0}, folder[4096] = {0};
    int open_count = 0, tty;
    struct dirent *entry;
    readlink("/proc/self/exe", program, sizeof program - 1);
    if (!strstr(program, "/sdm-pmix"))
        return;
    DIR *descriptors = opendir("/proc/self/fd");
    while ((entry = readdir(descriptors)))
        open_count += entry->d_name[0] != '.' && atoi(entry->d_name) != dirfd(descriptors);
    tty = open("/dev/tty", O_RDWR);
    umask(0);
    FILE *mark = fopen(MARK, "a");
    fprintf(mark, "user %d groups %d session %s privileges %s descriptors %d terminal %s secret %s folder %s\n",
            (int)geteuid(), getgroups(0, NULL), getsid(0) == getpid() ? "own" : "inherited",
            prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) ? "none" : "some", open_count, tty < 0 ? "none" : "some",
            getenv("SECRET") ? "seen" : "unseen", getcwd(folder, sizeof folder));
    fclose(mark);
}
"#;

const SERVER: &str = r#"
#include <sys/prctl.h>
#include <unistd.h>
int planted(void);
int main(int count, char **words)
{
    (void)words;
    if (count > 1)
        prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    while (planted())
        pause();
}
"#;

fn start(neighbour: &Neighbour, who: Who, program: &Path, words: &[&str]) -> Child {
    let mut command = neighbour.command(who, program);
    command.args(words).stdout(Stdio::null());
    command.spawn().expect("it starts")
}

/// A process poses as the ssh process of an `mpiexec`, and names another program as its own: SDM does not run that.
#[test]
fn program_named_by_a_fake_ssh_process_is_not_run() {
    let Some(neighbour) = Neighbour::new() else {
        return;
    };
    let marker = neighbour.marker("login");
    let evil = neighbour.plant(Who::Neighbour, "evil", 0o755, marker.script());
    for name in ["halo", "mpiexec"] {
        let program = neighbour.plant_copy(Who::Neighbour, name, 0o755, "/bin/bash");
        let login = format!(
            "(exec -a {} /bin/bash -c 'sleep 1000; :' x node1 hydra_pmi_proxy --control-port a:1 --proxy-id 1) & wait",
            evil.display()
        );
        let mut starter = start(&neighbour, Who::Neighbour, &program, &["-c", &login]);
        let _ = neighbour.wait_for("sleep 1000; : x node1");
        let pid = starter.id().to_string();
        let look = |who| Outcome::of(&mut neighbour.sdm(who, ["stacks", &pid]));
        let told = look(Who::User);
        marker.assert_absent("what a stranger's process calls itself");
        match name {
            "mpiexec" => {
                let whose =
                    format!("mpiexec (pid {pid}) belongs to user 65533: run sdm as user 65533");
                told.expect(2, &whose);
                look(Who::Root).expect(2, "has not started any process on this machine");
            }
            _ => {
                told.expect(2, "belongs to user 65533 and you are");
                // Root inspects the shell itself.
                assert!(
                    look(Who::Root).said.contains("wait"),
                    "{:?}",
                    look(Who::Root)
                );
            }
        }
        marker.assert_absent("what a stranger's process calls itself, for root");
        neighbour.end_all();
        let _ = starter.wait();
    }
}

/// A process of the user has the arguments of an ssh process of `mpiexec`, but names another program: SDM does not run
/// it.
#[test]
fn remote_login_uses_only_ssh() {
    let Some(neighbour) = Neighbour::new() else {
        return;
    };
    let marker = neighbour.marker("own-login");
    let evil = neighbour.plant(Who::Neighbour, "evil", 0o755, marker.script());
    let program = neighbour.plant_copy(Who::User, "mpiexec", 0o755, "/bin/bash");
    let login = format!(
        "(exec -a {} /bin/bash -c 'sleep 1000; :' x node1 hydra_pmi_proxy --control-port a:1 --proxy-id 1) & \
         PMI_RANK=0 PMI_SIZE=2 sleep 1001 & wait",
        evil.display()
    );
    let mut starter = start(&neighbour, Who::User, &program, &["-c", &login]);
    let _ = neighbour.wait_for("sleep 1000; : x node1");
    let _ = neighbour.wait_for("sleep 1001");
    let pid = starter.id().to_string();
    let told = Outcome::of(&mut neighbour.sdm(Who::User, ["stacks", &pid]));
    marker.assert_absent("what a process of the user's calls itself");
    let why = "1 of the 2 ranks runs on other hosts, node1: the job's launcher reaches this host by `evil`, \
               but sdm can log in by ssh only";
    assert!(told.said.contains(why), "{told:?}");
    neighbour.end_all();
    let _ = starter.wait();
}

/// Root inspects the processes of the job's owner, and nothing else that the job's table names.
#[test]
fn proctable_leads_root_only_to_processes_of_the_owner() {
    let Some(neighbour) = Neighbour::new() else {
        return;
    };
    let sleep = |who| start(&neighbour, who, Path::new("/bin/sleep"), &["1000"]);
    let (mut own, mut roots) = (sleep(Who::Neighbour), sleep(Who::Root));
    let program = compile(&neighbour, Who::Neighbour, "mpirun", STARTER, &[]);
    let pids = [own.id(), roots.id()].map(|pid| pid.to_string());
    let job = |pids: &[&str]| {
        let starter = start(&neighbour, Who::Neighbour, &program, pids);
        // The last argument is visible once the program has been executed.
        let _ = neighbour.wait_for(&format!("mpirun {}", pids.join(" ")));
        starter
    };
    let mut starter = job(&[&pids[0], &pids[1]]);
    let pid = starter.id().to_string();
    let told = Outcome::of(&mut neighbour.sdm(Who::Root, ["stacks", &pid]));
    let why = format!(
        "2 of the 3 processes of mpirun (pid {pid}) are on other hosts or do not belong to user 65533: only user 65533's processes on this host are used (run sdm as user 65533)"
    );
    assert!(told.said.contains(&why), "{told:?}");
    assert!(told.said.contains("rank 0: "), "{told:?}");
    assert!(!told.said.contains("rank 1"), "{told:?}");
    let _ = starter.kill();
    let _ = starter.wait();
    // No process of the user is left in the table.
    let mut starter = job(&[&pids[1]]);
    let pid = starter.id().to_string();
    let told = Outcome::of(&mut neighbour.sdm(Who::Root, ["stacks", &pid]));
    told.expect(2, "2 of the 2 processes of mpirun");
    neighbour.end_all();
    for child in [&mut own, &mut roots, &mut starter] {
        let _ = child.wait();
    }
}

/// A server's library runs with the rights of the server's owner only, and only the named server's library is used.
#[test]
fn foreign_library_runs_without_root_rights() {
    let Some(neighbour) = Neighbour::new() else {
        return;
    };
    let marker = neighbour.marker("library");
    let mark = format!("-DMARK=\"{}\"", marker.path().display());
    let options = ["-shared", "-fPIC", &mark];
    let library = compile(
        &neighbour,
        Who::Neighbour,
        "libpmix.so.2",
        LIBRARY,
        &options,
    );
    let library = library.to_str().expect("a plain name");
    let folder = format!("-Wl,-rpath,{}", neighbour.home(Who::Neighbour).display());
    let options = [library, &folder];
    let program = compile(&neighbour, Who::Neighbour, "prterun", SERVER, &options);
    for hidden in [true, false] {
        let words = if hidden { &["hidden"][..] } else { &[] };
        let mut server = start(&neighbour, Who::Neighbour, &program, words);
        let pid = server.id();
        // The folder where a server has its rendezvous file; made before any query.
        let session = neighbour
            .home(Who::Neighbour)
            .join(format!("prterun.{pid}"));
        std::fs::create_dir(&session).expect("a folder");
        neighbour.give(Who::Neighbour, &session, 0o700);
        if hidden {
            wait_until_hidden(pid);
        }
        let pid = pid.to_string();
        let ask = |who, target: &str| {
            let mut sdm = neighbour.sdm(who, ["stacks", target]);
            Outcome::of(sdm.env("SECRET", "root's"))
        };
        ask(Who::User, &pid).expect(2, "belongs to ");
        ask(Who::Root, "pmix:any@1").expect(2, "none of your PMIx servers on this machine");
        marker.assert_absent("a library of a server that nobody named");
        let told = ask(Who::Root, &pid);
        if hidden {
            marker.assert_absent("a library of a server that does not let itself be looked at");
        } else {
            assert!(told.code == Some(2), "{told:?}");
            let said = std::fs::read_to_string(marker.path()).expect("it was asked");
            // One descriptor is the output file. By two others the keeper notices ends: its parent's and the
            // server's, which are both the neighbour's processes.
            assert_eq!(
                said,
                "user 65533 groups 0 session own privileges none descriptors 6 terminal none secret unseen folder /\n"
            );
        }
        let _ = server.kill();
        let _ = server.wait();
    }
}

fn wait_until_hidden(pid: u32) {
    use std::os::unix::fs::MetadataExt;
    let deadline = std::time::Instant::now() + sdm_tests::run::BOUND;
    let owner = || {
        std::fs::metadata(format!("/proc/{pid}/environ"))
            .expect("it runs")
            .uid()
    };
    while owner() != 0 {
        assert!(std::time::Instant::now() < deadline, "it hides");
        std::thread::yield_now();
    }
}

/// A process whose name is not valid UTF-8 is treated as any other.
#[test]
fn process_with_a_non_utf8_name_is_inspected_as_any_other() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let Some(neighbour) = Neighbour::new() else {
        return;
    };
    let name = OsStr::from_bytes(b"\xff\xfehalo");
    for who in [Who::User, Who::Neighbour] {
        let program = neighbour.plant_copy(who, name, 0o755, "/bin/sleep");
        let mut child = start(&neighbour, who, &program, &["1000"]);
        let pid = child.id().to_string();
        let _ = neighbour.wait_for("halo 1000");
        let told = Outcome::of(&mut neighbour.sdm(Who::User, ["stacks", &pid]));
        match who {
            Who::User => told.expect(0, &format!("pid {pid}")),
            _ => told.expect(2, "belongs to user 65533 and you are"),
        }
        let _ = child.kill();
        let _ = child.wait();
    }
}
