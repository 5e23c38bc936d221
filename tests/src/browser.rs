//! A headless browser that renders pages.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

/// Programs that are such a browser.
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
document.title = JSON.stringify({
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

    /// The document as it is once the browser has shown it.
    ///
    /// # Panics
    /// Where the browser fails.
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

    /// Measures a page in a window: `width`, `window`, `height`, `texts` of the picture, the number
    /// of texts that run `over` their frame, and the number of characters `seen`.
    ///
    /// # Panics
    /// Where the browser fails.
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
