//! Verbs of [`DataFrame`] about the places of rows: by number, in a sort's order, summed up to
//! each.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, ArrowNativeTypeOp, ArrowPrimitiveType, AsArray, Int64Array, PrimitiveArray,
    RecordBatch, UInt32Array,
};
use datafusion::arrow::compute::{cast, concat_batches, take_record_batch};
use datafusion::arrow::datatypes::{
    DataType, Decimal128Type, Field, Float64Type, Int64Type, Schema, SchemaRef, UInt64Type,
};
use datafusion::scalar::ScalarValue;

use super::eager::DataFrame;
use super::expr::{SortKeys, asc, coalesce, col, lit};
use super::lazy::LazyFrame;
use crate::column::{Column, Table};
use crate::error::{ErrorKind, Result};
use crate::exec;
use crate::io::KeptTable;
use crate::query::{Answer, Data};

impl DataFrame {
    /// The rows of these numbers (from 0 on), in their order and as often as they are named; null
    /// names a row of nulls.
    ///
    /// `rows` has one column of integers, as [`DataFrame::arg_sort`] makes it.
    ///
    /// # Errors
    /// [`ErrorKind::RowNotFound`]; [`ErrorKind::TypeMismatch`] where `rows` is not one column of
    /// integers.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let names = session.sql("VALUES ('a'), ('b'), ('c')")?.collect()?;
    /// let rows = session.sql("VALUES (2), (0), (2)")?.collect()?;
    /// assert_eq!(names.take(&rows)?.num_rows(), 3);
    /// assert!(names.take(&session.sql("VALUES (3)")?.collect()?).is_err());
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn take(&self, rows: &DataFrame) -> Result<DataFrame> {
        let found = match &rows.state.schema.fields()[..] {
            [field] if field.data_type().is_integer() => None,
            [field] => Some(field.data_type().to_string()),
            fields => Some(format!("{} columns", fields.len())),
        };
        if let Some(found) = found {
            let (what, expected) = ("row numbers".into(), "one column of integers".into());
            return Err(ErrorKind::TypeMismatch { what, expected, found }.into());
        }
        if let Data::Device(table) = &self.state.data {
            let here = matches!(&rows.state.data, Data::Device(numbers) if numbers.device().same(table.device()));
            let moved = if here {
                rows.clone()
            } else {
                LazyFrame::of_frame(&self.core, rows)?.collect()?
            };
            if let Data::Device(numbers) = &moved.state.data
                && let Some(taken) = self.core.or_on_cpu(with_room(table, |table| {
                    exec::take(table, &numbers.table()?.columns[0])
                }))?
            {
                return Ok(self.of_table(taken));
            }
        }
        let (mut whole, numbers) = (self.to_batch()?, rows.to_batch()?);
        let numbers = row_numbers(numbers.column(0), whole.num_rows())?;
        if numbers.null_count() > 0 {
            whole = whole.with_schema(exec::nullable(&self.state.schema))?;
        }
        let taken = take_record_batch(&whole, &numbers)?;
        let (schema, data) = (taken.schema(), Data::Host([taken].into()));
        Ok(DataFrame::new(self.core.clone(), Answer { schema, data }))
    }

    /// The numbers of the rows in the order of these keys, as one column `row` of type `UInt32`:
    /// what [`DataFrame::take`] needs to sort these or other rows. Rows equal in all keys keep
    /// their order.
    ///
    /// # Errors
    /// Unknown columns ([`ErrorKind::ColumnNotFound`]), types that do not fit; more than 2³² − 1
    /// rows.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("VALUES (30), (10), (20)")?.collect()?;
    /// let order = frame.arg_sort([asc(col("column1"))])?;
    /// assert_eq!(order.to_arrow()?[0].column(0).to_data(), UInt32Array::from(vec![1, 2, 0]).to_data());
    /// # use warpframe::arrow::array::{Array, UInt32Array};
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn arg_sort(&self, keys: impl SortKeys) -> Result<DataFrame> {
        let mut keys = self.keys("arg_sort", keys)?;
        if matches!(self.state.data, Data::Device(_))
            && let Some(table) = self.core.order(self.source_of(self)?, &keys)?
        {
            return Ok(self.of_table(table));
        }
        let name = self.unused_name(exec::ROW);
        let numbered = LazyFrame::of_batches(&self.core, [self.numbered(&name)?])?.collect()?;
        // The CPU's sort is not stable.
        keys.push(asc(col(&name)));
        numbered.lazy()?.sort(keys)?.select([col(&name).alias(exec::ROW)])?.collect()
    }

    /// All columns, this one replaced by its running sums: each row holds the sum of the values up
    /// to and with it. A null stays null and adds nothing. Sums of integers are `Int64` or `UInt64`
    /// and wrap, those of floats are `Float64`.
    ///
    /// # Errors
    /// [`ErrorKind::ColumnNotFound`]; [`ErrorKind::TypeMismatch`] for a column of other types.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("VALUES (1), (NULL), (5)")?.collect()?.cumulative_sum("column1")?;
    /// let sums = Int64Array::from(vec![Some(1), None, Some(6)]);
    /// assert_eq!(frame.to_arrow()?[0].column(0).as_primitive::<Int64Type>(), &sums);
    /// # use warpframe::arrow::array::{AsArray, Int64Array};
    /// # use warpframe::arrow::datatypes::Int64Type;
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn cumulative_sum(&self, column: &str) -> Result<DataFrame> {
        let Some((at, field)) = self.state.schema.column_with_name(column) else {
            let known =
                self.state.schema.fields().iter().map(|field| field.name().clone()).collect();
            return Err(ErrorKind::ColumnNotFound { name: column.into(), known }.into());
        };
        let dtype = sum_type(field)?;
        let mut fields = self.state.schema.fields().to_vec();
        fields[at] = Arc::new(field.clone().with_data_type(dtype.clone()));
        let schema: SchemaRef = Arc::new(Schema::new(fields));
        if let Data::Device(table) = &self.state.data
            && let Some(values) = self.summands(table, at, &dtype)?
        {
            let sums = |table: &Table| {
                let mut columns = table.columns.clone();
                columns[at] = exec::running_sums(&table.device, &values, &table.columns[at])?;
                Table::with_rows(&table.device, schema.clone(), columns, table.rows)
            };
            if let Some(table) = self.core.or_on_cpu(with_room(table, sums))? {
                return Ok(self.of_table(table));
            }
        }
        let whole = self.to_batch()?;
        let mut columns = whole.columns().to_vec();
        let values = cast(&columns[at], &dtype)?;
        columns[at] = match dtype {
            DataType::Int64 => running_sums::<Int64Type>(&values),
            DataType::UInt64 => running_sums::<UInt64Type>(&values),
            _ => running_sums::<Float64Type>(&values),
        };
        let batch = RecordBatch::try_new(schema.clone(), columns)?;
        Ok(DataFrame::new(self.core.clone(), Answer { schema, data: Data::Host([batch].into()) }))
    }

    /// A column of the table as a type of sums, with 0 for null. `None` where it came to lie on the
    /// host.
    fn summands(&self, table: &KeptTable, at: usize, dtype: &DataType) -> Result<Option<Column>> {
        if self.state.schema.field(at).data_type() == dtype {
            let Some(table) = self.core.or_on_cpu(with_room(table, |table| Ok(table.clone())))?
            else {
                return Ok(None);
            };
            if table.columns[at].validity.is_none() {
                return Ok(Some(table.columns[at].clone()));
            }
        }
        let value = col(self.state.schema.field(at).name()).cast(dtype.clone());
        let zero = lit(ScalarValue::new_zero(dtype)?);
        Ok(match self.select([coalesce(vec![value, zero])])?.state.data {
            Data::Device(values) => Some(values.table()?.columns[0].clone()),
            Data::Host(_) | Data::Divided(_) => None,
        })
    }

    fn of_table(&self, table: Table) -> DataFrame {
        DataFrame::new(self.core.clone(), Answer::of_table(table))
    }

    /// All rows in one batch.
    fn to_batch(&self) -> Result<RecordBatch> {
        Ok(concat_batches(&self.state.schema, &self.to_arrow()?)?)
    }

    /// All rows in one batch, with their numbers in one more column.
    fn numbered(&self, name: &str) -> Result<RecordBatch> {
        let whole = self.to_batch()?;
        let rows = u32::try_from(whole.num_rows()).map_err(|_| {
            crate::Error::unsupported(
                format!("{} rows", whole.num_rows()),
                "row numbers have 32 bits",
            )
        })?;
        let fields = self.state.schema.fields().iter().cloned();
        let fields: Vec<_> =
            fields.chain([Arc::new(Field::new(name, DataType::UInt32, false))]).collect();
        let numbers: ArrayRef = Arc::new(UInt32Array::from_iter_values(0..rows));
        let columns = whole.columns().iter().cloned().chain([numbers]).collect();
        Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
    }
}

impl LazyFrame {
    /// The numbers of the rows in the order of these keys, as one column `row`: see
    /// [`DataFrame::arg_sort`].
    ///
    /// # Errors
    /// Unknown columns ([`ErrorKind::ColumnNotFound`]), types that do not fit.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let order = session.sql("VALUES (30), (10), (20)")?.arg_sort([asc("column1")])?.collect()?;
    /// assert_eq!(order.column("row")?.to_vec::<u32>()?, [1, 2, 0]);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn arg_sort(&self, keys: impl SortKeys) -> Result<LazyFrame> {
        let mut keys = self.keys("arg_sort", keys)?;
        self.made("arg_sort", |frame| {
            let name = frame.unused_name(exec::ROW);
            // The CPU's sort is not stable.
            keys.push(asc(col(&name)));
            let place = (col(&name) - 1u64).cast(DataType::UInt32);
            frame.numbered(&name)?.sort(keys)?.select([place.alias(exec::ROW)])
        })
    }
}

/// Does something with a table that a user keeps, once it is on the device; again where there is
/// more room after it failed for want of it.
fn with_room<T>(table: &KeptTable, work: impl Fn(&Table) -> Result<T>) -> Result<T> {
    let mut retry = table.device().room_retry();
    loop {
        match table.table().and_then(|table| work(&table)) {
            Err(error) if retry.makes_room(error.shortage())? => {}
            ran => return ran,
        }
    }
}

/// Type of the sums of a column.
fn sum_type(field: &Field) -> Result<DataType> {
    match field.data_type() {
        dtype if dtype.is_signed_integer() => Ok(DataType::Int64),
        dtype if dtype.is_unsigned_integer() => Ok(DataType::UInt64),
        DataType::Float32 | DataType::Float64 => Ok(DataType::Float64),
        other => Err(ErrorKind::TypeMismatch {
            what: format!("running sums of column {:?}", field.name()),
            expected: "integers or floats".into(),
            found: other.to_string(),
        }
        .into()),
    }
}

/// Integers as row numbers of a frame of so many rows.
fn row_numbers(numbers: &ArrayRef, rows: usize) -> Result<Int64Array> {
    // Int64 does not hold every UInt64.
    let wide = cast(numbers, &DataType::Decimal128(20, 0))?;
    let wide = wide.as_primitive::<Decimal128Type>();
    match wide.iter().flatten().find(|row| !(0..rows as i128).contains(row)) {
        Some(row) => Err(ErrorKind::RowNotFound { row, rows: rows as u64 }.into()),
        None => Ok(cast(numbers, &DataType::Int64)?.as_primitive().clone()),
    }
}

fn running_sums<T: ArrowPrimitiveType>(values: &ArrayRef) -> ArrayRef {
    let mut sum = T::Native::default();
    let sums = values.as_primitive::<T>().iter().map(|value| {
        value.map(|value| {
            sum = sum.add_wrapping(value);
            sum
        })
    });
    Arc::new(sums.collect::<PrimitiveArray<T>>())
}
