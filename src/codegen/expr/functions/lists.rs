//! Lists.

mod aggregates;

use super::super::list_edit::Most;
use super::super::list_set::SetOperation;
use super::super::nested::ListFold;
use super::*;
use crate::host::arrays_zip::arrays_zip;
use crate::host::list_combinations::list_combinations;
use crate::host::shorthand::{concat_lists, flatten, map_extract, sum_of_none};

pub(super) const FAMILY: &[Function] = &[
    row("make_array")
        .also(&["array_value", "list_value"])
        .several(0..=usize::MAX, |c, call| c.array(call.args, call.dtype)),
    row("array_element").two(|c, list, index, dtype| c.array_element(list, index, dtype)),
    row("array_length")
        .also(&["list_length"])
        .written_instead("takes a list and a dimension", |_, args| aggregates::length(args))
        .several(1..=2, |c, call| c.array_length(&call.args[0], call.args.get(1), call.dtype)),
    row("cardinality").one(|c, list, dtype| c.cardinality(list, dtype)),
    row("empty").one(|c, list, _| c.is_empty_list(list)),
    row("array_min").also(&["list_min"]).one(|c, list, dtype| c.array_extreme(list, true, dtype)),
    row("array_max").one(|c, list, dtype| c.array_extreme(list, false, dtype)),
    row("array_sum").one(|c, list, dtype| c.array_fold(list, ListFold::Sum, dtype)),
    row("array_avg").one(|c, list, dtype| c.array_fold(list, ListFold::Average, dtype)),
    row("array_product").one(|c, list, dtype| c.array_fold(list, ListFold::Product, dtype)),
    row("array_has").two(|c, list, needle, _| c.array_has(list, needle)),
    row("array_position")
        .also(&["array_indexof", "list_indexof", "list_position"])
        .written_instead("takes a list, a value and where to begin", |_, args| {
            aggregates::position(args)
        })
        .two(|c, list, needle, dtype| c.array_position(list, needle, dtype)),
    row("array_slice").several(3..=4, slice),
    row("array_sort")
        .several(1..=3, |c, call| c.array_sort(&call.args[0], &call.args[1..], call.dtype)),
    row("array_distinct")
        .also(&["list_distinct"])
        .written_instead("takes a list", |_, args| aggregates::distinct(args))
        .one(|c, list, dtype| c.array_distinct(list, dtype)),
    row("array_repeat").two(|c, value, count, dtype| c.array_repeat(value, count, dtype)),
    row("range").several(1..=3, |c, call| c.series(call.args, false, call.dtype)),
    row("generate_series").several(1..=3, |c, call| c.series(call.args, true, call.dtype)),
    row("array_any_value").one(|c, list, dtype| c.array_any_value(list, dtype)),
    row("array_concat")
        .also(&["array_cat", "list_cat", "list_concat"])
        .typed("takes lists", concat_lists)
        .several(0..=usize::MAX, |c, call| c.array_concat(call.args, call.dtype)),
    row("array_append").two(|c, list, value, dtype| c.array_append(list, value, false, dtype)),
    row("array_prepend").two(|c, value, list, dtype| c.array_append(list, value, true, dtype)),
    row("array_reverse").one(|c, list, dtype| c.array_reverse(list, dtype)),
    row("array_remove")
        .two(|c, list, needle, dtype| c.array_remove(list, needle, Most::First, dtype)),
    row("array_remove_n")
        .three(|c, list, needle, most, dtype| c.array_remove(list, needle, Most::Of(most), dtype)),
    row("array_remove_all")
        .two(|c, list, needle, dtype| c.array_remove(list, needle, Most::All, dtype)),
    row("array_replace")
        .three(|c, list, from, to, dtype| c.array_replace([list, from, to], Most::First, dtype)),
    row("array_replace_n").several(4..=4, |c, call| match call.args {
        [list, from, to, most] => c.array_replace([list, from, to], Most::Of(most), call.dtype),
        _ => Err(call.refused()),
    }),
    row("array_replace_all")
        .three(|c, list, from, to, dtype| c.array_replace([list, from, to], Most::All, dtype)),
    row("array_resize").several(2..=3, |c, call| {
        c.array_resize(&call.args[0], &call.args[1], call.args.get(2), call.dtype)
    }),
    row("array_union").two(|c, one, two, dtype| c.array_set(SetOperation::Union, one, two, dtype)),
    row("array_except")
        .two(|c, one, two, dtype| c.array_set(SetOperation::Except, one, two, dtype)),
    row("array_intersect")
        .also(&["list_intersect"])
        .written_instead(TWO_LISTS, |_, args| aggregates::intersect(args))
        .two(|c, one, two, dtype| c.array_set(SetOperation::Intersect, one, two, dtype)),
    row("list_combinations")
        .on_host(list_combinations)
        .two(|c, list, of, dtype| c.list_combinations(list, of, dtype)),
    row("arrays_zip")
        .on_host(arrays_zip)
        .several(0..=usize::MAX, |c, call| c.arrays_zip(call.args, call.dtype)),
    row("array_compact").one(|c, list, dtype| c.array_compact(list, dtype)),
    row("array_positions").two(|c, list, needle, dtype| c.array_positions(list, needle, dtype)),
    row("array_has_any")
        .also(&["list_has_any"])
        .written_instead(TWO_LISTS, |_, args| aggregates::has_any(args))
        .two(|c, list, other, _| c.array_has_several(list, other, false)),
    row("array_has_all")
        .also(&["list_has_all"])
        .written_instead(TWO_LISTS, |_, args| aggregates::has_all(args))
        .two(|c, list, other, _| c.array_has_several(list, other, true)),
    row("flatten")
        .typed("takes a list of lists", flatten)
        .one(|c, list, dtype| c.flatten(list, dtype)),
    row("string_to_array").several(2..=3, |c, call| c.split_text(call.args, call.dtype)),
    row("array_to_string").several(2..=3, |c, call| c.joined_list(call.args, call.dtype)),
    row("array_pop_front").one(|c, list, dtype| {
        c.array_part(list, &[], dtype, |view, _| {
            format!("list_between({view}, 2, (i64){view}.length)")
        })
    }),
    row("array_pop_back").one(|c, list, dtype| {
        c.array_part(list, &[], dtype, |view, _| {
            format!("list_part({view}, 0, {view}.length - ({view}.length != 0))")
        })
    }),
    row("list_aggregate")
        .also(&["array_aggr", "array_aggregate", "list_aggr"])
        .written(aggregates::TAKES, |_, args| aggregates::aggregate(args)),
    row("list_count").written("takes a list", |_, args| aggregates::count(args)),
    row("list_sum").written_instead("takes a list", |_, args| aggregates::sum(args)),
    row("list_unique")
        .also(&["array_unique"])
        .written("takes a list", |_, args| aggregates::unique(args)),
    row("list_sort").written_instead(
        "takes a list, 'ASC' or 'DESC', and 'NULLS FIRST' or 'NULLS LAST'",
        |_, args| aggregates::sort(args),
    ),
    row("list_reverse_sort")
        .also(&["array_reverse_sort"])
        .written("takes a list", |_, args| aggregates::reverse_sort(args)),
    row("list_select")
        .also(&["array_select"])
        .written("takes a list, and a list of places", |_, args| aggregates::select(args)),
    row("map_extract").also(&["element_at"]).typed("takes a map and a key", map_extract),
    row("sum_of_none").typed("takes a list of numbers", sum_of_none),
    // With lambdas: `lambda.rs` computes them.
    row("array_any_match").total(),
    row("array_filter").total(),
    row("array_first").total(),
    row("array_transform").total(),
];

#[cfg(test)]
pub(super) const PAGE: &[Line] = &[
    yes(
        "`l[n]`, `array_element`, `s.f`, `get_field`",
        "`SELECT [i, j][1], [s, p][-1], named_struct('k', s, 'v', x)['k'] FROM t`",
        "maps",
    ),
    yes(
        "`l[a:b]`, `l[a:b:step]`, `l[a:]`, `l[:b]`, `array_slice`, `array_pop_front`, \
            `array_pop_back`",
        "`SELECT [i, j, 3][2:3], [i, j, 3][2:], [i, j, 3][1:3:2], array_slice([s, p], 1, -2), \
            array_pop_front([x, y]) FROM t`",
        "",
    ),
    yes(
        "`array_length`, `cardinality`, `empty`",
        "`SELECT array_length([i, j]), cardinality([[i], [j, 1]]), empty([x]) FROM t`",
        "dimensions but the first",
    ),
    yes(
        "`array_min`, `array_max`, `array_sum`, `array_avg`, `array_product`",
        "`SELECT array_min([i, j]), array_max([s, p]), array_sum([x, y]), array_avg([i, j]), \
            array_product([x, 2]) FROM t`",
        "lists of lists or structs",
    ),
    yes(
        "`array_has`, `array_position`",
        "`SELECT array_has([i, j], 4), array_position([s, p], 'b') FROM t`",
        "lists of lists or structs; a place to begin at",
    ),
    yes(
        "`array_concat`, `array_append`, `array_prepend`, `||`, `array_reverse`, `array_compact`, \
            `flatten`",
        "`SELECT array_concat([i], [j, 1]), array_append([s], p), [i] || [j], array_reverse([x, \
            y]), array_compact([i, NULL]), flatten([[i], [j]]) FROM t`",
        "",
    ),
    yes(
        "`array_remove`, `array_remove_n`, `array_remove_all`, `array_replace`, \
            `array_replace_n`, `array_replace_all`, `array_resize`",
        "`SELECT array_remove([i, j], 1), array_remove_n([i, j, i], i, 2), array_replace([s, p], \
            'b', 'x'), array_replace_all([i, j], 4, NULL), array_resize([x], 3, y) FROM t`",
        "lists of lists or structs in `array_replace`",
    ),
    yes(
        "`array_union`, `array_except`, `array_intersect`",
        "`SELECT array_union([i], [j, 1]), array_except([s, p], ['b']), array_intersect([i, j], \
            [1, 4, 5]) FROM t`",
        "",
    ),
    yes(
        "`array_positions`, `array_has_any`, `array_has_all`, `@>`, `&&`",
        "`SELECT array_positions([s, p], 'b'), array_has_any([i, j], [1, 4]), [i, j] @> [5], [i] \
            && [j, 1] FROM t`",
        "lists of lists or structs",
    ),
    yes(
        "`string_to_array`, `array_to_string`",
        "`SELECT string_to_array(s, ' '), string_to_array(s, NULL), array_to_string([i, j], '-', \
            '?') FROM t`",
        "floats to strings",
    ),
    no(
        "casts of texts to lists and structs",
        "`SELECT CAST('[' || i || ', NULL]' AS int[]) FROM t`",
        "a text that is none is an error, and so is a value that is no list",
    ),
    yes(
        "casts of lists and structs, element by element",
        "`SELECT CAST([i, j] AS varchar[]), CAST([x] AS int[]) FROM t`",
        "to lists of fixed size; structs of other names",
    ),
    yes(
        "`list_sum`; `length` and `concat` of lists",
        "`SELECT list_sum([i, j]), length([s]), concat([i], [j, 1]) FROM t`",
        "",
    ),
    yes(
        "`array_sort`, `array_distinct`, `array_any_value`, `array_repeat`",
        "`SELECT array_sort([i, j], 'DESC', 'NULLS LAST'), array_distinct([s, p, s]), \
            array_any_value([x, y]), array_repeat(s, 2) FROM t`",
        "a computed order",
    ),
    yes(
        "`list_min`, `list_select(l, places)`, `split`; `string_split(s, '')`, the characters",
        "`SELECT list_min([i, j]), list_select([x, y], [2, 1]), split(s, ' '), string_split(s, '') \
            FROM t`",
        "",
    ),
    yes(
        "`a IN l`, `a NOT IN l` of a list: whether it is an element",
        "`SELECT i FROM t WHERE i IN [1, j] AND i NOT IN list_filter([i, j], n -> n > 3)`",
        "",
    ),
    yes(
        "`list_aggregate(l, 'sum')` (`list_aggr`) with `sum`, `avg`, `min`, `max`, `product`, \
            `count`, `first`, `last`, `any_value`, `approx_count_distinct`, `string_agg`; \
            `list_count`, `list_unique`, `list_reverse_sort`",
        "`SELECT list_aggregate([i, j], 'sum'), list_aggregate([s, p], 'string_agg', '-'), \
            list_unique([i, j]), list_reverse_sort([x, y]), list_count([i]) FROM t`",
        "other aggregates are errors",
    ),
    yes(
        "`range`, `generate_series` of integers",
        "`SELECT range(i), generate_series(i, 10, 2) FROM t WHERE i > 0`",
        "of dates and timestamps",
    ),
    yes(
        "`list_transform`, `list_filter`, `list_reduce`, `array_any_match`, `array_first` with \
            [lambdas](#lambdas)",
        "`SELECT list_transform([i, j], n -> n * j), list_filter([x, y], v -> v > 0), \
            list_reduce([i, j], (a, n) -> a + coalesce(n, 0), 0) FROM t`",
        "a lambda that makes an untyped null",
    ),
    yes(
        "`list_combinations(l, n)`, n a constant from 1 to 4",
        "`SELECT list_combinations([i, j, 7], 2), list_transform(list_combinations([x, y], 2), p \
            -> p[1] * p[2]) FROM t`",
        "",
    ),
    yes(
        "`list_zip(l, m, …[, truncate])`, `arrays_zip`",
        "`SELECT list_zip([i, j], [s]), list_zip([i, j], [s], true), arrays_zip([x]) FROM t`",
        "",
    ),
    yes(
        "`[x * 2 for x in l if x > 1]`, [lambdas](#lambdas) in another form",
        "`SELECT [e * 2 for e in [i, j] if e > 1], [upper(e) for e in ['a', 'b']] FROM t`",
        "an index beside the element is an error",
    ),
];

const TWO_LISTS: &str = "takes two lists";

/// Elements from one place to another, all of them or in steps.
fn slice(c: &mut Compiler<'_>, call: &FunctionCall<'_>) -> Result<Value> {
    let [list, from, to, step @ ..] = call.args else { return Err(call.refused()) };
    if let [step] = step
        && as_literal(step).and_then(literal::integer) != Some(1)
    {
        return c.array_stride(list, [from, to, step], call.dtype);
    }
    c.array_part(list, &call.args[1..3], call.dtype, |view, at| {
        format!("list_between({view}, {}, {})", at[0], at[1])
    })
}
