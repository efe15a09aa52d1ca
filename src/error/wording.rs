//! What DataFusion and its regular expressions say, without what is only of use to their authors.

use super::nearest;

/// What DataFusion puts before its messages.
const PREFIXES: [&str; 4] = [
    "Error during planning: ",
    "Execution error: ",
    "This feature is not implemented: ",
    "Schema error: ",
];
/// Most signatures of a function that are listed.
const MOST: usize = 6;

/// A message in words for who wrote the query.
pub(super) fn plain(message: &str) -> String {
    let mut text = message.trim_end();
    while let Some(rest) = PREFIXES.iter().find_map(|prefix| text.strip_prefix(prefix)) {
        text = rest;
    }
    if let Some(text) = of_signature(text).or_else(|| of_pattern(text)) {
        return text;
    }
    if text.contains("does not support logical expression WindowFunction(") {
        return "a window function stands in a select list, in QUALIFY or in ORDER BY, not in WHERE, GROUP BY or HAVING"
            .into();
    }
    if let Some((_, of)) = text.split_once("Cannot run range queries on datatype: ") {
        let of = of.split(['.', '\n']).next().unwrap_or(of);
        return format!("RANGE with a distance goes by numbers, dates or timestamps, not by {of}");
    }
    of_group(text)
        .or_else(|| of_part(text))
        .or_else(|| of_field(text))
        .unwrap_or_else(|| text.into())
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
    let candidates: Vec<&str> = match rest.split_once("Candidate functions:") {
        Some((_, list)) => list.lines().map(str::trim).filter(|line| !line.is_empty()).collect(),
        None => vec![],
    };
    let known = match candidates.len() {
        0 => String::new(),
        number if number > MOST => {
            format!("; there are {} and {} more", candidates[..MOST].join(", "), number - MOST)
        }
        1 => format!("; there is {}", candidates[0]),
        _ => format!("; there are {}", candidates.join(", ")),
    };
    let (name, types) = call.split_once('(')?;
    Some(format!("no function {name} takes ({types}{known}"))
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
        let signature = "Error during planning: Internal error: Function 'sum' failed. This issue was likely caused by \
                         a bug. No function matches the given name and argument types 'sum(Float64, Float64)'. You \
                         might need to add explicit type casts.\n\tCandidate functions:\n\tsum(Int64)\n\tsum(Float64)";
        assert_eq!(
            plain(signature),
            "no function sum takes (Float64, Float64); there are sum(Int64), sum(Float64)"
        );
        assert_eq!(plain("Divide by zero error"), "Divide by zero error");
        let own = "Error during planning: Execution error: Function 'f' user-defined coercion failed with: Error during \
                   planning: f takes (n), not (). No function matches the given name and argument types 'f()'. You …";
        assert_eq!(plain(own), "f takes (n), not ()");
        let part = "Execution error: Date part 'yeer' not supported";
        assert_eq!(plain(part), "no part of a date or time named 'yeer'; did you mean year?");
        assert_eq!(plain("Field b not found in struct"), "no field named 'b' in the struct");
    }
}
