//! Functions that users write: registering them, and the statements that do.

mod statement;

use std::sync::Arc;

use datafusion::logical_expr::{AggregateUDF, Expr as PlanExpr, ScalarUDF};

use self::statement::{Create, Created};
use super::Session;
use crate::error::{Error, ErrorKind, Permission, Result};
use crate::exec::{aggregated_on_host, checked, compiled_on_host};
use crate::frame::Expr;
use crate::sql::Text;
use crate::user_code::{AggregateFunction, ScalarFunction, UserAggregate, UserFunction};

impl Session {
    /// Makes a user's function one of the session's, in SQL and by [`Session::call`]; another one
    /// that a user registered by this name is replaced. The device's compiler looks at its body at
    /// once.
    ///
    /// # Errors
    /// [`ErrorKind::UserCode`] with the lines of the body that do not compile; a name of a function
    /// that is no user's, types that bodies do not have.
    ///
    /// ```
    /// use warpframe::prelude::*;
    /// use warpframe::{ErrorKind, ScalarFunction};
    /// let session = Session::builder().device(DeviceChoice::Sim).build()?;
    /// let of = |body: &str| ScalarFunction::new("twice", [("n", DataType::Int64)], DataType::Int64, body);
    /// session.register_function(of("return 2 * n;"))?;
    /// assert_eq!(session.sql("SELECT twice(21) AS n")?.collect()?.column("n")?.to_vec::<i64>()?, [42]);
    /// let error = session.register_function(of("return 2 * m;")).unwrap_err();
    /// assert!(matches!(error.kind(), ErrorKind::UserCode { line: 1, column: 12, .. }), "{error}");
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn register_function(&self, function: ScalarFunction) -> Result<()> {
        self.core.as_statement(|| {
            let function = function.planned(compiled_on_host)?;
            self.refuse_built_in(function.name())?;
            if let Some(definition) = function.definition() {
                checked(self.core.device(), definition, function.has_closure())?;
            }
            self.core.context.deregister_udaf(function.name());
            self.core.context.register_udf(ScalarUDF::from(function));
            // Plans may have the function that was there.
            self.core.plans.forget();
            Ok(())
        })
    }

    /// Makes a user's aggregate one of the session's, as [`Session::register_function`] does with
    /// scalar functions: with groups and without, and over windows.
    ///
    /// # Errors
    /// As [`Session::register_function`]; a state or a body that is missing.
    ///
    /// ```
    /// use warpframe::prelude::*;
    /// use warpframe::AggregateFunction;
    /// let session = Session::builder().device(DeviceChoice::Sim).build()?;
    /// let int = DataType::Int64;
    /// let product = AggregateFunction::new("product", [("n", int.clone())], int.clone())
    ///     .state([("n", int)])
    ///     .identity("s.n = 1;")
    ///     .map("s.n = n;")
    ///     .combine("a.n *= b.n;")
    ///     .finish("return s.n;");
    /// session.register_aggregate(product)?;
    /// let made = session.sql("SELECT product(generate_series) AS n FROM generate_series(1, 5)")?.collect()?;
    /// assert_eq!(made.column("n")?.to_vec::<i64>()?, [120]);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn register_aggregate(&self, function: AggregateFunction) -> Result<()> {
        self.core.as_statement(|| {
            let function = function.planned(aggregated_on_host)?;
            self.refuse_built_in(function.definition().name())?;
            checked(self.core.device(), function.definition(), false)?;
            self.core.context.deregister_udf(function.definition().name());
            self.core.context.register_udaf(AggregateUDF::from(function));
            self.core.plans.forget();
            Ok(())
        })
    }

    /// A call of a function that a user registered, for the verbs of frames.
    ///
    /// # Errors
    /// A name of no such function.
    ///
    /// ```
    /// use warpframe::prelude::*;
    /// use warpframe::ScalarFunction;
    /// let session = Session::builder().device(DeviceChoice::Sim).build()?;
    /// let inputs = [("n", DataType::Int64)];
    /// session.register_function(ScalarFunction::new("next", inputs, DataType::Int64, "return n + 1;"))?;
    /// let frame = frame!(session; "n" => [1i64, 2])?;
    /// let made = frame.with_columns([session.call("next", [col("n") * lit(10)])?.alias("m")])?;
    /// assert_eq!(made.column("m")?.to_vec::<i64>()?, [11, 21]);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn call(
        &self,
        name: &str,
        arguments: impl IntoIterator<Item = impl Into<Expr>>,
    ) -> Result<Expr> {
        let arguments =
            arguments.into_iter().map(|argument| PlanExpr::from(argument.into())).collect();
        let state = self.core.state();
        let scalar = state
            .scalar_functions()
            .get(name)
            .filter(|function| UserFunction::of(function).is_some());
        let of_user = |function: &&Arc<AggregateUDF>| UserAggregate::of(function).is_some();
        match (scalar, state.aggregate_functions().get(name).filter(of_user)) {
            (Some(function), _) => Ok(function.call(arguments).into()),
            (None, Some(function)) => Ok(function.call(arguments).into()),
            (None, None) => Err(self.no_function(name)),
        }
    }

    fn no_function(&self, name: &str) -> Error {
        let known = self.function_names().join(", ");
        let known =
            if known.is_empty() { "there are none".into() } else { format!("known: {known}") };
        let message = format!("no function of a user's named {name:?}; {known}");
        ErrorKind::Plan { message, location: None }.into()
    }

    /// Forgets a function that a user registered. Frames that call it already keep it.
    ///
    /// # Errors
    /// A name of no such function.
    ///
    /// ```
    /// use warpframe::prelude::*;
    /// use warpframe::ScalarFunction;
    /// let session = Session::builder().device(DeviceChoice::Sim).build()?;
    /// let inputs = [("n", DataType::Int64)];
    /// session.register_function(ScalarFunction::new("next", inputs, DataType::Int64, "return n + 1;"))?;
    /// session.deregister_function("next")?;
    /// assert!(session.sql("SELECT next(1)").is_err() && session.deregister_function("next").is_err());
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn deregister_function(&self, name: &str) -> Result<()> {
        self.databases.dropped_function(name);
        if !self.function_names().iter().any(|known| known == name) {
            return Err(self.no_function(name));
        }
        self.core.context.deregister_udf(name);
        self.core.context.deregister_udaf(name);
        self.core.plans.forget();
        Ok(())
    }

    /// The names of the functions that users registered, sorted.
    ///
    /// ```
    /// # use warpframe::{DeviceChoice, Session};
    /// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// assert!(session.function_names().is_empty());
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn function_names(&self) -> Vec<String> {
        let state = self.core.state();
        let of_user = |function: &&Arc<ScalarUDF>| UserFunction::of(function).is_some();
        let scalar =
            state.scalar_functions().values().filter(of_user).map(|function| function.name());
        let of_user = |function: &&Arc<AggregateUDF>| UserAggregate::of(function).is_some();
        let aggregates =
            state.aggregate_functions().values().filter(of_user).map(|function| function.name());
        let mut names: Vec<String> = scalar.chain(aggregates).map(String::from).collect();
        names.sort();
        names
    }

    /// Runs a `CREATE [OR REPLACE] FUNCTION [IF NOT EXISTS] name(argument type, …) RETURNS type
    /// [IMMUTABLE | VOLATILE] [STRICT | CALLED ON NULL INPUT] LANGUAGE CUDA AS $$ body $$`, as
    /// [`Session::register_function`] does, or a `CREATE AGGREGATE` (`docs/user-code.md`); the
    /// function's name.
    ///
    /// # Errors
    /// [`ErrorKind::Forbidden`] unless the session was made with
    /// [`SessionBuilder::user_code`](crate::SessionBuilder::user_code): a body is code that runs on
    /// this machine. Another statement, a name that is taken; those of
    /// [`Session::register_function`], in the lines of the statement.
    pub(super) fn create_function(&self, statement: &Text<'_>) -> Result<String> {
        if !self.user_code {
            let what = "CREATE FUNCTION".into();
            return Err(ErrorKind::Forbidden { what, needs: Permission::UserCode }.into());
        }
        // A body can open files, and an include in it shows their lines.
        self.files.allow("CREATE FUNCTION")?;
        let Create { function, name, place, or_replace, if_not_exists } =
            Create::of(&self.core.state(), statement)?;
        if !or_replace && self.function_names().contains(&name) {
            let message =
                format!("there is a function named {name:?}; CREATE OR REPLACE replaces it");
            return if if_not_exists {
                Ok(name)
            } else {
                Err(Error::from(ErrorKind::Plan { message, location: None }).at(place))
            };
        }
        let registered = match function {
            Created::Scalar(function) => self.register_function(function),
            Created::Aggregate(function) => self.register_aggregate(function),
        };
        registered.map_err(|error| error.at(place))?;
        self.databases.made_function(&name, statement.as_str());
        Ok(name)
    }

    fn refuse_built_in(&self, name: &str) -> Result<()> {
        let state = self.core.state();
        let of_user = |function: &Arc<ScalarUDF>| UserFunction::of(function).is_some();
        let taken = state.scalar_functions().get(name).is_some_and(|function| !of_user(function))
            || state
                .aggregate_functions()
                .get(name)
                .is_some_and(|function| UserAggregate::of(function).is_none())
            || state.window_functions().contains_key(name)
            || state.higher_order_functions().contains_key(name);
        if !taken {
            return Ok(());
        }
        let message =
            format!("{name:?} is a function of the engine's, which users' do not replace");
        Err(ErrorKind::Plan { message, location: None }.into())
    }
}
