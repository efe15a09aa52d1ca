//! Scalar functions, by name.

use datafusion::logical_expr::expr::ScalarFunction;

use super::list_edit::Most;
use super::list_set::SetOperation;
use super::nested::ListFold;
use super::string::LengthUnit;
use super::*;
use crate::user_code::UserFunction;

impl Compiler<'_> {
    pub(super) fn function(&mut self, expr: &Expr, call: &ScalarFunction) -> Result<Value> {
        // Measures of an Arrow dictionary of strings are a dictionary of integers.
        let dtype = value_type(&expr.get_type(self.schema)?).clone();
        if let Some(function) = UserFunction::of(&call.func) {
            return self.user_function(function, &call.args);
        }
        match (call.name(), call.args.as_slice()) {
            ("coalesce", arguments) => self.coalesce(arguments, &dtype),
            ("nvl", arguments @ [_, _]) => self.coalesce(arguments, &dtype),
            ("nullif", [left, right]) => self.nullif(left, right),
            ("greatest", arguments) => self.extreme(Operator::GtEq, arguments, &dtype),
            ("least", arguments) => self.extreme(Operator::LtEq, arguments, &dtype),

            ("abs", [x]) => self.absolute(x, &dtype),
            ("round", arguments @ ([_] | [_, _])) => self.rounded(arguments, &dtype),
            ("floor", [x]) => self.whole("floor", x, &dtype),
            ("ceil", [x]) => self.whole("ceil", x, &dtype),
            ("trunc", arguments @ ([_] | [_, _])) => self.truncated(arguments, &dtype),
            ("signum", [x]) => self.signum(x, &dtype),
            (
                name @ ("sqrt" | "cbrt" | "exp" | "sin" | "cos" | "tan" | "asin" | "acos" | "atan"
                | "sinh" | "cosh" | "tanh" | "asinh" | "acosh" | "atanh" | "log2" | "log10"),
                [x],
            ) => self.float_function(name, x, &dtype),
            ("ln", [x]) => self.float_function("log", x, &dtype),
            ("power", [x, y]) => self.power(x, y, &dtype),
            ("atan2", [y, x]) => self.float_function_of_two("atan2", y, x, &dtype),
            ("radians", [x]) => self.float_scaled(x, std::f64::consts::PI / 180.0, &dtype),
            ("degrees", [x]) => self.float_scaled(x, 180.0 / std::f64::consts::PI, &dtype),
            ("log", [x]) => self.logarithm(None, x, &dtype),
            ("log", [base, x]) => self.logarithm(Some(base), x, &dtype),
            ("cot", [x]) => self.cotangent(x, &dtype),
            ("nanvl", [x, y]) => self.unless_nan(x, y, &dtype),
            (name @ ("gcd" | "lcm"), [a, b]) => self.common_divisor(name, a, b, &dtype),
            ("factorial", [n]) => self.factorial(n, &dtype),
            ("width_bucket", [value, low, high, count]) => {
                self.width_bucket([value, low, high, count], &dtype)
            }
            (name @ ("random_uniform" | "random_normal"), [seed, number]) => {
                self.random(name, seed, number, &[], &dtype)
            }
            ("random", []) => Ok(self.random_of_row()),
            (name @ "random_poisson", [seed, number, mean]) => {
                self.random(name, seed, number, std::slice::from_ref(mean), &dtype)
            }
            (name @ "random_integer", [seed, number, ends @ ..]) => {
                self.random(name, seed, number, ends, &dtype)
            }
            ("isnan", [x]) => self.float_test(x, "x != x"),
            ("iszero", [x]) => self.float_test(x, "x == 0"),

            ("date_part", [part, value]) => self.date_part(part, value, &dtype),
            ("to_local_time", [value]) => {
                let value = self.value(value)?;
                self.local_time(value)
            }
            ("date_trunc", [part, value]) => self.date_trunc(part, value, &dtype),

            ("interval_times", [interval, factor]) => self.interval_times(interval, factor, &dtype),
            ("justified", [interval]) => self.justified(interval, &dtype),
            ("interval_part", [of]) => self.interval_part(call, of, &dtype),
            ("in_unit", [time]) => self.in_unit(time, &dtype),
            ("date_bin", arguments @ ([_, _] | [_, _, _])) => self.binned(arguments, &dtype),
            ("to_char", [value, pattern]) => self.moment_text(value, pattern, &dtype),
            ("make_date", [year, month, day]) => self.date_of(year, month, day, &dtype),
            (
                name @ ("to_timestamp"
                | "to_timestamp_seconds"
                | "to_timestamp_millis"
                | "to_timestamp_micros"
                | "to_timestamp_nanos"),
                [value],
            ) => self.timestamp_from(name, value, &dtype),
            ("to_unixtime", [value]) => self.unix_time_from(value),
            ("from_unixtime", [value]) => {
                let value = self.value(value)?;
                self.cast(value, &dtype, fit::OnError::Fail)
            }
            ("to_date", [value]) => self.date_from(value),

            (name @ ("starts_with" | "ends_with" | "contains"), [value, part]) => {
                self.text_test(name, value, part)
            }
            ("strpos", [value, part]) => self.position(value, part, &dtype),
            ("character_length", [value]) => self.length(value, LengthUnit::Characters, &dtype),
            ("octet_length", [value]) => self.length(value, LengthUnit::Bytes, &dtype),
            ("bit_length", [value]) => self.length(value, LengthUnit::Bits, &dtype),
            ("substr", arguments @ ([_, _] | [_, _, _])) => self.substring(arguments, &dtype),
            ("left", [value, count]) => self.end("left_part", value, count, &dtype),
            ("right", [value, count]) => self.end("right_part", value, count, &dtype),
            ("btrim", [value]) => self.part("trimmed", value, "true, true", &dtype),
            ("ltrim", [value]) => self.part("trimmed", value, "true, false", &dtype),
            ("rtrim", [value]) => self.part("trimmed", value, "false, true", &dtype),
            ("btrim", [value, set]) => self.trimmed("true, true", value, set, &dtype),
            ("ltrim", [value, set]) => self.trimmed("true, false", value, set, &dtype),
            ("rtrim", [value, set]) => self.trimmed("false, true", value, set, &dtype),
            ("split_part", [value, between, field]) => self.field(value, between, field, &dtype),
            ("concat", arguments) => self.concat(arguments, &dtype),
            ("upper", [value]) => self.in_case("upper_ascii", value, &dtype),
            ("lower", [value]) => self.in_case("lower_ascii", value, &dtype),
            ("initcap", [value]) => self.in_case("words_capital", value, &dtype),
            ("concat_ws", [between, parts @ ..]) => self.concat_with(between, parts, &dtype),
            ("translate", [text, from, to]) => self.translated(text, from, to, &dtype),
            ("overlay", arguments @ ([_, _, _] | [_, _, _, _])) => self.overlaid(arguments, &dtype),
            ("chr", [code]) => self.character(code, &dtype),
            ("to_hex", [value]) => self.hexadecimal(value, &dtype),
            ("levenshtein", [one, two]) => self.distance(one, two, &dtype),
            ("find_in_set", [text, list]) => self.place_in_set(text, list, &dtype),
            ("substr_index", [text, between, count]) => {
                self.before_occurrence(text, between, count, &dtype)
            }
            ("regexp_like", arguments @ ([_, _] | [_, _, _])) => self.regexp_like(arguments),
            ("regexp_count", arguments @ ([_, _] | [_, _, _] | [_, _, _, _])) => {
                self.regexp_count(arguments, &dtype)
            }
            ("regexp_instr", [text, pattern]) => self.regexp_position(text, pattern, &dtype),
            ("regexp_match", arguments @ ([_, _] | [_, _, _])) => {
                self.regexp_match(arguments, &dtype)
            }
            ("regexp_replace", arguments @ ([_, _, _] | [_, _, _, _])) => {
                self.regexp_replace(arguments, &dtype)
            }
            ("reverse", [value]) => self.reversed(value, &dtype),
            ("repeat", [value, count]) => self.repeated(value, count, &dtype),
            ("replace", [value, from, to]) => self.replaced(value, from, to, &dtype),
            ("lpad", arguments @ ([_, _] | [_, _, _])) => self.padded(true, arguments, &dtype),
            ("rpad", arguments @ ([_, _] | [_, _, _])) => self.padded(false, arguments, &dtype),
            ("ascii", [value]) => self.first_character(value, &dtype),

            ("named_struct", arguments) => self.structure(arguments, true, &dtype),
            ("struct", arguments) => self.structure(arguments, false, &dtype),
            ("get_field", [of, path @ ..]) => self.field_of(of, path),
            ("make_array", arguments) => self.array(arguments, &dtype),
            ("array_element", [list, index]) => self.array_element(list, index, &dtype),
            ("array_length", [list]) => self.array_length(list, None, &dtype),
            ("array_length", [list, dimension]) => self.array_length(list, Some(dimension), &dtype),
            ("cardinality", [list]) => self.cardinality(list, &dtype),
            ("empty", [list]) => self.is_empty_list(list),
            ("array_min", [list]) => self.array_extreme(list, true, &dtype),
            ("array_max", [list]) => self.array_extreme(list, false, &dtype),
            ("array_sum", [list]) => self.array_fold(list, ListFold::Sum, &dtype),
            ("array_avg", [list]) => self.array_fold(list, ListFold::Average, &dtype),
            ("array_product", [list]) => self.array_fold(list, ListFold::Product, &dtype),
            ("array_has", [list, needle]) => self.array_has(list, needle),
            ("array_position", [list, needle]) => self.array_position(list, needle, &dtype),
            ("array_slice", [list, from, to, step])
                if as_literal(step).and_then(literal::integer) == Some(1) =>
            {
                let places = [from.clone(), to.clone()];
                self.array_part(list, &places, &dtype, |view, at| {
                    format!("list_between({view}, {}, {})", at[0], at[1])
                })
            }
            ("array_slice", [list, from, to, step]) => {
                self.array_stride(list, [from, to, step], &dtype)
            }
            ("array_slice", [list, places @ ..]) if places.len() == 2 => {
                self.array_part(list, places, &dtype, |view, at| {
                    format!("list_between({view}, {}, {})", at[0], at[1])
                })
            }
            ("array_sort", [list, order @ ..]) => self.array_sort(list, order, &dtype),
            ("array_distinct", [list]) => self.array_distinct(list, &dtype),
            ("array_repeat", [value, count]) => self.array_repeat(value, count, &dtype),
            (name @ ("range" | "generate_series"), arguments @ ([_] | [_, _] | [_, _, _])) => {
                self.series(arguments, name == "generate_series", &dtype)
            }
            ("array_any_value", [list]) => self.array_any_value(list, &dtype),
            ("array_concat", lists) => self.array_concat(lists, &dtype),
            ("array_append", [list, value]) => self.array_append(list, value, false, &dtype),
            ("array_prepend", [value, list]) => self.array_append(list, value, true, &dtype),
            ("array_reverse", [list]) => self.array_reverse(list, &dtype),
            ("array_remove", [list, needle]) => {
                self.array_remove(list, needle, Most::First, &dtype)
            }
            ("array_remove_n", [list, needle, most]) => {
                self.array_remove(list, needle, Most::Of(most), &dtype)
            }
            ("array_remove_all", [list, needle]) => {
                self.array_remove(list, needle, Most::All, &dtype)
            }
            ("array_replace", [list, from, to]) => {
                self.array_replace([list, from, to], Most::First, &dtype)
            }
            ("array_replace_n", [list, from, to, most]) => {
                self.array_replace([list, from, to], Most::Of(most), &dtype)
            }
            ("array_replace_all", [list, from, to]) => {
                self.array_replace([list, from, to], Most::All, &dtype)
            }
            ("array_resize", [list, length]) => self.array_resize(list, length, None, &dtype),
            ("array_resize", [list, length, fill]) => {
                self.array_resize(list, length, Some(fill), &dtype)
            }
            ("array_union", [one, two]) => self.array_set(SetOperation::Union, one, two, &dtype),
            ("array_except", [one, two]) => self.array_set(SetOperation::Except, one, two, &dtype),
            ("array_intersect", [one, two]) => {
                self.array_set(SetOperation::Intersect, one, two, &dtype)
            }
            ("list_combinations", [list, of]) => self.list_combinations(list, of, &dtype),
            ("arrays_zip", arguments) => self.arrays_zip(arguments, &dtype),
            ("array_compact", [list]) => self.array_compact(list, &dtype),
            ("array_positions", [list, needle]) => self.array_positions(list, needle, &dtype),
            ("array_has_any", [list, other]) => self.array_has_several(list, other, false),
            ("array_has_all", [list, other]) => self.array_has_several(list, other, true),
            ("flatten", [list]) => self.flatten(list, &dtype),
            ("string_to_array", arguments @ ([_, _] | [_, _, _])) => {
                self.split_text(arguments, &dtype)
            }
            ("array_to_string", arguments @ ([_, _] | [_, _, _])) => {
                self.joined_list(arguments, &dtype)
            }
            ("array_pop_front", [list]) => self.array_part(list, &[], &dtype, |view, _| {
                format!("list_between({view}, 2, (i64){view}.length)")
            }),
            ("array_pop_back", [list]) => self.array_part(list, &[], &dtype, |view, _| {
                format!("list_part({view}, 0, {view}.length - ({view}.length != 0))")
            }),
            // What `plan/subquery.rs` puts around scalar subqueries.
            ("one_row_value", [value, rows]) => {
                let (value, rows) = (self.value(value)?, self.value(rows)?);
                self.fail_if(&None, &format!("{} > 1", rows.code), Failure::Rows);
                Ok(value)
            }
            (name, _) => Err(not_yet(format!("function {name}"))),
        }
    }
}
