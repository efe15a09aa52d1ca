//! Charts drawn with characters.
//!
//! ```text
//!  9 ┤      ⢠⠃
//!    │    ⡠⠔⠁          one series: braille dots, eight a character
//!  0 ┤⣀⠤⠒⠁             several: a mark for each
//!    └────────
//!     0      9
//! ```

use unicode_width::UnicodeWidthStr;

use crate::report::shown;

/// How points are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A bar for each.
    Bar,
    /// With lines between them.
    Line,
    /// By themselves.
    Point,
}

/// Values over the x axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// What is said of it.
    pub name: String,
    /// In order; finite numbers.
    pub points: Vec<(f64, f64)>,
}

/// What is drawn: lines or points.
#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    /// Lines or points.
    pub kind: Kind,
    /// The values.
    pub series: Vec<Series>,
    /// What is said of the x axis.
    pub x_name: String,
    /// What stands under its ends.
    pub x_ends: (String, String),
    /// Whether equal distances on both axes are equal ratios.
    pub logarithmic: bool,
}

const MARKS: [char; 6] = ['•', '+', 'x', 'o', '#', '@'];

/// The least room for points.
pub const LEAST: (usize, usize) = (20, 4);

impl Chart {
    /// The chart in so many columns and lines, without those of its legend; `None` where there is
    /// no point.
    pub fn draw(&self, (width, height): (usize, usize)) -> Option<String> {
        let scale = |value: f64| if self.logarithmic { value.log10() } else { value };
        let points = || self.series.iter().flat_map(|series| &series.points);
        let x = Range::of(points().map(|point| scale(point.0)))?;
        let y = Range::of(points().map(|point| scale(point.1)))?;
        let label = |value: f64| number(if self.logarithmic { 10f64.powf(value) } else { value });
        let height = height.max(LEAST.1);
        let mut labels = vec![String::new(); height];
        (labels[0], labels[height - 1]) = (label(y.high), label(y.low));
        if height % 2 == 1 {
            labels[height / 2] = label(y.low / 2.0 + y.high / 2.0);
        }
        let margin = labels.iter().map(String::len).max().unwrap_or(0);
        let mut canvas = Canvas::new(
            width.saturating_sub(margin + 3).max(LEAST.0),
            height,
            self.series.len() > 1,
        );
        for (series, mark) in self.series.iter().zip(MARKS.iter().cycle()) {
            let place =
                |point: &(f64, f64)| canvas.place(x.part(scale(point.0)), y.part(scale(point.1)));
            let places: Vec<(usize, usize)> = series.points.iter().map(place).collect();
            match self.kind {
                Kind::Line if places.len() > 1 => {
                    places.windows(2).for_each(|pair| canvas.line(pair[0], pair[1], *mark));
                }
                _ => places.iter().for_each(|place| canvas.dot(*place, *mark)),
            }
        }
        let mut text = String::new();
        for (line, label) in canvas.cells.chunks(canvas.width).zip(&labels) {
            let axis = if label.is_empty() { '│' } else { '┤' };
            let line: String = line.iter().collect();
            text.push_str(&format!(" {label:>margin$} {axis}{}", line.trim_end()));
            text.push('\n');
        }
        let (left, right) = (shown(&self.x_ends.0), shown(&self.x_ends.1));
        let between = canvas.width.saturating_sub(left.width() + right.width()).max(1);
        let indent = " ".repeat(margin + 3);
        text.push_str(&format!(" {:margin$} └{}\n", "", "─".repeat(canvas.width)));
        text.push_str(&format!("{indent}{left}{}{right}\n", " ".repeat(between)));
        let names: Vec<String> = match &self.series[..] {
            [one] => vec![shown(&one.name)],
            all => all
                .iter()
                .zip(MARKS.iter().cycle())
                .map(|(of, mark)| format!("{mark} {}", shown(&of.name)))
                .collect(),
        };
        text.push_str(&format!("{indent}{} over {}\n", names.join("  "), shown(&self.x_name)));
        Some(text)
    }
}

/// Bars to the right of their labels, a line each; those below zero go to the left from where zero
/// is.
pub fn bars(labels: &[String], values: &[f64], width: usize) -> String {
    let labels: Vec<String> =
        labels.iter().map(|label| shorten(&shown(label), width / 3)).collect();
    let numbers: Vec<String> = values.iter().map(|value| number(*value)).collect();
    let widest = |texts: &[String]| texts.iter().map(|text| text.width()).max().unwrap_or(0);
    let (margin, behind) = (widest(&labels), widest(&numbers));
    let room = width.saturating_sub(margin + behind + 4).max(LEAST.0);
    let (low, high) =
        values.iter().fold((0f64, 0f64), |(low, high), value| (low.min(*value), high.max(*value)));
    let span = if high > low { high - low } else { 1.0 };
    let eighths = |value: f64| (value / span * (8 * room) as f64).round() as usize;
    let zero = (eighths(-low) / 8).min(room);
    let mut text = String::new();
    for ((label, value), number) in labels.iter().zip(values).zip(&numbers) {
        let length = eighths(value.abs());
        let bar = match *value < 0.0 {
            true => {
                let cells = length.div_ceil(8).min(zero);
                format!("{}{}", " ".repeat(zero - cells), "█".repeat(cells))
            }
            false => {
                let part = [" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][length % 8];
                format!("{}{}{}", " ".repeat(zero), "█".repeat(length / 8), part.trim_end())
            }
        };
        let space = " ".repeat(margin - label.width());
        text.push_str(&format!(" {space}{label} │{bar} {number}\n"));
    }
    text
}

fn shorten(text: &str, most: usize) -> String {
    let most = most.max(8);
    if text.width() <= most {
        return text.into();
    }
    let mut short = String::new();
    for c in text.chars() {
        if short.width() + c.to_string().width() >= most {
            break;
        }
        short.push(c);
    }
    short + "…"
}

/// A number as one takes it in at a glance: four digits that count.
pub fn number(value: f64) -> String {
    let size = value.abs();
    if size != 0.0 && !(1e-3..1e6).contains(&size) {
        let text = format!("{value:.3e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        return format!("{}e{exponent}", digits.trim_end_matches('0').trim_end_matches('.'));
    }
    let digits = if size >= 1e3 || size == 0.0 {
        0
    } else {
        3 - size.log10().floor().clamp(-3.0, 3.0) as i32
    };
    let text = format!("{value:.0$}", digits.max(0) as usize);
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').into(),
        false => text,
    }
}

/// The values of an axis.
struct Range {
    low: f64,
    high: f64,
}

impl Range {
    fn of(values: impl Iterator<Item = f64>) -> Option<Range> {
        let found = values.fold(None, |range: Option<(f64, f64)>, value| match range {
            Some((low, high)) => Some((low.min(value), high.max(value))),
            None => Some((value, value)),
        });
        found.map(|(low, high)| match high > low {
            true => Range { low, high },
            false => Range { low: low - 0.5, high: high + 0.5 },
        })
    }

    /// Where a value is between the ends, from 0 to 1. Ends may be further apart than numbers go.
    fn part(&self, value: f64) -> f64 {
        ((value / 2.0 - self.low / 2.0) / (self.high / 2.0 - self.low / 2.0)).clamp(0.0, 1.0)
    }
}

/// Characters, or their dots.
struct Canvas {
    cells: Vec<char>,
    width: usize,
    height: usize,
    /// Dots of a character, to the right and down.
    dots: (usize, usize),
}

impl Canvas {
    fn new(width: usize, height: usize, marks: bool) -> Canvas {
        let dots = if marks { (1, 1) } else { (2, 4) };
        Canvas { cells: vec![' '; width * height], width, height, dots }
    }

    /// The dot of parts of the axes, from above.
    fn place(&self, x: f64, y: f64) -> (usize, usize) {
        let (right, down) = (self.width * self.dots.0 - 1, self.height * self.dots.1 - 1);
        ((x * right as f64).round() as usize, ((1.0 - y) * down as f64).round() as usize)
    }

    fn dot(&mut self, (x, y): (usize, usize), mark: char) {
        /// Bits of braille's dots, by row and column.
        const BITS: [[u32; 2]; 4] = [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]];
        let cell = &mut self.cells[(y / self.dots.1) * self.width + x / self.dots.0];
        *cell = match self.dots {
            (1, 1) => mark,
            _ => {
                let before = if *cell == ' ' { 0x2800 } else { u32::from(*cell) };
                char::from_u32(before | BITS[y % 4][x % 2]).unwrap_or('·')
            }
        };
    }

    fn line(&mut self, from: (usize, usize), to: (usize, usize), mark: char) {
        let steps = from.0.abs_diff(to.0).max(from.1.abs_diff(to.1)).max(1);
        let between = |from: usize, to: usize, step: usize| {
            (from as f64 + (to as f64 - from as f64) * step as f64 / steps as f64).round() as usize
        };
        (0..=steps).for_each(|step| {
            self.dot((between(from.0, to.0, step), between(from.1, to.1, step)), mark)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(kind: Kind, series: &[&[(f64, f64)]]) -> Chart {
        let series = series.iter().enumerate();
        Chart {
            kind,
            series: series
                .map(|(at, points)| Series { name: format!("y{at}"), points: points.to_vec() })
                .collect(),
            x_name: "x".into(),
            x_ends: ("0".into(), "9".into()),
            logarithmic: false,
        }
    }

    #[test]
    fn lines_go_from_the_lowest_to_the_highest_point() {
        let text = chart(Kind::Line, &[&[(0.0, 0.0), (9.0, 9.0)]]).draw((24, 4)).unwrap();
        let expected = [
            " 9 ┤               ⣀⡠⠤⠒⠉",
            "   │          ⣀⡠⠔⠒⠉",
            "   │     ⣀⠤⠔⠊⠉",
            " 0 ┤⣀⠤⠒⠊⠉",
            "   └────────────────────",
        ];
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[..5], expected, "{text}");
        assert!(lines[5].ends_with('9') && lines[6].ends_with("y0 over x"), "{text}");
    }

    #[test]
    fn series_have_marks_of_their_own() {
        let text = chart(Kind::Point, &[&[(0.0, 1.0)], &[(9.0, 3.0)]]).draw((24, 4)).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines[0].ends_with('+')
                && lines[3].ends_with("┤•")
                && lines[6].ends_with("• y0  + y1 over x"),
            "{text}"
        );
    }

    #[test]
    fn no_points_are_no_chart_and_one_is_in_the_middle() {
        assert_eq!(chart(Kind::Line, &[&[]]).draw((24, 4)), None);
        let text = chart(Kind::Line, &[&[(1.0, 5.0)]]).draw((24, 4)).unwrap();
        assert!(text.starts_with(" 5.5 ┤") && text.contains("\n 4.5 ┤"), "{text}");
        let far = chart(Kind::Line, &[&[(0.0, f64::MIN), (1.0, f64::MAX)]]).draw((24, 4)).unwrap();
        assert!(far.starts_with("  1.798e308 ┤"), "{far}");
    }

    #[test]
    fn bars_are_as_long_as_their_values() {
        let labels = ["a", "bc", "d\u{1b}"].map(String::from);
        let expected = "       a │██████████ 2\n      bc │████████████████████ 4\n d\\u{1b} │ 0\n";
        assert_eq!(bars(&labels, &[2.0, 4.0, 0.0], 0), expected);
        assert!(bars(&labels, &[1.0, 3.0, 0.0], 0).starts_with("       a │██████▋ 1\n"));
        let both = bars(&["a".into(), "b".into()], &[-1.0, 1.0], 0);
        assert_eq!(both, " a │██████████ -1\n b │          ██████████ 1\n");
    }

    #[test]
    fn numbers_have_four_digits() {
        let texts: Vec<String> =
            [0.0, 1.0, 0.5, 1234.5, -0.012345, 999_999.0, 1e6, 1.5e-9, 12.3456]
                .into_iter()
                .map(number)
                .collect();
        assert_eq!(
            texts,
            ["0", "1", "0.5", "1234", "-0.01235", "999999", "1e6", "1.5e-9", "12.35"]
        );
    }
}
