//! Options by name: those of the session, and DataFusion's.

use std::time::Duration;

use datafusion::common::config::ConfigOptions;

use crate::error::{Error, ErrorKind, Result, nearest};
use crate::session::Session;
use crate::session::config::{MOST_PARSED, config};
use crate::session::schemas::IN_USE;
use warpframe_device::MemoryLimit;

/// An option, and its value.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Setting {
    /// Its name.
    pub name: String,
    /// Its value; `None` where nothing is set.
    pub value: Option<String>,
    /// What it does.
    pub description: String,
}

const JOIN_ORDER: &str = "join_order";
const MEMORY_LIMIT: &str = "memory_limit";
const STATEMENT_TIMEOUT: &str = "statement_timeout";
/// The one that names a path.
const LOCATION: &str = "datafusion.catalog.location";

impl Session {
    /// The options of the session, and those of DataFusion that it plans by, in order of their
    /// names.
    ///
    /// ```
    /// # use warpframe::{DeviceChoice, Session};
    /// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// session.set_setting("statement_timeout", "5s")?;
    /// let timeout = session.settings().into_iter().find(|setting| setting.name == "statement_timeout");
    /// assert_eq!(timeout.and_then(|setting| setting.value).as_deref(), Some("5s"));
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn settings(&self) -> Vec<Setting> {
        let made = |name: &str, value: Option<String>, description: &str| Setting {
            name: name.into(),
            value,
            description: description.into(),
        };
        let limit = self.device().map(|device| device.memory_limit().to_string());
        let engine = self.core.engine();
        let order =
            engine.map(|engine| if engine.orders_joins() { "on" } else { "off" }.to_string());
        let timeout = self.statement_timeout().map(|time| match time.as_millis() {
            whole if whole % 1000 == 0 => format!("{}s", whole / 1000),
            other => format!("{other}ms"),
        });
        let mut all = vec![
            made(
                JOIN_ORDER,
                order,
                "Whether joins on the device run in the order of estimated rows",
            ),
            made(
                MEMORY_LIMIT,
                limit,
                "Most bytes of device memory in use at once; a size or per cent",
            ),
            made(
                STATEMENT_TIMEOUT,
                timeout,
                "How long a statement may take, such as 5s; 0 is no limit",
            ),
        ];
        let config = self.core.context.copied_config();
        let entries = config.options().entries().into_iter();
        all.extend(entries.map(|entry| made(&entry.key, entry.value, entry.description)));
        all.sort_by(|one, other| one.name.cmp(&other.name));
        all
    }

    /// Sets an option by its name.
    ///
    /// # Errors
    /// [`ErrorKind::Plan`]: no such option, a value that it does not take.
    ///
    /// ```
    /// # use warpframe::{DeviceChoice, Session};
    /// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// session.set_setting("datafusion.execution.batch_size", "1024")?;
    /// assert!(session.set_setting("batch_sise", "1").is_err());
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn set_setting(&self, name: &str, value: &str) -> Result<()> {
        let name = name.to_lowercase();
        match name.as_str() {
            MEMORY_LIMIT => {
                let limit: MemoryLimit = value.parse()?;
                match self.device() {
                    Some(device) => device.set_memory_limit(limit),
                    None => {
                        return Err(wrong(
                            "there is no device whose memory could be limited".into(),
                        ));
                    }
                }
            }
            JOIN_ORDER => match (switch(value), self.core.engine()) {
                (Some(on), Some(engine)) => engine.order_joins(on),
                (Some(_), None) => {
                    return Err(wrong("there is no device that could order joins".into()));
                }
                (None, _) => return Err(wrong(format!("join_order is on or off, not {value:?}"))),
            },
            STATEMENT_TIMEOUT => self.set_statement_timeout(duration(value)?),
            other => {
                if !self.settings().iter().any(|setting| setting.name == other) {
                    return Err(self.no_setting(other));
                }
                if other == IN_USE {
                    self.check_schema(value)?;
                }
                if other == LOCATION {
                    self.files.allow(LOCATION)?;
                }
                bounded(other, value)?;
                let state = self.core.context.state_ref();
                let set = state.write().config_mut().options_mut().set(other, value);
                set.map_err(|error| wrong(format!("{other}: {}", error.strip_backtrace())))?;
            }
        }
        Ok(())
    }

    /// Gives an option the value that it had when the session was made.
    ///
    /// # Errors
    /// [`ErrorKind::Plan`]: no such option; those of the device's memory and of joins have none.
    pub fn reset_setting(&self, name: &str) -> Result<()> {
        let name = name.to_lowercase();
        match name.as_str() {
            STATEMENT_TIMEOUT => {
                self.set_statement_timeout(None);
                Ok(())
            }
            JOIN_ORDER if self.core.engine().is_some() => {
                self.core.engine().iter().for_each(|engine| engine.order_joins(true));
                Ok(())
            }
            other => {
                let options: ConfigOptions =
                    config(self.core.engine().is_some(), None)?.options().as_ref().clone();
                let found = options.entries().into_iter().find(|entry| entry.key == other);
                let Some(entry) = found else { return Err(self.no_setting(other)) };
                match entry.value {
                    Some(value) => self.set_setting(other, &value),
                    None => Err(wrong(format!("{other} has no value to go back to"))),
                }
            }
        }
    }

    /// An error of a name that is no option's.
    pub(super) fn no_setting(&self, name: &str) -> Error {
        let names: Vec<String> = self.settings().into_iter().map(|setting| setting.name).collect();
        let ends = |own: &&String| own.rsplit('.').next() == Some(name);
        let meant = names.iter().find(ends).map(String::as_str).or_else(|| nearest(name, &names));
        let help =
            meant.map_or("SHOW ALL lists them".into(), |meant| format!("did you mean {meant}?"));
        wrong(format!("no option named {name:?}; {help}"))
    }
}

/// Options that could end the process, or leave no plan or no table, beyond these bounds: numbers of
/// threads and buffers, and bytes and rows that are allocated at once.
const BOUNDS: [(&str, u64, u64); 21] = [
    ("datafusion.execution.batch_size", 1, 1 << 20),
    ("datafusion.execution.max_buffered_batches_per_output_file", 2, 1 << 10),
    ("datafusion.execution.max_spill_file_size_bytes", 1 << 10, 1 << 50),
    ("datafusion.execution.meta_fetch_concurrency", 1, 1 << 10),
    ("datafusion.execution.minimum_parallel_output_files", 1, 1 << 10),
    ("datafusion.execution.objectstore_writer_buffer_size", 1 << 10, 1 << 30),
    ("datafusion.execution.parquet.bloom_filter_ndv", 0, 1 << 30),
    ("datafusion.execution.parquet.data_page_row_count_limit", 1, 1 << 30),
    ("datafusion.execution.parquet.data_pagesize_limit", 1 << 10, 1 << 30),
    ("datafusion.execution.parquet.dictionary_page_size_limit", 1 << 10, 1 << 30),
    ("datafusion.execution.parquet.max_row_group_size", 1, 1 << 30),
    ("datafusion.execution.parquet.maximum_buffered_record_batches_per_stream", 1, 1 << 10),
    ("datafusion.execution.parquet.maximum_parallel_row_group_writers", 1, 1 << 10),
    ("datafusion.execution.parquet.metadata_size_hint", 8, 1 << 30),
    ("datafusion.execution.parquet.write_batch_size", 1, 1 << 20),
    // 0 is the number of cores.
    ("datafusion.execution.planning_concurrency", 0, 1 << 10),
    ("datafusion.execution.soft_max_rows_per_output_file", 1, 1 << 40),
    ("datafusion.execution.target_partitions", 0, 1 << 10),
    ("datafusion.explain.tree_maximum_render_width", 0, 1 << 16),
    ("datafusion.optimizer.max_passes", 1, 100),
    // The parser's stack, and that of whoever looks at what it made, grows with it.
    ("datafusion.sql_parser.recursion_limit", 1, MOST_PARSED as u64),
];

/// Refuses values beyond the bounds of an option.
fn bounded(name: &str, value: &str) -> Result<()> {
    let Some((_, least, most)) = BOUNDS.iter().find(|(known, _, _)| *known == name) else {
        return Ok(());
    };
    match value.trim().parse::<f64>() {
        Ok(number) if !(*least as f64..=*most as f64).contains(&number) => {
            Err(wrong(format!("{name} is a number from {least} to {most}, not {value}")))
        }
        // What is no number is told by whoever reads it.
        _ => Ok(()),
    }
}

/// What `on` and `off`, and their like, mean.
fn switch(word: &str) -> Option<bool> {
    match word.to_lowercase().as_str() {
        "on" | "true" | "1" => Some(true),
        "off" | "false" | "0" => Some(false),
        _ => None,
    }
}

/// A time such as `5s`, `1.5 min` or `200` (milliseconds, as in PostgreSQL); `None` for `0` and
/// `off`, which mean no limit.
fn duration(text: &str) -> Result<Option<Duration>> {
    let text = text.trim().to_lowercase();
    if text == "off" || text == "none" {
        return Ok(None);
    }
    let bad = || {
        wrong(format!(
            "statement_timeout is a time such as '5s', '200ms' or '1min', or 0 for no limit, not {text:?}"
        ))
    };
    let unit = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let number: f64 = text[..unit].parse().map_err(|_| bad())?;
    let seconds = match text[unit..].trim() {
        "us" => 1e-6,
        "" | "ms" => 1e-3,
        "s" => 1.0,
        "min" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        _ => return Err(bad()),
    };
    let time = Duration::try_from_secs_f64(number * seconds).map_err(|_| bad())?;
    Ok(Some(time).filter(|time| !time.is_zero()))
}

fn wrong(message: String) -> Error {
    ErrorKind::Plan { message, location: None }.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_of_options_that_there_are_and_hold_their_values() {
        let options: ConfigOptions =
            config(false, None).expect("options").options().as_ref().clone();
        let entries = options.entries();
        for (name, _, _) in BOUNDS {
            let entry = entries.iter().find(|entry| entry.key == name);
            let value = entry.unwrap_or_else(|| panic!("{name}")).value.clone();
            assert!(value.is_none_or(|value| bounded(name, &value).is_ok()), "{name}");
            assert!(bounded(name, "1e300").is_err(), "{name}");
        }
    }

    #[test]
    fn times_have_units() {
        let of = |text: &str| duration(text).unwrap();
        assert_eq!(of("5s"), Some(Duration::from_secs(5)));
        assert_eq!(of("1.5 min"), Some(Duration::from_secs(90)));
        assert_eq!(of("200"), Some(Duration::from_millis(200)));
        assert_eq!((of("0"), of("off")), (None, None));
        for text in ["", "soon", "-1s", "5 weeks", "1e9d"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
