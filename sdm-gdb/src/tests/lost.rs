//! Tests of processes that gdb loses track of.

use super::*;

/// gdb fails at a process that dies as a signal is passed to it, and reports nothing more of it.
#[test]
fn end_of_process_lost_by_gdb_is_reported() {
    for error in [
        "Couldn't get registers: No such process.",
        "Cannot find user-level thread for LWP 79: generic error",
    ] {
        let mut scene = Scene::at_main(FakeHost::default());
        assert!(scene.driver.may_miss_end(), "it stands still");
        scene.command(1, Command::Continue);
        scene.answer_all();
        scene.reply("^running");
        scene.gdb("*running,thread-id=\"all\"");
        assert!(!scene.driver.may_miss_end());
        scene.gdb("~\"\\nThread \"");
        scene.gdb("~\"2 \\\"name\\\" received signal SIGTERM, Terminated.\\n\"");
        scene.gdb(&format!("&\"{error}\\n\""));
        assert!(scene.driver.may_miss_end(), "{error}");
        // gdb may still report the end itself.
        scene.driver.handle_dead(scene.now);
        scene.drain();
        assert!(!scene.answers.contains_key(&1), "{:?}", scene.answers);
        scene.driver.handle_dead(scene.now);
        scene.drain();
        let signal = "SIGTERM".to_owned();
        assert_eq!(scene.answers[&1], Ok(Reply::Signalled { signal }));
    }
}
