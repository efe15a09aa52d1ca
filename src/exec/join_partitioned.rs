//! Which inner joins run as partitioned hash joins ([`join_partitioned`]), and how.

use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::{Expr, Join, JoinType};

use super::join::{Sides, keys_of, null_keys, residual};
use super::run::Runner;
use crate::codegen::{
    BuildSide, ColumnOrigin, Flow, FlowSource, KeyLayout, PartitionedJoin, join_layout,
    join_partitioned, pays_from,
};
use crate::column::{Column, Relation};
use crate::error::Result;
use warpframe_device::ops::join::is_direct;

/// A table that keys number is read at random as fast as partitions are, up to so many times the
/// rows from which partitions pay elsewhere: one access, of which many find their line in the
/// second-level cache.
const DIRECT_DOMAIN: u64 = 16;
/// Rows of build and probe, as shares of those: where keys number slots, and where they are hashed.
/// (1M build rows and 100M probes of scattered keys take 1.8 ms by a table in global memory.)
const DIRECT: (f64, f64) = (8.0, 8.0);
const LARGE: (f64, f64) = (0.75, 1.0);

impl Runner {
    /// The join as a partitioned hash join, where that pays. `readers` are all expressions that
    /// read the result.
    pub(super) fn partitioned(
        &self,
        join: &Join,
        sides: &Sides,
        readers: Option<&[Expr]>,
    ) -> Result<Option<Flow>> {
        let inner = join.join_type == JoinType::Inner && !join.on.is_empty() && !join.null_aware;
        if !inner || !self.are_large(sides, LARGE) {
            return Ok(None);
        }
        let nulls = null_keys(join);
        let layout = join_layout(&sides.build, &sides.build_keys, nulls, self.device.secret(0))?;
        let Some(domain) = self.pays(sides, &layout)? else { return Ok(None) };
        let residual = residual(join, nulls, layout.is_exact())?;
        let conjuncts = residual.map_or(vec![], |residual| residual.conjuncts);
        let wanted = wanted(join, readers, &conjuncts)?;
        let columns = columns(join, sides, &layout, &wanted)?;
        let partitioned = PartitionedJoin {
            build: (&sides.build, &sides.build_keys),
            probe: (&sides.probe, &sides.probe_keys),
            layout: &layout,
            domain,
            columns: &columns,
        };
        let Some((rows, found)) = join_partitioned(&self.device, &partitioned)? else {
            return Ok(None);
        };
        let nothing = std::sync::Arc::new(self.device.alloc("join", 0)?);
        let absent = |dtype: &DataType| Column::plain(dtype.clone(), 0, nothing.clone(), None);
        let dense = Relation::dense(rows, found.iter().flatten().cloned().collect())?;
        // Those that nobody reads are not there.
        let found = found
            .into_iter()
            .zip(&columns)
            .map(|(column, (_, dtype))| column.unwrap_or_else(|| absent(dtype)));
        let relation = Relation { columns: found.map(|column| (0, column)).collect(), ..dense };
        let mut flow = Flow::new(FlowSource::Relation(relation), join.schema.clone());
        for predicate in conjuncts {
            flow = flow.filter(predicate);
        }
        Ok(Some(flow))
    }

    /// Whether the sides have so many times the rows from which partitions pay elsewhere.
    fn are_large(&self, sides: &Sides, (build, probe): (f64, f64)) -> bool {
        let from = pays_from(&self.device) as f64;
        let most = sides.build.source.rows().max(sides.probe.source.rows());
        let large = sides.build.estimate >= from * build && sides.probe.estimate >= from * probe;
        large && most < u64::from(u32::MAX)
    }

    /// Whether partitions pay for large sides: the domain of keys that number slots, if these do.
    fn pays(&self, sides: &Sides, layout: &KeyLayout) -> Result<Option<Option<u64>>> {
        // Where keys follow each other so do the slots of a table, or are the same.
        if sides.ordered_probes() > 0 {
            return Ok(None);
        }
        let build = &sides.build;
        match layout
            .dense_domain(u64::MAX)
            .filter(|domain| is_direct(&self.device, *domain, build.expected_rows(), 0))
        {
            None => Ok(Some(None)),
            Some(domain) => {
                let pays = domain >= pays_from(&self.device) * DIRECT_DOMAIN;
                let pays =
                    pays && self.are_large(sides, DIRECT) && !in_order(build, &sides.build_keys);
                Ok(pays.then_some(Some(domain)))
            }
        }
    }
}

impl Sides {
    /// The probe's rows, where these are known to come in the order of their one key; else 0.
    pub(super) fn ordered_probes(&self) -> u64 {
        if in_order(&self.probe, &self.probe_keys) { self.probe.source.rows() } else { 0 }
    }
}

/// Whether the flow's rows are known to come in the order of their one key.
fn in_order(flow: &Flow, keys: &[Expr]) -> bool {
    matches!(keys, [key] if flow.is_in_order_of(key))
}

/// Which of the join's columns are read.
fn wanted(join: &Join, readers: Option<&[Expr]>, conjuncts: &[Expr]) -> Result<Vec<bool>> {
    let Some(readers) = readers else { return Ok(vec![true; join.schema.fields().len()]) };
    let mut wanted = vec![false; join.schema.fields().len()];
    for name in readers.iter().chain(conjuncts).flat_map(|expr| expr.column_refs()) {
        wanted[join.schema.index_of_column(name)?] = true;
    }
    Ok(wanted)
}

/// Where the join's columns come from.
fn columns(
    join: &Join,
    sides: &Sides,
    layout: &KeyLayout,
    wanted: &[bool],
) -> Result<Vec<(ColumnOrigin, DataType)>> {
    let keys = keys_of(sides, layout)?;
    let of_build = sides.build.schema().fields().len();
    let of_probe = sides.probe.schema().fields().len();
    let column = |at: usize| {
        let (before, build_first) = match sides.place {
            BuildSide::Left => (of_build, true),
            BuildSide::Right => (of_probe, false),
        };
        if !wanted[at] {
            ColumnOrigin::Nowhere
        } else if (at < before) == build_first {
            let column = if build_first { at } else { at - before };
            keys[column].map_or(ColumnOrigin::Build(column), ColumnOrigin::Key)
        } else {
            ColumnOrigin::Probe(if build_first { at - before } else { at })
        }
    };
    let fields = join.schema.fields().iter().enumerate();
    Ok(fields.map(|(at, field)| (column(at), field.data_type().clone())).collect())
}
