//! Aggregates: a value of many rows.

use std::hash::{Hash, Hasher};
use std::mem::size_of_val;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, ListArray, UInt64Array, new_empty_array,
};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::{
    SortColumn, SortOptions, and, concat, filter, is_not_null, lexsort_to_indices, take,
};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::error::Result as PlanResult;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility,
};

use super::arguments::{ArgumentNames, coerced, named};
use super::definition::{Body, Definition, FramedBody, SYMBOL, ctype, mentions};
use super::scalar::{RESULT_IS_NULL, least_and_greatest};
use crate::error::{Error, ErrorKind, Result};

/// An aggregate of rows in CUDA C++, for
/// [`Session::register_aggregate`](crate::Session::register_aggregate). It has a state, a struct of
/// fields, and four bodies: `identity` sets the state `s` of no row, `map` makes of it that of a
/// row by the arguments, `combine` adds the state `b` to `a`, and `finish` returns the value of
/// `s`.
///
/// States of a few rows are combined first, and then these: so `combine` must be associative and
/// commutative. It need not be commutative where the aggregate is
/// [ordered](AggregateFunction::ordered): then neighbours are combined, in the order of the rows.
/// Rows in which an argument is NULL do not count; of no row the value is NULL.
///
/// ```
/// use warpframe::prelude::*;
/// use warpframe::AggregateFunction;
///
/// let session = Session::builder().device(DeviceChoice::Sim).build()?;
/// let double = DataType::Float64;
/// let norm = AggregateFunction::new("l2norm", [("x", double.clone())], double.clone())
///     .state([("sum", double)])
///     .identity("s.sum = 0;")
///     .map("s.sum = x * x;")
///     .combine("a.sum += b.sum;")
///     .finish("return sqrt(s.sum);");
/// session.register_aggregate(norm)?;
/// let norm = session.sql("SELECT l2norm(column1) AS n FROM (VALUES (3.0), (NULL), (4.0))")?.collect()?;
/// assert_eq!(norm.column("n")?.to_vec::<f64>()?, [5.0]);
/// # Ok::<(), warpframe::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct AggregateFunction {
    pub(super) name: String,
    pub(super) inputs: Vec<(String, DataType)>,
    pub(super) state: Vec<(String, DataType)>,
    pub(super) output: DataType,
    /// In the order of [`BODIES`].
    pub(super) bodies: [Option<Body>; 4],
    pub(super) ordered: bool,
}

/// What the bodies are called.
pub(crate) const BODIES: [&str; 4] = ["IDENTITY", "MAP", "COMBINE", "FINISH"];

impl AggregateFunction {
    /// An aggregate of these arguments, by name and type, with a value of type `output`.
    ///
    /// ```
    /// use warpframe::AggregateFunction;
    /// use warpframe::arrow::datatypes::DataType;
    /// AggregateFunction::new("longest", [("s", DataType::Utf8View)], DataType::Int64);
    /// ```
    pub fn new<N: Into<String>>(
        name: impl Into<String>,
        inputs: impl IntoIterator<Item = (N, DataType)>,
        output: DataType,
    ) -> Self {
        let inputs = inputs.into_iter().map(|(name, dtype)| (name.into(), dtype)).collect();
        AggregateFunction {
            name: name.into(),
            inputs,
            state: vec![],
            output,
            bodies: Default::default(),
            ordered: false,
        }
    }

    /// Sets the fields of the aggregate's state.
    ///
    /// ```
    /// use warpframe::AggregateFunction;
    /// use warpframe::arrow::datatypes::DataType;
    /// let mean = AggregateFunction::new("mean", [("x", DataType::Float64)], DataType::Float64);
    /// mean.state([("sum", DataType::Float64), ("count", DataType::Int64)]);
    /// ```
    pub fn state<N: Into<String>>(
        mut self,
        fields: impl IntoIterator<Item = (N, DataType)>,
    ) -> Self {
        self.state = fields.into_iter().map(|(name, dtype)| (name.into(), dtype)).collect();
        self
    }

    /// Sets the body that makes `s` the state of no row.
    ///
    /// ```
    /// use warpframe::AggregateFunction;
    /// use warpframe::arrow::datatypes::DataType;
    /// AggregateFunction::new("most", [("n", DataType::Int64)], DataType::Int64).identity("s.n = -1;");
    /// ```
    pub fn identity(self, body: impl Into<String>) -> Self {
        self.with(0, Body::new(body, None))
    }

    /// Sets the body that makes `s`, which is the state of no row, that of a row.
    ///
    /// ```
    /// use warpframe::AggregateFunction;
    /// use warpframe::arrow::datatypes::DataType;
    /// AggregateFunction::new("most", [("n", DataType::Int64)], DataType::Int64).map("s.n = n;");
    /// ```
    pub fn map(self, body: impl Into<String>) -> Self {
        self.with(1, Body::new(body, None))
    }

    /// Sets the body that adds the state `b`, of later rows, to the state `a`.
    ///
    /// ```
    /// use warpframe::AggregateFunction;
    /// use warpframe::arrow::datatypes::DataType;
    /// AggregateFunction::new("most", [("n", DataType::Int64)], DataType::Int64).combine("a.n = max(a.n, b.n);");
    /// ```
    pub fn combine(self, body: impl Into<String>) -> Self {
        self.with(2, Body::new(body, None))
    }

    /// Sets the body that returns the value of the state `s`.
    ///
    /// ```
    /// use warpframe::AggregateFunction;
    /// use warpframe::arrow::datatypes::DataType;
    /// AggregateFunction::new("most", [("n", DataType::Int64)], DataType::Int64).finish("return s.n;");
    /// ```
    pub fn finish(self, body: impl Into<String>) -> Self {
        self.with(3, Body::new(body, None))
    }

    /// Says that the value depends on the order of the rows: that of the input, or of `ORDER BY` in
    /// the call.
    ///
    /// ```
    /// use warpframe::AggregateFunction;
    /// use warpframe::arrow::datatypes::DataType;
    /// AggregateFunction::new("last", [("n", DataType::Int64)], DataType::Int64).ordered();
    /// ```
    pub fn ordered(mut self) -> Self {
        self.ordered = true;
        self
    }

    /// Sets one of the [`BODIES`] by its index.
    pub(crate) fn with(mut self, which: usize, body: Body) -> Self {
        self.bodies[which] = Some(body);
        self
    }

    /// The aggregate as plans know it; `compiled` computes it on the host.
    ///
    /// # Errors
    /// Names that are none, types that bodies do not have, bodies that are not there.
    pub(crate) fn planned(self, compiled: CompiledAggregate) -> Result<UserAggregate> {
        let AggregateFunction { name, inputs, state, output, bodies, .. } = &self;
        named(name, inputs, ArgumentNames::InBodies)?;
        named(name, state, ArgumentNames::InBodies)?;
        let wrong = |message: String| Error::from(ErrorKind::Plan { message, location: None });
        for (what, fields) in [("arguments", inputs), ("fields of its state", state)] {
            if fields.is_empty() {
                return Err(wrong(format!("aggregate {name} has no {what}")));
            }
        }
        let body = |(body, what): (&Option<Body>, &str)| {
            body.clone().ok_or_else(|| wrong(format!("aggregate {name} has no {what}")))
        };
        let found = bodies.iter().zip(BODIES).map(body).collect::<Result<Vec<_>>>()?;
        let (mut fields, mut parameters, mut values) =
            (String::new(), String::new(), String::new());
        for (field, dtype) in state {
            match ctype(dtype)? {
                "text" => {
                    return Err(Error::unsupported(
                        format!("aggregate {name} with {dtype} in its state"),
                        "a state has numbers only",
                    ));
                }
                ctype => fields.push_str(&format!("{ctype} {field}; ")),
            }
        }
        for (argument, dtype) in inputs {
            let ctype = ctype(dtype)?;
            parameters.push_str(&format!(", {ctype} {argument}"));
            values.push_str(&format!(", {ctype}{{}}"));
        }
        let result = ctype(output)?;
        if result == "text" {
            let what = format!("aggregate {name} with a value of type {output}");
            return Err(Error::unsupported(what, "aggregates of users yield no strings"));
        }
        if least_and_greatest(output).is_some() {
            let what = format!("aggregate {name} with a value of type {output}");
            return Err(Error::unsupported(
                what,
                "nobody would notice one outside of the type's range",
            ));
        }
        let yields_null = mentions(&found[3].text, RESULT_IS_NULL);
        let null = if yields_null { format!(", bool& {RESULT_IS_NULL}") } else { String::new() };
        let of_state = format!("{SYMBOL}_state");
        let lists = [
            format!("({of_state}& s)"),
            format!("({of_state}& s{parameters})"),
            format!("({of_state}& a, const {of_state}& b)"),
            format!("(const {of_state}& s{null})"),
        ];
        let framed: Vec<FramedBody<'_>> = (found.iter().zip(&lists).enumerate())
            .map(|(at, (body, parameters))| FramedBody {
                before: if at == 3 { result } else { "void" },
                parameters,
                body,
            })
            .collect();
        let ahead = format!("struct {of_state} {{ {fields}}};");
        let null = if yields_null { ", n" } else { "" };
        let calls = format!(
            "{of_state} s, t;\nbool n = false;\n{SYMBOL}(s);\n{SYMBOL}_1(s{values});\n{SYMBOL}(t);\n{SYMBOL}_2(s, t);\n\
             {SYMBOL}_3(s{null});"
        );
        let definition = Arc::new(Definition::new(name, &ahead, &framed, "", &calls));
        let signature = Signature::user_defined(Volatility::Immutable);
        Ok(UserAggregate { function: Arc::new(self), definition, yields_null, signature, compiled })
    }
}

/// Computes an aggregate of arrays of one length, without nulls, on the host: an array of one
/// value.
pub(crate) type CompiledAggregate = fn(&UserAggregate, &[ArrayRef], usize) -> Result<ArrayRef>;

/// A user's aggregate as DataFusion plans it. Its functions in C++ are `symbol` (identity),
/// `symbol_1` (map), `symbol_2` (combine) and `symbol_3` (finish), its state is `symbol_state`.
#[derive(Clone)]
pub(crate) struct UserAggregate {
    function: Arc<AggregateFunction>,
    definition: Arc<Definition>,
    yields_null: bool,
    signature: Signature,
    compiled: CompiledAggregate,
}

impl UserAggregate {
    /// What an aggregate of DataFusion's is, if a user wrote it.
    pub(crate) fn of(function: &AggregateUDF) -> Option<&UserAggregate> {
        function.inner().downcast_ref::<UserAggregate>()
    }

    pub(crate) fn inputs(&self) -> &[(String, DataType)] {
        &self.function.inputs
    }

    /// What the user wrote.
    #[cfg(feature = "proto")]
    pub(crate) fn written(&self) -> &AggregateFunction {
        &self.function
    }

    /// The fields of its state.
    pub(crate) fn fields(&self) -> &[(String, DataType)] {
        &self.function.state
    }

    pub(crate) fn output(&self) -> &DataType {
        &self.function.output
    }

    pub(crate) fn definition(&self) -> &Arc<Definition> {
        &self.definition
    }

    /// Whether its finish has a flag for a value that is null.
    pub(crate) fn yields_null(&self) -> bool {
        self.yields_null
    }

    pub(crate) fn is_ordered(&self) -> bool {
        self.function.ordered
    }
}

impl std::fmt::Debug for UserAggregate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "UserAggregate({} as {})", self.function.name, self.definition.symbol())
    }
}

impl PartialEq for UserAggregate {
    fn eq(&self, other: &Self) -> bool {
        self.definition.symbol() == other.definition.symbol()
            && self.function.name == other.function.name
            && self.function.inputs == other.function.inputs
            && self.function.state == other.function.state
            && self.function.output == other.function.output
            && self.function.ordered == other.function.ordered
    }
}

impl Eq for UserAggregate {}

impl Hash for UserAggregate {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.function.name.hash(state);
        self.definition.symbol().hash(state);
    }
}

impl AggregateUDFImpl for UserAggregate {
    fn name(&self) -> &str {
        &self.function.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[DataType]) -> PlanResult<DataType> {
        Ok(self.function.output.clone())
    }

    fn coerce_types(&self, types: &[DataType]) -> PlanResult<Vec<DataType>> {
        coerced(&self.function.name, &self.function.inputs, types)
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        if self.function.ordered {
            AggregateOrderSensitivity::HardRequirement
        } else {
            AggregateOrderSensitivity::Insensitive
        }
    }

    /// All rows that were seen: what is made of them depends on their order.
    fn state_fields(&self, args: StateFieldsArgs) -> PlanResult<Vec<FieldRef>> {
        let arguments = self.function.inputs.iter().map(|(_, dtype)| dtype);
        let types = arguments.chain(args.ordering_fields.iter().map(|field| field.data_type()));
        let field = |(at, dtype): (usize, &DataType)| {
            Arc::new(Field::new_list(format!("{}[{at}]", args.name), item(dtype), true))
        };
        Ok(types.enumerate().map(field).collect())
    }

    fn accumulator(&self, args: AccumulatorArgs) -> PlanResult<Box<dyn Accumulator>> {
        let order = if self.function.ordered { args.order_bys } else { &[] };
        let mut types: Vec<DataType> =
            self.function.inputs.iter().map(|(_, dtype)| dtype.clone()).collect();
        for key in order {
            types.push(key.expr.data_type(args.schema)?);
        }
        let columns = types.iter().map(|_| vec![]).collect();
        Ok(Box::new(SeenRows {
            of: self.clone(),
            order: order.iter().map(|key| key.options).collect(),
            types,
            columns,
        }))
    }
}

fn item(dtype: &DataType) -> FieldRef {
    Arc::new(Field::new_list_field(dtype.clone(), true))
}

/// The rows that the CPU engine has handed on.
#[derive(Debug)]
struct SeenRows {
    of: UserAggregate,
    /// How each key of an ORDER BY sorts.
    order: Vec<SortOptions>,
    /// Of the arguments, then of these keys.
    types: Vec<DataType>,
    /// Arrays of each.
    columns: Vec<Vec<ArrayRef>>,
}

impl SeenRows {
    fn column(&self, at: usize) -> PlanResult<ArrayRef> {
        let arrays: Vec<&dyn Array> = self.columns[at].iter().map(|array| array.as_ref()).collect();
        match arrays.is_empty() {
            true => Ok(new_empty_array(&self.types[at])),
            false => Ok(concat(&arrays)?),
        }
    }

    /// The arguments in the order that was asked for. The engine sorts ahead only where it wants
    /// to.
    fn arguments(&self) -> PlanResult<Vec<ArrayRef>> {
        let count = self.of.inputs().len();
        let arguments = (0..count).map(|at| self.column(at)).collect::<PlanResult<Vec<_>>>()?;
        if self.order.is_empty() {
            return Ok(arguments);
        }
        let mut keys = vec![];
        for (at, options) in self.order.iter().enumerate() {
            keys.push(SortColumn { values: self.column(count + at)?, options: Some(*options) });
        }
        // Rows that the keys do not tell apart stay in their order.
        let numbers = UInt64Array::from_iter_values(0..arguments[0].len() as u64);
        keys.push(SortColumn { values: Arc::new(numbers), options: None });
        let order = lexsort_to_indices(&keys, None)?;
        Ok(arguments.iter().map(|array| take(array, &order, None)).collect::<Result<_, _>>()?)
    }
}

impl Accumulator for SeenRows {
    fn update_batch(&mut self, values: &[ArrayRef]) -> PlanResult<()> {
        let mut keep: Option<BooleanArray> = None;
        for array in values.iter().take(self.of.inputs().len()).filter(|array| array.is_nullable())
        {
            let known = is_not_null(array)?;
            keep = Some(match keep {
                Some(keep) => and(&keep, &known)?,
                None => known,
            });
        }
        for (of, array) in self.columns.iter_mut().zip(values) {
            of.push(match &keep {
                Some(keep) => filter(array, keep)?,
                None => array.clone(),
            });
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> PlanResult<()> {
        for (of, lists) in self.columns.iter_mut().zip(states) {
            let lists = lists.as_list::<i32>();
            of.extend((0..lists.len()).filter(|at| lists.is_valid(*at)).map(|at| lists.value(at)));
        }
        Ok(())
    }

    fn state(&mut self) -> PlanResult<Vec<ScalarValue>> {
        let list = |at: usize| {
            let values = self.column(at)?;
            let offsets = OffsetBuffer::from_lengths([values.len()]);
            let list = ListArray::new(item(&self.types[at]), offsets, values, None);
            Ok(ScalarValue::List(Arc::new(list)))
        };
        (0..self.columns.len()).map(list).collect()
    }

    fn evaluate(&mut self) -> PlanResult<ScalarValue> {
        let arrays = self.arguments()?;
        match arrays.first().map_or(0, |array| array.len()) {
            0 => ScalarValue::try_from(self.of.output()),
            rows => ScalarValue::try_from_array(&(self.of.compiled)(&self.of, &arrays, rows)?, 0),
        }
    }

    fn size(&self) -> usize {
        let arrays = self.columns.iter().flatten();
        size_of_val(self) + arrays.map(|array| array.get_array_memory_size()).sum::<usize>()
    }
}
