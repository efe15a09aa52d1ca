//! Covariances, correlations and regressions over frames: means and sums of products of deviations
//! come from a tree, as extrema do, and what is asked is computed from them row by row.

use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::Expr;

use super::{OPERATOR, WindowRows, positions};
use crate::codegen::window::frames::{point, products_of_row};
use crate::codegen::{Codes, Flow, FlowSource, materialize};
use crate::column::{Column, Relation};
use crate::error::{Error, Result};
use crate::exec::regroup::named;
use crate::exec::run::Runner;
use crate::plan::{Frame, Points, RegroupedCall, of_points};
use warpframe_device::ops::window::{Fold, over_frames};

/// What [`Fold::Products`] yields, in its order.
const NAMES: [&str; 6] = ["n", "mx", "my", "xx", "xy", "yy"];

impl Runner {
    pub(super) fn points_of_frames(
        &self,
        sorted: &WindowRows,
        frame: &Frame,
        call: &RegroupedCall,
        of: Points,
    ) -> Result<Column> {
        let [x, y] = call.args.as_slice() else {
            return Err(Error::internal(format!("{OPERATOR}: points of one coordinate")));
        };
        let (_, points) =
            materialize(&self.device, OPERATOR, &sorted.flow(), Codes::Keep, |generator, out| {
                let (x, y) = (generator.expr(x, out)?, generator.expr(y, out)?);
                let filter =
                    call.filter.as_ref().map(|filter| generator.expr(filter, out)).transpose()?;
                // Only points of which both coordinates are known count.
                Ok(vec![point(&x, &y, filter.as_ref(), out)])
            })?;
        let [low, high] = self.frame_buffers(sorted, frame)?;
        let (values, valid) = (&*points[0].data, points[0].validity.as_deref());
        let products =
            over_frames(&self.device, Fold::Products, values, valid, [&low, &high], sorted.rows())?;
        let (rows, columns) = materialize(
            &self.device,
            OPERATOR,
            &positions(sorted.rows())?,
            Codes::Keep,
            |generator, out| Ok(products_of_row(&products, NAMES.len(), generator, out)),
        )?;
        let schema = named(NAMES.map(|name| (name.to_string(), DataType::Float64)).into())?;
        let flow = Flow::new(FlowSource::Relation(Relation::dense(rows, columns)?), schema);
        let value: Expr = of_points(of);
        let (_, mut columns) =
            materialize(&self.device, OPERATOR, &flow, Codes::Keep, |generator, out| {
                Ok(vec![generator.expr(&value, out)?])
            })?;
        Ok(columns.remove(0))
    }
}
