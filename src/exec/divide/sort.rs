//! ORDER BY of rows that do not fit: parted by ranges of the key, each of which is sorted.
//!
//! ```text
//!   chunk ─ with the splitters ─ sorted     3 3 ‖5‖ 5 5 ‖·‖ 6 8 8 ‖9‖ 9 ‖·‖ 12
//!                                           │ < 5 │ = 5 │ between │= 9│ > 9
//! ```
//!
//! A sample of the rows is sorted, and some of it, evenly spaced, are the splitters. Each chunk is
//! sorted with the splitters in it, twice: before and after the rows whose key is theirs. Where
//! they come to lie the chunk is cut. Rows between two splitters are sorted, range by range. Rows
//! of a splitter's own key need not be, so however many they are, they are no part that is too
//! large.

use std::sync::Arc;

use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Field, Int8Type};
use datafusion::common::{Column as Name, DFSchema, DFSchemaRef};
use datafusion::logical_expr::{Expr, LogicalPlan, Projection, Sort, SortExpr, Union, lit};

use super::chunks::PartInput;
use super::group::{DividedRows, PartGroup};
use super::run_over::run_over;
use super::sinks::{RowSink, RowStore, Sampling, scatter};
use super::stored::{StoredBlock, StoredRows, parted};
use super::{Divider, arrow};
use crate::column::Table;
use crate::error::{Error, Result};
use crate::exec::Engine;
use crate::exec::rows::{concatenated, evenly_spaced};
use crate::plan::{DevicePlan, FreshNames, placeholder, ranges_of};

// What the column holds that tells rows from splitters: these come before and after the rows of
// their key.
const BEFORE: i8 = 0;
const ROW: i8 = 1;
const AFTER: i8 = 2;
/// Most splitters.
const MOST_SPLITTERS: u64 = 128;

impl Divider<'_> {
    pub(super) async fn sort(&mut self, sort: &Sort, input: DividedRows) -> Result<DividedRows> {
        let sorted = self.sorted(&input, &sort.expr).await?;
        let Some(fetch) = sort.fetch else { return Ok(sorted) };
        let mut kept =
            RowStore::new(self.engine, &sorted.schema, self.budget.stored).limited(0, fetch);
        self.run_parts(&sorted, &mut kept).await?;
        Ok(DividedRows::stored(kept.finish()))
    }

    /// The rows in an order.
    ///
    /// # Errors
    /// Of what ran.
    pub(super) async fn sorted(
        &mut self,
        input: &DividedRows,
        keys: &[SortExpr],
    ) -> Result<DividedRows> {
        let schema = input.schema.clone();
        let kept = RowStore::new(self.engine, &schema, self.budget.stored);
        let mut sampling = Sampling::new(kept, self.budget.part);
        self.run_parts(input, &mut sampling).await?;
        let (stored, sample) = sampling.finish();
        let by_keys = |input| {
            LogicalPlan::Sort(Sort { expr: keys.to_vec(), input: Arc::new(input), fetch: None })
        };
        let sort = by_keys(placeholder(0, &schema));
        let ranges = ranges_of(&self.budget, stored.bytes());
        if ranges < 2 {
            let parts = vec![vec![PartInput::Stored(Arc::new(stored))]];
            return Ok(DividedRows { groups: vec![range_of(sort, parts)], schema });
        }
        self.engine
            .device
            .note(|| format!("in parts: rows are parted by ranges of the key, {ranges} of them"));
        let splitters = self.splitters(&schema, &sample, &sort, ranges.min(MOST_SPLITTERS))?;
        let mut ranges = Ranges::new(self, &schema, keys, splitters)?;
        self.run_parts(&DividedRows::stored(stored), &mut ranges).await?;
        let groups = ranges.finish().into_iter().filter(|(_, part)| part.rows() > 0);
        let groups = groups.map(|(one_key, part)| {
            let parts = vec![vec![PartInput::Stored(part)]];
            match one_key {
                true => PartGroup {
                    plan: placeholder(0, &schema),
                    driving: Some(0),
                    parts,
                    keys: None,
                    whole: None,
                },
                false => range_of(sort.clone(), parts),
            }
        });
        Ok(DividedRows { groups: groups.collect(), schema })
    }

    /// Rows of a sample, evenly spaced in their order.
    fn splitters(
        &mut self,
        schema: &DFSchemaRef,
        sample: &[RecordBatch],
        sort: &LogicalPlan,
        count: u64,
    ) -> Result<Table> {
        let sort = self.prepared(sort)?;
        let sample = Table::from_batches(&self.engine.device, arrow(schema), sample)?;
        let sorted = run_over(self.engine, &sort, &[super::relation(&sample)?])?;
        evenly_spaced(&sorted, count as usize)
    }
}

/// A range that is sorted; in smaller ones, where it does not fit.
fn range_of(sort: LogicalPlan, parts: Vec<Vec<PartInput>>) -> PartGroup {
    PartGroup { whole: Some(Arc::new(sort.clone())), plan: sort, driving: None, parts, keys: None }
}

/// Cuts tables into ranges.
struct Ranges {
    engine: Engine,
    schema: DFSchemaRef,
    /// Sorts rows with splitters among them.
    sort: Arc<DevicePlan>,
    splitters: Table,
    /// The places of the splitters in their order, the same in each table.
    cuts: Vec<i8>,
    blocks: Vec<Vec<StoredBlock>>,
}

impl Ranges {
    fn new(
        divider: &mut Divider<'_>,
        schema: &DFSchemaRef,
        keys: &[SortExpr],
        splitters: Table,
    ) -> Result<Ranges> {
        let own =
            FreshNames::beside(schema.fields().iter().map(|field| field.name())).name("place");
        let place = Arc::new(Field::new(&own, DataType::Int8, false));
        let fields = schema.iter().map(|(qualifier, field)| (qualifier.cloned(), field.clone()));
        let fields = fields.chain([(None, place)]).collect();
        let placed = Arc::new(DFSchema::new_with_metadata(fields, Default::default())?);
        let rows = |number, place: i8| -> Result<Arc<LogicalPlan>> {
            let input = placeholder(number, schema);
            let exprs = schema
                .columns()
                .into_iter()
                .map(Expr::Column)
                .chain([lit(place).alias(&own)])
                .collect();
            let project = Projection::try_new_with_schema(exprs, Arc::new(input), placed.clone())?;
            Ok(Arc::new(LogicalPlan::Projection(project)))
        };
        let inputs = vec![rows(0, ROW)?, rows(1, BEFORE)?, rows(1, AFTER)?];
        let union = LogicalPlan::Union(Union { inputs, schema: placed });
        let last = Expr::Column(Name::new_unqualified(&own)).sort(true, false);
        let expr = keys.iter().cloned().chain([last]).collect();
        let sort = LogicalPlan::Sort(Sort { expr, input: Arc::new(union), fetch: None });
        let blocks = vec![vec![]; 2 * splitters.rows + 1];
        let (engine, schema) = (divider.engine.clone(), schema.clone());
        Ok(Ranges {
            sort: divider.prepared(&sort)?,
            engine,
            schema,
            splitters,
            cuts: vec![],
            blocks,
        })
    }

    /// The ranges, and whether the rows of each have one key: those between a splitter's two
    /// places. (Of equal splitters all come before the rows of their key, or all behind.)
    fn finish(self) -> Vec<(bool, Arc<StoredRows>)> {
        let place =
            |number: Option<usize>| number.and_then(|number| self.cuts.get(number)).copied();
        let one_key = |number: usize| {
            (place(number.checked_sub(1)), place(Some(number))) == (Some(BEFORE), Some(AFTER))
        };
        let ranges = parted(&self.engine.device, &self.schema, self.blocks);
        ranges.into_iter().enumerate().map(|(number, range)| (one_key(number), range)).collect()
    }
}

impl RowSink for Ranges {
    fn push(&mut self, table: Table) -> Result<()> {
        let inputs = [super::relation(&table)?, super::relation(&self.splitters)?];
        let mut sorted = run_over(&self.engine, &self.sort, &inputs)?;
        let places =
            sorted.columns.pop().ok_or_else(|| Error::internal("a sort without columns"))?;
        let places = places.to_arrays(sorted.rows.max(1))?;
        sorted.schema = table.schema.clone();
        // Between two splitters lie the rows of a range.
        let (mut pieces, mut begins, mut begin) = (vec![], vec![0], 0);
        let (mut rows, mut found) = (0, vec![]);
        let cuts = places
            .iter()
            .flat_map(|places| places.as_primitive::<Int8Type>().values().iter().enumerate());
        for (at, place) in cuts.filter(|(_, place)| **place != ROW) {
            found.push(*place);
            pieces.push(sorted.slice(begin, at - begin));
            rows += at - begin;
            begins.push(rows);
            begin = at + 1;
        }
        pieces.push(sorted.slice(begin, sorted.rows - begin));
        begins.push(rows + sorted.rows - begin);
        pieces.retain(|piece| piece.rows > 0);
        self.cuts = found;
        match pieces.is_empty() {
            true => Ok(()),
            false => scatter(&concatenated(&pieces)?, &begins, &mut self.blocks),
        }
    }
}
