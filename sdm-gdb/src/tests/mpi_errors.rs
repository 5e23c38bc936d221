//! The gdb questions at an error of MPICH: a program that handles many errors is to pass them fast.

use super::*;

/// Index of the pointer to the error handler in the object.
const HANDLER: usize = 40;
/// Number of gdb's breakpoint at the function that gets all errors on communicators.
const BREAKPOINT: usize = 99;
/// `MPI_ERRORS_RETURN`.
const RETURNS: u32 = 0x5400_0001;

impl Scene {
    /// Answers questions to gdb until the program runs on; returns their number.
    fn pass_error(&mut self) -> usize {
        let mut count = 0;
        self.stop(&format!(
            "reason=\"breakpoint-hit\",disp=\"keep\",bkptno=\"{BREAKPOINT}\",thread-id=\"1\""
        ));
        while let Some((_, line)) = self.sent.first().cloned() {
            if line.starts_with("-exec-continue") {
                self.reply("^running");
                return count;
            }
            count += 1;
            if line.starts_with("-data-read-memory-bytes") {
                let pointer = |at: usize| (0x2000 + 8 * at as u64).to_ne_bytes();
                let bytes: Vec<String> = (0..64)
                    .flat_map(pointer)
                    .map(|it| format!("{it:02x}"))
                    .collect();
                let contents = bytes.concat();
                self.reply(&format!("^done,memory=[{{begin=\"0x1000\",offset=\"0x0\",end=\"0x1200\",contents=\"{contents}\"}}]"));
                continue;
            }
            let handler = format!("*(unsigned int *) {}", 0x2000 + 8 * HANDLER);
            let value = match () {
                () if line.contains(&handler) => RETURNS,
                () if line.contains("$rdi") => 0x1000,
                () => 6,
            };
            self.gdb(&format!("~\"{value}\""));
            self.reply("^done");
        }
        panic!("the program did not run on");
    }
}

#[test]
fn second_handled_error_of_mpich_sends_few_gdb_commands() {
    let mut scene = Scene::new(FakeHost::default());
    let config = DriverConfig {
        internal_breakpoints: true,
        ..config()
    };
    scene.driver = Driver::new(scene.now, Rc::new(config), Box::new(FakeHost::default()));
    scene.start(0);
    scene.insert_all();
    assert_eq!(scene.sent.last().unwrap().1, "-exec-run --start");
    scene.gdb("=thread-group-started,id=\"i1\",pid=\"77\"");
    scene.reply("^running");
    scene.gdb("*running,thread-id=\"all\"");
    scene.stop("reason=\"breakpoint-hit\",disp=\"del\",bkptno=\"1\"");
    scene.insert_all();
    scene.command(1, Command::Continue);
    scene.reply("^running");
    let first = scene.pass_error();
    let second = scene.pass_error();
    assert!(first > HANDLER, "{first}");
    assert!(second < 10, "{second}");
    assert!(!scene.answers.contains_key(&1));
}

impl Scene {
    /// Answers the questions of a start, with places for all breakpoints.
    fn insert_all(&mut self) {
        let mut number = 1;
        while let Some((_, line)) = self.sent.first().cloned() {
            if line.starts_with("-exec") {
                return;
            }
            number += 1;
            let number = match line.contains(sdm_mpi::symbols::MPICH_ERRORS[0]) {
                true => BREAKPOINT,
                false => number,
            };
            match line.starts_with("-break-insert") {
                true => self.reply(&format!("^done,bkpt={{number=\"{number}\",type=\"breakpoint\",addr=\"0x1000\",func=\"f\"}}")),
                false => self.reply("^done"),
            }
        }
    }
}
