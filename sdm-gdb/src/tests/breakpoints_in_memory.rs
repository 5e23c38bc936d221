//! gdb's breakpoints in the memory of a process to which it has attached.

use super::*;

fn attached(read_only: bool) -> Scene {
    let mut scene = Scene::new(FakeHost::default());
    let spec = AttachSpec::default();
    let process = AttachTarget::new(77, &AttachSpec { read_only, ..spec });
    scene.driver.attach(scene.now, CommandId(0), process);
    scene.drain();
    scene.answer_all();
    scene.gdb("=thread-group-started,id=\"i1\",pid=\"77\"");
    scene.stop("reason=\"signal-received\",signal-name=\"0\"");
    scene.answer_all();
    scene.actions.clear();
    scene
}

/// gdb reports the process as running, and inserts its breakpoints on library loads after that.
#[test]
fn breakpoints_are_removed_after_gdb_has_attached() {
    let mut scene = attached(true);
    scene.command(1, Command::Continue);
    scene.reply("^running");
    scene.gdb("*running,thread-id=\"all\"");
    assert!(scene.actions.is_empty(), "{:?}", scene.actions);
    scene.reply("^done");
    assert_eq!(scene.actions, ["ClearCode"]);
    // A library was loaded before that, and gdb has handled the event.
    scene.gdb("=library-loaded,id=\"/l.so\",thread-group=\"i1\"");
    scene.reply("^done");
    assert_eq!(scene.actions, ["ClearCode"; 2]);
}

/// gdb has removed its breakpoints from a stopped process, not from one that runs.
#[test]
fn process_is_untied_before_a_detach_if_it_is_stopped() {
    for is_running in [false, true] {
        let mut scene = attached(false);
        scene.command(1, Command::Continue);
        scene.reply("^running");
        scene.gdb("*running,thread-id=\"all\"");
        assert_eq!(scene.actions, ["TieProcess"]);
        if !is_running {
            scene.stop("reason=\"signal-received\",signal-name=\"SIGINT\"");
            scene.answer_all();
        }
        scene.command(2, Command::Detach);
        let untied: &[&str] = if is_running { &[] } else { &["UntieProcess"] };
        assert_eq!(scene.actions[1..], *untied);
    }
}
