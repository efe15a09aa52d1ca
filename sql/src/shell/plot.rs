//! `.plot`: the columns of a query as a chart.

use warpframe::DataFrame;
use warpframe::arrow::array::{Array, ArrayRef, AsArray};
use warpframe::arrow::compute::cast;
use warpframe::arrow::datatypes::{DataType, Field, Float64Type, TimeUnit};
use warpframe::arrow::util::display::FormatOptions;
use warpframe::frame::{terminal_size, value_texts};
use warpframe::sql::{keywords, type_name};

use crate::plot::{Chart, Kind, LEAST, Series, bars};
use crate::report::Failure;
use crate::run::Runner;

/// What a chart measures where no terminal and nobody says.
const USUAL: (usize, usize) = (72, 15);
/// Most bars of a chart.
const MOST_BARS: usize = 100;
/// Rows copied from a device at a time.
const BATCH_ROWS: usize = 1 << 16;

/// Draws what a line behind `.plot` asks for.
///
/// # Errors
/// The query fails, is none, or has columns that no chart has.
pub fn obey(runner: &mut Runner<'_>, argument: &str) -> Result<(), Failure> {
    let (mut kind, mut rest) = (None, argument);
    let (first, behind) = next_word(rest);
    if let Some(named) = named(first) {
        (kind, rest) = (Some(named), behind);
    } else if names_a_chart(first, behind) {
        return Err(failed(format!(".plot draws bar, line or point, not {first:?}")));
    }
    let mut size =
        terminal_size().filter(|_| runner.on_terminal()).map_or(USUAL, |(columns, lines)| {
            // The axis, the legend and the next prompt stand below.
            (columns.max(LEAST.0), lines.saturating_sub(7).clamp(LEAST.1, 22) | 1)
        });
    let (width, behind) = next_word(rest);
    if let Ok(width) = width.parse() {
        let (height, behind) = next_word(behind);
        let height = height.parse().ok().filter(|height| *height >= LEAST.1 && width >= LEAST.0);
        let message = format!(".plot takes WIDTH HEIGHT, at least {} {}", LEAST.0, LEAST.1);
        (size, rest) = ((width, height.ok_or_else(|| failed(message))?), behind);
    }
    let query = match rest.trim() {
        "" if runner.last.is_empty() => {
            return Err(failed(".plot: there is no query yet; give one".into()));
        }
        "" => runner.last.clone(),
        query => query.to_string(),
    };
    let frame = runner.rows_of(&query)?;
    let text = chart(&frame, kind, size)?;
    runner.print(&text)
}

fn failed(message: String) -> Failure {
    Failure::sql(message, None)
}

fn named(word: &str) -> Option<Kind> {
    let kinds = [("bar", Kind::Bar), ("line", Kind::Line), ("point", Kind::Point)];
    kinds.into_iter().find(|(name, _)| word.eq_ignore_ascii_case(name)).map(|(_, kind)| kind)
}

/// Whether a word stands where the kind of a chart does: before a size, a query or nothing.
fn names_a_chart(word: &str, behind: &str) -> bool {
    let (first, behind) = next_word(behind);
    let (second, _) = next_word(behind);
    let is_size = [first, second].iter().all(|word| word.parse::<usize>().is_ok());
    let is_query = ["SELECT", "FROM", "WITH"].iter().any(|word| first.eq_ignore_ascii_case(word));
    let is_name = !word.is_empty() && word.chars().all(char::is_alphabetic);
    is_name
        && !keywords::is_keyword(&word.to_uppercase())
        && (first.is_empty() || is_size || is_query)
}

fn next_word(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    text.split_once(char::is_whitespace).unwrap_or((text, ""))
}

/// A column along the x axis.
#[derive(Debug, Default)]
struct Along {
    /// NULL and what is no finite number are missing.
    values: Vec<Option<f64>>,
    texts: Vec<String>,
    /// The least and the greatest value with their texts.
    ends: Option<[(f64, String); 2]>,
}

fn chart(frame: &DataFrame, kind: Option<Kind>, size: (usize, usize)) -> Result<String, Failure> {
    let schema = frame.schema();
    let fields: Vec<&Field> = schema.fields().iter().map(|field| field.as_ref()).collect();
    // A single column is drawn over the numbers of its rows.
    let (along, above) = match &fields[..] {
        [] => return Err(failed(".plot: the query has no columns".into())),
        [only] => (None, vec![*only]),
        [first, rest @ ..] => (Some(*first), rest.to_vec()),
    };
    for field in &above {
        if !field.data_type().is_numeric() && *field.data_type() != DataType::Null {
            let message = format!(
                ".plot: the column {:?} is {}, and what is drawn are numbers; the first column may be another",
                field.name(),
                type_name(field.data_type())
            );
            return Err(failed(message));
        }
    }
    let is_ordered = along.is_none_or(|field| is_ordered(field.data_type()));
    let kind = kind.unwrap_or(if is_ordered { Kind::Line } else { Kind::Bar });
    if kind == Kind::Bar && frame.num_rows() > MOST_BARS {
        let rows = frame.num_rows();
        let message = format!(
            ".plot: bars are drawn of {MOST_BARS} rows at most, not of {rows}; line and point of all"
        );
        return Err(failed(message));
    }
    // Bars stand side by side, whatever their labels are.
    let (x, ys) =
        columns(frame, along.is_some(), kind == Kind::Bar, is_ordered && kind != Kind::Bar)?;
    let finite = |value: &Option<f64>| value.is_some_and(f64::is_finite);
    let mut left_out = 0;
    let mut series = vec![];
    for (field, ys) in above.iter().zip(&ys) {
        let pairs = x.values.iter().zip(ys);
        let points: Vec<(f64, f64)> = pairs
            .filter(|(x, y)| finite(x) && finite(y))
            .filter_map(|(x, y)| Some(((*x)?, (*y)?)))
            .collect();
        left_out += ys.len() - points.len();
        series.push(Series { name: field.name().clone(), points });
    }
    if series.iter().all(|series| series.points.is_empty()) {
        return Err(failed(
            ".plot: nothing to draw: there are no rows, or all values are NULL or not finite"
                .into(),
        ));
    }
    let mut text = match kind {
        Kind::Bar => {
            let (mut labels, mut values) = (vec![], vec![]);
            for (row, label) in x.texts.iter().enumerate() {
                for (field, ys) in above.iter().zip(&ys) {
                    let Some(value) = ys[row].filter(|value| value.is_finite()) else { continue };
                    labels.push(if above.len() > 1 {
                        format!("{label} {}", field.name())
                    } else {
                        label.clone()
                    });
                    values.push(value);
                }
            }
            bars(&labels, &values, size.0)
        }
        _ => {
            let x_name = along.map_or_else(|| "the row".into(), |field| field.name().clone());
            let [(_, low), (_, high)] = x.ends.unwrap_or_default();
            let chart = Chart { kind, series, x_name, x_ends: (low, high), logarithmic: false };
            chart.draw(size).unwrap_or_default()
        }
    };
    if left_out > 0 {
        let values = if left_out == 1 { "value is" } else { "values are" };
        text.push_str(&format!("{left_out} {values} left out: NULL, or not finite\n"));
    }
    Ok(text)
}

/// Whether values of a type have distances.
fn is_ordered(dtype: &DataType) -> bool {
    dtype.is_numeric()
        || matches!(
            dtype,
            DataType::Date32 | DataType::Date64 | DataType::Timestamp(..) | DataType::Null
        )
        || matches!(dtype, DataType::Time32(_) | DataType::Time64(_))
}

/// The x axis and the columns above it.
type Columns = (Along, Vec<Vec<Option<f64>>>);

/// The columns of a result. `texts`: those of the x axis are wanted, all of them.
fn columns(
    frame: &DataFrame,
    first_is_x: bool,
    texts: bool,
    is_ordered: bool,
) -> Result<Columns, Failure> {
    let options = FormatOptions::new().with_null("NULL");
    let mut x = Along::default();
    let above = frame.schema().fields().len() - usize::from(first_is_x);
    let mut ys = vec![vec![]; above];
    for batch in frame.batches(BATCH_ROWS) {
        let batch = batch?;
        let before = x.values.len();
        let columns = batch.columns();
        if let Some(first) = columns.first().filter(|_| first_is_x) {
            // What has no distances stands one beside the other.
            match is_ordered {
                true => x.values.extend(numbers(first)?),
                false => x
                    .values
                    .extend((before..before + first.len()).map(|row| Some(row as f64 + 1.0))),
            }
            let formatter = value_texts(first, &options)?;
            for row in 0..first.len() {
                let value = x.values[before + row].filter(|value| value.is_finite());
                let is_end = value.is_some_and(|value| {
                    x.ends.as_ref().is_none_or(|[low, high]| value < low.0 || value > high.0)
                });
                if !texts && !is_end {
                    continue;
                }
                let text = formatter.value(row).try_to_string()?;
                if let (Some(value), true) = (value, is_end) {
                    x.reach(value, &text);
                }
                if texts {
                    x.texts.push(text);
                }
            }
        } else {
            for row in before..before + batch.num_rows() {
                x.values.push(Some(row as f64 + 1.0));
                x.texts.extend(texts.then(|| (row + 1).to_string()));
            }
            x.reach(1.0, "1");
            x.reach(x.values.len() as f64, &x.values.len().to_string());
        }
        for (values, column) in ys.iter_mut().zip(&columns[usize::from(first_is_x)..]) {
            values.extend(numbers(column)?);
        }
    }
    Ok((x, ys))
}

impl Along {
    fn reach(&mut self, value: f64, text: &str) {
        let end = || (value, text.to_string());
        let [low, high] = self.ends.get_or_insert_with(|| [end(), end()]);
        if value < low.0 {
            *low = end();
        }
        if value > high.0 {
            *high = end();
        }
    }
}

/// Values as numbers; those of days and times count their units.
fn numbers(column: &ArrayRef) -> Result<Vec<Option<f64>>, Failure> {
    let plain = match column.data_type() {
        DataType::Timestamp(..) | DataType::Date64 | DataType::Time64(_) => {
            cast(column, &DataType::Int64)?
        }
        DataType::Date32 => {
            cast(&cast(column, &DataType::Timestamp(TimeUnit::Second, None))?, &DataType::Int64)?
        }
        DataType::Time32(_) => cast(column, &DataType::Int32)?,
        _ => column.clone(),
    };
    let floats = cast(&plain, &DataType::Float64)?;
    Ok(floats.as_primitive::<Float64Type>().iter().collect())
}
