//! Options for the appearance and keys of a full screen.

use clap::Args;
use sdm_screen::{BindingError, Bindings, Palette};

use crate::locale;

/// Colours, style and keys of a full screen.
#[derive(Clone, Debug, Default, Args)]
pub struct LookArgs {
    /// Draw the full screen with ASCII characters only, as in a locale without Unicode.
    #[arg(long)]
    pub ascii: bool,

    /// The colours of the full screen: those of the terminal, or a set for dark or light backgrounds, or for
    /// colour-blind readers on dark (blind) or light (blind-light) ones. Default: the last one used.
    #[arg(long, value_name = "WHICH",
          value_parser = ["terminal", "dark", "light", "blind", "blind-light"])]
    pub palette: Option<String>,

    /// Show the full screen as plain lines of text, one panel at a time, with the cursor at the selected line: for
    /// screen readers.
    #[arg(long)]
    pub linear: bool,

    /// Make one key of the full screen act as another: `--bind F8=n`, or `--bind x=none` to disable one. Can be
    /// repeated.
    #[arg(long, value_name = "KEY=KEY", value_parser = binding)]
    pub bind: Vec<String>,

    /// Do not use the mouse on the full screen, so that the terminal can select text with it.
    #[arg(long)]
    pub no_mouse: bool,
}

fn binding(text: &str) -> Result<String, BindingError> {
    Bindings::parse([text]).map(|_| text.to_owned())
}

impl LookArgs {
    /// The style of the screen, for a terminal with or without colours.
    #[must_use]
    pub fn style(&self, color: bool) -> sdm_screen::Style {
        let palette = self.palette.as_deref().and_then(Palette::named);
        sdm_screen::Style {
            color,
            ascii: self.ascii || !locale::is_unicode(),
            palette: palette.unwrap_or_default(),
            linear: self.linear,
        }
    }

    /// The user's key bindings, from `--bind`.
    #[must_use]
    pub fn bindings(&self) -> Bindings {
        let bindings = Bindings::parse(self.bind.iter().map(String::as_str));
        // Each binding is valid here. If there are too many bindings, none of them is used.
        bindings.unwrap_or_default()
    }

    /// The remembered settings that still apply. An explicit option takes precedence over the remembered
    /// one.
    #[must_use]
    pub fn recalled(&self, remembered: &str) -> String {
        let lines = remembered.lines();
        let kept = lines.filter(|line| self.palette.is_none() || !line.starts_with("palette "));
        kept.collect::<Vec<_>>().join("\n")
    }
}
