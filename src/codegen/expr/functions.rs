//! Scalar functions: a family a file, a function a row.
//!
//! A row is all that the engine knows of a function: its names, what computes it on the host, what
//! it is written out as, how the device computes it, and whether it can fail. A family's `PAGE` has
//! its lines of `docs/sql.md`, which a test compares. Whoever adds a function adds a row and a line
//! there; device code of some length has its place in `kernels/`. Which headers a kernel includes
//! and how long it takes to compile follows from the names in its text (`codegen/kernel.rs`,
//! `codegen/effort.rs`).
//!
//! A function that has no row is DataFusion's, runs on the host, and is taken to fail.

mod conditional;
pub(super) mod intervals;
mod lists;
mod numbers;
mod random;
mod regexp;
mod structs;
#[cfg(test)]
mod tests;
mod text;
mod times;

use std::cmp::Ordering;
use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::{Arc, LazyLock};

use datafusion::execution::SessionStateDefaults;
use datafusion::logical_expr::ScalarUDF;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::sql::sqlparser::ast;

use super::*;
use crate::host::calls::{Computed, host_function};
use crate::host::shorthand::{WrittenByTypes, shorthand};
use crate::user_code::UserFunction;

/// All rows, family by family.
const FAMILIES: [&[Function]; 9] = [
    conditional::FAMILY,
    numbers::FAMILY,
    random::FAMILY,
    times::FAMILY,
    intervals::FAMILY,
    text::FAMILY,
    regexp::FAMILY,
    lists::FAMILY,
    structs::FAMILY,
];

/// The lines of `docs/sql.md`, family by family.
#[cfg(test)]
const PAGES: [&[Line]; 9] = [
    conditional::PAGE,
    numbers::PAGE,
    random::PAGE,
    times::PAGE,
    intervals::PAGE,
    text::PAGE,
    regexp::PAGE,
    lists::PAGE,
    structs::PAGE,
];

/// A scalar function.
pub(crate) struct Function {
    /// Its name in plans.
    name: &'static str,
    /// Names in SQL that stand for it.
    also: &'static [&'static str],
    body: HostBody,
    emit: Option<Emit>,
    fails: Fails,
}

/// What computes a function on the host.
enum HostBody {
    /// DataFusion's function of this name.
    DataFusion,
    /// One of ours, which takes the place of DataFusion's, if it has one.
    Host(fn() -> Arc<ScalarUDF>),
    /// One of ours, of arguments and a value of these types.
    Computed { of: &'static [DataType], value: &'static DataType, computed: Computed },
    /// Nothing: a call is written out as an expression of its arguments and their types, while
    /// constants are folded.
    Typed { takes: &'static str, written: WrittenByTypes },
    /// Nothing: a call is written out in the parser's tree.
    Written(Writing),
}

/// How a call is written out in the parser's tree, before it is planned.
#[derive(Clone, Copy)]
pub(crate) struct Writing {
    /// The function's name, which `written` is given.
    pub(crate) name: &'static str,
    /// Which arguments it takes, for the error about others.
    pub(crate) takes: &'static str,
    pub(crate) written: Written,
    /// Whether it replaces a function of this name that DataFusion or the user has.
    pub(crate) instead: bool,
}

/// What a call of a name and these arguments is written out as; `None` of others than it takes. An
/// argument may come twice.
pub(crate) type Written = fn(&str, &[ast::Expr]) -> Option<ast::Expr>;

/// How a function's value is computed on the device: of arguments and the type of its value.
enum Emit {
    None(fn(&mut Compiler<'_>) -> Result<Value>),
    One(fn(&mut Compiler<'_>, &Expr, &DataType) -> Result<Value>),
    Two(fn(&mut Compiler<'_>, &Expr, &Expr, &DataType) -> Result<Value>),
    Three(fn(&mut Compiler<'_>, &Expr, &Expr, &Expr, &DataType) -> Result<Value>),
    /// Of a number of arguments in this range.
    Several(RangeInclusive<usize>, fn(&mut Compiler<'_>, &FunctionCall<'_>) -> Result<Value>),
}

/// A call that is compiled.
struct FunctionCall<'a> {
    function: &'a ScalarUDF,
    args: &'a [Expr],
    /// The type of its value.
    dtype: &'a DataType,
}

impl FunctionCall<'_> {
    fn refused(&self) -> Error {
        not_yet(format!("function {}", self.function.name()))
    }
}

/// Tells the type of an argument.
type TypeOf<'a> = &'a dyn Fn(&Expr) -> Option<DataType>;

/// Whether a call can fail where its arguments do not.
enum Fails {
    Always,
    Never,
    Where(fn(&[Expr], TypeOf<'_>) -> bool),
}

/// A function that DataFusion has.
const fn row(name: &'static str) -> Function {
    Function { name, also: &[], body: HostBody::DataFusion, emit: None, fails: Fails::Always }
}

impl Function {
    const fn also(mut self, names: &'static [&'static str]) -> Self {
        self.also = names;
        self
    }

    const fn on_host(mut self, function: fn() -> Arc<ScalarUDF>) -> Self {
        self.body = HostBody::Host(function);
        self
    }

    const fn computed(
        mut self,
        of: &'static [DataType],
        value: &'static DataType,
        computed: Computed,
    ) -> Self {
        self.body = HostBody::Computed { of, value, computed };
        self
    }

    const fn typed(mut self, takes: &'static str, written: WrittenByTypes) -> Self {
        self.body = HostBody::Typed { takes, written };
        self
    }

    const fn written(mut self, takes: &'static str, written: Written) -> Self {
        self.body = HostBody::Written(Writing { name: self.name, takes, written, instead: false });
        self
    }

    const fn written_instead(mut self, takes: &'static str, written: Written) -> Self {
        self.body = HostBody::Written(Writing { name: self.name, takes, written, instead: true });
        self
    }

    const fn none(mut self, emit: fn(&mut Compiler<'_>) -> Result<Value>) -> Self {
        self.emit = Some(Emit::None(emit));
        self
    }

    const fn one(mut self, emit: fn(&mut Compiler<'_>, &Expr, &DataType) -> Result<Value>) -> Self {
        self.emit = Some(Emit::One(emit));
        self
    }

    const fn two(
        mut self,
        emit: fn(&mut Compiler<'_>, &Expr, &Expr, &DataType) -> Result<Value>,
    ) -> Self {
        self.emit = Some(Emit::Two(emit));
        self
    }

    const fn three(
        mut self,
        emit: fn(&mut Compiler<'_>, &Expr, &Expr, &Expr, &DataType) -> Result<Value>,
    ) -> Self {
        self.emit = Some(Emit::Three(emit));
        self
    }

    const fn several(
        mut self,
        count: RangeInclusive<usize>,
        emit: fn(&mut Compiler<'_>, &FunctionCall<'_>) -> Result<Value>,
    ) -> Self {
        self.emit = Some(Emit::Several(count, emit));
        self
    }

    /// It has a value for all arguments of its types.
    const fn total(mut self) -> Self {
        self.fails = Fails::Never;
        self
    }

    const fn fails(mut self, fails: fn(&[Expr], TypeOf<'_>) -> bool) -> Self {
        self.fails = Fails::Where(fails);
        self
    }
}

fn rows() -> impl Iterator<Item = &'static Function> {
    FAMILIES.into_iter().flatten()
}

/// The row of a function by its name in plans.
fn row_of(name: &str) -> Option<&'static Function> {
    static ROWS: LazyLock<HashMap<&str, &Function>> =
        LazyLock::new(|| rows().map(|row| (row.name, row)).collect());
    ROWS.get(name).copied()
}

/// The functions of the host that take the place of DataFusion's, or that it has not.
pub(crate) fn host_functions() -> impl Iterator<Item = Arc<ScalarUDF>> {
    rows().filter_map(|row| match row.body {
        HostBody::Host(function) => Some(function()),
        HostBody::Computed { of, value, computed } => {
            Some(host_function(row.name, of, value, computed))
        }
        // By all its names: DataFusion has a function for some of them.
        HostBody::Typed { takes, written } => {
            let function = shorthand(row.name, takes, written);
            Some(Arc::new(function.with_aliases(row.also.iter().copied())))
        }
        HostBody::DataFusion | HostBody::Written(_) => None,
    })
}

/// Whether a function is DataFusion's own, which the device computes as DataFusion does.
pub(crate) fn is_stock(function: &ScalarUDF) -> bool {
    static STOCK: LazyLock<HashMap<String, Arc<ScalarUDF>>> = LazyLock::new(|| {
        let all = SessionStateDefaults::default_scalar_functions();
        all.into_iter().map(|function| (function.name().to_string(), function)).collect()
    });
    let is_ours = |row: &Function| row.name == function.name();
    STOCK.get(function.name()).is_some_and(|stock| stock.as_ref() == function)
        && rows()
            .find(|row| is_ours(row))
            // Ours has more forms of `random`; that without arguments means the same.
            .is_some_and(|row| {
                let is_same = matches!(row.body, HostBody::DataFusion) || row.name == "random";
                is_same && row.emit.is_some()
            })
}

/// What stands for a name in SQL.
#[derive(Clone, Copy)]
pub(crate) enum InSql {
    /// A function by another name.
    Name(&'static str),
    Written(Writing),
}

/// What stands in SQL for a name in lower case; `None` for the function itself.
pub(crate) fn in_sql(name: &str) -> Option<InSql> {
    static NAMES: LazyLock<HashMap<&str, InSql>> = LazyLock::new(|| {
        let mut names = HashMap::new();
        for row in rows() {
            let own = match row.body {
                HostBody::Written(writing) => InSql::Written(writing),
                _ => InSql::Name(row.name),
            };
            names.extend(row.also.iter().map(|name| (*name, own)));
            if let InSql::Written(_) = own {
                names.insert(row.name, own);
            }
        }
        names
    });
    NAMES.get(name).copied()
}

/// Whether a function, by its name, has a value for all arguments.
pub(crate) fn is_total(name: &str) -> bool {
    row_of(name).is_some_and(|row| matches!(row.fails, Fails::Never))
}

/// Whether a call can fail where its arguments do not; `of` tells their types.
pub(crate) fn function_fails(call: &ScalarFunction, of: TypeOf<'_>) -> bool {
    match row_of(call.name()).map(|row| &row.fails) {
        Some(Fails::Never) => false,
        Some(Fails::Where(fails)) => fails(&call.args, of),
        Some(Fails::Always) | None => true,
    }
}

/// The constant that an expression is, its casts done.
pub(crate) fn constant(expr: &Expr) -> Option<ScalarValue> {
    match expr {
        Expr::Literal(value, _) => Some(value.clone()),
        Expr::Alias(alias) => constant(&alias.expr),
        Expr::Cast(cast) => constant(&cast.expr)?.cast_to(cast.field.data_type()).ok(),
        Expr::Negative(inner) => constant(inner)?.arithmetic_negate().ok(),
        _ => None,
    }
}

fn is_constant(expr: &Expr) -> bool {
    constant(expr).is_some()
}

/// How a number that is not null compares to zero.
pub(crate) fn to_zero(value: &ScalarValue) -> Option<Ordering> {
    (!value.is_null()).then_some(())?;
    value.partial_cmp(&ScalarValue::new_zero(&value.data_type()).ok()?)
}

impl Compiler<'_> {
    pub(super) fn function(&mut self, expr: &Expr, call: &ScalarFunction) -> Result<Value> {
        // Measures of an Arrow dictionary of strings are a dictionary of integers.
        let dtype = value_type(&expr.get_type(self.schema)?).clone();
        if let Some(function) = UserFunction::of(&call.func) {
            return self.user_function(function, &call.args);
        }
        let call = FunctionCall { function: &call.func, args: &call.args, dtype: &dtype };
        let emit = row_of(call.function.name()).and_then(|row| row.emit.as_ref());
        match (emit, call.args) {
            (Some(Emit::None(emit)), []) => emit(self),
            (Some(Emit::One(emit)), [x]) => emit(self, x, &dtype),
            (Some(Emit::Two(emit)), [x, y]) => emit(self, x, y, &dtype),
            (Some(Emit::Three(emit)), [x, y, z]) => emit(self, x, y, z, &dtype),
            (Some(Emit::Several(count, emit)), args) if count.contains(&args.len()) => {
                emit(self, &call)
            }
            _ => Err(call.refused()),
        }
    }
}

/// A function that is a line of `docs/sql.md`, or several: its form, whether the device has it, an
/// example, and what there is to know.
#[cfg(test)]
struct Line {
    functions: &'static str,
    on_device: bool,
    example: &'static str,
    otherwise: &'static str,
}

#[cfg(test)]
const fn yes(functions: &'static str, example: &'static str, otherwise: &'static str) -> Line {
    Line { functions, on_device: true, example, otherwise }
}

#[cfg(test)]
const fn no(functions: &'static str, example: &'static str, otherwise: &'static str) -> Line {
    Line { functions, on_device: false, example, otherwise }
}
