//! The wall clock jumps by years, forward and back, for `sdm` and all that it starts. No session, deadline, report or job
//! depends on it.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sdm_tests::clusters::Shell;
use sdm_tests::place::{Compiler, Place};
use sdm_tests::sdm::Sdm;

/// A wall clock that can be set; the kernel's stays as it is.
struct Clock {
    library: PathBuf,
    at: PathBuf,
    file: File,
}

impl Clock {
    fn new(place: &Place) -> Self {
        let library = place.compile_with("clock", Compiler::C, &["-shared", "-fPIC"]);
        let at = place.path().join("jump");
        let file = File::create(&at).expect("a file");
        let clock = Self { library, at, file };
        clock.jump(0);
        clock
    }

    /// Sets the clock to the kernel's and this number of seconds.
    fn jump(&self, seconds: i64) {
        self.file
            .write_all_at(&seconds.to_ne_bytes(), 0)
            .expect("there is room");
    }

    /// The variables of processes that have this clock.
    fn variables(&self) -> [(&'static str, &str); 2] {
        let [library, at] = [&self.library, &self.at].map(|path| path.to_str().expect("text"));
        [("LD_PRELOAD", library), ("SDM_TEST_CLOCK", at)]
    }

    /// Lets the clock jump until `until` returns.
    fn jumping<T>(&self, until: impl FnOnce() -> T) -> T {
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for seconds in [YEAR, to_first_second(), 0, -YEAR].into_iter().cycle() {
                    if is_over.load(Ordering::SeqCst) {
                        break;
                    }
                    self.jump(seconds);
                    std::thread::park_timeout(Duration::from_millis(50));
                }
            });
            let result = until();
            is_over.store(true, Ordering::SeqCst);
            result
        })
    }
}

const YEAR: i64 = 365 * 86_400;

/// Seconds from now to the first second that a clock can have.
fn to_first_second() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    -i64::try_from(since.expect("it is later").as_secs()).expect("not in this age")
}

fn with<'a>(sdm: Sdm<'a>, clock: &Clock) -> Sdm<'a> {
    let all = clock.variables().into_iter();
    all.fold(sdm, |sdm, (name, value)| sdm.env(name, value))
}

#[test]
fn session_continues_when_the_wall_clock_jumps() {
    let place = Place::new();
    let clock = Clock::new(&place);
    let program = place.compile("work", Compiler::C);
    let sdm = with(Sdm::run(&place, 2), &clock).talk();
    let mut running = sdm.program(&program, &["spin"]).spawn();
    let at_first = to_first_second();
    for (seconds, line, wanted) in [
        (YEAR, "bt", "main ("),
        (at_first, "continue &", "continue &\n"),
        (YEAR, "interrupt", "interrupted"),
        (-YEAR, "stacks", "main ("),
        (at_first, "kill", "killed"),
    ] {
        clock.jump(seconds);
        let _ = running.ask(line, wanted);
    }
    let _ = running.ask("quit", "");
    let done = running.finish().code(0);
    assert!(!done.united().contains("lost"), "{done}");
    assert!(!done.united().contains("no answer"), "{done}");
}

/// A limit is reached neither by a jump forward, nor never after one back.
#[test]
fn time_limits_hold_when_the_wall_clock_jumps() {
    let place = Place::new();
    let clock = Clock::new(&place);
    let program = place.compile("work", Compiler::C);
    for (limit, what, code) in [("3000", "steps", 0), ("2", "spin", 120)] {
        let sdm = with(Sdm::run(&place, 2), &clock);
        let limits = ["--batch", "--report=report", "--time-limit", limit];
        let sdm = sdm.args(limits).program(&program, &[what]);
        let done = clock.jumping(|| sdm.finish()).code(code);
        let is_over = done.out.contains("the time limit was reached");
        assert_eq!(is_over, code != 0, "{done}");
    }
}

#[test]
fn jobs_are_accounted_when_the_wall_clock_jumps() {
    let place = Place::new();
    let clock = Clock::new(&place);
    let variables = clock.variables().into_iter();
    let shell = variables.fold(Shell::new(), |shell, (name, value)| shell.with(name, value));
    let _done = shell.sdm("cluster add here local").done();
    for seconds in [YEAR, to_first_second()] {
        clock.jump(0);
        let script = "until [ -e go ]; do sleep 0.01; done; rm go; exit 3";
        let job = shell.submit(&["--", "/bin/sh", "-c", script]);
        shell.wait_job(&job, "jobState", "RUNNING");
        clock.jump(seconds);
        let shown = shell.sdm("jobs").done().out;
        assert!(shown.contains("RUNNING"), "{shown}");
        std::fs::write(shell.place.path().join("go"), "").expect("a file");
        shell.wait_job(&job, "exitCode", "3");
        let shown = shell.sdm("jobs --all").done().out;
        assert!(shown.contains("exit code 3"), "{shown}");
    }
    let _done = shell.sdm("cluster stop here").done();
    shell.place.assert_gone();
}
