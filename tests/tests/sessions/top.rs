//! `sdm top` on a terminal, by keys, with a real agent of this host.

use sdm_tests::clusters::Shell;
use sdm_tests::run::until;
use sdm_tests::terminal::Terminal;

#[test]
fn top_keys_list_submit_and_cancel_a_job() {
    let shell = Shell::new();
    let _done = shell.sdm("cluster add here local").done();
    let first = shell.submit(&["--name", "sleeps", "--", "sleep", "1000"]);
    shell.wait_job(&first, "jobState", "RUNNING");

    let words = shell.lowered(&["top"]);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut terminal = Terminal::run(&shell.place, "/usr/bin/env".as_ref(), &words, 120);
    terminal.wait_displayed(&["sleeps"]);
    // Events of the agent appear without a key.
    let second = shell.submit(&["--name", "comes-later", "--", "sleep", "1000"]);
    terminal.wait_displayed(&["comes-later", "  age: "]);
    // Ctrl-L redraws every cell.
    terminal.keys("1\x0c");
    terminal.wait_displayed(&["1 resource managers"]);
    terminal.keys("2");
    terminal.wait_displayed(&["2 machines"]);
    terminal.keys("3c");
    terminal.wait_displayed(&["really?"]);
    terminal.keys("n");
    terminal.wait_displayed(&["not done"]);
    // The selection stays on its job when another job appears.
    terminal.keys("cy");
    shell.wait_job(&first, "jobState", "TERMINATED");
    terminal.keys(&format!(":cancel {second}\r"));
    shell.wait_job(&second, "jobState", "TERMINATED");
    terminal.wait_displayed(&["TERMINATED"]);
    terminal.keys("q");
    assert_eq!(terminal.leave().0, 0);
    let _done = shell.sdm("cluster remove here").done();
    shell.place.assert_gone();
}

#[test]
fn unsuitable_terminal_is_refused_with_an_alternative() {
    let shell = Shell::new();
    shell.sdm("top").refused(
        1,
        "a screen needs a terminal; use `sdm jobs --watch` for line output",
    );
    let words = shell.lowered(&["top"]);
    let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
    words.insert(0, "TERM=dumb");
    let terminal = Terminal::run(&shell.place, "/usr/bin/env".as_ref(), &words, 120);
    let (code, text) = terminal.leave();
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("TERM=dumb: this terminal cannot"), "{text}");
}

/// `sdm top` on a terminal with these options.
fn top<'a>(shell: &'a Shell, options: &[&str]) -> Terminal<'a> {
    let words = shell.lowered(&[&["top"], options].concat());
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    Terminal::run(&shell.place, "/usr/bin/env".as_ref(), &words, 120)
}

#[test]
fn forms_add_a_cluster_and_submit_a_job() {
    let shell = Shell::new();
    let config = shell.place.path().join("config/sdm");
    std::fs::create_dir_all(&config).unwrap();
    let profile =
        "[profile.nap]\nname = \"nap\"\nprogram = \"/bin/sleep\"\narguments = [\"1000\"]\n";
    std::fs::write(config.join("config.toml"), profile).unwrap();
    sdm_tests::ordinary::give(&config);
    sdm_tests::ordinary::give(config.parent().unwrap());
    let mut terminal = top(&shell, &[]);
    terminal.wait_displayed(&["no jobs; press n to submit one"]);
    terminal.keys("1");
    terminal.wait_displayed(&["no cluster is defined; press a to define one"]);
    terminal.keys("a");
    terminal.wait_displayed(&["add a resource manager", "name: is needed"]);
    terminal.keys("here");
    terminal.wait_displayed(&["$ sdm cluster add here local"]);
    terminal.keys("\r");
    terminal.wait_displayed(&["STARTED"]);
    terminal.keys("e");
    terminal.wait_displayed(&["edit here"]);
    terminal.keys("\x1b[A");
    terminal.keys("my own\r");
    terminal.wait_displayed(&["$ sdm cluster edit here '--description=my own':"]);
    let known = config.join("clusters.toml");
    let is_changed = || std::fs::read_to_string(&known).is_ok_and(|it| it.contains("my own"));
    until("the definition is changed", is_changed);
    // Enter in a form is one key: missing values are reported before.
    terminal.keys("3n");
    terminal.wait_displayed(&[
        "submit a job",
        "program: a program or a profile is required",
    ]);
    terminal
        .keys("/bin/sh -c 'while :; do echo line $((i=i+1)); sleep 0.1; done'\t\t\t\t\ttalks\r");
    terminal.wait_displayed(&["--name talks", "talks", "RUNNING"]);
    // The job's output is followed.
    terminal.keys("\t");
    terminal.wait_displayed(&["*processes of here:"]);
    terminal.keys("\r");
    terminal.wait_displayed(&["> process", "line 3"]);
    terminal.wait_displayed(&["line 25"]);
    terminal.keys("\t\x1b[A");
    terminal.wait_displayed(&["1 below (G: follow)"]);
    terminal.keys("3n\t\t\x1b[C");
    terminal.wait_displayed(&["--profile nap"]);
    terminal.keys("\r");
    terminal.wait_displayed(&["$ sdm submit --cluster here --profile nap:", "nap"]);
    // The job appears a moment after its submission; it cannot be cancelled before.
    terminal.keys("/nap\r");
    terminal.wait_displayed(&["/nap", "2 nap", "RUNNING"]);
    terminal.keys("cy");
    terminal.wait_displayed(&["/nap", "TERMINATED"]);
    terminal.keys("\x1b:cancel 1\r");
    terminal.wait_displayed(&["$ sdm cancel 1"]);
    shell.wait_job("1", "jobState", "TERMINATED");
    terminal.keys("q");
    assert_eq!(terminal.leave().0, 0);
    let _done = shell.sdm("cluster remove here").done();
    shell.place.assert_gone();
}

#[test]
fn top_takes_mouse_and_bound_keys_and_saves_its_view() {
    let shell = Shell::new();
    let _done = shell.sdm("cluster add here local").done();
    let job = shell.submit(&["--name", "sleeps", "--", "sleep", "1000"]);
    shell.wait_job(&job, "jobState", "RUNNING");
    let mut terminal = top(&shell, &["--bind", "x=c", "--bind", "c=none"]);
    terminal.wait_displayed(&["sleeps", "x cancel"]);
    assert!(terminal.raw().contains("\x1b[?1000h"));
    terminal.click("n submit");
    terminal.wait_displayed(&["submit a job"]);
    terminal.keys("\x1b");
    terminal.wait_displayed(&["not done"]);
    terminal.click("processes of here:");
    terminal.wait_displayed(&["Enter detail"]);
    terminal.click("sleeps");
    terminal.click("sleeps");
    terminal.wait_displayed(&["diagnose  explain why it hangs"]);
    // Esc and a letter that come at once are another key.
    terminal.keys("\x1b");
    terminal.wait_displayed(&["x cancel"]);
    terminal.keys("cy");
    terminal.wait_displayed(&["copied: here:"]);
    assert!(terminal.raw().contains("\x1b]52;c;"), "OSC 52");
    terminal.keys("ooP");
    terminal.wait_displayed(&["by user", "colours: dark"]);
    terminal.keys("xy");
    shell.wait_job(&job, "jobState", "TERMINATED");
    terminal.keys("2");
    terminal.wait_displayed(&["*2 machines"]);
    terminal.keys("q");
    let (code, raw) = terminal.leave_raw();
    assert_eq!(code, 0);
    assert!(raw.ends_with("\x1b[?25h"), "the terminal is as it was");
    assert!(raw.contains("\x1b[?1000l") && raw.contains("\x1b[?1049l"));
    // The next screen begins with the last panel of this one; an option turns off the mouse.
    let mut terminal = top(&shell, &["--no-mouse", "--linear"]);
    terminal.wait_displayed(&["*2 machines"]);
    terminal.keys("3");
    terminal.wait_displayed(&["by user"]);
    let text = terminal.displayed();
    assert!(!text.contains('\u{2502}'), "{text}");
    assert!(!terminal.raw().contains("\x1b[?1000h"));
    terminal.keys("q");
    assert_eq!(terminal.leave().0, 0);
    let _done = shell.sdm("cluster remove here").done();
    shell.place.assert_gone();
}

/// As any program that has the whole screen.
#[test]
fn top_redraws_after_suspension_and_resize_and_ends_at_hangup() {
    let shell = Shell::new();
    let mut bash = shell.lowered(&[]);
    bash.pop();
    bash.extend(["bash", "--norc", "-i"].map(str::to_owned));
    let words: Vec<&str> = bash.iter().map(String::as_str).collect();
    let mut terminal = Terminal::run(&shell.place, "/usr/bin/env".as_ref(), &words, 120);
    terminal.keys("PS1='bash> '; stty -echo\r");
    let sdm = sdm_tests::binaries::folder().join("sdm");
    terminal.keys(&format!("{} top\r", sdm.display()));
    terminal.wait_displayed(&["no jobs; press n to submit one"]);
    terminal.keys("\x1a");
    terminal.wait_displayed(&["Stopped", "bash> "]);
    terminal.keys("fg\r");
    terminal.wait_displayed(&["no jobs; press n to submit one", "n submit"]);
    terminal.resize(80, 24);
    let text = terminal.wait_displayed(&["no jobs; press n to submit one", "n submit", "\u{2518}"]);
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    terminal.keys("q");
    terminal.wait_displayed(&["bash> "]);
    terminal.keys("exit\r");
    let (code, screen) = terminal.finish();
    assert_eq!(code, 0, "{screen}");
    // A terminal that hangs up leaves no process.
    let terminal = top(&shell, &[]);
    terminal.wait_displayed(&["no jobs; press n to submit one"]);
    sdm_tests::processes::signal(terminal.pid(), nix::sys::signal::Signal::SIGHUP);
    let (code, screen) = terminal.finish();
    assert_ne!(code, 0, "{screen}");
}

/// The screen writes at most thirty frames a second, and of each frame only the changes.
#[test]
fn top_draws_at_most_30_frames_a_second_and_only_changes() {
    let shell = Shell::new();
    let _done = shell.sdm("cluster add here local").done();
    for number in 1..=5 {
        let name = format!("job-{number}");
        let _job = shell.submit(&["--name", &name, "--", "true"]);
    }
    let mut terminal = top(&shell, &[]);
    let began = std::time::Instant::now();
    terminal.wait_displayed(&["job-1", "job-5", "TERMINATED"]);
    let before = terminal.raw().len();
    terminal.keys(&"jk".repeat(200));
    terminal.keys("?");
    terminal.wait_displayed(&["press any key to close this help"]);
    // The cursor is hidden with each frame.
    let raw = terminal.raw();
    let frames = raw.matches("\x1b[?25l").count();
    let most = began.elapsed().as_millis() / 33 + 2;
    assert!((frames as u128) <= most, "{frames} frames of {most}");
    // A frame of 120 columns and 40 lines is some 5000 characters; two rows of it change.
    let bytes = raw.len() - before;
    assert!(bytes < 200 * 1000, "{bytes} bytes");
    terminal.keys("xq");
    assert_eq!(terminal.leave().0, 0);
    let _done = shell.sdm("cluster remove here").done();
    shell.place.assert_gone();
}

#[test]
fn panic_restores_the_terminal_before_its_message() {
    let place = sdm_tests::place::Place::new();
    let program = env!("CARGO_BIN_EXE_panics");
    let terminal = Terminal::run(&place, program.as_ref(), &[], 80);
    let (code, raw) = terminal.leave_raw();
    assert_ne!(code, 0);
    let left = raw.find("\x1b[?1049l").expect("it is left");
    let said = raw.find("as a defect would be").expect("it is said");
    assert!(left < said, "{raw}");
    assert!(raw[..left].contains("\x1b[?1000l"), "{raw}");
}
