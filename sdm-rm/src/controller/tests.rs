//! States of a manager, whose agent is replaced by the agent's end of the wire protocol.

use sdm_runtime::ids::Ids;
use sdm_runtime::wire::agent::Agent;
use sdm_runtime::wire::definition::Definition;

use super::*;
use crate::answer::Look;

const PATIENCE: Duration = Duration::from_secs(60);

/// A manager and its agent, with a clock that the test advances.
struct Story {
    controller: Controller,
    agent: Agent,
    now: Instant,
    /// Commands that the agent has received.
    asked: Vec<&'static str>,
}

impl Story {
    fn new() -> Self {
        Self::with(Vec::new())
    }

    /// A story whose agent announces these definitions.
    fn with(definitions: Vec<Definition>) -> Self {
        let mut controller = Controller::new(1, PATIENCE);
        let now = Instant::now();
        assert_eq!(controller.state(), Manager::Stopped);
        controller.agent_started(now);
        Self {
            controller,
            agent: Agent::new(vec![Event::AttrDef(definitions)]),
            now,
            asked: Vec::new(),
        }
    }

    /// A story whose agent has reported a machine, a queue and a job.
    fn started() -> Self {
        Self::new().start()
    }

    fn start(self) -> Self {
        let mut story = self;
        story.turn(true);
        for (kind, parent, id, attributes) in [
            (Kind::Machine, "1", "2", vec![("machineState", "UP")]),
            (Kind::Queue, "1", "3", vec![("name", "normal")]),
            (
                Kind::Job,
                "3",
                "4",
                vec![("jobState", "RUNNING"), ("jobId", "17")],
            ),
        ] {
            story.tell(kind, parent, id, &attributes);
        }
        story.turn(true);
        assert_eq!(story.controller.state(), Manager::Started);
        story
    }

    fn tell(&mut self, kind: Kind, parent: &str, id: &str, attributes: &[(&str, &str)]) {
        let attributes = attributes
            .iter()
            .map(|(id, value)| ((*id).to_owned(), (*value).to_owned()));
        let group = Group {
            ids: Ids::one(id),
            attributes: attributes.collect(),
        };
        let event = Event::New(kind, parent.to_owned(), vec![group]);
        self.agent.send(event).unwrap();
    }

    /// Has the agent report a new state of the machine.
    fn machine_is(&mut self, state: &str) {
        let group = Group {
            ids: Ids::one("2"),
            attributes: vec![("machineState".to_owned(), state.to_owned())],
        };
        let event = Event::Change(Kind::Machine, "1".to_owned(), vec![group]);
        self.agent.send(event).unwrap();
        self.turn(true);
    }

    /// Exchanges all bytes between controller and agent. The agent carries out each command if `does`, else refuses it.
    fn turn(&mut self, does: bool) {
        loop {
            let asked = self.controller.take_output();
            self.agent.receive(&asked);
            while let Some((tid, command)) = self.agent.poll().unwrap() {
                self.asked.push(command.name());
                let refusal = Failure {
                    code: "1".to_owned(),
                    text: "not today".to_owned(),
                };
                let result = if does { Ok(()) } else { Err(refusal) };
                self.agent.complete(tid, result);
            }
            let told = self.agent.take_output();
            self.controller.receive(self.now, &told);
            if asked.is_empty() && told.is_empty() {
                return;
            }
        }
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        if self
            .controller
            .poll_timeout()
            .is_some_and(|at| at <= self.now)
        {
            self.controller.handle_timeout(self.now);
        }
    }

    fn reason(&self) -> String {
        assert_eq!(self.controller.state(), Manager::Error);
        self.controller.reason().unwrap()
    }
}

#[test]
fn manager_starts_after_initial_events_and_stops_on_request() {
    let mut story = Story::new();
    assert_eq!(story.controller.state(), Manager::Starting);
    story.turn(true);
    assert_eq!(story.controller.state(), Manager::Starting);
    let mut story = Story::started();
    let store = story.controller.store().unwrap();
    assert_eq!(store.groups(&Look::at(&[Kind::Job]))[0].ids, "4");
    assert_eq!(
        store.find(Kind::Job, &JOB_NUMBERS, "17").as_deref(),
        Some("4")
    );
    story.controller.stop(story.now);
    assert_eq!(story.controller.state(), Manager::Stopping);
    story.turn(true);
    story.controller.agent_ended("exit status: 0".to_owned());
    assert_eq!(story.controller.state(), Manager::Stopped);
}

#[test]
fn silent_agent_is_pinged_and_then_fails() {
    let mut story = Story::started();
    // The agent has no news, but answers.
    story.pass(SILENCE);
    story.turn(true);
    story.pass(SILENCE);
    assert_eq!(story.controller.state(), Manager::Started);
    // The agent does not answer.
    story.pass(PATIENCE);
    assert_eq!(
        story.reason(),
        "the cluster's agent has not answered the command LIST_FILTERS for 60 s"
    );
    assert!(story.controller.is_stale());
    let mut story = Story::new();
    story.pass(PATIENCE);
    assert_eq!(
        story.reason(),
        "the cluster's agent has not answered the command INIT for 60 s"
    );
    assert!(!story.controller.is_stale());
}

#[test]
fn invalid_agent_message_is_an_error_or_a_warning() {
    let mut story = Story::started();
    story.controller.receive(story.now, b"this is no message");
    assert!(
        story
            .reason()
            .starts_with("the cluster's agent sent an invalid message: ")
    );
    let mut story = Story::started();
    story
        .controller
        .agent_ended("signal: 9 (SIGKILL): killed".to_owned());
    let reason = "the cluster's agent has ended: signal: 9 (SIGKILL): killed";
    assert_eq!(story.reason(), reason);
    // An invalid event about an element does not end the agent.
    let mut story = Story::started();
    story.tell(Kind::Node, "77", "78", &[("name", "n")]);
    story.turn(true);
    assert_eq!(story.controller.state(), Manager::Started);
    let complaint = story.controller.reason().unwrap();
    assert!(
        complaint.contains("their parent `77` does not exist"),
        "{complaint}"
    );
    let mut controller = Controller::new(1, PATIENCE);
    controller.no_agent("sdm-agent: no such program".to_owned());
    assert_eq!(
        controller.reason().as_deref(),
        Some("sdm-agent: no such program")
    );
}

#[test]
fn manager_warning_is_shown_until_its_machine_is_up() {
    let mut story = Story::started();
    let failure = Failure {
        code: "0".to_owned(),
        text: "its controller is away".to_owned(),
    };
    let complaint = Event::Message("WARNING".to_owned(), failure);
    story.agent.send(complaint).unwrap();
    story.machine_is("ALERT");
    assert_eq!(story.controller.state(), Manager::Started);
    let said = story.controller.reason();
    assert_eq!(said.as_deref(), Some("its controller is away"));
    let version = story.controller.version();
    story.machine_is("UP");
    assert_eq!(story.controller.reason(), None);
    assert!(story.controller.version() > version);
}

#[test]
fn commands_are_answered_exactly_once() {
    let mut story = Story::started();
    let cancel = |job: &str| Question::Cancel {
        job: job.to_owned(),
    };
    let done = story.controller.command(story.now, &cancel("17"));
    story.turn(true);
    assert_eq!(story.controller.poll_outcome(), Some((done, Ok(None))));
    let refused = story.controller.command(story.now, &cancel("17"));
    story.turn(false);
    let outcome = (refused, Err(CommandError::Refused("not today".to_owned())));
    assert_eq!(story.controller.poll_outcome(), Some(outcome));
    let unknown = story.controller.command(story.now, &cancel("99"));
    let outcome = (unknown, Err(CommandError::NoJob("99".to_owned())));
    assert_eq!(story.controller.poll_outcome(), Some(outcome));
    // A submission is done when its job is reported.
    let attributes = vec![("execName".to_owned(), "a".to_owned())];
    let submit = Question::Submit { attributes };
    let submitted = story.controller.command(story.now, &submit);
    story.turn(true);
    assert_eq!(story.controller.poll_outcome(), None);
    let name = format!("JOB_{submitted}");
    let known = [("jobSubId", &*name), ("systemJobId", "18")];
    story.tell(Kind::Job, "3", "5", &known);
    story.turn(true);
    let number = Ok(Some("18".to_owned()));
    assert_eq!(story.controller.poll_outcome(), Some((submitted, number)));
    // The outcome of a command is unknown if the agent ends meanwhile.
    let lost = story.controller.command(story.now, &cancel("17"));
    story.controller.agent_ended("gone".to_owned());
    let Some((ticket, Err(CommandError::Lost(_)))) = story.controller.poll_outcome() else {
        panic!("it is lost");
    };
    assert_eq!((ticket, story.controller.poll_outcome()), (lost, None));
    let late = story.controller.command(story.now, &cancel("17"));
    let outcome = story.controller.poll_outcome();
    assert!(matches!(outcome, Some((ticket, Err(CommandError::NotStarted(_)))) if ticket == late));
}

/// A query is caused by the first who asks where the elements are too old, and shared by those who ask meanwhile.
#[test]
fn old_elements_are_queried_once_for_all_callers() {
    const AGE_MAX: Duration = Duration::from_secs(1);
    let look = Definition {
        id: id::LOOK.to_owned(),
        kind: "BOOLEAN".to_owned(),
        name: id::LOOK.to_owned(),
        description: String::new(),
        display: false,
        default: String::new(),
        extra: Vec::new(),
    };
    let mut story = Story::with(vec![look]).start();
    let looks = |story: &Story| story.asked.iter().filter(|it| **it == "LOOK").count();
    assert_eq!(
        story.controller.queries().age(story.now),
        Some(Duration::ZERO)
    );
    story.pass(AGE_MAX);
    assert!(!story.controller.refresh(story.now, AGE_MAX));
    story.pass(AGE_MAX);
    for _ in 0..3 {
        assert!(story.controller.refresh(story.now, AGE_MAX));
    }
    // It takes three seconds, which counts from its beginning.
    story.pass(3 * AGE_MAX);
    assert!(story.controller.queries().is_running());
    story.turn(true);
    assert_eq!(looks(&story), 1);
    assert_eq!(story.controller.queries().age(story.now), Some(3 * AGE_MAX));
    // A slow manager is asked less often.
    story.pass(12 * AGE_MAX);
    assert!(!story.controller.refresh(story.now, AGE_MAX));
    story.pass(AGE_MAX);
    assert!(story.controller.refresh(story.now, AGE_MAX));
    story.turn(false);
    assert!(!story.controller.queries().is_running());
    assert_eq!(
        story.controller.queries().age(story.now),
        Some(16 * AGE_MAX)
    );
    // An agent that has not announced it is not asked.
    let mut other = Story::started();
    other.pass(12 * AGE_MAX);
    assert!(!other.controller.refresh(other.now, AGE_MAX));
    assert_eq!(other.controller.queries().age(other.now), None);
}
