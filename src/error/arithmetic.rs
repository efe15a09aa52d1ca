//! What failed of [`ErrorKind::Arithmetic`](super::ErrorKind::Arithmetic): the fault, and the
//! operation with the values that it was asked for.

use std::fmt;

/// What an operation ran into.
///
/// ```
/// use warpframe::{DeviceChoice, ErrorKind, Fault, Session};
/// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
/// let error = session.sql("SELECT 1 / (x - x) FROM (VALUES (7)) t(x)")?.collect().unwrap_err();
/// assert!(matches!(error.kind(), ErrorKind::Arithmetic { fault: Fault::DivideByZero, .. }));
/// # Ok::<(), warpframe::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fault {
    /// A divisor was zero.
    DivideByZero,
    /// A result lies outside of its type.
    Overflow,
    /// A value cannot be cast to a type.
    Cast,
    /// A function is not defined for a value: the root of a negative number, a negative length.
    Domain,
    /// A scalar subquery yielded more than one row.
    Rows,
    /// A string or a list would be longer than its length can count.
    Length,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Fault::DivideByZero => "Divide by zero error",
            Fault::Overflow => "Arithmetic overflow",
            Fault::Cast => "Cast error: a value is outside of the type it is cast to",
            Fault::Domain => "a function was called with a value outside of its domain",
            Fault::Rows => "a scalar subquery yields more than one row",
            Fault::Length => "a string of more than 2147483647 bytes, or a list of more elements",
        })
    }
}

/// An operation that failed, and its arguments in one of the rows in which it did.
///
/// All texts are SQL. They are there to be read: their wording may change.
///
/// ```
/// use std::sync::Arc;
/// use warpframe::arrow::array::{Int64Array, RecordBatch};
/// use warpframe::{DeviceChoice, ErrorKind, Session};
/// let session = Session::builder().device(DeviceChoice::Sim).build()?;
/// let z = Arc::new(Int64Array::from(vec![5, 0])) as _;
/// session.register_batches("t", [RecordBatch::try_from_iter([("z", z)])?])?;
/// let error = session.sql("SELECT 100 / z FROM t")?.collect().unwrap_err();
/// let ErrorKind::Arithmetic { operation: Some(operation), .. } = error.kind() else { panic!("{error}") };
/// assert_eq!(operation.name, "/");
/// assert_eq!(operation.arguments, ["100", "0"]);
/// assert_eq!(operation.expression, "100 / t.z");
/// assert_eq!(operation.columns, ["t.z"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Operation {
    /// The operator or function.
    pub name: String,
    /// The values of its arguments. Where a value is not known, the argument's expression.
    /// Empty where none is known.
    pub arguments: Vec<String>,
    /// Of a cast, the type that the value does not fit.
    pub target: Option<String>,
    /// The expression, cut where it is long.
    pub expression: String,
    /// Columns that the expression reads, at least the first few.
    pub columns: Vec<String>,
}

/// Operators that stand between their operands.
fn is_infix(name: &str) -> bool {
    name.ends_with("LIKE") || name == "SIMILAR TO" || !name.contains(|c: char| c.is_alphanumeric())
}

impl Operation {
    /// The operation on its values: `100 / 0`.
    pub(crate) fn applied(&self) -> String {
        match (self.arguments.as_slice(), &self.target) {
            ([value], Some(target)) => format!("CAST({value} AS {target})"),
            ([left, right], None) if is_infix(&self.name) => {
                format!("{left} {} {right}", self.name)
            }
            ([value], None) if is_infix(&self.name) => format!("{}{value}", self.name),
            (arguments, _) => format!("{}({})", self.name, arguments.join(", ")),
        }
    }

    /// Where it stands, after what it was: ` in 100 / t.z`. Nothing where no column is read, for
    /// then that has been said.
    pub(crate) fn place(&self) -> String {
        if self.columns.is_empty() && !self.arguments.is_empty() {
            return String::new();
        }
        let hidden: Vec<&str> = self
            .columns
            .iter()
            .map(String::as_str)
            .filter(|name| !self.expression.contains(name))
            .collect();
        let more = match hidden.as_slice() {
            [] => String::new(),
            names => format!(" (reads {})", names.join(", ")),
        };
        format!(" in {}{more}", self.expression)
    }

    pub(super) fn describe(&self, fault: Fault, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (fault, self.arguments.as_slice(), &self.target) {
            (Fault::Cast, [value], Some(target)) if value.starts_with('\'') => {
                write!(f, "Cast error: Cannot cast string {value} to value of {target} type")?;
            }
            (Fault::Cast, [value], Some(target)) => {
                write!(f, "Cast error: Can't cast value {value} to type {target}")?;
            }
            (_, [], _) => write!(f, "{fault}")?,
            _ => write!(f, "{fault}: {}", self.applied())?,
        }
        f.write_str(&self.place())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(
        name: &str,
        arguments: &[&str],
        target: Option<&str>,
        expression: &str,
        columns: &[&str],
    ) -> Operation {
        let texts = |of: &[&str]| of.iter().map(|text| text.to_string()).collect();
        Operation {
            name: name.into(),
            arguments: texts(arguments),
            target: target.map(String::from),
            expression: expression.into(),
            columns: texts(columns),
        }
    }

    struct Shown<'a>(Fault, &'a Operation);

    impl fmt::Display for Shown<'_> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            self.1.describe(self.0, f)
        }
    }

    #[test]
    fn an_operation_is_told_with_its_values_and_then_its_place() {
        for (fault, operation, text) in [
            (
                Fault::DivideByZero,
                operation("/", &["100", "0"], None, "100 / t.z", &["t.z"]),
                "Divide by zero error: 100 / 0 in 100 / t.z",
            ),
            (
                Fault::Cast,
                operation("CAST", &["'x'"], Some("Int32"), "CAST(t.s AS Int32)", &["t.s"]),
                "Cast error: Cannot cast string 'x' to value of Int32 type in CAST(t.s AS Int32)",
            ),
            (
                Fault::Cast,
                operation("CAST", &["300"], Some("Int8"), "CAST(300 AS Int8)", &[]),
                "Cast error: Can't cast value 300 to type Int8",
            ),
            (
                Fault::Domain,
                operation("sqrt", &["-2"], None, "sqrt(…)", &["t.z"]),
                "a function was called with a value outside of its domain: sqrt(-2) in sqrt(…) (reads t.z)",
            ),
            (
                Fault::Overflow,
                operation("-", &["-128"], None, "-128", &[]),
                "Arithmetic overflow: --128",
            ),
            (
                Fault::Overflow,
                operation("sum", &[], None, "sum(t.d)", &[]),
                "Arithmetic overflow in sum(t.d)",
            ),
        ] {
            assert_eq!(Shown(fault, &operation).to_string(), text);
        }
    }
}
