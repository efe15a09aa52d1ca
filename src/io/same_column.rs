//! Which column of a table a file's column is: that of its name. Where a file has no column of that
//! name, and one whose name differs by case alone (`fee`, `Fee`), it is this one.

use std::collections::HashMap;

use datafusion::arrow::datatypes::Schema;

/// The columns of the files so far, in the order in which they come up.
#[derive(Debug, Default)]
pub(super) struct KnownColumns {
    by_name: HashMap<String, usize>,
    /// The first one of those whose names differ by case alone.
    by_folded: HashMap<String, usize>,
}

impl KnownColumns {
    /// Which columns those of a file are. Those that are none yet come up.
    pub(super) fn places(&mut self, own: &[&str]) -> Vec<usize> {
        let known: Option<Vec<usize>> =
            own.iter().map(|name| self.by_name.get(*name).copied()).collect();
        if let Some(known) = known {
            return known;
        }
        let folded: Vec<String> = own.iter().map(|name| name.to_lowercase()).collect();
        let mut alike: HashMap<&String, usize> = HashMap::new();
        folded.iter().for_each(|name| *alike.entry(name).or_default() += 1);
        let mut places = vec![];
        for (name, folded) in own.iter().zip(&folded) {
            let of_case = self.by_folded.get(folded).filter(|_| alike[folded] == 1);
            let place = match self.by_name.get(*name).or(of_case) {
                Some(place) => *place,
                None => {
                    let next = self.by_name.len();
                    self.by_name.insert(name.to_string(), next);
                    self.by_folded.entry(folded.clone()).or_insert(next);
                    next
                }
            };
            places.push(place);
        }
        places
    }
}

/// The place that a column of a table has in a file with these columns; `None` where the file lacks
/// it.
pub(super) fn own_column(table: &Schema, own: &Schema, name: &str) -> Option<usize> {
    if let Ok(place) = own.index_of(name) {
        return Some(place);
    }
    let differs_by_case = |other: &str| match name.is_ascii() && other.is_ascii() {
        true => other.eq_ignore_ascii_case(name),
        false => other.to_lowercase() == name.to_lowercase(),
    };
    let mut alike = (own.fields().iter().enumerate())
        .filter(|(_, own)| differs_by_case(own.name()) && table.index_of(own.name()).is_err());
    let (place, _) = alike.next()?;
    // Of several columns that differ so, the first one is the file's.
    let first = table.fields().iter().find(|field| differs_by_case(field.name()));
    (alike.next().is_none() && first.is_some_and(|field| field.name() == name)).then_some(place)
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::{DataType, Field};

    use super::*;

    #[test]
    fn columns_whose_names_differ_by_case_alone_are_one_where_no_file_has_both() {
        let schema = |names: &[&str]| {
            let fields = names.iter().map(|name| Field::new(*name, DataType::Null, true));
            Schema::new(fields.collect::<Vec<_>>())
        };
        for (files, table, own) in [
            (vec![vec!["fee"], vec!["Fee"]], vec!["fee"], vec![vec![0], vec![0]]),
            (vec![vec!["É"], vec!["é", "x"]], vec!["É", "x"], vec![vec![0], vec![0, 1]]),
            (vec![vec!["a"], vec!["a", "A"]], vec!["a", "A"], vec![vec![0], vec![0, 1]]),
            (vec![vec!["a", "A"], vec!["A"]], vec!["a", "A"], vec![vec![0, 1], vec![1]]),
            (vec![vec!["aB"], vec!["ab", "AB"]], vec!["aB", "ab", "AB"], vec![vec![0], vec![1, 2]]),
        ] {
            let mut known = KnownColumns::default();
            let places: Vec<_> = files.iter().map(|names| known.places(names)).collect();
            assert_eq!(places, own, "{files:?}");
            for (names, places) in files.iter().zip(places) {
                for (at, name) in table.iter().enumerate() {
                    let found = own_column(&schema(&table), &schema(names), name);
                    assert_eq!(found, places.iter().position(|place| *place == at), "{names:?}");
                }
            }
        }
    }
}
