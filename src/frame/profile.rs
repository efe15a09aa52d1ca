//! What a query's operators took.

use super::{DataFrame, LazyFrame};
use crate::error::Result;
use crate::exec::OperatorRun;

impl LazyFrame {
    /// Runs the query, and tells what its operators on the CPU engine did: each before those whose
    /// rows it takes. With a device the list is empty: its kernels are not operators of that engine,
    /// and [`Device::take_profile`](warpframe_device::Device::take_profile) tells their times.
    ///
    /// # Errors
    /// Those of [`LazyFrame::collect`].
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let query = session.sql("SELECT range FROM range(0, 100) WHERE range < 10")?;
    /// let (frame, operators) = query.profile()?;
    /// let filter = operators.iter().find(|of| of.operator.starts_with("Filter"));
    /// assert_eq!((frame.num_rows(), filter.and_then(|of| of.rows)), (10, Some(10)));
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn profile(&self) -> Result<(DataFrame, Vec<OperatorRun>)> {
        if self.core.engine().is_some() {
            return Ok((self.collect()?, vec![]));
        }
        let (answer, operators) = self.core.profiled(self.plan()?)?;
        Ok((DataFrame::new(self.core.clone(), answer), operators))
    }
}
