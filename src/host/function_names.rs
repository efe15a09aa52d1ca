//! Names of DataFusion's functions, by what they do with floats and texts.

/// Functions of which one NaN is as good as another, and that yield no floats but by computing.
pub(super) const COMPUTING: [&str; 34] = [
    "abs",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cbrt",
    "ceil",
    "cos",
    "cosh",
    "cot",
    "degrees",
    "exp",
    "floor",
    "isnan",
    "iszero",
    "ln",
    "log",
    "log10",
    "log2",
    "power",
    "radians",
    "round",
    "signum",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "trunc",
    "to_timestamp",
    "to_timestamp_seconds",
];

/// Functions that yield floats of their arguments as they are, or that make no NaN.
pub(super) const PASSING: [&str; 38] = [
    "coalesce",
    "nvl",
    "nvl2",
    "nullif",
    "nanvl",
    "greatest",
    "least",
    "make_array",
    "array_element",
    "array_slice",
    "array_append",
    "array_prepend",
    "array_concat",
    "array_pop_front",
    "array_pop_back",
    "array_reverse",
    "array_remove",
    "array_remove_n",
    "array_remove_all",
    "array_replace",
    "array_replace_n",
    "array_replace_all",
    "array_resize",
    "array_sort",
    "array_distinct",
    "array_union",
    "array_except",
    "array_intersect",
    "array_any_value",
    "array_repeat",
    "arrays_zip",
    "list_combinations",
    "flatten",
    "struct",
    "named_struct",
    "get_field",
    "random",
    "pi",
];

/// Functions that ask whether elements are equal to values, and yield no floats.
pub(super) const FINDING: [&str; 5] =
    ["array_has", "array_has_any", "array_has_all", "array_position", "array_positions"];

/// Functions that are casts.
pub(super) const CASTING: [&str; 3] = ["arrow_cast", "arrow_try_cast", "timezone"];

/// Functions that read a text as a time.
pub(super) const READING: [&str; 6] = [
    "to_timestamp",
    "to_timestamp_micros",
    "to_timestamp_millis",
    "to_timestamp_nanos",
    "to_timestamp_seconds",
    "to_unixtime",
];

/// Aggregates that compute, so that one NaN is as good as another.
pub(super) const ADDING: [&str; 22] = [
    "sum",
    "avg",
    "var",
    "var_pop",
    "stddev",
    "stddev_pop",
    "covar_samp",
    "covar_pop",
    "corr",
    "regr_slope",
    "regr_intercept",
    "regr_r2",
    "regr_count",
    "regr_avgx",
    "regr_avgy",
    "regr_sxx",
    "regr_syy",
    "regr_sxy",
    "array_sum",
    "array_avg",
    "bool_and",
    "bool_or",
];

/// Aggregates and window functions that yield values of their arguments as they are.
pub(super) const CHOOSING: [&str; 13] = [
    "min",
    "max",
    "first_value",
    "last_value",
    "nth_value",
    "any_value",
    "array_agg",
    "lag",
    "lead",
    "count",
    "percent_rank",
    "cume_dist",
    "array_min",
];
