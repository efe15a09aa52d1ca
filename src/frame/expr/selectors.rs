//! Columns by their names and types: expressions that stand for several, one for each column that
//! they select.
//!
//! A selector is a function without arguments within an expression. A verb that meets one puts the
//! expression in its place once for each selected column, before anything is planned.

use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::Result as PlanResult;
use datafusion::logical_expr as df;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use regex_automata::dfa::regex::Regex;

use super::{Columns, Expr, col};
use crate::error::{Error, ErrorKind, Result};
use crate::plan::is_small_expr;

/// What stands for the name of a selected column in an alias.
pub(super) const OWN_NAME: char = '\0';

/// Which columns.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum SelectedColumns {
    All,
    Names(Vec<String>),
    Types(Vec<DataType>),
    Class(TypeClass),
    Matches(String),
    Without(Box<SelectedColumns>, Box<SelectedColumns>),
}

/// Types that belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum TypeClass {
    Numeric,
    Integers,
    Floats,
    Strings,
    Temporal,
    Booleans,
}

impl TypeClass {
    fn has(self, dtype: &DataType) -> bool {
        match self {
            TypeClass::Numeric => dtype.is_numeric(),
            TypeClass::Integers => dtype.is_integer(),
            TypeClass::Floats => dtype.is_floating(),
            TypeClass::Strings => {
                matches!(dtype, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
            }
            TypeClass::Temporal => dtype.is_temporal(),
            TypeClass::Booleans => *dtype == DataType::Boolean,
        }
    }
}

impl SelectedColumns {
    /// The names of the selected columns, in the schema's order, or in that of the names that were
    /// said.
    fn names(&self, schema: &Schema) -> Result<Vec<String>> {
        let with = |has: &dyn Fn(&str, &DataType) -> bool| {
            let fields =
                schema.fields().iter().filter(|field| has(field.name(), field.data_type()));
            fields.map(|field| field.name().clone()).collect()
        };
        Ok(match self {
            SelectedColumns::All => with(&|_, _| true),
            SelectedColumns::Types(types) => with(&|_, dtype| types.contains(dtype)),
            SelectedColumns::Class(class) => with(&|_, dtype| class.has(dtype)),
            SelectedColumns::Matches(pattern) => {
                let regex = Regex::new(pattern).map_err(|error| {
                    Error::unsupported(format!("pattern {pattern:?}"), error.to_string())
                })?;
                with(&|name, _| regex.is_match(name))
            }
            SelectedColumns::Names(names) => {
                let missing = names.iter().find(|name| schema.column_with_name(name).is_none());
                match missing {
                    Some(name) => return Err(unknown(name, schema)),
                    None => names.clone(),
                }
            }
            SelectedColumns::Without(selection, others) => {
                let others = match others.as_ref() {
                    // Whoever leaves out what is not there has what he wants.
                    SelectedColumns::Names(names) => names.clone(),
                    others => others.names(schema)?,
                };
                let mut names = selection.names(schema)?;
                names.retain(|name| !others.contains(name));
                names
            }
        })
    }
}

/// A selection within an expression.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Selector {
    selection: SelectedColumns,
    signature: Signature,
}

impl ScalarUDFImpl for Selector {
    fn name(&self) -> &str {
        "selector"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> PlanResult<DataType> {
        Ok(DataType::Null)
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> PlanResult<ColumnarValue> {
        datafusion::common::plan_err!("a selector of columns stands where no verb looks for it")
    }
}

fn selector(selection: SelectedColumns) -> Expr {
    let selector = Selector { selection, signature: Signature::nullary(Volatility::Immutable) };
    Expr { tree: ScalarUDF::from(selector).call(vec![]), name: None }
}

/// The selection that an expression stands for, if it is one.
fn selection_of(expr: &df::Expr) -> Option<SelectedColumns> {
    match expr {
        df::Expr::Column(column) => Some(SelectedColumns::Names(vec![column.name.clone()])),
        df::Expr::ScalarFunction(call) => {
            call.func.inner().downcast_ref::<Selector>().map(|selector| selector.selection.clone())
        }
        _ => None,
    }
}

/// All columns.
///
/// ```
/// # use warpframe::prelude::*;
/// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
/// let frame = session.sql("SELECT 1 AS a, 2 AS b")?.select(all() * 10)?;
/// assert_eq!(frame.schema().field(1).name(), "b");
/// # Ok::<(), warpframe::Error>(())
/// ```
pub fn all() -> Expr {
    selector(SelectedColumns::All)
}

/// The columns of these names, in their order.
///
/// ```
/// # use warpframe::prelude::*;
/// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
/// let frame = session.sql("SELECT 1 AS a, 2 AS b, 3 AS c")?.select(cols(["c", "a"]).sum())?;
/// assert_eq!(frame.schema().field(0).name(), "c");
/// # Ok::<(), warpframe::Error>(())
/// ```
pub fn cols(names: impl Columns) -> Expr {
    // What is no name is one that no column has, as the verb will say.
    let name = |column: Expr| match column.tree {
        df::Expr::Column(column) => column.name,
        other => other.to_string(),
    };
    selector(SelectedColumns::Names(names.into_columns().into_iter().map(name).collect()))
}

/// The columns of these types.
///
/// ```
/// # use warpframe::prelude::*;
/// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
/// let frame = session.sql("SELECT 1 AS a, 'x' AS b")?.select(by_type([DataType::Int64]))?;
/// assert_eq!(frame.schema().fields().len(), 1);
/// # Ok::<(), warpframe::Error>(())
/// ```
pub fn by_type(types: impl IntoIterator<Item = DataType>) -> Expr {
    selector(SelectedColumns::Types(types.into_iter().collect()))
}

/// The columns whose names match a regular expression somewhere.
///
/// ```
/// # use warpframe::prelude::*;
/// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
/// let frame = session.sql("SELECT 1 AS x1, 2 AS x2, 3 AS y")?.select(matches("^x[0-9]$"))?;
/// assert_eq!(frame.schema().fields().len(), 2);
/// # Ok::<(), warpframe::Error>(())
/// ```
pub fn matches(pattern: impl Into<String>) -> Expr {
    selector(SelectedColumns::Matches(pattern.into()))
}

/// All columns but these; see [`Expr::exclude`].
pub fn exclude(others: impl Columns) -> Expr {
    all().exclude(others)
}

macro_rules! classes {
    ($($(#[$doc:meta])* $name:ident $class:ident;)*) => {
        $($(#[$doc])*
        pub fn $name() -> Expr {
            selector(SelectedColumns::Class(TypeClass::$class))
        })*
    };
}

classes! {
    /// The columns of numbers.
    numeric Numeric;
    /// The columns of integers.
    integers Integers;
    /// The columns of floats.
    floats Floats;
    /// The columns of strings.
    strings Strings;
    /// The columns of dates, times, timestamps, intervals and durations.
    temporal Temporal;
    /// The columns of booleans.
    booleans Booleans;
}

impl Expr {
    /// The columns that a selector selects, but for these.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("SELECT 1 AS a, 2 AS b, 'x' AS s")?;
    /// assert_eq!(frame.select(all().exclude(["b"]).exclude(strings()))?.schema().fields().len(), 1);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn exclude(self, others: impl Columns) -> Expr {
        others.into_columns().iter().fold(self, |expr, other| {
            match (selection_of(&expr.tree), selection_of(&other.tree)) {
                (Some(of), Some(other)) => {
                    selector(SelectedColumns::Without(Box::new(of), Box::new(other)))
                }
                // What is no selector has no columns to leave out.
                _ => expr,
            }
        })
    }
}

/// The expressions that these are once selectors are columns of this schema: each is called after
/// its column.
pub(in crate::frame) fn expanded(
    exprs: Vec<Expr>,
    schema: impl FnOnce() -> Schema,
) -> Result<Vec<Expr>> {
    // What is deep is not looked into: that takes more stack than there may be.
    let is_plain = |Expr { tree, .. }: &Expr| !is_small_expr(tree) || !has_selector(tree);
    if exprs.iter().all(is_plain) {
        return Ok(exprs);
    }
    let (schema, mut out) = (schema(), vec![]);
    for expr in exprs {
        if is_plain(&expr) {
            out.push(expr);
            continue;
        }
        let mut names: Option<Vec<String>> = None;
        expr.tree.apply(|node| {
            if let (df::Expr::ScalarFunction(_), Some(selection)) = (node, selection_of(node)) {
                names.get_or_insert(selection.names(&schema)?);
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        for name in names.unwrap_or_default() {
            let of_column = expr.tree.clone().transform(|node| {
                Ok(if is_selector(&node) {
                    Transformed::yes(col(&name).tree)
                } else {
                    Transformed::no(node)
                })
            })?;
            out.push(match of_column.data {
                df::Expr::Alias(mut alias) => {
                    alias.name = alias.name.replace(OWN_NAME, &name);
                    df::Expr::Alias(alias).into()
                }
                tree => Expr { tree, name: Some(name) },
            });
        }
    }
    Ok(out)
}

/// The column of a schema that is not there.
pub(in crate::frame) fn unknown(name: &str, schema: &Schema) -> Error {
    let known = schema.fields().iter().map(|field| field.name().clone()).collect();
    ErrorKind::ColumnNotFound { name: name.to_string(), known }.into()
}

pub(super) fn is_selector(node: &df::Expr) -> bool {
    matches!(node, df::Expr::ScalarFunction(call) if call.func.inner().is::<Selector>())
}

fn has_selector(tree: &df::Expr) -> bool {
    tree.exists(|node| Ok(is_selector(node))).unwrap_or(false)
}
