//! Nulls and what is not there, in lists, maps and options; values of DuckDB 2.0.1.

use std::sync::Arc;

use warpframe::arrow::array::{ArrayRef, Int64Array};

use super::{check_rows, lists, rows_on, texts_and_lists};
use crate::differential::{Pair, builder};
use crate::tables::columns;

#[test]
fn lists_behind_one_another_are_null_where_one_is() {
    let pair = lists();
    check_rows(
        &pair,
        "SELECT len(l || [7]), len([7] || l || l || [8]), len(list_concat(l, [7])), \
         len(list_concat(l, NULL)), len(l || NULL), len(NULL || l) FROM t ORDER BY k",
        &["3|6|3|2|-|-", "-|-|1|-|-|-", "1|2|1|0|-|-", "2|4|2|1|-|-"],
    );
    check_rows(
        &pair,
        "SELECT array_to_string([1, 2] || [3], ','), [1, 2] || NULL, \
         len([[1]] || [[2]]), len([[1]] || [2]) FROM t LIMIT 1",
        &["1,2,3|-|2|2"],
    );
    // As long a chain as one types.
    let chain = vec!["l"; 40].join(" || ");
    check_rows(&pair, &format!("SELECT len({chain}) FROM t ORDER BY k"), &["80", "-", "0", "40"]);
    let own = "CASE WHEN k = 1 THEN NULL ELSE list_concat(l, [5]) END || l";
    check_rows(&pair, &format!("SELECT len({own}) FROM t ORDER BY k"), &["-", "-", "1", "3"]);
}

#[test]
fn lists_of_nulls_flatten_to_nothing() {
    check_rows(
        &lists(),
        "SELECT len(flatten([NULL])), len(flatten([NULL, l])), len(flatten([[NULL], l])), \
         len(flatten([[NULL]])) FROM t ORDER BY k",
        &["0|2|3|1", "0|0|1|1", "0|0|1|1", "0|1|2|1"],
    );
}

#[test]
fn nulls_are_last_in_order() {
    check_rows(
        &texts_and_lists(),
        "SELECT array_to_string(list_sort(l), ',', '-'), array_to_string(list_sort(l, 'DESC'), ',', \
         '-'), array_to_string(list_sort(l, 'ASC', 'NULLS FIRST'), ',', '-'), \
         array_to_string(list_reverse_sort(l), ',', '-') FROM t ORDER BY k",
        &["1,1,2,3|3,2,1,1|1,1,2,3|3,2,1,1", "|||", "-|-|-|-", "5,5,-|5,5,-|-,5,5|5,5,-"],
    );
}

#[test]
fn a_null_has_a_place_in_a_list() {
    check_rows(
        &texts_and_lists(),
        "SELECT list_position(l, NULL), list_position([l, NULL], NULL), list_position([[k]], NULL), \
         list_position(NULL, 1), array_position(l, 5) FROM t ORDER BY k",
        &["-|2|-|-|-", "-|2|-|-|-", "-|1|-|-|-", "1|2|-|-|2"],
    );
    check_rows(
        &texts_and_lists(),
        "SELECT list_position([l], l), list_position([[0], l], l), list_position([[0]], l) FROM t \
         ORDER BY k",
        &["1|2|-", "1|2|-", "1|2|-", "1|2|-"],
    );
}

#[test]
fn a_map_has_no_value_for_a_key_that_it_lacks() {
    let numbers = Int64Array::from(vec![3, 4]);
    let pair = Pair::with(builder().strict(false))
        .and("t", columns(vec![("k", Arc::new(numbers) as ArrayRef)]));
    for session in [&pair.cpu, &pair.device] {
        let maps = "(SELECT k, CASE WHEN k < 4 THEN MAP {'a': k, 'b': NULL} END AS m FROM t)";
        let sql = format!(
            "SELECT m['a'], m['c'], m[NULL], CAST(map_extract(m, 'a') AS VARCHAR), \
             CAST(element_at(m, 'c') AS VARCHAR), CAST(map_extract(m, 'b') AS VARCHAR), \
             CAST(map_extract(m, NULL) AS VARCHAR) FROM {maps} WHERE k > 2 ORDER BY k"
        );
        assert_eq!(rows_on(session, &sql), ["3|-|-|[3]|[]|[NULL]|[]", "-|-|-|-|-|-|-"]);
        let sql = "SELECT len(map_extract(MAP {'a': 1}, 'b')), MAP {1: 1}[NULL], MAP {1: 5}[1]";
        assert_eq!(rows_on(session, sql), ["0|-|5"]);
    }
}
