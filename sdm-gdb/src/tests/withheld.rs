//! Tests of samples in which gdb does not answer a question: the task resumes when the budget is used up.

use sdm_debug::command::ProbeSpec;

use super::*;
use crate::budget::LOOK_WAIT;

const ARGUMENTS: &str = "-stack-list-arguments";

impl Scene {
    /// Answers gdb's questions up to the one about arguments, which it leaves open.
    fn answer_up_to_arguments(&mut self) {
        while let Some((_, line)) = self
            .sent
            .first()
            .filter(|(_, line)| !line.contains(ARGUMENTS))
        {
            let answer = match line.split(' ').next() {
                Some("-thread-info") => {
                    "^done,threads=[{id=\"1\",target-id=\"process 77\",state=\"stopped\"}],current-thread-id=\"1\""
                }
                Some("-stack-list-frames") => concat!(
                    "^done,stack=[frame={level=\"0\",addr=\"0x100\",func=\"MPI_Recv\",file=\"recv.c\",fullname=\"/recv.c\",line=\"5\",from=\"/usr/lib/libmpi.so\"},",
                    "frame={level=\"1\",addr=\"0x200\",func=\"main\",file=\"a.c\",fullname=\"/a.c\",line=\"9\"}]"
                ),
                _ => "^done",
            };
            self.reply(answer);
        }
    }

    fn is_open(&self, id: u64) -> bool {
        !self.answers.contains_key(&id)
    }

    /// Withholds gdb's answer to the question about arguments; gives the answer to the command. gdb is interrupted
    /// when the budget is used up, and then gives an error, or not even that.
    fn withhold(&mut self, command: &Command, answers_interrupt: bool) -> Result<Reply, Failure> {
        self.command(1, command.clone());
        self.answer_up_to_arguments();
        let (token, _) = self.sent.first().expect("the question").clone();
        let before = self.actions.len();
        self.pass(config().command_wait);
        assert_eq!(
            self.actions[before..],
            [format!("BreakOff({token})")],
            "{command:?}"
        );
        assert!(self.is_open(1), "gdb has a moment for its answer");
        match answers_interrupt {
            true => self.reply("^error,msg=\"Quit\""),
            false => self.pass(LOOK_WAIT),
        }
        self.sent.retain(|(_, line)| !line.contains(ARGUMENTS));
        self.answer_up_to_arguments();
        self.answers[&1].clone()
    }
}

#[test]
fn task_continues_after_gdb_failed_to_list_arguments() {
    let stack = Command::Backtrace(BacktraceSpec {
        args: true,
        ..BacktraceSpec::default()
    });
    let probe = Command::Probe(ProbeSpec {
        compare: false,
        waits: true,
    });
    for (answers_interrupt, reason) in [
        (true, "gdb took too long and was interrupted"),
        (
            false,
            "gdb did not answer in time, not even after an interrupt",
        ),
    ] {
        let mut scene = Scene::at_main(FakeHost::default());
        match scene.withhold(&stack, answers_interrupt) {
            Ok(Reply::Backtrace(stack)) => {
                let functions: Vec<_> = stack.frames.iter().map(|frame| &*frame.function).collect();
                assert_eq!(functions, ["main"], "MPI_Recv is shown as its call");
                for frame in &stack.frames {
                    let [missing] = &frame.args[..] else {
                        panic!("{frame:?}");
                    };
                    assert_eq!((&*missing.name, &*missing.value.text), ("...", reason));
                }
            }
            other => panic!("{other:?}"),
        }
        scene.command(2, Command::Continue);
        assert_eq!(scene.sent.last().unwrap().1, "-exec-continue");
        let mut scene = Scene::at_main(FakeHost::default());
        let Ok(Reply::Probe(found)) = scene.withhold(&probe, answers_interrupt) else {
            panic!("{:?}", scene.answers[&1]);
        };
        let stacks = found.stacks.expect("the stack without arguments");
        assert!(format!("{stacks:?}").contains("main"), "{stacks:?}");
        let call = found.waits.unwrap().call.unwrap();
        assert_eq!(
            (&*call.function, &call.arguments[..]),
            ("MPI_Recv", &[][..])
        );
        let said = format!(
            "the calls in which the threads of this process wait, with their arguments, could not all be read: {reason}"
        );
        let told = sdm_debug::Event::Notice { text: said };
        assert!(scene.events.contains(&told), "{:?}", scene.events);
        scene.command(2, Command::Continue);
        assert_eq!(scene.sent.last().unwrap().1, "-exec-continue");
    }
}
