//! Build sides whose columns lie side by side, so that a match costs a probe one access to memory, not one for each column.
//!
//! ```text
//!   a  1 2 3    b  5 6 7      records  1 5 2 6 3 7      row 2 of a is element 2 · 2, of b 2 · 2 + 1
//! ```
//!
//! A record's columns are views of the same elements, each from its own on; the probe's row numbers come multiplied. 30M
//! probes of a million rows of 8 columns, which number more bytes than the second-level cache holds: 3.9 ms column by
//! column on an H200.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;

use super::run::{Runner, anonymous};
use crate::codegen::{Flow, Source, for_each};
use crate::column::{Column, Encoding, Relation, Stats, is_nested};
use crate::device::{Buffer, DeviceKind};
use crate::error::{ErrorKind, Result};

/// Bytes of columns below which the caches near a multiprocessor hold them anyway.
const LEAST_BYTES: u64 = 1 << 19;
/// Elements of records, which all have this many bytes.
const WIDTH: usize = 8;

impl Runner {
    /// The build side with its columns, keys aside, in records; of rows in this order, where one is given. With it the
    /// elements of a record. `None`: they had better stay as they are.
    pub(super) fn in_records(
        &self,
        build: &Relation,
        keys_of: &[Option<usize>],
        order: Option<&Arc<Buffer>>,
    ) -> Result<Option<(Relation, u32)>> {
        let others: Vec<usize> = (0..build.columns.len()).filter(|at| keys_of[*at].is_none()).collect();
        let elements = build.rows.saturating_mul(others.len() as u64);
        let least = if self.device.kind() == DeviceKind::Sim { 0 } else { LEAST_BYTES };
        let suits = |at: &usize| {
            let (index, column) = &build.columns[*at];
            let gaps = build.indices[*index].as_ref().is_some_and(|index| index.gaps);
            let plain = matches!(column.encoding, Encoding::Plain) && !is_nested(&column.dtype);
            !gaps && plain && column.validity.is_none() && column.width() == WIDTH
        };
        let worth = others.len() > 1 && elements * WIDTH as u64 >= least && elements < u64::from(u32::MAX);
        if build.rows == 0 || !worth || !others.iter().all(suits) {
            return Ok(None);
        }
        let records = match self.device.alloc("join build", elements as usize * WIDTH) {
            // Without them no room is needed.
            Err(error) if matches!(error.kind(), ErrorKind::OutOfDeviceMemory { .. }) => return Ok(None),
            records => Arc::new(records?),
        };
        let columns = others.iter().map(|at| build.columns[*at].clone()).collect();
        let mut read = Relation { rows: build.rows, indices: build.indices.clone(), columns };
        if let Some(order) = order {
            read = self.reindexed(read, build.rows, order.clone())?;
        }
        let types: Vec<DataType> = read.columns.iter().map(|(_, column)| column.dtype.clone()).collect();
        let flow = Flow::new(Source::Relation(read), anonymous(&types)?);
        for_each(&self.device, &flow, &[&records], |generator, out| {
            let target = generator.params.pointer("u64", &records, 0);
            let values = (0..others.len()).map(|at| generator.column(at, out)).collect::<Result<Vec<_>>>()?;
            for (at, value) in values.iter().enumerate() {
                out.line(format!("{target}[row * {} + {at}] = bit_cast<u64>({});", others.len(), value.stored()));
            }
            Ok(())
        })?;
        let mut build = build.clone();
        build.indices.push(None);
        let in_place = build.indices.len() - 1;
        for (element, at) in others.iter().enumerate() {
            let column = &build.columns[*at].1;
            let len = elements as usize - element;
            let stats = Stats { ascending: false, ..column.stats };
            let column = Column { data: records.clone(), offset: element, len, stats, ..column.clone() };
            build.columns[*at] = (in_place, column);
        }
        Ok(Some((build, others.len() as u32)))
    }
}
