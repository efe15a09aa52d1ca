//! `EXPLAIN` and `EXPLAIN ANALYZE`: plans, and what running one took.

use std::sync::Arc;

use warpframe::ExplainFormat;
use warpframe::arrow::array::{ArrayRef, StringArray};
use warpframe::sql::Text;

use super::Runner;
use crate::analyze::Account;
use crate::output::Format;
use crate::progress::Progress;
use crate::report::{Failure, is_odd, shown};

impl Runner<'_> {
    pub(super) fn explain(
        &mut self,
        query: &Text<'_>,
        analyze: bool,
        format: ExplainFormat,
    ) -> Result<(), Failure> {
        let frame = self.plan(query)?;
        let account = match analyze {
            true => {
                let _told = Progress::begin(&self.session, self.settings.progress);
                Some(Account::of_run(&self.session, &frame)?)
            }
            false => None,
        };
        // Behind the run: what is known of tables decides the order of joins, and now they are
        // loaded.
        let plan = frame.explain_as(format)?;
        let text = match (&account, format) {
            (None, _) => plan,
            (Some(account), ExplainFormat::Json) => account.json(&plan),
            (Some(account), _) => account.text(&plan),
        };
        match self.format() {
            // Names of columns and files, and constants of the query's, are data.
            _ if format == ExplainFormat::Json => {
                self.print_long(&format!("{}\n", escaped(text.trim_end())))
            }
            Format::Table | Format::Box => self.print_long(
                &text.trim_end().lines().map(|line| shown(line) + "\n").collect::<String>(),
            ),
            _ => {
                let lines: Vec<&str> = text.trim_end().lines().collect();
                self.batch([("plan", Arc::new(StringArray::from(lines)) as ArrayRef)])
            }
        }
    }
}

/// A text of JSON without the control characters that JSON may have as they are.
fn escaped(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '\n' => text.push(c),
            c if is_odd(c) => text.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => text.push(c),
        }
    }
    text
}
