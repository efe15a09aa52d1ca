//! What verbs say of names and types that are not there.

use warpframe::prelude::*;
use warpframe::{ErrorKind, Result};

use super::small;

#[test]
fn errors_name_the_verb_and_the_column_and_what_is_known() -> Result<()> {
    let pair = small();
    for session in [&pair.cpu, &pair.device] {
        let (lazy, eager) = (session.table("t")?, session.table("t")?.collect()?);
        let no = "nobody";
        let errors = [
            ("select", lazy.select([no]).err(), eager.select([no]).err()),
            ("filter", lazy.filter(col(no)).err(), eager.filter(col(no)).err()),
            ("drop", lazy.drop([no]).err(), eager.drop([no]).err()),
            ("rename", lazy.rename([(no, "x")]).err(), eager.rename([(no, "x")]).err()),
            ("cast", lazy.cast([no], DataType::Int8).err(), eager.cast([no], DataType::Int8).err()),
            ("reorder", lazy.reorder([no]).err(), eager.reorder([no]).err()),
            ("fill_null", lazy.fill_null([no], 0).err(), eager.fill_null([no], 0).err()),
            ("drop_nulls", lazy.drop_nulls([no]).err(), eager.drop_nulls([no]).err()),
            (
                "unique",
                lazy.unique([no], UniqueKeep::First).err(),
                eager.unique([no], UniqueKeep::First).err(),
            ),
            ("value_counts", lazy.value_counts([no]).err(), eager.value_counts([no]).err()),
            ("explode", lazy.explode([no]).err(), eager.explode([no]).err()),
            ("unpivot", lazy.unpivot([no], ["k"]).err(), eager.unpivot([no], ["k"]).err()),
            ("to_dummies", lazy.to_dummies([no]).err(), eager.to_dummies([no]).err()),
            ("partition_by", lazy.partition_by([no]).err(), eager.partition_by([no]).err()),
            ("cum_sum", lazy.cum_sum([no]).err(), eager.cum_sum([no]).err()),
            ("sum", lazy.group_by([no]).sum().err(), eager.group_by([no]).sum().err()),
            ("is_in", lazy.is_in(&lazy, [no]).err(), eager.is_in(&eager, [no]).err()),
            ("sort", lazy.sort([no]).err(), eager.sort([no]).err()),
        ];
        for (verb, lazy, eager) in errors {
            for error in [lazy, eager] {
                let error = error.unwrap_or_else(|| panic!("{verb} took an unknown column"));
                assert_eq!(error.verb(), Some(verb), "{error}");
                match error.kind() {
                    ErrorKind::ColumnNotFound { name, known } => {
                        assert!(
                            name == no
                                && ["k", "x", "f"]
                                    .iter()
                                    .all(|name| known.iter().any(|k| k == name))
                        );
                    }
                    other => panic!("{verb}: {other:?}"),
                }
                assert!(
                    error.to_string().starts_with(&format!("{verb}: no column named \"nobody\"")),
                    "{error}"
                );
            }
        }
        let error = lazy.explode(["x"]).expect_err("no list");
        assert!(
            matches!(error.kind(), ErrorKind::TypeMismatch { found, .. } if found == "Int64"),
            "{error:?}"
        );
        assert!(lazy.drop([col("x") + 1]).is_err(), "an expression is no name");
        assert!(lazy.select(matches("(")).is_err(), "no pattern");
        assert!(lazy.with_row_index("k", 0).is_err(), "the name is taken");
    }
    Ok(())
}
