//! Tests of interrupts in a gdb of several tasks: gdb stops the threads itself, without a SIGINT.

use super::*;

const INTERRUPT: &str = "-exec-interrupt --thread-group i2";

/// A running task, attached to in a gdb of several; its run is command 1.
fn running() -> Scene {
    let mut scene = Scene::new(FakeHost::default());
    let process = AttachTarget::new(77, &AttachSpec::default());
    let driver = &mut scene.driver;
    driver.attach_among(scene.now, CommandId(0), process, false);
    scene.drain();
    while let Some((_, line)) = scene.sent.first() {
        match line.as_str() {
            "-add-inferior" => scene.reply("^done,inferior=\"i2\""),
            "-target-attach --thread-group i2 77" => {
                scene.gdb("=thread-group-started,id=\"i2\",pid=\"77\"");
                scene.gdb("=thread-created,id=\"1\",group-id=\"i2\"");
                scene.reply("^done");
                stopped(&mut scene);
            }
            _ => scene.reply("^done"),
        }
    }
    assert!(scene.answers[&0].is_ok(), "{:?}", scene.answers);
    scene.command(1, Command::Continue);
    runs(&mut scene);
    scene
}

fn runs(scene: &mut Scene) {
    scene.reply("^running");
    scene.gdb("*running,thread-id=\"1\"");
}

/// A stop as gdb reports it in non-stop mode.
fn stopped(scene: &mut Scene) {
    scene.stop("reason=\"signal-received\",signal-name=\"0\",thread-id=\"1\"");
}

fn lines(scene: &Scene) -> Vec<&str> {
    scene.sent.iter().map(|(_, line)| line.as_str()).collect()
}

#[test]
fn each_interrupt_after_a_continue_reaches_gdb() {
    let mut scene = running();
    for (interrupt, go_on) in [(2, 3), (4, 5)] {
        scene.command(interrupt, Command::Interrupt);
        assert_eq!(lines(&scene), [INTERRUPT], "interrupt {interrupt}");
        scene.reply("^done");
        stopped(&mut scene);
        scene.answer_all();
        assert!(scene.answers[&interrupt].is_ok(), "{:?}", scene.answers);
        scene.command(go_on, Command::Continue);
        runs(&mut scene);
    }
}

#[test]
fn stopped_task_is_detached_immediately_at_shutdown() {
    let mut scene = running();
    scene.command(2, Command::Interrupt);
    scene.reply("^done");
    // The driver is still determining where the task has stopped.
    scene.gdb("*stopped,reason=\"signal-received\",signal-name=\"0\",thread-id=\"1\",frame={func=\"read\",from=\"/lib/libc.so.6\"}");
    assert!(!scene.answers.contains_key(&2));
    scene.driver.shut_down(scene.now, false);
    scene.drain();
    assert_eq!(lines(&scene).last(), Some(&"-target-detach i2"));
    scene.answer_all();
    assert_eq!(scene.driver.task_state(), TaskState::Detached);
}

#[test]
fn task_stopped_by_a_cancelled_interrupt_is_resumed() {
    let mut scene = running();
    scene.command(2, Command::Interrupt);
    scene.driver.handle_cancel(scene.now, CommandId(2));
    scene.drain();
    scene.reply("^done");
    stopped(&mut scene);
    assert_eq!(lines(&scene), ["-exec-continue --thread-group i2"]);
    runs(&mut scene);
    assert!(!scene.answers.contains_key(&1), "{:?}", scene.answers);
}

/// If a gdb gets a command to resume a process that it has detached, it resumes the other processes.
#[test]
fn detaching_task_receives_no_further_command() {
    let mut scene = running();
    scene.command(2, Command::Interrupt);
    scene.driver.shut_down(scene.now, false);
    scene.drain();
    scene.reply("^done");
    stopped(&mut scene);
    stopped(&mut scene);
    assert_eq!(lines(&scene), ["-target-detach i2"]);
    scene.reply("^done");
    assert_eq!(lines(&scene), [""; 0]);
    assert_eq!(scene.driver.task_state(), TaskState::Detached);
}

#[test]
fn command_to_a_detaching_task_waits_for_the_detach() {
    let mut scene = running();
    scene.command(2, Command::Detach);
    scene.command(3, Command::Continue);
    assert_eq!(lines(&scene), ["-target-detach i2"]);
    scene.reply("^done");
    assert_eq!(lines(&scene), [""; 0]);
    assert_eq!(scene.failure(3).code, FailureCode::NotRunning);
}
