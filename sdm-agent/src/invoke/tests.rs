//! The order of an invoke server's output that its clients require, and golden transcripts of sessions.

use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use super::server::{Action, JobState, Pipe, Server};

const JOB: &str = "JOB_CREATE 7\r\nhostname h\r\nport 0\r\nclient_name c\r\nexecutable_path /a/b\r\nbackend NORMAL\r\ncount \
                   1\r\nstaging false\r\nargument -x\r\nredirect_enable false\r\nstatus_polling 0\r\nrefresh_credential \
                   0\r\nJOB_CREATE_END\r\n";
const LONG: Duration = Duration::from_secs(1);

struct Story {
    server: Server,
    now: Instant,
    /// The pipe of the last output.
    last: Option<Pipe>,
}

impl Story {
    fn new() -> Self {
        Self {
            server: Server::new("j"),
            now: Instant::now(),
            last: None,
        }
    }

    /// Sends a request and returns the output: replies and notifications.
    fn ask(&mut self, text: &str) -> (String, String) {
        self.server.receive(self.now, text.as_bytes());
        self.said()
    }

    fn said(&mut self) -> (String, String) {
        let (mut replies, mut notifies) = (String::new(), String::new());
        for (pipe, bytes) in std::iter::from_fn(|| self.server.poll_output()) {
            let text = String::from_utf8(bytes).unwrap().replace("\r\n", "|");
            match pipe {
                Pipe::Replies => replies += &text,
                Pipe::Notifies => notifies += &text,
            }
            self.last = Some(pipe);
        }
        (replies, notifies)
    }

    fn pass(&mut self, time: Duration) -> (String, String) {
        self.now += time;
        self.server.handle_timeout(self.now);
        self.said()
    }

    fn job_is(&mut self, state: JobState) -> (String, String) {
        self.server.job_is(self.now, 1, state, "");
        self.said()
    }

    fn actions(&mut self) -> Vec<Action> {
        let actions = std::iter::from_fn(|| self.server.poll_action());
        actions.filter(|it| !matches!(it, Action::Log(_))).collect()
    }
}

fn said(replies: &str, notifies: &str) -> (String, String) {
    (replies.to_owned(), notifies.to_owned())
}

#[test]
fn job_end_is_notified_once() {
    let mut story = Story::new();
    let features = "SM|protocol_version 2.0|request JOB_CREATE|request JOB_STATUS|request JOB_DESTROY|request EXIT|REPLY_END|";
    assert_eq!(story.ask("QUERY_FEATURES\r\n"), said(features, ""));
    assert_eq!(story.ask(JOB), said("S|", "CREATE_NOTIFY 7 S j-1|"));
    assert!(matches!(story.actions()[..], [Action::Start(1, _)]));
    assert_eq!(story.ask("JOB_STATUS j-1\r\n"), said("S PENDING|", ""));
    assert_eq!(
        story.job_is(JobState::Active),
        said("", "STATUS_NOTIFY j-1 ACTIVE|")
    );
    assert_eq!(story.job_is(JobState::Active), said("", ""));
    // Directly after the job's number a client would take the end for an older state.
    assert_eq!(story.job_is(JobState::Done), said("", ""));
    assert!(story.server.poll_timeout().is_some());
    assert_eq!(story.pass(LONG), said("", "STATUS_NOTIFY j-1 DONE|"));
    assert_eq!(story.job_is(JobState::Failed), said("", ""));
    assert_eq!(story.pass(LONG), said("", ""));
    assert_eq!(story.ask("JOB_STATUS j-1\r\n"), said("S DONE|", ""));
    assert_eq!(story.ask("JOB_DESTROY j-1\r\n"), said("S|", ""));
    assert_eq!(story.actions(), [Action::Forget(1)]);
    assert_eq!(
        story.ask("JOB_DESTROY j-1\r\nJOB_STATUS x\r\n"),
        said("F no such job|F no such job|", "")
    );
}

#[test]
fn destroy_request_is_answered_after_the_job_has_ended() {
    let mut story = Story::new();
    story.ask(JOB);
    story.actions();
    story.pass(LONG);
    // A later request waits.
    assert_eq!(story.ask("JOB_DESTROY j-1\r\nQUERY\r\n"), said("", ""));
    assert_eq!(story.actions(), [Action::Cancel(1)]);
    // The answer comes last: a client whose last job this is disconnects after it, and would miss later messages.
    let (replies, notifies) = story.job_is(JobState::Failed);
    assert_eq!(story.last, Some(Pipe::Replies));
    assert_eq!(notifies, "STATUS_NOTIFY j-1 DONE|");
    assert_eq!(replies, "S|F Unknown Request|");
    // If a job does not end, the request is answered all the same. The job's end is reported when it happens.
    story.ask(&JOB.replace("CREATE 7", "CREATE 8"));
    story.actions();
    story.pass(LONG);
    assert_eq!(story.ask("JOB_DESTROY j-2\r\n"), said("", ""));
    assert_eq!(story.pass(Duration::from_secs(60)), said("S|", ""));
    story.server.job_is(story.now, 2, JobState::Failed, "");
    assert_eq!(story.said(), said("", "STATUS_NOTIFY j-2 DONE|"));
}

#[test]
fn invoke_server_sends_nothing_after_an_exit_request() {
    let mut story = Story::new();
    story.ask(JOB);
    story.pass(LONG);
    story.job_is(JobState::Active);
    story.actions();
    assert_eq!(story.ask("EXIT\r\nJOB_STATUS j-1\r\n"), said("S|", ""));
    assert_eq!(story.actions(), []);
    assert!(!story.server.is_over());
    assert_eq!(story.pass(LONG), said("", ""));
    assert_eq!(story.actions(), [Action::Cancel(1)]);
    assert!(!story.server.is_over());
    assert_eq!(story.job_is(JobState::Done), said("", ""));
    assert!(story.server.is_over());
}

#[test]
fn disconnected_client_ends_its_jobs_at_once() {
    let mut story = Story::new();
    story.ask(JOB);
    story.actions();
    story.server.closed(story.now);
    assert_eq!(story.actions(), [Action::Cancel(1)]);
    assert!(!story.server.is_over());
    assert_eq!(story.job_is(JobState::Done), said("", ""));
    assert!(story.server.is_over());
}

#[test]
fn invalid_job_is_refused_in_the_reply() {
    let mut story = Story::new();
    let bad = JOB.replace("count 1", "count 0");
    assert_eq!(
        story.ask(&bad),
        said("F count is `0`: expected a number of 1 or more|", "")
    );
    assert_eq!(story.actions(), []);
    for (line, why) in [
        ("hostname h\r\n", "F attribute hostname is missing|"),
        ("argument -x\r\n", "F attribute argument is missing|"),
    ] {
        assert_eq!(story.ask(&JOB.replace(line, "")), said(why, ""));
    }
}

/// A session as its three pipes show it: `>` is a request, `<` a reply, `!` a notify, `#` an event between them.
struct Transcript {
    story: Story,
    text: String,
}

impl Transcript {
    fn ask(&mut self, request: &str) {
        for line in request.lines() {
            writeln!(self.text, "> {line}").unwrap();
        }
        self.story
            .server
            .receive(self.story.now, request.as_bytes());
        self.write_said();
    }

    fn happens(&mut self, what: &str, happen: impl FnOnce(&mut Story)) {
        writeln!(self.text, "# {what}").unwrap();
        happen(&mut self.story);
        self.write_said();
    }

    fn write_said(&mut self) {
        for (pipe, bytes) in std::iter::from_fn(|| self.story.server.poll_output()) {
            let sign = match pipe {
                Pipe::Replies => '<',
                Pipe::Notifies => '!',
            };
            let text = String::from_utf8(bytes).unwrap();
            assert!(text.ends_with("\r\n"), "{text:?}");
            for line in text.lines() {
                writeln!(self.text, "{sign} {line}").unwrap();
            }
        }
    }
}

fn job_is(state: JobState) -> impl FnOnce(&mut Story) {
    move |story| story.server.job_is(story.now, 1, state, "")
}

fn time_passes(story: &mut Story) {
    story.now += LONG;
    story.server.handle_timeout(story.now);
}

/// Compares sessions with a client of Ninf-G 5 and of Ninf-G 4 with their golden files; `UPDATE_GOLDEN=1` rewrites
/// these.
#[test]
fn ninf_g_client_sessions_match_golden_transcripts() {
    let mut it = Transcript {
        story: Story::new(),
        text: String::new(),
    };
    it.ask("QUERY_FEATURES\r\n");
    it.ask(JOB);
    it.ask("JOB_STATUS j-1\r\n");
    it.happens("the manager has started it", job_is(JobState::Active));
    it.ask("JOB_STATUS j-1\r\n");
    it.happens("it ends with 0", job_is(JobState::Done));
    it.happens("a second passes", time_passes);
    it.ask("JOB_STATUS j-1\r\nJOB_DESTROY j-1\r\nJOB_DESTROY j-1\r\n");
    it.ask(&JOB.replace("count 1", "count 0"));
    it.ask("NO_SUCH_REQUEST\r\n\r\nJOB_STATUS\r\n");
    it.ask("EXIT\r\n");
    let first = it.text;
    let mut it = Transcript {
        story: Story::new(),
        text: String::new(),
    };
    it.ask(JOB);
    it.happens("the manager has started it", job_is(JobState::Active));
    it.happens("a second passes", time_passes);
    it.ask("JOB_DESTROY j-1\r\n");
    it.happens("it has ended by that", job_is(JobState::Failed));
    it.ask(&JOB.replace("CREATE 7", "CREATE 8"));
    it.ask("EXIT\r\n");
    it.happens("a second passes", time_passes);
    it.happens("the second job has ended", |story| {
        story.server.job_is(story.now, 2, JobState::Done, "");
    });
    assert!(it.story.server.is_over());
    for (name, text) in [("ends_by_itself", first), ("is_destroyed", it.text)] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/invoke");
        let file = folder.join(format!("{name}.txt"));
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&file, &text).unwrap();
        }
        assert_eq!(text, std::fs::read_to_string(&file).unwrap(), "{name}");
    }
}

#[test]
fn server_ends_after_its_maximum_of_jobs() {
    let mut story = Story::new();
    let job = |id: u32| {
        let job = JOB.replace("CREATE 7", &format!("CREATE {id}"));
        job.replace("hostname", "max_jobs 2\r\nhostname")
    };
    for number in [1, 2] {
        let expected = format!("CREATE_NOTIFY {number} S j-{number}|");
        assert_eq!(story.ask(&job(number)), said("S|", &expected));
        story.pass(LONG);
        let (now, number) = (story.now, u64::from(number));
        story.server.job_is(now, number, JobState::Done, "");
        story.said();
        assert!(!story.server.is_over());
        assert_eq!(
            story.ask(&format!("JOB_DESTROY j-{number}\r\n")),
            said("S|", "")
        );
    }
    let full = "F this server has run its maximum number of jobs|";
    assert_eq!(story.ask(&job(3)), said(full, ""));
    // The client may still ask for the end.
    assert_eq!(story.pass(LONG), said("", ""));
    assert!(!story.server.is_over());
    assert_eq!(story.pass(LONG), said("", ""));
    assert!(story.server.is_over());
}
