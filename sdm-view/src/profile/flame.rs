//! The flame graph: one self-contained SVG file.

use sdm_idset::IdSet;

use super::{Profile, ProfileNode};
use crate::markup::{Escaped, put};
use crate::picture::{self, Part};
use crate::render::{Names, share};

/// The style sheet, like that of a report's pictures.
const STYLE: &str = include_str!("flame.css");
/// Width of the picture, in the units of its parts.
const WIDTH: f64 = picture::WIDTH + 2.0 * MARGIN;
const MARGIN: f64 = 10.0;
/// The height of a line of text.
const LINE: f64 = 22.0;
/// Minimum width of a frame; narrower ones are left out.
const NARROWEST: f64 = 0.2;
/// The width of a set in a title.
const SET_WIDTH: usize = 60;

/// The flame graph of all tasks, and of each class if there are several. The width of a frame is the number
/// of its samples, and callers are above.
#[must_use]
pub fn flame(profile: &Profile, names: &Names) -> String {
    let mut body = String::new();
    let mut top = MARGIN;
    let title = format!("all: {}", names.label(&profile.tasks, SET_WIDTH));
    one(
        &mut body,
        profile,
        &profile.tasks,
        (&title, names),
        &mut top,
    );
    let classes = profile.classes();
    if classes.len() > 1 {
        for class in &classes {
            let moved = if class.moved {
                ""
            } else {
                ", which made no progress"
            };
            let title = format!("{}{moved}", names.label(&class.tasks, SET_WIDTH));
            one(&mut body, profile, &class.tasks, (&title, names), &mut top);
        }
    }
    let height = top + MARGIN;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
         role=\"img\" aria-label=\"flame graph\">\n<style>\n{STYLE}</style>\n\
         <rect class=\"page\" width=\"{WIDTH}\" height=\"{height}\"/>\n{body}</svg>\n"
    )
}

fn one(
    body: &mut String,
    profile: &Profile,
    tasks: &IdSet,
    (title, names): (&str, &Names),
    top: &mut f64,
) {
    let whole = profile.times(tasks);
    let nodes = profile.tree(tasks);
    put!(
        body,
        "<text class=\"title\" x=\"{MARGIN}\" y=\"{}\">{}</text>\n",
        *top + LINE - 7.0,
        Escaped(title)
    );
    *top += LINE;
    let parts = parts(&nodes, whole, names);
    put!(body, "<g transform=\"translate({MARGIN} {top})\">\n");
    *top += picture::paint(body, &parts) + LINE;
    body.push_str("</g>\n");
}

fn parts<'a>(nodes: &'a [ProfileNode], whole: u64, names: &Names) -> Vec<Part<'a>> {
    #[allow(clippy::cast_precision_loss, reason = "a picture needs no more")]
    let weight = |times: u64| times as f64;
    let seen =
        |node: &&ProfileNode| weight(node.times) * picture::WIDTH >= weight(whole) * NARROWEST;
    let part = |node: &'a ProfileNode| {
        let place = node.place();
        let who = names.label(&node.tasks, SET_WIDTH);
        let own = match node.here {
            0 => String::new(),
            here => format!(", {} itself", share(here, whole)),
        };
        Part {
            title: format!("{place}: {}{own}, {who}", share(node.times, whole)),
            text: place,
            function: &node.frame.function,
            is_odd: false,
            weight: weight(node.times),
            below: parts(&node.below, whole, names),
        }
    };
    nodes.iter().filter(seen).map(part).collect()
}
