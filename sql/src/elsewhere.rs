//! What functions of other systems are called here.

/// Names of functions that DuckDB, PostgreSQL, MySQL or Spark have, and calls that do the same here.
const CALLS: [(&str, &str); 3] = [
    ("charindex", "strpos(s, 'a')"),
    ("collect_list", "array_agg(x)"),
    ("locate", "strpos(s, 'a')"),
];

/// The call that does here what a function does that is not known.
pub fn here(function: &str) -> Option<&'static str> {
    let at = CALLS.binary_search_by_key(&function, |(name, _)| name).ok()?;
    Some(CALLS[at].1)
}

#[cfg(test)]
mod tests {
    use warpframe::{DeviceChoice, Session};

    use super::*;

    #[test]
    fn what_is_said_to_be_here_is_here_and_nothing_else() {
        let session = Session::builder().device(DeviceChoice::Cpu).build().unwrap();
        assert!(CALLS.is_sorted_by_key(|(name, _)| name));
        let rows = "(SELECT '01/02/2024' AS s, TIMESTAMP '2024-01-01' AS t, 5 AS i, 1.5 AS x)";
        for (name, call) in CALLS {
            assert_eq!(here(name), Some(call));
            let unknown = session.sql(&format!("SELECT {name}(x) FROM {rows}"));
            let message = unknown.and_then(|frame| frame.collect()).unwrap_err().to_string();
            assert!(message.contains(&format!("no function named \"{name}\"")), "{message}");
            let found = session.sql(&format!("SELECT {call} AS found FROM {rows}"));
            found.and_then(|frame| frame.collect()).unwrap_or_else(|e| panic!("{call}: {e}"));
        }
        assert_eq!(here("nobody"), None);
    }
}
