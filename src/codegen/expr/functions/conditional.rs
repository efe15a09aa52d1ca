//! Functions that choose among their arguments, and those of any value.

use datafusion::arrow::array::StringArray;
use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr as Tree};

use super::*;
use crate::host::once_a_row::drawn_alike;
use crate::host::shorthand::type_of;
use crate::sql::ast::{binary, case, nested};

pub(super) const FAMILY: &[Function] = &[
    row("coalesce").several(0..=usize::MAX, |c, call| c.coalesce(call.args, call.dtype)).total(),
    row("nvl").several(2..=2, |c, call| c.coalesce(call.args, call.dtype)).total(),
    row("nvl2").total(),
    row("nullif").two(|c, left, right, _| c.nullif(left, right)).total(),
    row("greatest")
        .several(0..=usize::MAX, |c, call| c.extreme(Operator::GtEq, call.args, call.dtype))
        .total(),
    row("least")
        .several(0..=usize::MAX, |c, call| c.extreme(Operator::LtEq, call.args, call.dtype))
        .total(),
    row("if").also(&["iif"]).written("takes a condition and two values", |_, args| {
        let [condition, then, otherwise] = args else { return None };
        Some(case(condition.clone(), then.clone(), Some(otherwise.clone())))
    }),
    row("constant_or_null").written("takes a value, and others", |_, args| {
        let [value, others @ ..] = args else { return None };
        let is_there = |other: &Tree| Tree::IsNotNull(Box::new(nested(other.clone())));
        let all = others.iter().map(is_there);
        let all = all.reduce(|all, one| binary(all, BinaryOperator::And, one))?;
        Some(case(all, value.clone(), None))
    }),
    row("typeof").typed("takes a value", type_of),
    row("arrow_typeof").total(),
    row("version").computed(&[], &DataType::Utf8, |_| {
        Ok(Arc::new(StringArray::from(vec![concat!("warpframe ", env!("CARGO_PKG_VERSION"))])))
    }),
    row("drawn_alike").on_host(drawn_alike),
    row("drawn_once").total(),
    // What `plan/subquery.rs` puts around scalar subqueries.
    row("one_row_value").two(|c, value, rows, _| {
        let (value, rows) = (c.value(value)?, c.value(rows)?);
        c.fail_if(&None, &format!("{} > 1", rows.code), Failure::Rows);
        Ok(value)
    }),
];

#[cfg(test)]
pub(super) const PAGE: &[Line] = &[yes(
    "`if`, `iif`, `xor`, `sign`, `last_day`, `dayname`, `monthname`, `regexp_extract`, \
     `string_split`, `struct_pack`, `struct_extract`",
    "`SELECT if(i > 2, 'a', 'b'), xor(i, j), sign(x), last_day(d), dayname(d), \
     regexp_extract(s, '[a-z]+'), string_split(s, ' '), struct_pack(a := i) FROM t`",
    "a computed pattern in `regexp_extract` is an error",
)];
