//! Colour palettes.

use ratatui::style::Color;

/// The severity of a state, which selects its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Tone {
    /// Ended or idle.
    Off,
    /// Normal.
    Good,
    /// Busy.
    Busy,
    /// Waiting.
    Wait,
    /// Unknown.
    Unknown,
    /// Failed.
    Bad,
}

/// A set of colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Palette {
    /// The terminal's own sixteen colours.
    #[default]
    Terminal,
    /// For a dark background.
    Dark,
    /// For a light background.
    Light,
    /// For colour-blind users, on a dark background.
    Blind,
    /// For a light background and the colour-blind.
    BlindLight,
}

impl Palette {
    /// All palettes, in the order of the key that switches them.
    pub const ALL: [Self; 5] = [
        Self::Terminal,
        Self::Dark,
        Self::Light,
        Self::Blind,
        Self::BlindLight,
    ];

    /// The name of the palette in the settings.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Terminal => "terminal",
            Self::Dark => "dark",
            Self::Light => "light",
            Self::Blind => "blind",
            Self::BlindLight => "blind-light",
        }
    }

    /// The palette with this name; None for an unknown name.
    #[must_use]
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.word() == word)
    }

    /// The palette after this one, in the order of [`Self::ALL`].
    pub(crate) fn next(self) -> Self {
        let at = Self::ALL.iter().position(|it| *it == self).unwrap_or(0);
        Self::ALL[(at + 1) % Self::ALL.len()]
    }

    /// The colour of a tone. None for a tone that is shown dimmed.
    pub(crate) fn color(self, tone: Tone) -> Option<Color> {
        let [off, good, busy, wait, unknown, bad] = match self {
            Self::Terminal => {
                return match tone {
                    Tone::Off => None,
                    Tone::Good => Some(Color::Green),
                    Tone::Busy => Some(Color::Cyan),
                    Tone::Wait => Some(Color::Yellow),
                    Tone::Unknown => Some(Color::Magenta),
                    Tone::Bad => Some(Color::Red),
                };
            }
            Self::Dark => [245, 114, 80, 221, 176, 203],
            Self::Light => [242, 22, 24, 94, 90, 124],
            Self::Blind => [245, 33, 123, 220, 183, 166],
            Self::BlindLight => [244, 19, 32, 136, 53, 88],
        };
        Some(Color::Indexed(match tone {
            Tone::Off => off,
            Tone::Good => good,
            Tone::Busy => busy,
            Tone::Wait => wait,
            Tone::Unknown => unknown,
            Tone::Bad => bad,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TONES: [Tone; 6] = [
        Tone::Off,
        Tone::Good,
        Tone::Busy,
        Tone::Wait,
        Tone::Unknown,
        Tone::Bad,
    ];

    /// The red, green and blue of an indexed colour of a terminal with 256 colours (6x6x6 and greys), in linear light.
    fn light(color: Color) -> [f64; 3] {
        let Color::Indexed(number @ 16..) = color else {
            panic!("{color:?} is what a terminal makes of it");
        };
        let levels = [0.0, 95.0, 135.0, 175.0, 215.0, 255.0];
        let rgb = match number {
            232.. => [8.0 + 10.0 * f64::from(number - 232); 3],
            _ => [(number - 16) / 36, (number - 16) / 6 % 6, (number - 16) % 6]
                .map(|at| levels[usize::from(at)]),
        };
        rgb.map(|it| match it / 255.0 {
            it if it <= 0.04045 => it / 12.92,
            it => ((it + 0.055) / 1.055_f64).powf(2.4),
        })
    }

    fn luminance([r, g, b]: [f64; 3]) -> f64 {
        0.2126 * r + 0.7152 * g + 0.0722 * b
    }

    /// Converts linear light to CIE L*a*b*, a colour space in which equal distances look about equal.
    fn lab([r, g, b]: [f64; 3]) -> [f64; 3] {
        let f = |t: f64| match t > 0.008_856 {
            true => t.cbrt(),
            false => 7.787 * t + 16.0 / 116.0,
        };
        let x = f((0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505);
        let y = f(luminance([r, g, b]));
        let z = f((0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089);
        [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
    }

    /// The colours that eyes without one kind of cones see ("A Physiologically-based Model for Simulation
    /// of Color Vision Deficiency", Machado, Oliveira and Fernandes, 2009, severity 1).
    const EYES: [[[f64; 3]; 3]; 4] = [
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        [
            [0.152_286, 1.052_583, -0.204_868],
            [0.114_503, 0.786_281, 0.099_216],
            [-0.003_882, -0.048_116, 1.051_998],
        ],
        [
            [0.367_322, 0.860_646, -0.227_968],
            [0.280_085, 0.672_501, 0.047_413],
            [-0.011_820, 0.042_940, 0.968_881],
        ],
        [
            [1.255_528, -0.076_749, -0.178_779],
            [-0.078_411, 0.930_809, 0.147_602],
            [0.004_733, 0.691_367, 0.303_900],
        ],
    ];

    fn seen(color: Color, eye: &[[f64; 3]; 3]) -> [f64; 3] {
        let light = light(color);
        let sum = |row: [f64; 3]| -> f64 { row.iter().zip(light).map(|(a, b)| a * b).sum() };
        lab(eye.map(|row| sum(row).clamp(0.0, 1.0)))
    }

    #[test]
    fn every_colour_has_contrast_to_its_background() {
        for (palette, background) in [
            (Palette::Dark, 0.0),
            (Palette::Blind, 0.0),
            (Palette::Light, 1.0),
            (Palette::BlindLight, 1.0),
        ] {
            for tone in TONES {
                let own = luminance(light(palette.color(tone).unwrap()));
                let (high, low) = (f64::max(own, background), f64::min(own, background));
                let contrast = (high + 0.05) / (low + 0.05);
                assert!(contrast >= 3.0, "{palette:?} {tone:?}: {contrast:.1}");
            }
        }
    }

    /// A distance of 10 is clearly visible as a different colour.
    #[test]
    fn colour_blind_palettes_are_distinct_for_every_eye() {
        for palette in [Palette::Blind, Palette::BlindLight] {
            for eye in &EYES {
                for (at, a) in TONES.iter().enumerate() {
                    for b in &TONES[..at] {
                        let [a_seen, b_seen] =
                            [a, b].map(|it| seen(palette.color(*it).unwrap(), eye));
                        let each = a_seen.iter().zip(b_seen);
                        let distance = each.map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
                        assert!(distance >= 20.0, "{palette:?} {a:?} {b:?}: {distance:.1}");
                    }
                }
            }
        }
    }

    #[test]
    fn palette_is_selected_by_its_name_in_settings() {
        for palette in Palette::ALL {
            assert_eq!(Palette::named(palette.word()), Some(palette));
        }
        assert_eq!(Palette::named("x"), None);
        assert_eq!(Palette::BlindLight.next(), Palette::Terminal);
    }
}
