//! A headless browser that renders pages.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

/// Names of programs that may be a headless browser, in the order in which they are tried.
const PROGRAMS: [&str; 4] = [
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
];

/// Script that makes a page report overflow: of the page beyond the window, or of a picture's text beyond its frame.
const MEASURE: &str = r#"<script>
const page = document.documentElement;
const groups = [...document.querySelectorAll('svg.stacks g')];
const over = groups.filter(group => {
  const text = group.querySelector('text'), rect = group.querySelector('rect');
  if (!text) return false;
  const inner = text.getBoundingClientRect(), outer = rect.getBoundingClientRect();
  return inner.right > outer.right + 0.5 || inner.left < outer.left || inner.width === 0;
});
const cells = [...document.querySelectorAll('td')].filter(cell => cell.offsetParent);
const room = document.querySelector('main').clientWidth / 2;
let split = 0;
for (const cell of cells) {
  const walk = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
  for (let node = walk.nextNode(); node; node = walk.nextNode()) {
    for (const word of node.data.matchAll(/\S+/g)) {
      const range = document.createRange();
      range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].length);
      const parts = [...range.getClientRects()];
      const width = parts.reduce((sum, part) => sum + part.width, 0);
      if (new Set(parts.map(part => part.top)).size > 1 && width < room) split += 1;
    }
  }
}
document.title = JSON.stringify({
  split,
  width: page.scrollWidth, window: page.clientWidth, height: page.scrollHeight,
  texts: document.querySelectorAll('svg.stacks text').length, over: over.length,
  seen: document.body.innerText.length,
});
</script>"#;

/// A browser that was found.
pub struct Browser {
    program: &'static str,
}

impl Browser {
    /// The browser of this machine. Without one, the skip is reported and the result is `None`.
    #[must_use]
    pub fn find() -> Option<Self> {
        let runs = |program: &&&str| {
            let mut command = Command::new(program);
            let command = command.arg("--version").stdin(Stdio::null());
            command.output().is_ok_and(|output| output.status.success())
        };
        let found = PROGRAMS.iter().find(runs);
        if found.is_none() {
            println!("SKIP: pages in a browser: no chromium: run scripts/install-deps");
        }
        found.map(|program| Self { program })
    }

    /// The name of the browser's program.
    #[must_use]
    pub fn program(&self) -> &'static str {
        self.program
    }

    /// The HTML of a page after the browser has loaded it and run its scripts.
    ///
    /// # Panics
    /// If the browser fails.
    #[must_use]
    pub fn document(&self, page: &Path, width: u32) -> String {
        let folder = page.parent().expect("a file is in a folder");
        let output = Command::new(self.program)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"])
            .arg(format!(
                "--user-data-dir={}",
                folder.join("browser").display()
            ))
            .arg(format!("--window-size={width},1000"))
            .arg(format!("file://{}", page.display()))
            .stdin(Stdio::null())
            .output()
            .expect("it ran before");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && !text.is_empty(), "{errors}");
        text
    }

    /// Measures a page in a window of this width. The record has the page's `width` and `height`, the width of the
    /// `window`, and the number of `texts` in the picture. `over` counts texts that run over their frame, `seen` the
    /// visible characters, and `split` the words in table cells that are broken although half a line has room.
    ///
    /// # Panics
    /// If the browser fails.
    #[must_use]
    pub fn measure(&self, page: &Path, width: u32) -> Value {
        let text = fs::read_to_string(page).expect("the page is there");
        let policy = text.find("<meta http-equiv=").expect("it has a policy");
        let end = policy + text[policy..].find("/>").expect("it is closed") + 2;
        let scripted = [&text[..policy], &text[end..]].concat();
        let scripted = scripted.replace("</body>", &format!("{MEASURE}</body>"));
        let copy = page.with_extension("measured.html");
        fs::write(&copy, scripted).expect("the folder is ours");
        let shown = self.document(&copy, width);
        let (_, rest) = shown.split_once("<title>").expect("it has a title");
        let (title, _) = rest.split_once("</title>").expect("it is closed");
        serde_json::from_str(title).unwrap_or_else(|error| panic!("{error}: {title}"))
    }
}
