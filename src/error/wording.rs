//! What DataFusion and its regular expressions say, without what is only of use to their authors.

/// What DataFusion puts before its messages.
const PREFIXES: [&str; 4] =
    ["Error during planning: ", "Execution error: ", "This feature is not implemented: ", "Schema error: "];
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
    text.into()
}

/// "… No function matches the given name and argument types 'sum(Float64, Float64)'. You might need to add
/// explicit type casts.\n\tCandidate functions:\n\tsum(Decimal)\n\t…", behind an account of each candidate.
fn of_signature(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("No function matches the given name and argument types '")?;
    let (call, rest) = rest.split_once("'.")?;
    let candidates: Vec<&str> = match rest.split_once("Candidate functions:") {
        Some((_, list)) => list.lines().map(str::trim).filter(|line| !line.is_empty()).collect(),
        None => vec![],
    };
    let known = match candidates.len() {
        0 => String::new(),
        number if number > MOST => format!("; there are {} and {} more", candidates[..MOST].join(", "), number - MOST),
        1 => format!("; there is {}", candidates[0]),
        _ => format!("; there are {}", candidates.join(", ")),
    };
    Some(format!("no function {call}{known}"))
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
        assert_eq!(plain(signature), "no function sum(Float64, Float64); there are sum(Int64), sum(Float64)");
        assert_eq!(plain("Divide by zero error"), "Divide by zero error");
    }
}
