//! Rows that become columns, columns that become rows, and frames that become several.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, RecordBatch, StringArray, UInt64Array};
use datafusion::arrow::compute::{
    SortOptions, cast, concat, concat_batches, take, take_record_batch,
};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::arrow::row::{RowConverter, SortField};
use datafusion::arrow::util::display::FormatOptions;
use datafusion::logical_expr::type_coercion::binary::type_union_resolution;
use datafusion::scalar::ScalarValue;

use crate::error::{Error, ErrorKind, Result};
use crate::frame::expr::{Columns, Expr, col, lit, row_number};
use crate::frame::{AnyFrame, FrameState, LazyFrame};
use crate::host::value_texts;
use crate::query::Verb;

/// Most columns that values of rows may become.
const MOST_COLUMNS: usize = 1 << 16;

impl<S: FrameState> AnyFrame<S> {
    /// A row for each element of these lists, with the other columns beside it; lists of one row
    /// are taken apart together, the shorter ones with nulls. An empty list and null make a row of
    /// null. The order of the rows stays.
    ///
    /// # Errors
    /// Unknown columns ([`ErrorKind::ColumnNotFound`]), columns that are no lists.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("VALUES (1, [10, 20]), (2, [])")?.explode(["column2"])?;
    /// assert_eq!(frame.collect()?.num_rows(), 3);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn explode(&self, columns: impl Columns) -> Result<Self> {
        let names = self.names(columns).map_err(|error| error.in_verb("explode"))?;
        let schema = self.schema();
        for name in &names {
            let dtype = schema.field_with_name(name)?.data_type();
            if !matches!(
                dtype,
                DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..)
            ) {
                let (what, expected) = (format!("explode of column {name:?}"), "a list".into());
                return Err(
                    ErrorKind::TypeMismatch { what, expected, found: dtype.to_string() }.into()
                );
            }
        }
        self.verb(Verb::Explode(names), None)
    }

    /// The fields of these structs as columns in their place, under the names of the fields.
    ///
    /// # Errors
    /// Unknown columns ([`ErrorKind::ColumnNotFound`]), columns that are no structs, two columns of
    /// one name.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("SELECT 1 AS a, {'x': 2, 'y': 'z'} AS s, 3 AS b")?.unnest(["s"])?;
    /// assert_eq!(frame.column_names(), ["a", "x", "y", "b"]);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn unnest(&self, columns: impl Columns) -> Result<Self> {
        let names = self.names(columns).map_err(|error| error.in_verb("unnest"))?;
        let mut out = vec![];
        for field in self.schema().fields() {
            let column = col(field.name());
            match (names.contains(field.name()), field.data_type()) {
                (false, _) => out.push(column),
                (true, DataType::Struct(fields)) => {
                    out.extend(
                        fields.iter().map(|field| column.clone().structs().field(field.name())),
                    );
                }
                (true, other) => {
                    let (what, expected) =
                        (format!("column {:?}", field.name()), "a struct".into());
                    let error: Error =
                        ErrorKind::TypeMismatch { what, expected, found: other.to_string() }.into();
                    return Err(error.in_verb("unnest"));
                }
            }
        }
        self.made("unnest", |frame| frame.select(out))
    }

    /// A row for each value of the columns `on`: the columns `index`, the name of the column in
    /// `variable`, its value in `value`. All rows of the first column come first.
    ///
    /// # Errors
    /// Unknown columns ([`ErrorKind::ColumnNotFound`]), types that have nothing in common.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("SELECT 'x' AS k, 1 AS a, 2 AS b")?.unpivot(["a", "b"], ["k"])?;
    /// assert_eq!(frame.column_names(), ["k", "variable", "value"]);
    /// assert_eq!(frame.filter(col("variable").eq("b").and(col("value").eq(2)))?.collect()?.num_rows(), 1);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn unpivot(&self, on: impl Columns, index: impl Columns) -> Result<Self> {
        self.unpivot_as(on, index, "variable", "value")
    }

    /// [`AnyFrame::unpivot`] with other names for its columns.
    ///
    /// # Errors
    /// As [`AnyFrame::unpivot`].
    pub fn unpivot_as(
        &self,
        on: impl Columns,
        index: impl Columns,
        variable: &str,
        value: &str,
    ) -> Result<Self> {
        let in_verb = |error: Error| error.in_verb("unpivot");
        let (on, index) = (self.names(on).map_err(in_verb)?, self.names(index).map_err(in_verb)?);
        if on.is_empty() {
            return Err(in_verb(Error::unsupported(
                "no columns",
                "there are no values to make rows of",
            )));
        }
        let dtype = common_type(&self.schema(), &on).map_err(in_verb)?;
        self.made("unpivot", |frame| {
            let part = |name: &String| {
                let own = [lit(name).alias(variable), col(name).cast(dtype.clone()).alias(value)];
                frame.select(index.iter().map(col).chain(own).collect::<Vec<_>>())
            };
            let first = part(&on[0])?;
            on[1..].iter().try_fold(first, |all, name| all.union(&part(name)?))
        })
    }

    /// A column for each value of `on`: a row for each combination of the columns `index`, in the
    /// order of their first rows, and for each value an aggregate of `values` over the rows that
    /// have it. The columns are named by the values; where `values` has several columns, by
    /// `column_value`. The query of this frame runs to learn which values there are.
    ///
    /// # Errors
    /// Unknown columns ([`ErrorKind::ColumnNotFound`]); more than 65,536 values.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("SELECT column1 AS day, column2 AS city, column3 AS t \
    ///     FROM (VALUES (1, 'Oslo', 3), (1, 'Rome', 15), (2, 'Oslo', 5))")?;
    /// let wide = frame.pivot("city", ["day"], ["t"], Expr::mean)?;
    /// assert_eq!(wide.column_names(), ["day", "Oslo", "Rome"]);
    /// # use warpframe::Expr;
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn pivot(
        &self,
        on: &str,
        index: impl Columns,
        values: impl Columns,
        aggregate: impl Fn(Expr) -> Expr,
    ) -> Result<Self> {
        let in_verb = |error: Error| error.in_verb("pivot");
        let (index, values) =
            (self.names(index).map_err(in_verb)?, self.names(values).map_err(in_verb)?);
        let found = self.values_of(on, false).map_err(in_verb)?;
        self.made("pivot", |frame| {
            let mut columns = vec![];
            for name in &values {
                for (value, text) in &found {
                    let title =
                        if values.len() == 1 { text.clone() } else { format!("{name}_{text}") };
                    let has_it = col(on).eq_missing(value.clone());
                    columns.push(aggregate(col(name)).filter(has_it).alias(title));
                }
            }
            frame.group_by(&index).maintain_order().agg(columns)
        })
    }

    /// Each of these columns as one column for each of its values, which is 1 in the rows that have
    /// it and 0 in the others, named `column_value`. The query of this frame runs to learn which
    /// values there are; they come in order, null last.
    ///
    /// # Errors
    /// Unknown columns ([`ErrorKind::ColumnNotFound`]); more than 65,536 values.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("VALUES (1, 'b'), (2, 'a')")?.to_dummies(["column2"])?;
    /// assert_eq!(frame.column_names(), ["column1", "column2_a", "column2_b"]);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn to_dummies(&self, columns: impl Columns) -> Result<Self> {
        let in_verb = |error: Error| error.in_verb("to_dummies");
        let names = self.names(columns).map_err(in_verb)?;
        let mut out = vec![];
        for column in self.column_names() {
            if !names.contains(&column) {
                out.push(col(column));
                continue;
            }
            for (value, text) in self.values_of(&column, true).map_err(in_verb)? {
                let has_it = col(&column).eq_missing(value);
                out.push(has_it.cast(DataType::UInt8).alias(format!("{column}_{text}")));
            }
        }
        self.made("to_dummies", |frame| frame.select(out))
    }

    /// A frame for each combination of values of these columns, in the order of their first rows;
    /// the order of rows stays within each. The query of this frame runs to learn which values
    /// there are.
    ///
    /// # Errors
    /// Unknown columns ([`ErrorKind::ColumnNotFound`]); more than 65,536 combinations.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let parts = session.sql("VALUES ('b', 1), ('a', 2), ('b', 3)")?.partition_by(["column1"])?;
    /// assert_eq!(parts.len(), 2);
    /// assert_eq!(parts[0].collect()?.num_rows(), 2);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn partition_by(&self, columns: impl Columns) -> Result<Vec<Self>> {
        let in_verb = |error: Error| error.in_verb("partition_by");
        let names = self.names(columns).map_err(in_verb)?;
        let found = self.combinations(&names, false).map_err(in_verb)?;
        (0..found.num_rows())
            .map(|row| {
                let equal = names.iter().zip(found.columns()).map(|(name, values)| {
                    Ok::<_, Error>(col(name).eq_missing(ScalarValue::try_from_array(values, row)?))
                });
                let equal =
                    equal.collect::<Result<Vec<_>>>()?.into_iter().reduce(|all, one| all.and(one));
                self.made("partition_by", |frame| frame.filter(equal.unwrap_or_else(|| lit(true))))
            })
            .collect()
    }

    /// Rows as columns: `column_0`, `column_1`, … of as many rows as this frame has columns, whose
    /// names are in a first column where `names` says how that is called. Values have the type that
    /// all columns have in common. The rows are turned on the host.
    ///
    /// # Errors
    /// Types that have nothing in common; more than 65,536 rows.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("SELECT column1 AS a, column2 AS b FROM (VALUES (1, 2), (3, 4), (5, 6))")?;
    /// let turned = frame.transpose(Some("name"))?;
    /// assert_eq!(turned.column_names(), ["name", "column_0", "column_1", "column_2"]);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn transpose(&self, names: Option<&str>) -> Result<Self> {
        self.made("transpose", |frame| {
            let rows = frame.limit(0, MOST_COLUMNS + 1)?.collect()?;
            if rows.num_rows() > MOST_COLUMNS {
                let what = format!("more than {MOST_COLUMNS} rows that become columns");
                return Err(Error::unsupported(what, "rows and columns change places"));
            }
            let turned = turned(&concat_batches(&rows.schema(), &rows.to_arrow()?)?, names)?;
            LazyFrame::of_batches(&frame.core, [turned])
        })
    }

    /// The values of a column, each once, with their texts: in order, null last, or in the order of
    /// their first rows.
    fn values_of(&self, name: &str, sorted: bool) -> Result<Vec<(ScalarValue, String)>> {
        let names = self.names([name])?;
        let found = self.combinations(&names, sorted)?;
        let values = found.column(0);
        let options = FormatOptions::new().with_null("null");
        let texts = value_texts(values, &options)?;
        let value =
            |row| Ok((ScalarValue::try_from_array(values, row)?, texts.value(row).to_string()));
        (0..values.len()).map(value).collect()
    }

    /// Each combination of values of these columns, once: in order, null last, or in the order of
    /// their first rows.
    fn combinations(&self, names: &[String], sorted: bool) -> Result<RecordBatch> {
        let found = self.looked_at(|frame| {
            let found = match sorted {
                true => frame.select(names)?.distinct()?,
                false => {
                    let row = frame.unused_name("row");
                    let numbered = frame.with_columns([row_number().alias(&row)])?;
                    numbered.group_by(names).agg([col(&row).min().alias(&row)])?
                }
            };
            found.limit(0, MOST_COLUMNS + 1)
        })?;
        if found.num_rows() > MOST_COLUMNS {
            let what = format!("more than {MOST_COLUMNS} values of {}", names.join(", "));
            return Err(Error::unsupported(what, "each would become a column or a frame"));
        }
        let found = concat_batches(&found.schema(), &found.to_arrow()?)?;
        let keys = if sorted { found.columns() } else { &found.columns()[names.len()..] };
        let places: Vec<usize> = (0..names.len()).collect();
        Ok(take_record_batch(&found.project(&places)?, &order_of(keys)?)?)
    }
}

/// The numbers of the rows in ascending order of these columns, null last.
fn order_of(columns: &[ArrayRef]) -> Result<UInt64Array> {
    let options = SortOptions { descending: false, nulls_first: false };
    let fields = columns
        .iter()
        .map(|column| SortField::new_with_options(column.data_type().clone(), options));
    let rows = RowConverter::new(fields.collect())?.convert_columns(columns)?;
    let mut order: Vec<u64> = (0..rows.num_rows() as u64).collect();
    order.sort_by_key(|row| rows.row(*row as usize));
    Ok(order.into())
}

/// The type that these columns have in common.
fn common_type(schema: &Schema, names: &[String]) -> Result<DataType> {
    let types = names.iter().map(|name| Ok(schema.field_with_name(name)?.data_type().clone()));
    let types = types.collect::<Result<Vec<_>>>()?;
    let is_text = |dtype: &DataType| {
        matches!(dtype, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
    };
    // Numbers and texts are texts: not every text is a number.
    if types.iter().any(is_text)
        && !types.iter().all(is_text)
        && !types.iter().any(DataType::is_nested)
    {
        return Ok(DataType::Utf8View);
    }
    type_union_resolution(&types).ok_or_else(|| {
        let found = types.iter().map(DataType::to_string).collect::<Vec<_>>().join(", ");
        let what = format!("values of columns {}", names.join(", "));
        ErrorKind::TypeMismatch { what, expected: "types that have one in common".into(), found }
            .into()
    })
}

fn turned(rows: &RecordBatch, names: Option<&str>) -> Result<RecordBatch> {
    let schema = rows.schema();
    let own: Vec<String> = schema.fields().iter().map(|field| field.name().clone()).collect();
    let (mut fields, mut columns): (Vec<Field>, Vec<ArrayRef>) = (vec![], vec![]);
    if let Some(name) = names {
        fields.push(Field::new(name, DataType::Utf8, false));
        columns.push(Arc::new(StringArray::from(own.clone())));
    }
    if !own.is_empty() {
        let dtype = common_type(&schema, &own)?;
        let values = rows
            .columns()
            .iter()
            .map(|column| cast(column, &dtype))
            .collect::<Result<Vec<_>, _>>()?;
        let all = concat(&values.iter().map(|column| column.as_ref()).collect::<Vec<_>>())?;
        let height = rows.num_rows() as u64;
        for row in 0..height {
            let places = UInt64Array::from_iter_values(
                (0..own.len() as u64).map(|column| column * height + row),
            );
            fields.push(Field::new(format!("column_{row}"), dtype.clone(), true));
            columns.push(take(&all, &places, None)?);
        }
    }
    let options =
        datafusion::arrow::array::RecordBatchOptions::new().with_row_count(Some(own.len()));
    Ok(RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)?)
}
