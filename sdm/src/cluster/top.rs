//! `sdm top`: snapshots for the screen, and execution of its requests.

use std::io::{Read, Seek, SeekFrom};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use clap::CommandFactory;
use nix::sys::signal::{Signal, raise};
use sdm_rm::{Answer, Clusters, Definition, Kind, Look, Question};
use sdm_runtime::attribute as id;
use sdm_runtime::states::Manager;
use sdm_screen::{Cluster, Facts, Input, Item, Output, Request, Terminal, Top, Wants};
use sdm_system::programs;

use super::element::Element;
use super::error::ClusterError;
use super::remote_files::FarEnd;
use super::times;
use crate::cli::{Cli, TopArgs};
use crate::settings::known_profiles;
use crate::user_state;

/// Maximum time to wait for a key before news is checked. The screen is written only after a change.
const TICK: Duration = Duration::from_millis(50);
/// Minimum interval between two frames: more than thirty a second are not perceived.
const FRAME: Duration = Duration::from_millis(33);
/// The name under which settings of the screen are kept.
const REMEMBERED: &str = "screen-top";
/// Interval at which managers are asked for changes.
const ASK_PERIOD: Duration = Duration::from_millis(500);
/// Interval at which managers are read anew where nothing is known to have changed.
const LOOK_PERIOD: Duration = Duration::from_secs(2);
/// Time limit for a manager to answer.
const ANSWER_WAIT: Duration = Duration::from_secs(10);
/// Maximum number of nodes that are listed individually. Beyond it, nodes of equal state and use are one
/// item.
const NODES_NAMED_MAX: u64 = 4096;
/// Maximum number of bytes read from the end of a job's output.
const OUTPUT_BYTES_MAX: u64 = 32 << 10;
/// Maximum number of bytes kept of a command's output.
const SAID_BYTES_MAX: usize = 4096;

/// News for the screen: a snapshot, or the end of a command.
enum News {
    Facts(Facts),
    End(Vec<String>, bool, String),
}

/// Shows the screen until the user ends it.
pub(super) fn top(args: &TopArgs) -> Result<u8, ClusterError> {
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|it| !it.is_empty());
    let look = &args.look;
    let mut terminal = Terminal::take("use `sdm jobs --watch` for line output", !look.no_mouse)?;
    let mut top = Top::new(look.style(!no_color), times::now());
    top.bind(look.bindings());
    top.recall(&look.recalled(&user_state::read(REMEMBERED)));
    let shown = show_until_left(&mut top, &mut terminal);
    user_state::write(REMEMBERED, &top.remembered());
    shown
}

/// Shows the screen on a terminal until the user ends it.
fn show_until_left(top: &mut Top, terminal: &mut Terminal) -> Result<u8, ClusterError> {
    let (news, hears) = channel();
    let (wants, wanted) = channel();
    let told = news.clone();
    std::thread::spawn(move || watch(&wanted, &told));
    let mut last = None;
    let mut drawn = None;
    loop {
        top.handle_time(times::now());
        for new in hears.try_iter() {
            match new {
                News::Facts(facts) => top.handle_facts(facts),
                News::End(words, went_well, said) => top.handle_end(&words, went_well, &said),
            }
        }
        let now = top.wants();
        if last.as_ref() != Some(&now) {
            // The watcher ends with this thread only.
            let _ = wants.send(now.clone());
            last = Some(now);
        }
        let due = drawn.map_or(Duration::ZERO, |drawn: Instant| {
            FRAME.saturating_sub(drawn.elapsed())
        });
        if due.is_zero() && top.take_changed() {
            terminal.draw(|frame| top.draw(frame))?;
            drawn = Some(Instant::now());
        }
        match terminal.input(if due.is_zero() { TICK } else { due }, None)? {
            Some(Input::Key(key)) => top.handle_key(key),
            Some(Input::Mouse(event)) => top.handle_mouse(event),
            Some(Input::Resized) => {
                terminal.renew()?;
                top.handle_resize();
            }
            None => {}
        }
        while let Some(request) = top.poll_request() {
            match request {
                Request::Quit => return Ok(0),
                Request::Redraw => terminal.renew()?,
                Request::Suspend => {
                    terminal.suspend();
                    raise(Signal::SIGTSTP).map_err(std::io::Error::from)?;
                    terminal.resume()?;
                }
                Request::Run(words) => {
                    let news = news.clone();
                    std::thread::spawn(move || run(words, &news));
                }
                Request::Show(words) => show(terminal, &words)?,
                Request::Copy(text) => terminal.copy(&text)?,
            }
            top.handle_resize();
        }
    }
}

/// Runs `sdm` in the background.
fn run(words: Vec<String>, news: &Sender<News>) {
    let done = own().and_then(|mut sdm| sdm.args(&words).stdin(Stdio::null()).output());
    let (went_well, said) = match done {
        Ok(done) => {
            let all = [done.stderr, done.stdout].concat();
            let all = &all[..all.len().min(SAID_BYTES_MAX)];
            (
                done.status.success(),
                String::from_utf8_lossy(all).into_owned(),
            )
        }
        Err(error) => (false, error.to_string()),
    };
    // The receiver is gone if the screen has ended.
    let _ = news.send(News::End(words, went_well, said));
}

/// Runs `sdm` in the foreground, and takes the terminal back after Enter is pressed.
fn show(terminal: &mut Terminal, words: &[String]) -> Result<(), ClusterError> {
    terminal.suspend();
    let ended = own().and_then(|mut sdm| sdm.args(words).status());
    if let Err(error) = ended {
        crate::sink::complain(format_args!("sdm: {error}"));
    }
    crate::sink::complain(format_args!("[Enter: back to sdm top]"));
    let mut line = String::new();
    std::io::stdin()
        .read_line(&mut line)
        .map_err(ClusterError::Output)?;
    Ok(terminal.resume()?)
}

fn own() -> std::io::Result<Command> {
    std::env::current_exe().map(programs::at)
}

/// Sends a snapshot whenever it has changed or other details are requested. While a process is shown, a snapshot is
/// sent at each interval, because its job's output may have grown.
fn watch(wanted: &Receiver<Wants>, news: &Sender<News>) {
    let mut wants = Wants::default();
    let mut known = None;
    let mut far = None;
    let mut looked = Instant::now();
    loop {
        let is_new = match wanted.recv_timeout(ASK_PERIOD) {
            Ok(new) => {
                wants = wanted.try_iter().last().unwrap_or(new);
                true
            }
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => false,
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => return,
        };
        let versions = versions();
        // Output grows without a word of the manager's.
        let is_same = known.as_ref() == Some(&versions)
            && wants.process.is_none()
            && looked.elapsed() < LOOK_PERIOD;
        if is_same && !is_new {
            continue;
        }
        known = Some(versions);
        looked = Instant::now();
        if wants.process.is_none() {
            far = None;
        }
        if news.send(News::Facts(facts(&wants, &mut far))).is_err() {
            return;
        }
    }
}

/// The state that a change is recognised by: the definitions, and the version of each manager's elements.
fn versions() -> Vec<(Definition, Option<u64>)> {
    let Ok(all) = Clusters::load() else {
        return Vec::new();
    };
    let version = |it: &Definition| {
        let is_running = sdm_rm::is_running(&it.name);
        let asked = is_running.then(|| sdm_rm::ask(&it.name, &Question::State, ANSWER_WAIT));
        asked.and_then(Result::ok).map(|answer| answer.version)
    };
    all.iter().map(|it| (it.clone(), version(it))).collect()
}

/// Takes a snapshot. `far` is the file of another host that is followed, if any.
fn facts(wants: &Wants, far: &mut Option<FarEnd>) -> Facts {
    let mut facts = Facts {
        profiles: known_profiles(&Cli::command()),
        ..Facts::default()
    };
    let all = match Clusters::load() {
        Ok(all) => all,
        Err(error) => {
            facts.error = error.to_string();
            return facts;
        }
    };
    for definition in all.iter() {
        add(&mut facts, definition, wants, far);
    }
    facts
}

fn by(kinds: &[Kind], attributes: &[&str]) -> Look {
    Look {
        by: Some(attributes.iter().map(|it| (*it).to_owned()).collect()),
        ..Look::at(kinds)
    }
}

/// The queries for a cluster.
fn looks(name: &str, wants: &Wants) -> Vec<Look> {
    let mut looks = vec![
        Look::at(&[Kind::Machine, Kind::Queue, Kind::Job]),
        by(
            &[Kind::Node],
            &[id::NODE_STATE, id::NODE_EXTRA_STATE, id::NODE_PROCESS_STATE],
        ),
    ];
    if let Some((_, job)) = wants.job.as_ref().filter(|(cluster, _)| cluster == name) {
        looks.push(Look {
            parent: Some(job.clone()),
            sets: [id::PROCESS_INDEX, id::PROCESS_PID]
                .map(str::to_owned)
                .to_vec(),
            ..by(
                &[Kind::Process],
                &[
                    id::PROCESS_NODE_ID,
                    id::PROCESS_STATE,
                    id::PROCESS_SIGNAL_NAME,
                    id::PROCESS_EXIT_CODE,
                ],
            )
        });
        if let Some(process) = &wants.process {
            looks.push(Look {
                ids: Some(vec![process.clone()]),
                ..Look::at(&[Kind::Process])
            });
        }
    }
    looks
}

fn add(facts: &mut Facts, definition: &Definition, wants: &Wants, far: &mut Option<FarEnd>) {
    let name = &definition.name;
    let mut cluster = Cluster {
        name: name.clone(),
        rm_type: definition.rm_type.clone(),
        host: definition.host.clone().unwrap_or_default(),
        ssh_options: definition.ssh_options.clone(),
        agent: definition.agent.clone().unwrap_or_default(),
        agent_args: definition.agent_args.clone(),
        description: definition.description.clone(),
        state: Manager::Stopped.word().to_owned(),
        ..Cluster::default()
    };
    let question = Question::Elements {
        looks: looks(name, wants),
        is_fresh: true,
    };
    let asked = sdm_rm::is_running(name).then(|| sdm_rm::ask(name, &question, ANSWER_WAIT));
    match asked {
        None => {}
        Some(Err(error)) => {
            Manager::Error.word().clone_into(&mut cluster.state);
            cluster.reason = error.to_string();
        }
        Some(Ok(answer)) => {
            let it = &answer.manager;
            it.state.word().clone_into(&mut cluster.state);
            cluster.since = it.since;
            cluster.reason = it.reason.clone().unwrap_or_default();
            cluster.stale = it.stale;
            cluster.age = it.age_ms.map(|age| age.div_ceil(1000));
            let answer = named(name, answer);
            let own = Element::all(std::slice::from_ref(&answer), Kind::Machine)
                .find_map(|machine| machine.get(id::USER_ID));
            own.unwrap_or_default().clone_into(&mut cluster.user);
            if wants.process.is_some()
                && let Some((_, job)) = wants.job.as_ref().filter(|(of, _)| of == name)
            {
                facts.output = Some(output(definition, &answer, job, far));
            }
            facts.items.extend(answer.groups.into_iter().map(|group| {
                Item {
                    cluster: name.clone(),
                    kind: group.kind,
                    parent: group.parent,
                    ids: group.ids,
                    attributes: group.attributes,
                    sets: group
                        .sets
                        .into_iter()
                        .map(|it| (it.attribute, it.numbers))
                        .collect(),
                }
            }));
        }
    }
    facts.clusters.push(cluster);
}

/// Queries nodes individually if there are not too many.
fn named(name: &str, mut answer: Answer) -> Answer {
    let nodes = answer.groups.iter().filter(|it| it.kind == Kind::Node);
    let count: u64 = nodes.map(|it| count(&it.ids)).sum();
    if (1..=NODES_NAMED_MAX).contains(&count) {
        let question = Question::Elements {
            looks: vec![Look::at(&[Kind::Node])],
            is_fresh: false,
        };
        if let Ok(more) = sdm_rm::ask(name, &question, ANSWER_WAIT)
            && more.error.is_none()
        {
            answer.groups.retain(|it| it.kind != Kind::Node);
            answer.groups.extend(more.groups);
        }
    }
    answer
}

/// Number of elements in a range set.
fn count(ids: &str) -> u64 {
    let number = |part: &str| part.parse().unwrap_or(0_u64);
    let each = ids.split(',').map(|part| match part.split_once('-') {
        Some((first, last)) => number(last).saturating_sub(number(first)) + 1,
        None => 1,
    });
    each.sum()
}

/// The end of a job's output. On another host the file is followed as long as it is shown.
fn output(definition: &Definition, answer: &Answer, job: &str, far: &mut Option<FarEnd>) -> Output {
    let answers = std::slice::from_ref(answer);
    let job = Element::all(answers, Kind::Job).find(|it| it.group.ids == job);
    let error = |text: &str| Output {
        error: text.to_owned(),
        ..Output::default()
    };
    let Some(path) = job.and_then(|it| it.get(id::OUTPUT_PATH)) else {
        return error("the resource manager does not report where the output is");
    };
    let text = match &definition.host {
        None => end_of(path).map_err(|source| ClusterError::File {
            path: path.into(),
            source,
        }),
        Some(host) => far_end(far, host, &definition.ssh_options, path),
    };
    match text {
        Ok(text) => Output {
            path: path.to_owned(),
            lines: text.lines().map(str::to_owned).collect(),
            error: String::new(),
        },
        Err(why) => error(&why.to_string()),
    }
}

fn far_end(
    far: &mut Option<FarEnd>,
    host: &str,
    options: &[String],
    path: &str,
) -> Result<String, ClusterError> {
    let bytes_max = usize::try_from(OUTPUT_BYTES_MAX).unwrap_or(usize::MAX);
    let followed = match far.take().filter(|it| it.is_of(host, path)) {
        Some(followed) => followed,
        None => FarEnd::begin(host, options, path, bytes_max)?,
    };
    Ok(far.insert(followed).text())
}

fn end_of(path: &str) -> std::io::Result<String> {
    let mut file = sdm_system::files::open(std::path::Path::new(path))?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(OUTPUT_BYTES_MAX)))?;
    let mut bytes = Vec::new();
    file.take(OUTPUT_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
