//! Tests of attaches that are abandoned at each of their steps, and of stops that come late.

use std::cell::Cell;

use super::*;
use crate::fake_host::SIGINT;
use crate::host::KernelThread;

/// The cause of an abandoned attach.
#[derive(Clone, Copy, Debug)]
enum Who {
    /// The user, by Ctrl-C.
    Cancel,
    /// The end of the session, by SIGTERM.
    End,
}

/// Sends gdb's next line; false if there is none left.
fn say_next(scene: &mut Scene, attached: &mut u32) -> bool {
    let Some((_, line)) = scene.sent.first() else {
        return false;
    };
    if !line.starts_with("-target-attach") {
        scene.reply("^done");
        return true;
    }
    *attached += 1;
    match *attached {
        1 => scene.gdb("=thread-group-started,id=\"i1\",pid=\"77\""),
        // To find the user's frame takes another question.
        2 => scene.gdb("*stopped,frame={func=\"read\",from=\"/lib/libc.so.6\"}"),
        _ => scene.reply("^done"),
    }
    true
}

/// gdb is closed as soon as it has finished its commands, without a delay. A process that gdb was told to attach to
/// is detached first.
#[test]
fn cancelled_attach_detaches_the_process_and_closes_gdb() {
    for who in [Who::Cancel, Who::End] {
        let mut steps = 0;
        while given_up_after(who, steps) {
            steps += 1;
        }
        assert!(steps > 5, "{who:?}: {steps}");
    }
}

/// Abandons an attach after a number of gdb's lines. False if the attach has ended before.
fn given_up_after(who: Who, steps: u32) -> bool {
    let mut scene = Scene::new(FakeHost::default());
    let process = AttachTarget::new(77, &AttachSpec::default());
    scene.driver.attach(scene.now, CommandId(0), process);
    scene.drain();
    let mut attached = 0;
    for _ in 0..steps {
        say_next(&mut scene, &mut attached);
    }
    if scene.answers.contains_key(&0) {
        return false;
    }
    match who {
        Who::Cancel => scene.driver.handle_cancel(scene.now, CommandId(0)),
        Who::End => scene.driver.shut_down(scene.now, false),
    }
    scene.drain();
    let mut told = Vec::new();
    loop {
        told.extend(scene.sent.iter().map(|(_, line)| line.clone()));
        if !say_next(&mut scene, &mut attached) {
            break;
        }
    }
    let closed = scene.actions.iter().any(|action| action == "CloseGdb");
    assert!(closed, "{who:?} after {steps} steps: {:?}", scene.actions);
    let left = told.iter().any(|line| line == "-target-detach");
    assert_eq!(left, attached > 0, "{who:?} after {steps} steps: {told:?}");
    assert_eq!(scene.driver.task_state(), TaskState::Absent);
    true
}

/// gdb reads symbols between the stop and its report: a process that is stopped by then is waited for.
#[test]
fn stopped_process_is_awaited_while_gdb_reads_symbols() {
    for held in [true, false] {
        let mut scene = Scene::new(FakeHost {
            held,
            ..FakeHost::default()
        });
        let process = AttachTarget::new(77, &AttachSpec::default());
        scene.driver.attach(scene.now, CommandId(0), process);
        scene.drain();
        scene.gdb("=thread-group-started,id=\"i1\",pid=\"77\"");
        let mut attached = 2;
        while say_next(&mut scene, &mut attached) {}
        scene.pass(Duration::from_secs(15));
        let Some(answer) = scene.answers.get(&0) else {
            assert!(held, "one that runs is given up");
            scene.gdb("*stopped,frame={func=\"read\",from=\"/lib/libc.so.6\"}");
            while say_next(&mut scene, &mut attached) {}
            assert!(matches!(scene.answers[&0], Ok(Reply::Stopped(_))));
            continue;
        };
        let failure = answer.as_ref().expect_err("nothing was told of it");
        assert_eq!(
            (held, &*failure.text),
            (false, "the process did not stop after gdb attached")
        );
    }
}

/// The kernel has stopped the process, and gdb gets no processor to report it.
#[test]
fn stopped_process_is_awaited_until_gdb_reports_the_stop() {
    for held in [true, false] {
        let mut scene = Scene::at_main(FakeHost {
            held,
            ..FakeHost::default()
        });
        scene.command(1, Command::Continue);
        scene.answer_all();
        scene.reply("^running");
        scene.gdb("*running,thread-id=\"all\"");
        scene.command(2, Command::Interrupt);
        scene.answer_all();
        scene.pass(Duration::from_secs(20));
        if held {
            assert!(!scene.answers.contains_key(&2), "{:?}", scene.answers);
            scene.stop("reason=\"signal-received\",signal-name=\"SIGINT\"");
            assert_eq!(scene.answers[&2], Ok(Reply::Done));
        } else {
            let failure = scene.answers[&2].as_ref().expect_err("it runs");
            assert_eq!(failure.code, FailureCode::NotStoppable);
        }
    }
}

/// A thread of the program in this state.
fn thread(state: char, ran_ns: u64, pending: u64) -> Option<KernelThread> {
    Some(KernelThread {
        state,
        ran_ns,
        pending,
        blocked: 0,
    })
}

/// A program that was sent a SIGINT by command 2, and its thread as the kernel shows it.
fn interrupted() -> (Scene, Rc<Cell<Option<KernelThread>>>) {
    let seen = Rc::new(Cell::new(None));
    let mut scene = Scene::at_main(FakeHost {
        thread: seen.clone(),
        ..FakeHost::default()
    });
    scene.command(1, Command::Continue);
    scene.answer_all();
    scene.reply("^running");
    scene.gdb("*running,thread-id=\"all\"");
    scene.command(2, Command::Interrupt);
    assert_eq!(scene.sent[0].1, "-exec-interrupt");
    seen.set(thread('R', 1, SIGINT));
    (scene, seen)
}

/// If gdb detached before the stop, the SIGINT would kill the program.
#[test]
fn detach_waits_until_the_sigint_has_stopped_the_program() {
    let (mut scene, seen) = interrupted();
    scene.driver.handle_cancel(scene.now, CommandId(2));
    scene.command(3, Command::Detach);
    let is_left = |scene: &Scene| scene.sent.iter().any(|(_, it)| it == "-target-detach");
    // gdb has no processor to send the signal, and the program then has none to take it.
    seen.set(thread('S', 1, 0));
    scene.pass(Duration::from_secs(9));
    assert!(!is_left(&scene), "{:?}", scene.sent);
    seen.set(thread('R', 1, SIGINT));
    scene.reply("^done");
    scene.pass(Duration::from_secs(100));
    assert!(!is_left(&scene), "{:?}", scene.sent);
    // It has taken the signal, and is about to stop.
    seen.set(thread('R', 1, 0));
    scene.pass(Duration::from_secs(100));
    assert!(!is_left(&scene), "{:?}", scene.sent);
    seen.set(thread('t', 2, 0));
    scene.pass(Duration::from_secs(100));
    assert!(!is_left(&scene), "{:?}", scene.sent);
    scene.stop("reason=\"signal-received\",signal-name=\"SIGINT\"");
    assert!(is_left(&scene), "{:?}", scene.sent);
    assert!(!scene.answers.contains_key(&3));
}

/// At the session's end the process stays traced until it has taken the signal.
#[test]
fn process_that_cannot_take_the_sigint_is_not_detached() {
    for end in [false, true] {
        let (mut scene, seen) = interrupted();
        scene.reply("^done");
        scene.driver.handle_cancel(scene.now, CommandId(2));
        seen.set(thread('D', 1, SIGINT));
        match end {
            true => scene.driver.shut_down(scene.now, false),
            false => scene.command(3, Command::Detach),
        }
        scene.pass(Duration::from_secs(100));
        assert_eq!(scene.sent, [], "gdb is not told to detach");
        assert!(!scene.actions.iter().any(|action| action == "CloseGdb"));
        if !end {
            assert_eq!(scene.failure(3).code, FailureCode::NotStoppable);
            assert_eq!(
                scene.failure(3).text,
                "the process cannot be detached yet: a SIGINT of the debugger is pending and would end the process (state D, nfs_wait)"
            );
            scene.command(4, Command::Detach);
        }
        seen.set(thread('t', 1, 0));
        scene.stop("reason=\"signal-received\",signal-name=\"SIGINT\"");
        assert_eq!(scene.sent[0].1, "-target-detach");
    }
}

#[test]
fn starved_program_counts_as_unstoppable_only_after_running() {
    let (mut scene, seen) = interrupted();
    scene.reply("^done");
    for (pending, times) in [(SIGINT, 3), (1 << 18, 3), (0, 3)] {
        seen.set(thread('R', 1, pending));
        scene.pass(times * Duration::from_secs(50));
        assert!(!scene.answers.contains_key(&2), "{:?}", scene.answers);
    }
    // It had a processor, and did not stop.
    for ran in 2..8 {
        seen.set(thread('R', ran, 0));
        scene.pass(Duration::from_secs(3));
    }
    assert_eq!(scene.failure(2).code, FailureCode::NotStoppable);
    assert_eq!(
        scene.failure(2).text,
        "the process could not be stopped (state R, nfs_wait)"
    );
}
