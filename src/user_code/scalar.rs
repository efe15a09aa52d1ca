//! Scalar functions: a value of each row.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::internal_err;
use datafusion::error::Result as PlanResult;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use super::arguments::{ArgumentNames, coerced, named};
use super::closure::{ClosureCall, HostClosure};
use super::definition::{Body, Definition, FramedBody, SYMBOL, ctype, mentions};
use crate::error::{Error, Result};

/// A function of a row's values whose body is CUDA C++, or which a closure computes
/// ([`ScalarFunction::from_closure`]), for
/// [`Session::register_function`](crate::Session::register_function). `docs/user-code.md` says what
/// a body may use.
///
/// ```
/// use warpframe::prelude::*;
/// use warpframe::ScalarFunction;
///
/// let session = Session::builder().device(DeviceChoice::Sim).build()?;
/// let double = DataType::Float64;
/// let inputs = [("x", double.clone()), ("y", double.clone())];
/// session.register_function(ScalarFunction::new("norm", inputs, double, "return sqrt(x * x + y * y);"))?;
/// let norms = session.sql("SELECT norm(column1, column2) AS n FROM (VALUES (3.0, 4.0), (NULL, 1.0))")?.collect()?;
/// assert_eq!(norms.column("n")?.to_vec::<Option<f64>>()?, [Some(5.0), None]);
/// # Ok::<(), warpframe::Error>(())
/// ```
#[derive(Clone)]
pub struct ScalarFunction {
    pub(super) name: String,
    pub(super) inputs: Vec<(String, DataType)>,
    pub(super) output: DataType,
    /// `None` where a closure alone computes it.
    pub(super) body: Option<Body>,
    pub(super) volatile: bool,
    pub(super) called_on_null: bool,
    host: Option<HostClosure>,
}

impl std::fmt::Debug for ScalarFunction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ScalarFunction { name, inputs, output, body, .. } = self;
        let body = body.as_ref().map_or("a closure", |body| &body.text);
        write!(f, "ScalarFunction({name}{inputs:?} -> {output}: {body:?})")
    }
}

impl ScalarFunction {
    /// A function of these arguments, by name and type, with a value of type `output`. It is NULL
    /// where an argument is NULL, and has the same value whenever its arguments are the same.
    ///
    /// ```
    /// use warpframe::ScalarFunction;
    /// use warpframe::arrow::datatypes::DataType;
    /// let body = "long long next = n;\nreturn next + 1;";
    /// ScalarFunction::new("next", [("n", DataType::Int64)], DataType::Int64, body);
    /// ```
    pub fn new<N: Into<String>>(
        name: impl Into<String>,
        inputs: impl IntoIterator<Item = (N, DataType)>,
        output: DataType,
        body: impl Into<String>,
    ) -> Self {
        let inputs = inputs.into_iter().map(|(name, dtype)| (name.into(), dtype)).collect();
        ScalarFunction {
            name: name.into(),
            inputs,
            output,
            body: Some(Body::new(body, None)),
            volatile: false,
            called_on_null: false,
            host: None,
        }
    }

    /// A function that a closure computes, without a body for the device: the CPU engine runs the
    /// part of a query that calls it, and a session in strict mode refuses it. Arguments and value
    /// may be of every Arrow type, also strings and lists.
    ///
    /// The closure takes arrays of one length, which have the types of the arguments, and returns
    /// one of type `output` and the same length, which may have nulls. Rows in which an argument is
    /// NULL are not among them: there the function is NULL, unless it is
    /// [called on NULL](ScalarFunction::called_on_null). Of a function without arguments the
    /// closure makes one value at a time. It may be called from several threads at once.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use warpframe::ScalarFunction;
    /// use warpframe::arrow::array::{ArrayRef, AsArray, StringArray};
    /// use warpframe::prelude::*;
    ///
    /// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let inputs = [("s", DataType::Utf8)];
    /// session.register_function(ScalarFunction::from_closure("mirror", inputs, DataType::Utf8, |arrays| {
    ///     let texts = arrays[0].as_string::<i32>().iter();
    ///     let mirrored = texts.map(|s| s.map(|s| s.chars().rev().collect::<String>()));
    ///     Ok(Arc::new(mirrored.collect::<StringArray>()) as ArrayRef)
    /// }))?;
    /// let rows = session.sql("SELECT mirror(s) AS m FROM (VALUES ('abc'), (NULL)) AS t(s)")?.collect()?;
    /// assert_eq!(rows.column("m")?.to_vec::<Option<String>>()?, [Some("cba".into()), None]);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn from_closure<N: Into<String>>(
        name: impl Into<String>,
        inputs: impl IntoIterator<Item = (N, DataType)>,
        output: DataType,
        work: impl Fn(&[ArrayRef]) -> Result<ArrayRef> + Send + Sync + 'static,
    ) -> Self {
        let function = ScalarFunction::new(name, inputs, output, "");
        ScalarFunction { body: None, ..function }.on_host(work)
    }

    /// Marks the function as volatile: it may have another value each time, so it is not computed
    /// ahead, and not shared.
    ///
    /// ```
    /// use warpframe::ScalarFunction;
    /// use warpframe::arrow::datatypes::DataType;
    /// let inputs: [(&str, DataType); 0] = [];
    /// ScalarFunction::new("lane", inputs, DataType::Int32, "return threadIdx.x % 32;").volatile();
    /// ```
    pub fn volatile(mut self) -> Self {
        self.volatile = true;
        self
    }

    /// Has the function called where arguments are NULL, too. Beside each argument `x` its body has
    /// a flag `bool x_is_null`; a closure finds the nulls in its arrays.
    ///
    /// ```
    /// use warpframe::ScalarFunction;
    /// use warpframe::arrow::datatypes::DataType;
    /// let body = "return x_is_null ? 0 : x;";
    /// ScalarFunction::new("or_zero", [("x", DataType::Int64)], DataType::Int64, body).called_on_null();
    /// ```
    pub fn called_on_null(mut self) -> Self {
        self.called_on_null = true;
        self
    }

    /// Sets the closure by which the CPU engine computes the function, as
    /// [`ScalarFunction::from_closure`] says. Without one the simulator's compiler compiles the
    /// body for the CPU engine.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use warpframe::ScalarFunction;
    /// use warpframe::arrow::array::{ArrayRef, AsArray, Float64Array};
    /// use warpframe::arrow::datatypes::{DataType, Float64Type};
    /// let half = ScalarFunction::new("half", [("x", DataType::Float64)], DataType::Float64, "return x / 2;");
    /// half.on_host(|arrays| {
    ///     let x = arrays[0].as_primitive::<Float64Type>();
    ///     Ok(Arc::new(x.unary::<_, Float64Type>(|x| x / 2.0)) as ArrayRef)
    /// });
    /// ```
    pub fn on_host(
        mut self,
        work: impl Fn(&[ArrayRef]) -> Result<ArrayRef> + Send + Sync + 'static,
    ) -> Self {
        self.host = Some(Arc::new(work));
        self
    }

    /// Sets the place of the function's body in an SQL text.
    pub(crate) fn placed(mut self, line: u64, column: u64) -> Self {
        self.body = self.body.map(|body| Body { place: Some((line, column)), ..body });
        self
    }

    /// The function as plans know it; `compiled` computes it on the host where no closure does.
    ///
    /// # Errors
    /// Names that are none, types that a body does not have.
    pub(crate) fn planned(self, compiled: Compiled) -> Result<UserFunction> {
        let (definition, yields_null) = match &self.body {
            Some(body) => {
                named(&self.name, &self.inputs, ArgumentNames::InBodies)?;
                (Some(Arc::new(self.definition(body)?)), mentions(&body.text, RESULT_IS_NULL))
            }
            None => {
                named(&self.name, &self.inputs, ArgumentNames::InMessages)?;
                (None, true)
            }
        };
        #[cfg(feature = "proto")]
        let written = Arc::new(ScalarFunction { host: None, ..self.clone() });
        let ScalarFunction { name, inputs, output, volatile, called_on_null, host, .. } = self;
        let volatility = if volatile { Volatility::Volatile } else { Volatility::Immutable };
        let signature = match inputs.is_empty() {
            true => Signature::nullary(volatility),
            false => Signature::user_defined(volatility),
        };
        let host = host.map_or(HostWork::Compiled(compiled), HostWork::Closure);
        Ok(UserFunction {
            name,
            inputs,
            output,
            definition,
            called_on_null,
            yields_null,
            signature,
            host,
            #[cfg(feature = "proto")]
            written,
        })
    }

    /// The C++ of the function.
    fn definition(&self, body: &Body) -> Result<Definition> {
        let ScalarFunction { name, inputs, output, called_on_null, .. } = self;
        let result = ctype(output)?;
        if result == "text" {
            let what = format!("function {name} with a value of type {output}");
            return Err(Error::unsupported(what, "bodies yield no strings"));
        }
        let (mut parameters, mut passed, mut values) = (vec![], vec![], vec![]);
        for (name, dtype) in inputs {
            let ctype = ctype(dtype)?;
            parameters.push(format!("{ctype} {name}"));
            passed.push(name.clone());
            values.push(format!("{ctype}{{}}"));
            if *called_on_null {
                parameters.push(format!("bool {name}_is_null"));
                passed.push(format!("{name}_is_null"));
                values.push("false".into());
            }
        }
        let plain = parameters.join(", ");
        let (mut behind, mut call) = (String::new(), SYMBOL.to_string());
        if mentions(&body.text, RESULT_IS_NULL) {
            parameters.push(format!("bool& {RESULT_IS_NULL}"));
            passed.push("is_null".into());
            behind = format!(
                "inline __device__ user_result<{result}> {SYMBOL}_or_null({plain}) {{\n    bool is_null = false;\n    \
                 const {result} value = {SYMBOL}({});\n    return user_result<{result}>{{value, is_null}};\n}}",
                passed.join(", ")
            );
            call = format!("{SYMBOL}_or_null");
        }
        let parameters = format!("({})", parameters.join(", "));
        let frame = FramedBody { before: result, parameters: &parameters, body };
        let calls = format!("{call}({});", values.join(", "));
        Ok(Definition::new(name, "", &[frame], &behind, &calls))
    }
}

/// The name by which a body says that its value is NULL.
pub(super) const RESULT_IS_NULL: &str = "result_is_null";

/// Computes a function on the host, of arrays that all have so many rows.
pub(crate) type Compiled = fn(&UserFunction, &[ArrayRef], usize) -> Result<ArrayRef>;

/// How a function is computed on the host.
#[derive(Clone)]
pub(crate) enum HostWork {
    Closure(HostClosure),
    /// From its body.
    Compiled(Compiled),
}

/// A user's scalar function as DataFusion plans it.
#[derive(Clone)]
pub(crate) struct UserFunction {
    name: String,
    inputs: Vec<(String, DataType)>,
    output: DataType,
    /// `None` where a closure alone computes it.
    definition: Option<Arc<Definition>>,
    called_on_null: bool,
    yields_null: bool,
    signature: Signature,
    host: HostWork,
    #[cfg(feature = "proto")]
    written: Arc<ScalarFunction>,
}

impl UserFunction {
    /// What a function of DataFusion's is, if a user wrote it.
    pub(crate) fn of(function: &ScalarUDF) -> Option<&UserFunction> {
        function.inner().downcast_ref::<UserFunction>()
    }

    pub(crate) fn inputs(&self) -> &[(String, DataType)] {
        &self.inputs
    }

    pub(crate) fn output(&self) -> &DataType {
        &self.output
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// What the user wrote, without the closure.
    #[cfg(feature = "proto")]
    pub(crate) fn written(&self) -> &ScalarFunction {
        &self.written
    }

    /// What the device compiles; `None` where a closure alone computes the function.
    pub(crate) fn definition(&self) -> Option<&Arc<Definition>> {
        self.definition.as_ref()
    }

    fn symbol(&self) -> Option<&str> {
        self.definition.as_ref().map(|definition| definition.symbol())
    }

    pub(crate) fn is_volatile(&self) -> bool {
        self.signature.volatility == Volatility::Volatile
    }

    /// Whether it is called where arguments are null, with a flag behind each argument.
    pub(crate) fn is_called_on_null(&self) -> bool {
        self.called_on_null
    }

    /// Whether its value may be null by its own word: then `symbol_or_null` yields a `user_result`.
    pub(crate) fn yields_null(&self) -> bool {
        self.yields_null
    }

    /// Whether the host needs no compiler for it.
    pub(crate) fn has_closure(&self) -> bool {
        matches!(self.host, HostWork::Closure(_))
    }

    fn on_host(&self, arrays: &[ArrayRef], rows: usize) -> PlanResult<ArrayRef> {
        let UserFunction { name, output, called_on_null, .. } = self;
        match &self.host {
            HostWork::Closure(work) => {
                ClosureCall { name, output, work, called_on_null: *called_on_null }
                    .computed(arrays, rows)
            }
            HostWork::Compiled(work) => Ok(work(self, arrays, rows)?),
        }
    }
}

impl std::fmt::Debug for UserFunction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "UserFunction({} as {})", self.name, self.symbol().unwrap_or("a closure"))
    }
}

impl PartialEq for UserFunction {
    fn eq(&self, other: &Self) -> bool {
        let host = match (&self.host, &other.host) {
            (HostWork::Closure(one), HostWork::Closure(two)) => Arc::ptr_eq(one, two),
            (HostWork::Compiled(_), HostWork::Compiled(_)) => true,
            _ => false,
        };
        // The symbol says what the body is, and its arguments in C++.
        host && self.symbol() == other.symbol()
            && self.name == other.name
            && self.inputs == other.inputs
            && self.output == other.output
            && self.signature == other.signature
    }
}

impl Eq for UserFunction {}

impl Hash for UserFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
        self.symbol().hash(state);
    }
}

impl ScalarUDFImpl for UserFunction {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[DataType]) -> PlanResult<DataType> {
        Ok(self.output.clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> PlanResult<FieldRef> {
        let any_null =
            !self.called_on_null && args.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(&self.name, self.output.clone(), any_null || self.yields_null)))
    }

    fn coerce_types(&self, types: &[DataType]) -> PlanResult<Vec<DataType>> {
        coerced(&self.name, &self.inputs, types)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> PlanResult<ColumnarValue> {
        if args.args.len() != self.inputs.len() {
            return internal_err!("function {} of {} arguments", self.name, args.args.len());
        }
        let constant = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let constant = constant && self.signature.volatility == Volatility::Immutable;
        let rows = if constant { 1 } else { args.number_rows };
        let arrays =
            args.args.iter().map(|arg| arg.to_array(rows)).collect::<PlanResult<Vec<_>>>()?;
        let made = self.on_host(&arrays, rows)?;
        match constant {
            true => Ok(ColumnarValue::Scalar(datafusion::common::ScalarValue::try_from_array(
                &made, 0,
            )?)),
            false => Ok(ColumnarValue::Array(made)),
        }
    }
}

/// Whether values of a type are fewer than those of what a body yields for it; the least and the
/// greatest.
pub(crate) fn least_and_greatest(dtype: &DataType) -> Option<(i128, i128)> {
    use datafusion::arrow::datatypes::TimeUnit;
    const DAY: i128 = 86_400;
    let ticks = |unit: &TimeUnit| match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    };
    match dtype {
        DataType::Decimal128(_, _) => {
            crate::column::decimal_bound(dtype).map(|bound| (-bound, bound))
        }
        DataType::Time32(unit) | DataType::Time64(unit) => Some((0, DAY * ticks(unit) - 1)),
        _ => None,
    }
}
