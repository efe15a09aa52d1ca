//! What DataFusion and its regular expressions say, without what is only of use to their authors.

use std::collections::HashSet;

use super::nearest;
use super::sql_words::{in_sql, without_tree};

/// What DataFusion puts before its messages.
const PREFIXES: [&str; 5] = [
    "Error during planning: ",
    "Execution error: ",
    "This feature is not implemented: ",
    "Schema error: ",
    "Internal error: ",
];
/// What it puts behind its own.
const BLAME: &str = "This issue was likely caused by a bug in DataFusion's code";

/// Most signatures of a function that are listed.
const MOST: usize = 6;

/// A message in words for who wrote the query.
pub(super) fn plain(message: &str) -> String {
    let mut text = message.trim_end();
    while let Some(rest) = PREFIXES.iter().find_map(|prefix| text.strip_prefix(prefix)) {
        text = rest;
    }
    // What is called so is mostly an argument that a function does not expect.
    let text =
        text.split_once(BLAME).map_or(text, |(what, _)| what.trim_end_matches(['.', '\n', ' ']));
    if let Some(said) = of_clause(text) {
        return said;
    }
    let text = without_tree(text);
    of_signature(message)
        .or_else(|| of_pattern(text))
        .or_else(|| of_coercion(text))
        .or_else(|| of_lambda(text))
        .or_else(|| of_group(text))
        .or_else(|| of_part(text))
        .or_else(|| of_field(text))
        .unwrap_or_else(|| in_sql(text))
}

fn of_clause(text: &str) -> Option<String> {
    const NOT_LOGICAL: &str = "does not support logical expression ";
    let places = match text.split_once(NOT_LOGICAL).map(|(_, expr)| expr) {
        Some(expr) if expr.starts_with("WindowFunction") => {
            "a window function stands in a select list, in QUALIFY or in ORDER BY, not in WHERE, GROUP BY or HAVING"
        }
        Some(expr) if expr.starts_with("AggregateFunction") => {
            "an aggregate function stands in a select list, in HAVING, in QUALIFY or in ORDER BY, not in GROUP BY or WHERE"
        }
        _ => {
            let (_, of) = text.split_once("Cannot run range queries on datatype: ")?;
            let of = in_sql(of.split(['.', '\n']).next().unwrap_or(of));
            return Some(format!(
                "RANGE with a distance goes by numbers, dates or timestamps, not by {of}"
            ));
        }
    };
    Some(places.into())
}

/// "lambda defined 3 params but UDF support only 1".
fn of_lambda(text: &str) -> Option<String> {
    let given = between(text, "lambda defined ", " params but UDF support only ")?;
    let (_, most) = text.split_once("UDF support only ")?;
    Some(format!("a lambda of {given} parameters stands where one has at most {most}"))
}

/// "Failed to coerce arguments to satisfy a call to 'f' function: coercion from Int64, Date32 to the
/// signature OneOf(…) failed", and "Function 'f' failed to match any signature, errors: Error during
/// planning: Function 'f' requires String, but received Int64 (DataType: Int64).,Error …".
fn of_coercion(text: &str) -> Option<String> {
    if let Some(name) =
        between(text, "arguments to satisfy a call to '", "' function: coercion from ")
    {
        let types = between(text, "' function: coercion from ", " to the signature ")?;
        return Some(in_sql(&format!("no function {name} takes ({types})")));
    }
    let name = between(text, "Function '", "' failed to match any signature, errors: ")?;
    let (_, why) = text.split_once("failed to match any signature, errors: ")?;
    let why = why.strip_prefix(PREFIXES[0]).unwrap_or(why);
    let why = why.split(&format!(",{}", PREFIXES[0])).next().unwrap_or(why);
    let why = why.split(" (DataType: ").next().unwrap_or(why);
    let own = why.strip_prefix(&format!("Function '{name}' ")).unwrap_or(why);
    Some(in_sql(&format!("{name} {}", own.trim_end_matches('.'))))
}

/// What stands between two texts of a message.
fn between<'a>(text: &'a str, before: &str, behind: &str) -> Option<&'a str> {
    Some(text.split_once(before)?.1.split_once(behind)?.0)
}

/// "Column in SELECT must be in GROUP BY or an aggregate function: While expanding wildcard, column
/// \"t.a\" must appear in the GROUP BY clause or must be part of an aggregate function, currently
/// only …".
fn of_group(text: &str) -> Option<String> {
    let column = between(text, "column \"", "\" must appear in the GROUP BY clause")?;
    Some(format!("column {column:?} is neither in GROUP BY nor in an aggregate function"))
}

/// Parts of dates and times.
const PARTS: [&str; 17] = [
    "year",
    "quarter",
    "month",
    "week",
    "day",
    "hour",
    "minute",
    "second",
    "millisecond",
    "microsecond",
    "nanosecond",
    "dow",
    "doy",
    "epoch",
    "isodow",
    "isoyear",
    "decade",
];

/// "Date part 'yeer' not supported", "Unsupported date_trunc granularity: 'mont'. Supported values
/// are: …".
fn of_part(text: &str) -> Option<String> {
    let part = between(text, "Date part '", "' not supported")
        .or_else(|| between(text, "Unsupported date_trunc granularity: '", "'"))?;
    let meant =
        nearest(part, &PARTS.map(String::from)).map(|meant| format!("; did you mean {meant}?"));
    let known = || format!("; known: {}", PARTS.join(", "));
    Some(format!("no part of a date or time named '{part}'{}", meant.unwrap_or_else(known)))
}

/// "Field b not found in struct", "Cannot access field at argument 1: type Int64 is not Struct,
/// Map, or Null".
fn of_field(text: &str) -> Option<String> {
    if let Some(field) = between(text, "Field ", " not found in struct") {
        return Some(format!("no field named '{field}' in the struct"));
    }
    let of = between(text, "Cannot access field at argument 1: type ", " is not Struct")?;
    let of = in_sql(of);
    Some(format!("a value of type {of} has no fields, which structs and maps have"))
}

/// "… No function matches the given name and argument types 'sum(Float64, Float64)'. You might need
/// to add explicit type casts.\n\tCandidate functions:\n\tsum(Decimal)\n\t…", behind an account of
/// each candidate.
fn of_signature(text: &str) -> Option<String> {
    let (account, rest) =
        text.split_once("No function matches the given name and argument types '")?;
    // The function itself says what it does not take.
    if let Some((_, own)) = account.split_once(" user-defined coercion failed with: ") {
        return Some(plain(own.trim_end_matches(['.', ' '])));
    }
    let (call, rest) = rest.split_once("'.")?;
    let mut candidates: Vec<String> = match rest.split_once("Candidate functions:") {
        Some((_, list)) => list.lines().map(str::trim).map(signature).collect(),
        None => vec![],
    };
    candidates.retain(|line| !line.is_empty());
    // Types of Arrow's that are one in SQL.
    let mut seen = HashSet::new();
    candidates.retain(|line| seen.insert(line.clone()));
    let known = match candidates.len() {
        0 => String::new(),
        number if number > MOST => {
            format!("; there are {} and {} more", candidates[..MOST].join(", "), number - MOST)
        }
        1 => format!("; there is {}", candidates[0]),
        _ => format!("; there are {}", candidates.join(", ")),
    };
    let (name, types) = call.split_once('(')?;
    Some(in_sql(&format!("no function {name} takes ({types}{known}")))
}

/// A function and what it takes, in SQL's types: "f(Utf8View/Utf8, Int64)" takes (VARCHAR, BIGINT).
fn signature(candidate: &str) -> String {
    let mut said = in_sql(&candidate.replace("NullAry()", ""));
    while said.contains("VARCHAR/VARCHAR") {
        said = said.replace("VARCHAR/VARCHAR", "VARCHAR");
    }
    // So many arguments of a class.
    for class in ["Numeric", "Comparable", "String"] {
        for many in 1..=3 {
            said = said.replace(&format!("{class}({many})"), &vec![class; many].join(", "));
        }
    }
    said
}

/// "regex parse error:\n    a(\n     ^\nerror: unclosed group", perhaps behind other words.
fn of_pattern(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("regex parse error:\n")?;
    let mut lines = rest.lines();
    let pattern = lines.next()?.trim();
    let why = lines.find_map(|line| line.trim().strip_prefix("error: "))?;
    Some(format!("'{pattern}' is no regular expression: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_lose_what_is_not_about_the_query() {
        assert_eq!(plain("Error during planning: Execution error: no"), "no");
        let regex = "Execution error: Arrow error: regex parse error:\n    a(\n     ^\nerror: unclosed group";
        assert_eq!(plain(regex), "'a(' is no regular expression: unclosed group");
        let candidates = "Error during planning: Internal error: Function 'sum' failed. This issue was likely caused by \
                         a bug. No function matches the given name and argument types 'sum(Float64, Float64)'. You \
                         might need to add explicit type casts.\n\tCandidate functions:\n\tsum(Int64)\n\tsum(Float64)";
        assert_eq!(
            plain(candidates),
            "no function sum takes (DOUBLE, DOUBLE); there are sum(BIGINT), sum(DOUBLE)"
        );
        assert_eq!(plain("Divide by zero error"), "Divide by zero error");
        let own = "Error during planning: Execution error: Function 'f' user-defined coercion failed with: Error during \
                   planning: f takes (n), not (). No function matches the given name and argument types 'f()'. You …";
        assert_eq!(plain(own), "f takes (n), not ()");
        let part = "Execution error: Date part 'yeer' not supported";
        assert_eq!(plain(part), "no part of a date or time named 'yeer'; did you mean year?");
        let internal = "Internal error: array_resize: Invalid size.\nThis issue was likely caused by a bug in \
                        DataFusion's code. Please help us to resolve this by filing a bug report";
        assert_eq!(plain(internal), "array_resize: Invalid size");
        let coercion = "Execution error: Failed to coerce arguments to satisfy a call to 'date_bin' function: coercion \
                        from Int64, Date32 to the signature OneOf(Exact(Int64)) failed";
        assert_eq!(plain(coercion), "no function date_bin takes (BIGINT, DATE)");
        let several = "Internal error: Function 'f' failed to match any signature, errors: Error during planning: \
                       Function 'f' requires String, but received Int64 (DataType: Int64).,Error during planning: no";
        assert_eq!(plain(several), "f requires String, but received BIGINT");
        let group = "Physical plan does not support logical expression AggregateFunction(AggregateFunction { func";
        assert!(plain(group).starts_with("an aggregate function stands"));
        assert_eq!(signature("nullif(Comparable(2))"), "nullif(Comparable, Comparable)");
        assert_eq!(signature("f(Utf8View/LargeUtf8/Utf8, NullAry())"), "f(VARCHAR, )");
        assert_eq!(plain("Field b not found in struct"), "no field named 'b' in the struct");
    }
}
