//! Tools of ours beside a job of Open MPI 5: many of them, and killed ones, do not keep its `prterun` from ending.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use sdm_tests::parts;
use sdm_tests::place::Place;
use sdm_tests::run::{BOUND, alone};

/// A job of two ranks that ends with 3 once there is a file.
struct Job {
    prterun: Child,
    end: PathBuf,
}

impl Job {
    fn start(mpi: &Path, place: &Place) -> Self {
        let mut prterun = Command::new(mpi.join("bin/prterun"));
        prterun.args(["--allow-run-as-root", "--map-by", ":oversubscribe"]);
        let end = place.path().join("end");
        let script = format!(
            "echo up >&2; until [ -e {} ]; do sleep 0.1; done; exit 3",
            end.display()
        );
        prterun.args(["-n", "2", "sh", "-c", &script]);
        prterun.env("TMPDIR", place.path());
        prterun
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut prterun = prterun.spawn().expect("prterun runs");
        let mut said = std::io::BufReader::new(prterun.stderr.take().expect("a pipe"));
        let mut up = 0;
        while up < 2 {
            let mut line = String::new();
            let count = std::io::BufRead::read_line(&mut said, &mut line).expect("text");
            assert!(count > 0, "the job ended before it was up");
            up += usize::from(line.contains("up"));
        }
        // What it says at the end is read by nobody, and must not stop it.
        std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
        Self { prterun, end }
    }

    fn pid(&self) -> u32 {
        self.prterun.id()
    }

    /// Ends the job, and gives the code of its starter.
    fn end(mut self) -> Option<i32> {
        std::fs::write(&self.end, "").expect("a file");
        let deadline = Instant::now() + BOUND;
        while Instant::now() < deadline {
            if let Some(status) = self.prterun.try_wait().expect("it is ours") {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        self.prterun.kill().expect("it is ours");
        self.prterun.wait().expect("it ends");
        panic!("prterun has not ended with its job");
    }
}

fn tool(mpi: &Path, server: u32) -> Command {
    let mut tool = Command::new(sdm_tests::binaries::folder().join("sdm-pmix"));
    tool.arg(mpi.join("lib/openmpi/libpmix.so.2"))
        .arg(server.to_string());
    tool.env("PMIX_MCA_psec", "native").stdin(Stdio::null());
    tool.stdout(Stdio::piped()).stderr(Stdio::piped());
    tool
}

fn assert_answers(tool: Child) {
    let said = tool.wait_with_output().expect("it ends");
    let text = String::from_utf8_lossy(&said.stdout);
    let ranks = text.lines().filter(|line| line.starts_with("process\t"));
    assert_eq!(ranks.count(), 2, "{said:?}");
    assert!(text.ends_with("\nend\n"), "{said:?}");
}

#[test]
fn a_job_outlives_many_tools_and_ends_with_its_own_code() {
    let _alone = alone();
    let Some(mpi) = parts::openmpi5() else {
        return;
    };
    let place = Place::new();
    let job = Job::start(&mpi, &place);
    for _ in 0..50 {
        assert_answers(tool(&mpi, job.pid()).spawn().expect("it runs"));
    }
    let at_once = || tool(&mpi, job.pid()).spawn().expect("it runs");
    let all: Vec<Child> = (0..10).map(|_| at_once()).collect();
    for tool in all {
        assert_answers(tool);
    }
    for number in 0..20 {
        let mut killed = at_once();
        // At other moments of its life each time: it takes some 20 ms.
        std::thread::sleep(Duration::from_millis(number));
        killed.kill().expect("it is ours");
        killed.wait().expect("it ends");
    }
    assert_answers(at_once());
    assert_eq!(job.end(), Some(3));
}
