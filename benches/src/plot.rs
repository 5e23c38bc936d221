//! Plots of the tables as SVG, with logarithmic axes.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use plotters::prelude::*;

/// A line of a plot: its name, and its points.
pub struct Line {
    /// Its text in the legend.
    pub name: String,
    /// Points by rising x; all values are above 0.
    pub points: Vec<(f64, f64)>,
}

/// A plot.
pub struct Plot<'a> {
    /// The title, above it.
    pub title: &'a str,
    /// Quantity on the x axis, with its unit.
    pub x: &'a str,
    /// Quantity on the y axis, with its unit.
    pub y: &'a str,
    /// The lines, in the order of the legend.
    pub lines: Vec<Line>,
}

/// Colours of the lines. Each line also has marks of a different size, for readers who cannot see colours.
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 90, 181),
    RGBColor(220, 50, 32),
    RGBColor(26, 133, 80),
    RGBColor(140, 80, 160),
    RGBColor(200, 120, 0),
    RGBColor(90, 90, 90),
    RGBColor(0, 150, 170),
];
const SIZE: (u32, u32) = (760, 440);

impl Plot<'_> {
    /// Writes the plot.
    ///
    /// # Errors
    /// No points, points that no such axis can show, or a file that cannot be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        let mut svg = String::new();
        self.draw(&mut svg)
            .map_err(|error| anyhow!("{}: {error:#}", self.title))?;
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).with_context(|| format!("make {}", folder.display()))?;
        }
        fs::write(path, svg).with_context(|| format!("write {}", path.display()))
    }

    fn draw(&self, svg: &mut String) -> Result<()> {
        let all = || self.lines.iter().flat_map(|line| &line.points);
        let (x0, x1) = ends(all().map(|(x, _)| *x))?;
        let (y0, y1) = ends(all().map(|(_, y)| *y))?;
        let area = SVGBackend::with_string(svg, SIZE).into_drawing_area();
        let shown = |error: &dyn std::fmt::Display| anyhow!("draw: {error}");
        area.fill(&WHITE).map_err(|e| shown(&e))?;
        let mut chart = ChartBuilder::on(&area)
            .caption(self.title, ("sans-serif", 17))
            .margin(12)
            .x_label_area_size(42)
            .y_label_area_size(64)
            .build_cartesian_2d(
                (x0 * 0.8..x1 * 1.25).log_scale(),
                (y0 * 0.7..y1 * 1.5).log_scale(),
            )
            .map_err(|e| shown(&e))?;
        chart
            .configure_mesh()
            .x_desc(self.x)
            .y_desc(self.y)
            .light_line_style(RGBColor(240, 240, 240))
            .x_label_formatter(&number)
            .y_label_formatter(&number)
            .label_style(("sans-serif", 13))
            .draw()
            .map_err(|e| shown(&e))?;
        for (nth, line) in self.lines.iter().enumerate() {
            let colour = COLOURS[nth % COLOURS.len()];
            let drawn = LineSeries::new(line.points.iter().copied(), colour.stroke_width(2));
            let marks = drawn.point_size(3 + u32::try_from(nth % 2)?);
            chart
                .draw_series(marks)
                .map_err(|e| shown(&e))?
                .label(&line.name)
                .legend(move |(x, y)| {
                    PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2))
                });
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .background_style(WHITE.mix(0.85))
            .border_style(RGBColor(200, 200, 200))
            .label_font(("sans-serif", 13))
            .draw()
            .map_err(|e| shown(&e))?;
        area.present().map_err(|e| shown(&e))
    }
}

fn ends(values: impl Iterator<Item = f64>) -> Result<(f64, f64)> {
    let (low, high) = values.fold((f64::MAX, 0.0_f64), |(low, high), value| {
        (low.min(value), high.max(value))
    });
    if low <= 0.0 || !low.is_finite() || !high.is_finite() || high < low {
        bail!("no points above 0");
    }
    Ok((low, high))
}

/// The label of a tick on an axis: `1000`, `0.5`, `1e6`.
fn number(value: &f64) -> String {
    match *value {
        value if value >= 1e5 => format!("{value:e}"),
        value if value >= 10.0 => format!("{value:.0}"),
        value => format!("{value}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(points: Vec<(f64, f64)>) -> Plot<'static> {
        let name = "a <line>".to_owned();
        Plot {
            title: "What & why",
            x: "servers",
            y: "ms",
            lines: vec![Line { name, points }],
        }
    }

    #[test]
    fn plot_contains_labels_and_points() {
        let mut svg = String::new();
        let points = vec![(16.0, 0.5), (1024.0, 90.0), (1e6, 1e4)];
        plot(points).draw(&mut svg).expect("three points");
        for part in [
            "What &amp; why",
            "a &lt;line&gt;",
            "servers",
            "1e6",
            "<polyline",
        ] {
            assert!(svg.contains(part), "no {part} in {svg}");
        }
    }

    #[test]
    fn plot_refuses_values_without_logarithm() {
        for points in [vec![], vec![(1.0, 0.0)], vec![(1.0, f64::INFINITY)]] {
            assert!(
                plot(points.clone()).draw(&mut String::new()).is_err(),
                "{points:?}"
            );
        }
    }
}
