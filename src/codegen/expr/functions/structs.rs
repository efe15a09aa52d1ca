//! Structs.

use super::*;
use crate::host::checked;

pub(super) const FAMILY: &[Function] = &[
    row("named_struct").several(0..=usize::MAX, |c, call| c.structure(call.args, true, call.dtype)),
    row("struct")
        .several(0..=usize::MAX, |c, call| c.structure(call.args, false, call.dtype))
        .total(),
    row("get_field")
        .also(&["struct_extract"])
        .several(1..=usize::MAX, |c, call| c.field_of(&call.args[0], &call.args[1..]))
        .total(),
    row("map").on_host(checked::map),
];

#[cfg(test)]
pub(super) const PAGE: &[Line] = &[
    yes(
        "`make_array`, `[…]`, `named_struct`, `struct`, `{…}`",
        "`SELECT [i, j, NULL], make_array(s, p), {'k': i, 'v': [x]}, struct(i, s) FROM t`",
        "lists of untyped nulls",
    ),
    no("maps, …", "`SELECT map_keys(MAP {'k': i}) FROM t`", "not yet"),
    no("user-defined functions", "", "they are host code"),
];
