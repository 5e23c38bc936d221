//! Equal answers cost the front-end one payload, however many tasks gave them.

use sdm_core::aggregate::Aggregate;
use sdm_core::frame;
use sdm_core::ids::{Attempt, CommandId};
use sdm_core::limits::{CLASSES_MAX, PAYLOAD_BYTES_MAX};
use sdm_core::message::{Answer, Block, Message, Status};
use sdm_debug::reply::{StackFrame, TaskStacks};
use sdm_debug::rules::{self, Merged, RULE_STACK_TREE};
use sdm_debug::{Command, Reply, wire};
use sdm_idset::IdSet;
use sdm_session::{ClassAnswer, DebugSession, SendOptions, SessionEvent};
use sdm_tests::run::{BOUND, Run, fake};

/// Maximum size of the frame, the answer's header and its set in addition to the payload, in bytes.
const BESIDE_MAX: usize = 64;

fn own_answer() -> Vec<u8> {
    let frame = |function: &str, line| StackFrame::own(function, "solver.c", line);
    let frames = vec![frame("main", 80), frame("solve", 31), frame("MPI_Recv", 31)];
    wire::encode(&Reply::Stacks(TaskStacks::of_main(frames, 2)))
}

/// The merged answer that a member sends up for these answers.
fn hop(blocks: Vec<Block>) -> Block {
    let rule = rules::rule(RULE_STACK_TREE, &[]).expect("a rule of ours");
    let mut aggregate = Aggregate::default();
    for block in blocks {
        aggregate.add(Some(&*rule), CLASSES_MAX, block);
    }
    let mut merged = aggregate.take(Some(&*rule), PAYLOAD_BYTES_MAX);
    assert_eq!(merged.len(), 1, "one class");
    merged.remove(0)
}

/// The bytes on the front-end's link for `count` tasks in the same place, merged at every hop.
fn bytes_at_the_front_end(count: u32) -> usize {
    const CHILDREN: u32 = 16;
    let leaf = |sources: IdSet| Block {
        status: Status::Ok,
        sources,
        payload: own_answer().into(),
    };
    let mut level: Vec<Block> = (0..count)
        .map(|task| hop(vec![leaf(IdSet::from_range(task..=task))]))
        .collect();
    while level.len() > 1 {
        let groups = level.chunks(CHILDREN as usize);
        level = groups.map(|group| hop(group.to_vec())).collect();
    }
    let answer = Answer {
        id: CommandId(7),
        attempt: Attempt(0),
        age_us: 0,
        blocks: level,
        missing: Vec::new(),
        lost: IdSet::new(),
    };
    let mut bytes = Vec::new();
    frame::encode_message(&Message::Answer(answer), &mut bytes).expect("within all bounds");
    bytes.len()
}

#[test]
fn equal_answers_of_any_task_count_arrive_as_one_payload() {
    let payload = own_answer().len();
    for count in [1, 2, 64, 1000, 20_000] {
        let bytes = bytes_at_the_front_end(count);
        println!("{count} tasks: {bytes} bytes, payload {payload}");
        assert!(
            bytes <= payload + BESIDE_MAX,
            "{count} tasks: {bytes} bytes"
        );
    }
}

#[test]
fn stacks_arrive_merged_at_the_front_end() {
    let scenario = "[all]\nstack = main m.c:9 > solve s.c:3\n[tasks 5]\nstack = main m.c:9\n";
    let mut run = Run::start(&fake(16, scenario));
    run.start_tasks();
    let all = run.all();
    let command = Command::Stacks { full: false };
    let options = SendOptions {
        timeout: Some(BOUND),
        rule: rules::rule_of(&command),
        ..SendOptions::default()
    };
    let asked = run.session.send(&all, &command, &options);
    let mut answers = Vec::new();
    loop {
        match run
            .session
            .next_event(Some(BOUND))
            .expect("within the bound")
        {
            SessionEvent::Answer { id, classes, .. } if id == asked => answers.extend(classes),
            SessionEvent::Complete { id } if id == asked => break,
            _ => {}
        }
    }
    let [class] = &answers[..] else {
        panic!("one class: {answers:?}");
    };
    let ClassAnswer::Merged(Merged::Stacks(stacks)) = &class.answer else {
        panic!("merged: {class:?}");
    };
    assert_eq!(class.tasks, all);
    let tree = stacks.tree();
    assert_eq!(tree.roots.len(), 1);
    assert_eq!(tree.roots[0].here.to_string(), "5");
    assert_eq!(tree.roots[0].children[0].tasks.to_string(), "0-4,6-15");
    run.close();
}
