//! Names that are nearly others.

/// The name that is most like another, if one is: of a longer one more characters may differ. One
/// that differs in case alone is another.
pub fn nearest<'a>(name: &str, known: &'a [String]) -> Option<&'a str> {
    let lower = name.to_lowercase();
    let others = known.iter().filter(|own| *own != name);
    let (distance, meant) = others
        .map(|own| (apart(&lower, &own.to_lowercase()), own))
        .min_by_key(|(distance, _)| *distance)?;
    let length = name.chars().count();
    (distance < length && distance <= 1 + length / 5).then_some(meant.as_str())
}

/// How many characters differ between two words (Levenshtein's distance; neighbours that changed
/// places are one).
fn apart(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let mut rows = vec![vec![0; other.len() + 1]; one.len() + 1];
    for i in 0..=one.len() {
        for j in 0..=other.len() {
            rows[i][j] = match (i, j) {
                (0, _) => j,
                (_, 0) => i,
                _ => {
                    let changed = rows[i - 1][j - 1] + usize::from(one[i - 1] != other[j - 1]);
                    let swapped =
                        i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1];
                    let swap = if swapped { rows[i - 2][j - 2] + 1 } else { usize::MAX };
                    changed.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1).min(swap)
                }
            };
        }
    }
    rows[one.len()][other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_nearly_another_is_meant() {
        let known = ["memory_limit", "join_order", "csv"].map(String::from);
        assert_eq!(nearest("memroy_limit", &known), Some("memory_limit"));
        assert_eq!(nearest("cvs", &known), Some("csv"));
        assert_eq!(nearest("colour", &known), None);
        assert_eq!(nearest("a", &["b".to_string()]), None);
    }
}
