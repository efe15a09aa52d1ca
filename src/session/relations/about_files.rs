//! Tables of what files say: `glob('*.csv')`, `parquet_metadata('f.parquet')`, `read_text('f')`. The
//! files are read while a statement is planned, and its plan is not kept.

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlanBuilder;
use datafusion::logical_expr::planner::PlannedRelation;
use datafusion::sql::sqlparser::ast::{
    Ident, ObjectName, TableAlias, TableFactor, TableFunctionArgs,
};

use super::outside;
use crate::error::Error;
use crate::frame::LazyFrame;
use crate::io::{AboutFiles, CsvOptions};
use crate::query::Core;
use crate::session::files::{NamedFiles, path_arguments};

/// The function that a table is the rows of, where it is one of these.
pub(super) fn function(factor: &TableFactor) -> Option<(&Ident, &TableFunctionArgs, AboutFiles)> {
    let TableFactor::Table { name, args: Some(args), .. } = factor else { return None };
    let ident = single(name)?;
    let about = AboutFiles::of(&ident.value.to_lowercase())?;
    args.settings.is_none().then_some((ident, args, about))
}

fn single(name: &ObjectName) -> Option<&Ident> {
    match &name.0[..] {
        [part] => part.as_ident(),
        _ => None,
    }
}

pub(super) fn planned(
    core: &Arc<Core>,
    files: &NamedFiles,
    (ident, args, about): (&Ident, &TableFunctionArgs, AboutFiles),
    alias: Option<TableAlias>,
) -> Result<PlannedRelation> {
    let function = ident.value.to_lowercase();
    let frame = rows(core, files, &function, (ident, args, about)).map_err(outside)?;
    let plan = frame.plan().map_err(outside)?.clone();
    let plan = LogicalPlanBuilder::from(plan).alias(function)?.build()?;
    Ok(PlannedRelation::new(plan, alias))
}

fn rows(
    core: &Arc<Core>,
    files: &NamedFiles,
    function: &str,
    (ident, args, about): (&Ident, &TableFunctionArgs, AboutFiles),
) -> Result<LazyFrame, Error> {
    files.allow(function)?;
    let given = path_arguments(function, ident, &args.args)?;
    let options = match about {
        AboutFiles::SniffCsv => given.csv(&core.state(), function)?,
        _ => given.without_options(function).map(|()| CsvOptions::default())?,
    };
    let rows = about.rows(&given.paths, &options).map_err(|error| error.at(given.place))?;
    LazyFrame::of_batches(core, [rows])
}
