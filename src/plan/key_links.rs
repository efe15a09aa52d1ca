//! Which columns of its tables a plan compares with each other, and which it groups by: tables are
//! best cut at values of these.

use datafusion::logical_expr::{Expr, JoinType, LogicalPlan};

use super::device_plan::projection;
use super::tables::placeholder_number;
use super::walk::place_of;

/// A column of a table: the number of its placeholder, and its place in the table.
pub(crate) type TableColumn = (usize, usize);

/// Columns of tables that a plan over placeholders compares or groups by.
#[derive(Debug, Default)]
pub(crate) struct KeyLinks {
    /// Those that joins find equal.
    pub(crate) joined: Vec<(TableColumn, TableColumn)>,
    /// Those that groups and partitions of windows have one value of.
    pub(crate) grouped: Vec<TableColumn>,
}

impl KeyLinks {
    pub(crate) fn of(plan: &LogicalPlan) -> KeyLinks {
        let mut links = KeyLinks::default();
        links.collect(plan);
        links
    }

    fn collect(&mut self, plan: &LogicalPlan) {
        match plan {
            LogicalPlan::Join(join) => {
                for (left, right) in &join.on {
                    let ends = of_expr(left, &join.left).zip(of_expr(right, &join.right));
                    self.joined.extend(ends);
                }
            }
            LogicalPlan::Aggregate(aggregate) => {
                let keys = aggregate.group_expr.iter();
                self.grouped.extend(keys.filter_map(|key| of_expr(key, &aggregate.input)));
            }
            LogicalPlan::Window(window) => {
                for call in &window.window_expr {
                    if let Expr::WindowFunction(call) = call.clone().unalias() {
                        let keys = call.params.partition_by.iter();
                        self.grouped.extend(keys.filter_map(|key| of_expr(key, &window.input)));
                    }
                }
            }
            _ => {}
        }
        plan.inputs().into_iter().for_each(|input| self.collect(input));
    }
}

fn of_expr(expr: &Expr, input: &LogicalPlan) -> Option<TableColumn> {
    origin(input, place_of(expr, input.schema())?)
}

/// The column of a table that a column of a plan shows, if it does.
fn origin(plan: &LogicalPlan, column: usize) -> Option<TableColumn> {
    match plan {
        LogicalPlan::TableScan(scan) => {
            Some((placeholder_number(&scan.source)?, *projection(scan).get(column)?))
        }
        LogicalPlan::Projection(project) => of_expr(project.expr.get(column)?, &project.input),
        LogicalPlan::Aggregate(aggregate) => {
            of_expr(aggregate.group_expr.get(column)?, &aggregate.input)
        }
        LogicalPlan::SubqueryAlias(_)
        | LogicalPlan::Filter(_)
        | LogicalPlan::Sort(_)
        | LogicalPlan::Limit(_)
        | LogicalPlan::Distinct(_)
        | LogicalPlan::Window(_) => {
            let input = *plan.inputs().first()?;
            (column < input.schema().fields().len()).then(|| origin(input, column))?
        }
        LogicalPlan::Join(join) => {
            use JoinType::{RightAnti, RightMark, RightSemi};
            let width = match join.join_type {
                RightSemi | RightAnti | RightMark => 0,
                _ => join.left.schema().fields().len(),
            };
            match column.checked_sub(width) {
                None => origin(&join.left, column),
                // A mark is behind the columns.
                Some(at) if at < join.right.schema().fields().len() => origin(&join.right, at),
                Some(_) => None,
            }
        }
        _ => None,
    }
}
