//! Names that are nearly others.

/// The name that is most like another, if one is: of a longer one more characters may differ. One
/// that differs in case alone is another.
pub fn nearest<'a>(name: &str, known: &'a [String]) -> Option<&'a str> {
    let lower = name.to_lowercase();
    let others = known.iter().filter(|own| *own != name);
    // Neighbours that changed places count once.
    let (distance, meant) = others
        .map(|own| (strsim::osa_distance(&lower, &own.to_lowercase()), own))
        .min_by_key(|(distance, _)| *distance)?;
    let length = name.chars().count();
    (distance < length && distance <= 1 + length / 5).then_some(meant.as_str())
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
