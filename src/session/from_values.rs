//! Frames of values that a program has.

use datafusion::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, RecordBatchReader};
use datafusion::arrow::datatypes::{Field, Schema};
#[cfg(feature = "ffi")]
use datafusion::arrow::ffi_stream::{ArrowArrayStreamReader, FFI_ArrowArrayStream};

use super::Session;
use crate::error::{ErrorKind, Result};
use crate::frame::{DataFrame, LazyFrame};

impl Session {
    /// The frame of these columns: names, and values as Arrow arrays. The macro
    /// [`frame!`](crate::frame!) writes it shorter.
    ///
    /// # Errors
    /// [`ErrorKind::Plan`] where columns differ in length or two have one name.
    ///
    /// ```
    /// use warpframe::frame::IntoArray;
    /// # use warpframe::{DeviceChoice, Session};
    /// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let names = ["Ada", "Emmy"];
    /// let born = vec![Some(1815), None];
    /// let frame = session.from_columns([("name", names.into_array()), ("born", born.into_array())])?;
    /// assert_eq!((frame.num_rows(), frame.schema().fields().len()), (2, 2));
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn from_columns<N: Into<String>>(
        &self,
        columns: impl IntoIterator<Item = (N, ArrayRef)>,
    ) -> Result<DataFrame> {
        let columns: Vec<(String, ArrayRef)> =
            columns.into_iter().map(|(name, array)| (name.into(), array)).collect();
        let refused = |message| ErrorKind::Plan { message, location: None };
        for (number, (name, array)) in columns.iter().enumerate() {
            if columns[..number].iter().any(|(other, _)| other == name) {
                return Err(refused(format!("two columns are named {name:?}")).into());
            }
            let (first, rows) = (&columns[0].0, columns[0].1.len());
            if array.len() != rows {
                let lengths =
                    format!("column {first:?} has {rows} values, column {name:?} {}", array.len());
                return Err(refused(format!("columns differ in length: {lengths}")).into());
            }
        }
        let fields =
            columns.iter().map(|(name, array)| Field::new(name, array.data_type().clone(), true));
        let schema = Schema::new(fields.collect::<Vec<_>>());
        let options = RecordBatchOptions::new()
            .with_row_count(Some(columns.first().map_or(0, |(_, a)| a.len())));
        let arrays = columns.into_iter().map(|(_, array)| array).collect();
        self.from_arrow([RecordBatch::try_new_with_options(schema.into(), arrays, &options)?])
    }

    /// The frame of the batches that a reader yields, such as those of Arrow's IPC and CSV readers,
    /// of Parquet's, or of an Arrow C stream.
    ///
    /// # Errors
    /// What the reader says.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use warpframe::arrow::array::{ArrayRef, Int64Array, RecordBatch, RecordBatchIterator};
    /// # use warpframe::{DeviceChoice, Session};
    /// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let x = Arc::new(Int64Array::from(vec![1, 2, 3])) as ArrayRef;
    /// let batch = RecordBatch::try_from_iter([("x", x)])?;
    /// let reader = RecordBatchIterator::new([Ok(batch.clone())], batch.schema());
    /// assert_eq!(session.from_reader(reader)?.num_rows(), 3);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn from_reader(&self, reader: impl RecordBatchReader) -> Result<DataFrame> {
        let schema = reader.schema();
        let mut batches = reader.collect::<std::result::Result<Vec<_>, _>>()?;
        if batches.is_empty() {
            batches.push(RecordBatch::new_empty(schema));
        }
        LazyFrame::of_batches(&self.core, batches)?.collect()
    }

    /// The frame of the batches of an Arrow C stream, which other libraries in this process make:
    /// PyArrow, Polars, DuckDB. `FFI_ArrowArrayStream::from_raw` takes one from a pointer. Needs
    /// the feature `ffi`; [`DataFrame::to_arrow_stream`] is the way out.
    ///
    /// # Errors
    /// A stream that was released already; what the stream says.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let stream = frame!(session; "x" => [1, 2, 3])?.to_arrow_stream();
    /// assert_eq!(session.from_arrow_stream(stream)?.num_rows(), 3);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    #[cfg(feature = "ffi")]
    pub fn from_arrow_stream(&self, stream: FFI_ArrowArrayStream) -> Result<DataFrame> {
        self.from_reader(ArrowArrayStreamReader::try_new(stream)?)
    }

    /// The frame whose rows are these structs: their fields are the columns. Fields that are
    /// options may be null; vectors are lists, structs in structs are structs. Needs the feature
    /// `serde`.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] for types that are no columns, such as enums with data.
    ///
    /// ```
    /// use serde::{Deserialize, Serialize};
    /// # use warpframe::{DeviceChoice, Session};
    ///
    /// #[derive(Debug, PartialEq, Serialize, Deserialize)]
    /// struct Jet {
    ///     event: u64,
    ///     pt: f64,
    ///     tag: Option<String>,
    /// }
    ///
    /// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let jets = vec![
    ///     Jet { event: 1, pt: 41.5, tag: Some("b".into()) },
    ///     Jet { event: 1, pt: 20.0, tag: None },
    /// ];
    /// let frame = session.from_structs(&jets)?;
    /// assert_eq!(frame.column("pt")?.to_vec::<f64>()?, [41.5, 20.0]);
    /// assert_eq!(frame.to_structs::<Jet>()?, jets);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    #[cfg(feature = "serde")]
    pub fn from_structs<T: serde::Serialize + serde::de::DeserializeOwned>(
        &self,
        rows: &[T],
    ) -> Result<DataFrame> {
        self.from_arrow([crate::interop::structs::to_batch(rows)?])
    }
}

#[cfg(feature = "serde")]
impl DataFrame {
    /// The rows as structs, whose fields are columns of these names. Needs the feature `serde`. An
    /// example is at [`Session::from_structs`].
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] where a field has no column, a type does not fit, or a null meets
    /// a field that is no option.
    pub fn to_structs<T: serde::de::DeserializeOwned>(&self) -> Result<Vec<T>> {
        crate::interop::structs::of_batches(&self.to_arrow()?)
    }
}
