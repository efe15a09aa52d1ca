//! Formats of `EXPLAIN`.

use crate::error::{Error, ErrorKind, Result};

/// How a plan is shown.
///
/// ```
/// use warpframe::ExplainFormat;
/// assert_eq!("JSON".parse::<ExplainFormat>()?, ExplainFormat::Json);
/// assert!("xml".parse::<ExplainFormat>().unwrap_err().to_string().contains("known: indent, tree, json"));
/// # Ok::<(), warpframe::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum ExplainFormat {
    /// A line an operator, pipeline by pipeline.
    #[default]
    Indent,
    /// A line an operator, each below the one that reads its rows.
    Tree,
    /// An object, whose keys are those that `docs/sql.md` lists.
    Json,
}

impl ExplainFormat {
    /// The names of the formats.
    pub const NAMES: [&'static str; 3] = ["indent", "tree", "json"];
}

impl std::str::FromStr for ExplainFormat {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name.to_lowercase().as_str() {
            "indent" => Ok(ExplainFormat::Indent),
            "tree" => Ok(ExplainFormat::Tree),
            "json" => Ok(ExplainFormat::Json),
            _ => {
                let message = format!(
                    "no format of EXPLAIN named {name:?}; known: {}",
                    Self::NAMES.join(", ")
                );
                Err(ErrorKind::Plan { message, location: None }.into())
            }
        }
    }
}
