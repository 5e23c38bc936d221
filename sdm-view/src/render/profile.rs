//! Profiles on a screen.

use sdm_text::counted;

use super::page::Page;
use super::place;
use crate::profile::{Profile, ProfileClass, ProfileNode};
use crate::readable;

/// Minimum shares of a line, in thousandths. The next larger one is tried until the lines fit on the
/// screen.
const LEAST: [u64; 7] = [0, 5, 10, 20, 50, 100, 200];

/// A share of a total: `62.5 %`.
pub(crate) fn share(part: u64, whole: u64) -> String {
    let tenths = thousandths(part, whole);
    format!("{}.{} %", tenths / 10, tenths % 10)
}

fn thousandths(part: u64, whole: u64) -> u64 {
    let whole = u128::from(whole.max(1));
    let tenths = (u128::from(part) * 1000 + whole / 2) / whole;
    u64::try_from(tenths).unwrap_or(u64::MAX)
}

pub(super) fn lines(page: &Page<'_>, profile: &Profile) -> Vec<String> {
    let mut lines = vec![page.said(&profile.tasks, &head(profile), false)];
    if profile.is_empty() {
        return lines;
    }
    let whole = profile.times(&profile.tasks);
    let nodes = profile.tree(&profile.tasks);
    let mut tree = Vec::new();
    for least in LEAST {
        let mut writer = TreeWriter {
            page,
            whole,
            least,
            lines: Vec::new(),
        };
        writer.below(&nodes, "", true);
        tree = writer.lines;
        if tree.len() <= page.style.rows {
            break;
        }
    }
    lines.append(&mut page.style.fit(tree));
    let mut say = |text: &str| lines.push(page.style.faint(text));
    if !profile.others.is_empty() {
        let who = page.label(&profile.others);
        say(&format!(
            "{who}: {} in stacks that are not shown; select fewer ranks",
            counted(profile.others_times, "sample")
        ));
    }
    let classes = profile.classes();
    // A single sample of each task shows no progress.
    if profile.looks > profile.tasks.len() {
        lines.push(page.style.word("Progress:"));
        lines.extend(classes.iter().map(|class| {
            page.style.wrap(
                &format!("  {}", page.said(&class.tasks, &progress(class), false)),
                6,
            )
        }));
    }
    lines.push(page.style.faint(&price(profile)));
    lines
}

/// The heading: `98 samples of each in 10.0 s`.
fn head(profile: &Profile) -> String {
    let each = profile.looks / profile.tasks.len().max(1);
    let seconds = profile.elapsed.as_secs_f64();
    match profile.tasks.len() {
        1 => format!("{} in {seconds:.1} s", counted(each, "sample")),
        _ => format!("{} of each in {seconds:.1} s", counted(each, "sample")),
    }
}

/// The text about the progress of a class.
fn progress(class: &ProfileClass) -> String {
    let [outer @ .., inner] = &class.place[..] else {
        return "elsewhere".to_owned();
    };
    let inside = match (inner.file.as_str(), outer.last()) {
        // A call into a runtime has the place of its caller.
        (_, Some(caller)) if caller.file == inner.file && caller.line == inner.line => {
            format!(", called by {}", readable::function(&caller.function))
        }
        _ => String::new(),
    };
    let place = format!("{}{inside}", place::stack_frame(inner));
    match class.moved {
        false => format!("always in the same place, {place}"),
        true => format!(
            "{}; {} of the time in {place}",
            counted(class.places, "place"),
            share(class.times, class.all)
        ),
    }
}

/// The cost of the sampling.
fn price(profile: &Profile) -> String {
    #[allow(clippy::cast_precision_loss, reason = "it is shown with two digits")]
    let ms = |us: u64| us as f64 / 1000.0;
    let each = ms(profile.stood_us) / ms(profile.looks.max(1).saturating_mul(1000));
    let elapsed = u64::try_from(profile.elapsed.as_micros()).unwrap_or(u64::MAX);
    let most = ms(profile.stood_most_us) * 100.0 / ms(elapsed.max(1));
    format!(
        "a sample stopped a rank for {each:.2} ms (longest {:.1} ms), and no rank for more than {most:.2} % of the time; SDM used {:.2} s of processor time",
        ms(profile.longest_us),
        ms(profile.processor_us) / 1000.0
    )
}

struct TreeWriter<'a> {
    page: &'a Page<'a>,
    whole: u64,
    least: u64,
    lines: Vec<String>,
}

impl TreeWriter<'_> {
    /// Appends child nodes; `is_root` is true for the roots.
    fn below(&mut self, nodes: &[ProfileNode], lead: &str, is_root: bool) {
        let is_shown = |node: &&ProfileNode| thousandths(node.times, self.whole) >= self.least;
        let shown: Vec<&ProfileNode> = nodes.iter().filter(is_shown).collect();
        for (at, node) in shown.iter().enumerate() {
            let is_last = at + 1 == shown.len();
            let (fork, bar) = match (is_root, is_last) {
                (true, _) => ("", ""),
                (false, true) => ("└─ ", "   "),
                (false, false) => ("├─ ", "│  "),
            };
            let who = self.page.style.label(&self.page.label(&node.tasks));
            let times = share(node.times, self.whole);
            let text = format!("{lead}{fork}{times} {who}: {}", node.place());
            self.lines.push(text);
            self.chain(node, &format!("{lead}{bar}"));
        }
    }

    /// Appends a chain of single callees, which need no share of their own.
    fn chain(&mut self, node: &ProfileNode, lead: &str) {
        let mut node = node;
        while let [only] = &node.below[..] {
            if node.here > 0 || only.times != node.times || only.tasks != node.tasks {
                break;
            }
            node = only;
            self.lines.push(format!("{lead}   {}", node.place()));
        }
        self.below(&node.below, lead, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::tests::four;
    use crate::render::{Names, Style};

    #[test]
    fn profile_shows_locations_and_progress() {
        let names = Names::ranks();
        let page = Page {
            names: &names,
            style: Style::PLAIN,
        };
        assert_eq!(
            lines(&page, &four()).join("\n"),
            "\
ranks 0-3 (4): 20 samples of each in 2.0 s
100.0 % ranks 0-3 (4): main () at solver.c:80-82
├─ 50.0 % ranks 0-1 (2): exchange () at solver.c:44
│     MPI_Recv () at solver.c:44
├─ 42.5 % ranks 2-3 (2): relax () at solver.c:12-15
└─ 7.5 % rank 2: dump () at solver.c:9
Progress:
  ranks 0-1 (2): always in the same place, MPI_Recv () at solver.c:44, called by exchange
  rank 2: 3 places; 70.0 % of the time in relax () at solver.c
  rank 3: always in the same place, relax () at solver.c:15
a sample stopped a rank for 0.20 ms (longest 0.9 ms), and no rank for more than 0.20 % of the time; SDM used 0.24 s of processor time"
        );
    }

    #[test]
    fn profile_shares_are_rounded() {
        let check = |part, whole, expect: &str| assert_eq!(share(part, whole), expect);
        check(0, 0, "0.0 %");
        check(1, 3, "33.3 %");
        check(2, 3, "66.7 %");
        check(u64::MAX, u64::MAX, "100.0 %");
        check(1, 4000, "0.0 %");
    }
}
