//! Abandoned attaches, at each step, and a slow attach.

use super::*;

/// The cause of the abandonment.
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
        assert_eq!((held, &*failure.text), (false, "it did not stop"));
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
