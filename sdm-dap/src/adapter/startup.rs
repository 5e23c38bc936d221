//! The beginning: launch or attach, the opening of the session, and `configurationDone`.

use sdm_debug::{Command, EndPolicy};
use sdm_idset::IdSet;
use serde_json::{Value, json};

use super::{multi_client, run_control, state, stopped_events};
use crate::action::{Action, Opened, Opening};
use crate::answers::Answers;
use crate::connection::{Connection, Manner, Phase, Role};
use crate::error::RequestError;
use crate::error::{Handled, early};
use crate::jobs::Purpose;
use crate::launch::Configuration;
use crate::message::Request;
use crate::output::Output;
use crate::tasks::{Condition, Tasks};
use crate::thread_ids::Rows;

pub(super) fn launch(connection: &mut Connection, request: &Request) -> Handled {
    open(connection, request, false)
}

pub(super) fn attach(connection: &mut Connection, request: &Request) -> Handled {
    open(connection, request, true)
}

fn open(connection: &mut Connection, request: &Request, attached: bool) -> Handled {
    if connection.phase != Phase::Initialized {
        return Err(early(&request.command, "the session has begun already"));
    }
    let configuration: Configuration = request.read()?;
    let is_beside = matches!(connection.company.role, Role::Beside(_));
    if is_beside || (attached && configuration.session.is_some()) {
        return multi_client::attach(connection, request, configuration);
    }
    if attached && !configuration.names_a_job() {
        connection.pending = Some(request.clone());
        connection.act(Action::ListJobs);
        return Ok(None);
    }
    connection.manner.attached = attached;
    let opening = take_configuration(connection, configuration)?;
    connection.anew.opening = Some(opening.clone());
    connection.phase = Phase::Beginning;
    connection.pending = Some(request.clone());
    connection.act(Action::Open(opening));
    // From now on the client can send its breakpoints, however long the start takes.
    connection.event("initialized", Value::Null);
    Ok(None)
}

/// Refuses an attach request that names no job, with a list of the possible jobs. Each is a target and a description.
pub(super) fn handle_jobs(connection: &mut Connection, jobs: &[(String, String)]) {
    let Some(request) = connection.pending.take() else {
        return;
    };
    let mut text = "`target` is missing: the pid of mpirun or srun, pids with commas in between, \
        slurm:JOB, or CLUSTER:JOB"
        .to_owned();
    for (at, (target, line)) in jobs.iter().enumerate() {
        let before = if at == 0 { "; here run: " } else { "; " };
        text.push_str(&format!("{before}{target} ({line})"));
    }
    let why = RequestError::Configuration(text);
    connection.write(request.refusal(&why));
}

/// The opening for a configuration; stores the display settings of the configuration.
pub(super) fn take_configuration(
    connection: &mut Connection,
    configuration: Configuration,
) -> Result<Opening, RequestError> {
    let attached = connection.manner.attached;
    connection.manner = Manner {
        attached,
        // A user who attaches to a job wants to see where the job is.
        stop_at_entry: configuration.stop_at_entry.unwrap_or(attached),
        no_debug: configuration.no_debug,
        threads: configuration.threads,
        scope: configuration.scope,
    };
    // A gdb that starts a program gets these settings before it reads the program.
    connection.anew.settings = match attached {
        true => configuration.moved_folders(),
        false => Vec::new(),
    };
    let words = match attached {
        true => configuration.attach_words()?,
        false => configuration.launch_words()?,
    };
    Ok(Opening { words })
}

/// The start's id in progress events.
const PROGRESS: &str = "start";

pub(super) fn handle_progress(
    connection: &mut Connection,
    phase: &str,
    (done, total): (u32, u32),
    note: Option<&str>,
) {
    if let Some(note) = note {
        let note = sdm_text::printable(note.as_bytes());
        connection.say("console", &format!("[launcher] {note}\n"));
    }
    if !connection.client.supports_progress_reporting {
        return;
    }
    let percentage = (u64::from(done) * 100 / u64::from(total.max(1))).min(100);
    // Progress is reported once per percent, however many tasks there are.
    match connection.progress.replace(percentage) {
        Some(told) if told == percentage => return,
        Some(_) => {}
        None => {
            let body = json!({"progressId": PROGRESS, "title": "sdm", "cancellable": true});
            connection.event("progressStart", body);
        }
    }
    connection.event(
        "progressUpdate",
        json!({
            "progressId": PROGRESS,
            "message": format!("servers {phase}: {done} of {total}"),
            "percentage": percentage,
        }),
    );
}

/// Ends the progress display of the start, in any outcome.
fn end_progress(connection: &mut Connection) {
    if connection.progress.take().is_some() {
        connection.event("progressEnd", json!({"progressId": PROGRESS}));
    }
}

/// Handles the opened session, or the reason why there is none.
pub(super) fn handle_opened(connection: &mut Connection, opened: Result<Opened, RequestError>) {
    // The client has cancelled the start, and the session is closed at once.
    if connection.phase != Phase::Beginning {
        return;
    }
    match opened {
        Ok(_) if connection.anew.given_up => close_given_up(connection),
        Err(_) if connection.anew.given_up => handle_given_up(connection, Ok(())),
        Ok(opened) => begin(connection, opened),
        Err(why) => refuse_begin(connection, &why),
    }
}

/// Abandons the start on the client's request, which names the request or the progress of the start. Ends a session
/// that is being opened.
pub(super) fn give_up(connection: &mut Connection, seq: Option<i64>, progress: Option<&str>) {
    let is_owner = connection.company.role == Role::Owner;
    if connection.phase != Phase::Beginning || connection.anew.given_up || !is_owner {
        return;
    }
    let pending = connection.pending.as_ref().map(|request| request.seq);
    if progress == Some(PROGRESS) || (seq.is_some() && seq == pending) {
        connection.anew.given_up = true;
        // If the session is still being opened, the adapter's owner ends the opening, see `Adapter::is_ending`.
        if connection.jobs.is_beginning() {
            close_given_up(connection);
        }
    }
}

fn close_given_up(connection: &mut Connection) {
    connection.act(Action::Close(match connection.manner.attached {
        true => EndPolicy::Detach,
        false => EndPolicy::KillStarted,
    }));
}

/// Handles the end of an abandoned start.
pub(super) fn handle_given_up(connection: &mut Connection, closed: Result<(), RequestError>) {
    if let Err(why) = closed {
        connection.say("important", &format!("sdm: {why}\n"));
    }
    connection.jobs.clear();
    connection.anew.given_up = false;
    refuse_begin(connection, &RequestError::Cancelled);
}

fn begin(connection: &mut Connection, opened: Opened) {
    for note in &opened.notes {
        connection.say("important", &format!("sdm: {note}\n"));
    }
    connection.tasks = Tasks::new(opened.tasks);
    connection.rows = match connection.is_by_rank() && connection.tasks.all().len() == 1 {
        true => Rows::of_one(),
        false => Rows::new(connection.is_by_rank()),
    };
    connection.output = Output::new(connection.tasks.all().len() > 1);
    let programs = opened
        .begin
        .iter()
        .filter_map(|(tasks, command)| match command {
            Command::Start(spec) => Some((tasks.clone(), spec.clone())),
            _ => None,
        });
    connection.prompt.programs = programs.collect();
    connection.begin_job(Purpose::Begin, opened.begin);
}

/// Refuses the launch or attach. The client can only disconnect afterwards.
pub(super) fn refuse_begin(connection: &mut Connection, why: &RequestError) {
    end_progress(connection);
    connection.anew.restarting = false;
    connection.phase = Phase::Ended;
    if let Some(request) = connection.pending.take() {
        connection.write(request.refusal(why));
    }
    for request in connection.anew.beforehand.take() {
        let why = early(&request.command, "the launch or attach has failed");
        connection.write(request.refusal(&why));
    }
    connection.event("terminated", Value::Null);
}

/// Handles the answers of all tasks that were started or attached to.
pub(super) fn finish_begin(connection: &mut Connection, answers: &[Answers]) {
    end_progress(connection);
    let complaints = answers.iter().filter_map(Answers::complaint);
    let complaints: Vec<String> = complaints.collect();
    let standing = connection.tasks.standing();
    let starting = connection.tasks.running();
    connection.tasks.set(&starting, Condition::Gone);
    if standing.is_empty() && !complaints.is_empty() {
        refuse_begin(connection, &RequestError::Opening(complaints.join("; ")));
        return;
    }
    for complaint in complaints {
        connection.say("important", &format!("sdm: {complaint}\n"));
    }
    for line in connection.anew.settings.clone() {
        let command = Command::Console { line };
        connection.begin_job(Purpose::Nothing, vec![(standing.clone(), command)]);
    }
    // The stops at `main` are not reported to the client.
    connection.settling.fresh = IdSet::new();
    stopped_events::regroup_quietly(connection);
    if connection.anew.restarting {
        return;
    }
    connection.phase = Phase::Configuring;
    if let Some(request) = connection.pending.take() {
        connection.write(request.response(Value::Null));
    }
    let count = connection.tasks.all().len();
    let name = match connection.manner.attached {
        true => "job".to_owned(),
        false if count == 1 => "1 rank".to_owned(),
        false => format!("{count} ranks"),
    };
    let method = if connection.manner.attached {
        "attach"
    } else {
        "launch"
    };
    connection.event(
        "process",
        json!({"name": name, "startMethod": method, "isLocalProcess": false}),
    );
}

pub(super) fn configuration_done(connection: &mut Connection, request: &Request) -> Handled {
    if connection.phase != Phase::Configuring {
        return Err(early(
            &request.command,
            "this request is allowed once, after the event `initialized`",
        ));
    }
    connection.phase = Phase::Live;
    Ok(Some(Value::Null))
}

/// Handles `configurationDone`: resumes the programs, or leaves them stopped.
pub(super) fn set_off(connection: &mut Connection) {
    let standing = connection.tasks.standing();
    let stays = connection.manner.stop_at_entry && !connection.manner.no_debug;
    if stays || connection.company.role != Role::Owner {
        state::note_stops(connection, &standing);
    } else {
        run_control::run(connection, "continue", &standing, &Command::Continue);
    }
}
