//! Real processes, real sockets: the tree with scripted tasks in place of gdb.

use std::collections::BTreeMap;

use sdm_core::CommandId;
use sdm_core::message::EndPolicy;
use sdm_debug::{BackendSettings, Command, Reply};
use sdm_idset::IdSet;
use sdm_session::{
    Class, ClassAnswer, DebugSession, SendOptions, Session, SessionConfig, SessionEvent,
};
use sdm_tests::run::BOUND;
use sdm_tests::{binaries, leftovers};

const _: () = sdm_tests::run::test_group("crowded", "64 servers");

fn start(servers: u32) -> Session {
    let config = SessionConfig {
        backend: BackendSettings::Fake {
            scenario: String::new(),
        },
        binaries: Some(binaries::folder()),
        ..SessionConfig::local(servers)
    };
    Session::start(&config, &mut |_| {}).unwrap_or_else(|error| panic!("{error}"))
}

/// Waits for the end of a command. Returns the answers, and checks that each task has answered once.
fn finish(session: &mut Session, id: CommandId) -> (Vec<Class>, IdSet, IdSet) {
    let (mut classes, mut lost, mut missing) = (Vec::new(), IdSet::new(), IdSet::new());
    let mut answered = IdSet::new();
    loop {
        match session
            .next_event(Some(BOUND))
            .expect("an event before the bound")
        {
            SessionEvent::Answer {
                id: of,
                classes: new,
                missing: late,
                lost: gone,
                ..
            } if of == id => {
                for class in new {
                    assert!(class.tasks.is_disjoint(&answered), "answered twice");
                    answered.union_with(&class.tasks);
                    classes.push(class);
                }
                lost.union_with(&gone);
                late.iter().for_each(|(tasks, _)| missing.union_with(tasks));
            }
            SessionEvent::Complete { id: of } if of == id => return (classes, lost, missing),
            _ => {}
        }
    }
}

fn evaluate(expression: &str) -> Command {
    Command::Evaluate {
        expression: expression.to_owned(),
    }
}

fn query() -> SendOptions {
    SendOptions {
        timeout: Some(BOUND),
        ..SendOptions::default()
    }
}

#[test]
fn sixty_four_servers_answer_a_thousand_commands_exactly_once() {
    let mut session = start(64);
    let mark = format!("SDM_SESSION={}", session.id());
    let all = IdSet::all_below(64);
    let start = Command::Start(sdm_debug::command::StartSpec::default());
    let id = session.send(&all, &start, &SendOptions::default());
    finish(&mut session, id);
    let mut random = 0x2545_F491_4F6C_DD1D_u64;
    for _ in 0..1000 {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let to: IdSet = all
            .iter()
            .filter(|task| random >> task.0 & 1 == 1)
            .collect();
        let modulus = random % 5 + 1;
        let id = session.send(&to, &evaluate(&format!("rank % {modulus}")), &query());
        let (classes, lost, missing) = finish(&mut session, id);
        assert!(lost.is_empty() && missing.is_empty());
        let mut values = BTreeMap::new();
        for class in &classes {
            let ClassAnswer::Reply(Reply::Value(value)) = &class.answer else {
                panic!("{class:?}")
            };
            for task in &class.tasks {
                values.insert(task, value.text.clone());
            }
        }
        let expected: BTreeMap<_, _> = to
            .iter()
            .map(|task| (task, (u64::from(task.0) % modulus).to_string()))
            .collect();
        assert_eq!(values, expected);
        assert!(classes.len() as u64 <= modulus, "equal answers came apart");
    }
    session.close(EndPolicy::KillStarted).expect("a clean end");
    leftovers::assert_gone(&mark);
}
