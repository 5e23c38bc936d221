//! Options for the appearance and keys of a full screen.

use clap::Args;
use sdm_screen::{BindingError, Bindings, Palette};

use crate::locale;

/// Colours, style and keys of a full screen.
#[derive(Clone, Debug, Default, Args)]
pub struct LookArgs {
    /// Draw the whole screen with nothing but ASCII, as where the locale has no Unicode.
    #[arg(long)]
    pub ascii: bool,

    /// The screen's colours: those that the terminal has made its own, for a dark or a light background, or for the colour-blind on
    /// either; the one that was looked at last unless given.
    #[arg(long, value_name = "WHICH",
          value_parser = ["terminal", "dark", "light", "blind", "blind-light"])]
    pub palette: Option<String>,

    /// Show one part of the screen at a time, in lines and words, with the cursor where one is: for a screen reader.
    #[arg(long)]
    pub linear: bool,

    /// Let a key of the screen do what another one does: `--bind F8=n`, `--bind x=none`. May be given again.
    #[arg(long, value_name = "KEY=KEY", value_parser = binding)]
    pub bind: Vec<String>,

    /// Leave the mouse to the terminal, which marks text by it.
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

    /// The key bindings.
    #[must_use]
    pub fn bindings(&self) -> Bindings {
        let bindings = Bindings::parse(self.bind.iter().map(String::as_str));
        // Each is known to be one; of more than there are keys none is taken.
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
