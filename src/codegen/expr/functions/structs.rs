//! Structs.

use super::*;
use crate::host::shorthand::{struct_insert, struct_keys};
use crate::host::{checked, maps};
use crate::sql::ast::call;

pub(super) const FAMILY: &[Function] = &[
    row("named_struct").several(0..=usize::MAX, |c, call| c.structure(call.args, true, call.dtype)),
    row("struct")
        .several(0..=usize::MAX, |c, call| c.structure(call.args, false, call.dtype))
        .total(),
    row("get_field")
        .also(&["struct_extract"])
        .several(1..=usize::MAX, |c, call| c.field_of(&call.args[0], &call.args[1..]))
        .total(),
    row("struct_insert").typed("takes a struct and named values", struct_insert),
    row("struct_keys").typed("takes a struct", struct_keys),
    row("map").on_host(checked::map),
    row("map_contains").written("takes a map and a key", |_, args| {
        let [map, key] = args else { return None };
        Some(call("array_has", vec![call("map_keys", vec![map.clone()]), key.clone()]))
    }),
    row("map_from_entries").on_host(maps::map_from_entries),
    // What `histogram(x)` is written out as.
    row(maps::COUNTS_OF).on_host(maps::counts_of).total(),
];

#[cfg(test)]
pub(super) const PAGE: &[Line] = &[
    yes(
        "`make_array`, `[…]`, `named_struct`, `struct`, `{…}`",
        "`SELECT [i, j, NULL], make_array(s, p), {'k': i, 'v': [x]}, struct(i, s) FROM t`",
        "lists of untyped nulls",
    ),
    yes(
        "`struct_insert(s, name := value, …)`, `struct_keys`",
        "`SELECT struct_insert({'k': i}, v := s), struct_keys({'k': i}) FROM t`",
        "",
    ),
    no("maps, …", "`SELECT map_keys(MAP {'k': i}) FROM t`", "not yet"),
    no(
        "`map_from_entries` of a list of structs of two fields, `map_contains`",
        "`SELECT map_from_entries([{'k': i, 'v': s}]), map_contains(MAP {'k': i}, s) FROM t`",
        "not yet",
    ),
    no("user-defined functions", "", "they are host code"),
];
