//! Tests of the gdb questions of stack and frame commands: the rank stays stopped until they are answered.

use super::*;

fn frame(level: u32) -> String {
    let function = ["work", "step", "solve", "main"][level as usize];
    let file = "file=\"a.c\",fullname=\"/a.c\",line=\"9\"";
    format!("frame={{level=\"{level}\",addr=\"0x{level}00\",func=\"{function}\",{file}}}")
}

impl Scene {
    /// Number of questions to gdb that this command asks.
    fn questions(&mut self, id: u64, command: Command) -> usize {
        self.command(id, command);
        let mut count = 0;
        while let Some((_, line)) = self.sent.first() {
            let answer = match line.split(' ').collect::<Vec<_>>()[..] {
                ["-stack-info-frame"] => format!("^done,{}", frame(1)),
                ["-stack-list-frames", "0", _] => {
                    let frames: Vec<String> = (0..4).map(frame).collect();
                    format!("^done,stack=[{}]", frames.join(","))
                }
                ["-stack-list-frames", level, _] => {
                    format!("^done,stack=[{}]", frame(level.parse().unwrap()))
                }
                _ => "^done".to_owned(),
            };
            count += 1;
            self.reply(&answer);
        }
        assert!(self.answers[&id].is_ok(), "{:?}", self.answers[&id]);
        count
    }
}

#[test]
fn stacks_and_frames_send_minimal_queries() {
    let mut scene = Scene::at_main(FakeHost::default());
    let stack = |args| {
        Command::Backtrace(BacktraceSpec {
            args,
            ..BacktraceSpec::default()
        })
    };
    // The number of questions: for the frames, for MI's arguments, and for the arguments that only gdb's command line
    // lists.
    for (at, (command, expect)) in [
        (stack(false), 1),
        (stack(true), 3),
        (Command::SelectFrame(FrameSelect::Current), 3),
        (Command::SelectFrame(FrameSelect::Level(2)), 4),
        (Command::SelectFrame(FrameSelect::Move(1)), 5),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("{command:?}");
        assert_eq!(scene.questions(10 + at as u64, command), expect, "{name}");
    }
}
