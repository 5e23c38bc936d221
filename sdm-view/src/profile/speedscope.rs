//! Writes a profile in speedscope's file format: <https://www.speedscope.app/file-format-schema.json>.

use std::collections::HashMap;

use sdm_debug::reply::StackFrame;
use sdm_idset::IdSet;
use serde_json::{Value, json};

use super::Profile;
use crate::readable;
use crate::render::{Names, printable};

/// The width of a set in the name of a profile.
const SET_WIDTH: usize = 40;

/// A file with a profile of all tasks, and one of each class if there are several. A weight is the number
/// of samples of a thread.
#[must_use]
pub fn speedscope(profile: &Profile, names: &Names) -> String {
    let mut frames = Frames::default();
    let mut profiles = vec![one(profile, &profile.tasks, "all", &mut frames)];
    let classes = profile.classes();
    if classes.len() > 1 {
        for class in &classes {
            let name = names.label(&class.tasks, SET_WIDTH);
            profiles.push(one(profile, &class.tasks, &name, &mut frames));
        }
    }
    let file = json!({
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "exporter": concat!("sdm ", env!("CARGO_PKG_VERSION")),
        "name": "sdm profile",
        "activeProfileIndex": 0,
        "shared": { "frames": frames.list },
        "profiles": profiles,
    });
    format!("{}\n", sdm_text::record(&file.to_string()))
}

fn one(profile: &Profile, tasks: &IdSet, name: &str, frames: &mut Frames) -> Value {
    let (mut samples, mut weights, mut end) = (Vec::new(), Vec::new(), 0_u64);
    for (stack, times, _) in profile.stacks_of(tasks) {
        let stack = stack.iter().map(|frame| frames.index(frame));
        samples.push(stack.collect::<Vec<_>>());
        weights.push(times);
        end = end.saturating_add(times);
    }
    json!({
        "type": "sampled",
        "name": name,
        "unit": "none",
        "startValue": 0,
        "endValue": end,
        "samples": samples,
        "weights": weights,
    })
}

/// The distinct functions, regardless of lines.
#[derive(Default)]
struct Frames {
    list: Vec<Value>,
    known: HashMap<[String; 3], usize>,
}

impl Frames {
    fn index(&mut self, frame: &StackFrame) -> usize {
        let key = [&frame.module, &frame.function, &frame.file].map(Clone::clone);
        *self.known.entry(key).or_insert_with(|| {
            let mut fields =
                json!({ "name": printable(readable::function(&frame.function).as_bytes()) });
            let file = match frame.file.as_str() {
                "" => &frame.module,
                file => file,
            };
            if !file.is_empty() {
                fields["file"] = printable(file.as_bytes()).into();
            }
            self.list.push(fields);
            self.list.len() - 1
        })
    }
}
