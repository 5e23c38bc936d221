//! The checker of accessibility axe-core on a page in a browser.

use serde_json::json;

use crate::page::BrowserPage;
use crate::parts;

/// The violations that axe-core finds: each rule, and the element. The rule that is off counts the items below an item
/// of a tree as its text.
const BARRIERS: &str = "axe.run(document, { resultTypes: ['violations'], rules: { 'label-content-name-mismatch': { enabled: false } } }).then(({ violations }) => violations.flatMap((it) => it.nodes.map((node) => `${it.id}: ${node.target} ${node.any.map((why) => why.message)}`)))";

/// The installed checker.
pub struct Accessibility {
    script: String,
}

impl Accessibility {
    /// The checker; `None` if it is not installed, and the test is skipped.
    ///
    /// # Panics
    /// If its installation is incomplete.
    #[must_use]
    pub fn find() -> Option<Self> {
        let script = parts::editors("testsupport")?.join("node_modules/axe-core/axe.min.js");
        let script = std::fs::read_to_string(script).expect("it is installed");
        Some(Self { script })
    }

    /// Checks each tab of the page, in light and in dark colours.
    ///
    /// # Panics
    /// If a rule is violated.
    pub fn check_tabs(&self, page: &mut BrowserPage) {
        page.value(&format!(
            "window.axe ? true : (() => {{ {}; return true; }})()",
            self.script
        ));
        for colours in ["light", "dark"] {
            let feature = json!([{ "name": "prefers-color-scheme", "value": colours }]);
            page.call("Emulation.setEmulatedMedia", json!({ "features": feature }));
            for tab in ["map", "waits", "profile", "values", "source"] {
                page.click(&format!("#tab-{tab}"));
                assert_eq!(page.value(BARRIERS), json!([]), "{tab}, {colours}");
            }
        }
    }
}
