//! Stages as bytes, for another process: what [`StageCodec`] writes, it reads there.
//!
//! ```text
//!   "WFST"  version: 1 byte   is stock: 1 byte   seed: 8 bytes
//!   inputs: u32, each a role: 1 byte, keys: u32 and as many u32, columns: likewise
//!   fragment: a LogicalPlanNode of datafusion-proto, whose tables are numbers of inputs
//! ```
//!
//! Numbers are little endian. Keys are columns; those of an order have their options behind each.
//! Functions are found by their names: those of stock stages in the session that reads. Those that
//! users wrote travel as text (`user_code/written.rs`), and DataFusion's own are told apart
//! (`defaults.rs`).

mod defaults;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, TableReference};
use datafusion::datasource::{TableType, provider_as_source, source_as_provider};
use datafusion::error::{DataFusionError, Result as PlanResult};
use datafusion::execution::{SessionStateBuilder, TaskContext};
use datafusion::logical_expr::{
    Aggregate, AggregateUDF, Expr, Extension, LogicalPlan, Projection, ScalarUDF, TableScan,
    Window, WindowUDF,
};
use datafusion::physical_plan::ExecutionPlan;
use datafusion_proto::bytes::{
    logical_plan_from_bytes_with_extension_codec, logical_plan_to_bytes_with_extension_codec,
};
use datafusion_proto::logical_plan::LogicalExtensionCodec;
use datafusion_proto::physical_plan::{PhysicalExtensionCodec, PhysicalProtoConverterExtension};

use self::defaults::OF_DATAFUSION;
use super::Plugin;
use crate::error::{Error, ErrorKind, Permission, Result};
use crate::exec::{
    StageContext, StageParts, aggregated_on_host, compiled_on_host, stage_of, stage_parts,
};
use crate::host::named_function;
use crate::io::of_panic;
use crate::plan::{InputRole, TablePlaceholder, one_row_function, placeholder_number};
use crate::session::state_of_executors;
use crate::user_code::{AggregateFunction, ScalarFunction, UserAggregate, UserFunction};

const MAGIC: &[u8; 4] = b"WFST";
/// Of the form above, and of what plans mean.
const VERSION: u8 = 4;
/// Most inputs of a stage, and columns of an input, that are believed.
const MOST: u32 = 1 << 20;

/// Writes and reads stages (`DeviceStageExec`) for datafusion-proto; other operators are another
/// codec's.
///
/// Without a plugin it reads stages that can be looked at, and handed on, but that do not run. By a
/// plugin without a device, DataFusion's own operators run them.
#[derive(Debug, Clone, Default)]
pub struct StageCodec {
    plugin: Option<Plugin>,
}

impl StageCodec {
    /// A codec whose stages run on this device.
    pub fn new(plugin: &Plugin) -> StageCodec {
        StageCodec { plugin: Some(plugin.clone()) }
    }

    /// Whether an operator is a stage, which this codec writes.
    ///
    /// ```
    /// use datafusion::arrow::datatypes::Schema;
    /// use datafusion::physical_plan::empty::EmptyExec;
    /// use warpframe::plugin::StageCodec;
    /// assert!(!StageCodec::writes(&EmptyExec::new(Schema::empty().into())));
    /// ```
    pub fn writes(operator: &dyn ExecutionPlan) -> bool {
        stage_parts(operator).is_some()
    }

    /// Whether bytes are a stage's, which this codec reads. Those of protocol buffers never are.
    ///
    /// ```
    /// assert!(!warpframe::plugin::StageCodec::reads(&[0x0a, 0x02]));
    /// ```
    pub fn reads(bytes: &[u8]) -> bool {
        // `W` is the key of a field of wire type 7, which protocol buffers do not have.
        bytes.starts_with(MAGIC)
    }

    /// The codec of what is in fragments. Who only hands stages on runs no code of theirs.
    fn functions(&self) -> FragmentCodec {
        FragmentCodec { user_code: self.plugin.as_ref().is_none_or(|plugin| plugin.user_code) }
    }

    /// What runs the stages that are read. The functions and settings of stock ones are the task's,
    /// those of others a session's.
    fn context(&self, task: &TaskContext, is_stock: bool) -> Result<Option<StageContext>> {
        let Some(plugin) = &self.plugin else { return Ok(None) };
        let device = plugin.opened.clone();
        if !is_stock {
            let mut config = state_of_executors()?.config().clone();
            let (own, of_task) = (config.options_mut(), task.session_config().options());
            own.execution.time_zone = of_task.execution.time_zone.clone();
            own.execution.batch_size = of_task.execution.batch_size;
            let state = SessionStateBuilder::new_from_existing(state_of_executors()?.clone())
                .with_config(config)
                .with_runtime_env(task.runtime_env())
                .build();
            return Ok(Some(StageContext { device, state: Arc::new(state) }));
        }
        let state = SessionStateBuilder::new_with_default_features()
            .with_config(task.session_config().clone())
            .with_runtime_env(task.runtime_env())
            .with_scalar_functions(task.scalar_functions().values().cloned().collect())
            .with_aggregate_functions(task.aggregate_functions().values().cloned().collect())
            .with_window_functions(task.window_functions().values().cloned().collect())
            .build();
        Ok(Some(StageContext { device, state: Arc::new(state) }))
    }
}

impl PhysicalExtensionCodec for StageCodec {
    fn try_decode(
        &self,
        buf: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        ctx: &TaskContext,
        _: &dyn PhysicalProtoConverterExtension,
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        let codec = self.functions();
        let parts = read("a stage", || decoded(buf, ctx, &codec))?;
        let context = self.context(ctx, parts.is_stock)?;
        Ok(stage_of(parts, inputs.to_vec(), context)?)
    }

    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        buf: &mut Vec<u8>,
        _: &dyn PhysicalProtoConverterExtension,
    ) -> PlanResult<()> {
        match stage_parts(node.as_ref()) {
            Some(parts) => Ok(encoded(&parts, buf)?),
            None => Err(DataFusionError::NotImplemented(format!(
                "{} is no stage of warpframe",
                node.name()
            ))),
        }
    }

    fn try_encode_udf(&self, node: &ScalarUDF, buf: &mut Vec<u8>) -> PlanResult<()> {
        self.functions().try_encode_udf(node, buf)
    }

    fn try_decode_udf(&self, name: &str, buf: &[u8]) -> PlanResult<Arc<ScalarUDF>> {
        read("a function", || Ok(self.functions().try_decode_udf(name, buf)?))
    }

    fn try_encode_udaf(&self, node: &AggregateUDF, buf: &mut Vec<u8>) -> PlanResult<()> {
        self.functions().try_encode_udaf(node, buf)
    }

    fn try_decode_udaf(&self, name: &str, buf: &[u8]) -> PlanResult<Arc<AggregateUDF>> {
        read("a function", || Ok(self.functions().try_decode_udaf(name, buf)?))
    }
}

/// What a reader makes of a message. One that was changed on its way is an error, whatever the
/// reader does.
fn read<T>(what: &str, reader: impl FnOnce() -> Result<T>) -> PlanResult<T> {
    let made = catch_unwind(AssertUnwindSafe(reader));
    Ok(made.unwrap_or_else(|panic| Err(of_panic(what, panic.as_ref())))?)
}

fn encoded(parts: &StageParts, to: &mut Vec<u8>) -> Result<()> {
    to.extend(MAGIC);
    to.extend([VERSION, u8::from(parts.is_stock)]);
    to.extend(parts.seed.to_le_bytes());
    number(parts.inputs.len(), to)?;
    for (role, columns) in &parts.inputs {
        let (kind, keys) = match role {
            InputRole::Part => (0u8, vec![]),
            InputRole::Whole => (1, vec![]),
            InputRole::First => (2, vec![]),
            InputRole::ByKeys(keys) => (3, keys.clone()),
            InputRole::ByCuts(_) => {
                return Err(Error::internal("rows are cut between processes"));
            }
            InputRole::InOrder(order) => {
                let key = |(at, options): &(usize, SortOptions)| {
                    let flags = usize::from(options.descending) << 1;
                    [*at, flags | usize::from(options.nulls_first)]
                };
                (4, order.iter().flat_map(key).collect())
            }
        };
        to.push(kind);
        for list in [&keys, columns] {
            number(list.len(), to)?;
            list.iter().try_for_each(|at| number(*at, to))?;
        }
    }
    let fragment =
        parts.fragment.clone().transform_up(|node| Ok(Transformed::yes(named(node)?)))?;
    let tables = fragment.data.transform_down(|node| match node {
        LogicalPlan::TableScan(scan) => {
            let Some(number) = placeholder_number(&scan.source) else {
                return Err(DataFusionError::Internal("a fragment reads a table".into()));
            };
            let table = NumberedTable { number, schema: scan.source.schema() };
            let source = provider_as_source(Arc::new(table));
            Ok(Transformed::yes(LogicalPlan::TableScan(TableScan { source, ..scan })))
        }
        node => Ok(Transformed::no(node)),
    })?;
    let bytes = logical_plan_to_bytes_with_extension_codec(
        &tables.data,
        &FragmentCodec { user_code: true },
    )?;
    to.extend(bytes.iter());
    Ok(())
}

fn decoded(bytes: &[u8], task: &TaskContext, codec: &FragmentCodec) -> Result<StageParts> {
    let mut rest = bytes;
    if take(&mut rest, MAGIC.len())? != MAGIC {
        return Err(damaged("these bytes are no stage"));
    }
    let [version, is_stock] = take(&mut rest, 2)? else { return Err(damaged("it ends early")) };
    if *version != VERSION {
        return Err(damaged(&format!(
            "it is of version {version}, and this program reads version {VERSION}: all processes of \
             a cluster must run one version of warpframe"
        )));
    }
    let is_stock = *is_stock != 0;
    let seed = take(&mut rest, 8)?.try_into().map_err(|_| damaged("it ends early"))?;
    let seed = u64::from_le_bytes(seed);
    let mut inputs = vec![];
    for _ in 0..count(&mut rest)? {
        let kind = take(&mut rest, 1)?[0];
        let mut lists = [vec![], vec![]];
        for list in &mut lists {
            for _ in 0..count(&mut rest)? {
                list.push(read_number(&mut rest)? as usize);
            }
        }
        let [keys, columns] = lists;
        let role = match kind {
            0 => InputRole::Part,
            1 => InputRole::Whole,
            2 => InputRole::First,
            3 => InputRole::ByKeys(keys),
            4 => InputRole::InOrder(keys.chunks(2).map(order_key).collect::<Result<_>>()?),
            _ => return Err(damaged(&format!("it has an input of kind {kind}"))),
        };
        inputs.push((role, columns));
    }
    let plan = match is_stock {
        true => logical_plan_from_bytes_with_extension_codec(rest, task, codec)?,
        false => {
            let functions = state_of_executors()?.task_ctx();
            logical_plan_from_bytes_with_extension_codec(rest, &functions, codec)?
        }
    };
    let fragment = plan.transform_down(|node| match node {
        LogicalPlan::TableScan(scan) => {
            let provider = source_as_provider(&scan.source)?;
            let any: &dyn std::any::Any = provider.as_ref();
            let Some(table) = any.downcast_ref::<NumberedTable>() else {
                return Err(DataFusionError::Internal("a fragment reads a table".into()));
            };
            let source = TablePlaceholder::source(table.number, table.schema.clone());
            Ok(Transformed::yes(LogicalPlan::TableScan(TableScan { source, ..scan })))
        }
        node => Ok(Transformed::no(node)),
    })?;
    Ok(StageParts { fragment: fragment.data, inputs, is_stock, seed })
}

/// A column that rows are ordered by, and its options as two bits.
fn order_key(key: &[usize]) -> Result<(usize, SortOptions)> {
    match *key {
        [at, flags @ 0..4] => {
            let options = SortOptions { descending: flags & 2 != 0, nulls_first: flags & 1 != 0 };
            Ok((at, options))
        }
        _ => Err(damaged("an order of its input has no such options")),
    }
}

/// An operator whose expressions have the names of its columns: who reads it makes these of those.
fn named(node: LogicalPlan) -> PlanResult<LogicalPlan> {
    let with_names = |exprs: Vec<Expr>, schema: &DFSchema, first: usize| {
        let name = |(at, expr): (usize, Expr)| {
            let (relation, field) = schema.qualified_field(first + at);
            match expr.qualified_name() == (relation.cloned(), field.name().clone()) {
                true => expr,
                false => expr.unalias().alias_qualified(relation.cloned(), field.name()),
            }
        };
        exprs.into_iter().enumerate().map(name).collect::<Vec<_>>()
    };
    Ok(match node {
        LogicalPlan::Projection(project) => {
            let exprs = with_names(project.expr, &project.schema, 0);
            LogicalPlan::Projection(Projection::try_new(exprs, project.input)?)
        }
        LogicalPlan::Aggregate(aggregate) => {
            let Aggregate { input, group_expr, aggr_expr, schema, .. } = aggregate;
            let keys = schema.fields().len() - aggr_expr.len();
            let group_expr = match group_expr.as_slice() {
                [Expr::GroupingSet(_)] => group_expr,
                _ => with_names(group_expr, &schema, 0),
            };
            let aggr_expr = with_names(aggr_expr, &schema, keys);
            LogicalPlan::Aggregate(Aggregate::try_new(input, group_expr, aggr_expr)?)
        }
        LogicalPlan::Window(window) => {
            let first = window.schema.fields().len() - window.window_expr.len();
            let exprs = with_names(window.window_expr, &window.schema, first);
            LogicalPlan::Window(Window::try_new(exprs, window.input)?)
        }
        node => node,
    })
}

fn number(number: usize, to: &mut Vec<u8>) -> Result<()> {
    let number = u32::try_from(number).ok().filter(|number| *number < MOST);
    let number = number.ok_or_else(|| Error::unsupported("a stage", "it has too many columns"))?;
    to.extend(number.to_le_bytes());
    Ok(())
}

fn take<'a>(rest: &mut &'a [u8], bytes: usize) -> Result<&'a [u8]> {
    let (first, others) = rest.split_at_checked(bytes).ok_or_else(|| damaged("it ends early"))?;
    *rest = others;
    Ok(first)
}

fn read_number(rest: &mut &[u8]) -> Result<u32> {
    let bytes = take(rest, 4)?.try_into().map_err(|_| damaged("it ends early"))?;
    Ok(u32::from_le_bytes(bytes))
}

fn count(rest: &mut &[u8]) -> Result<u32> {
    match read_number(rest)? {
        count if count < MOST => Ok(count),
        count => Err(damaged(&format!("it claims {count} columns"))),
    }
}

fn damaged(what: &str) -> Error {
    ErrorKind::Plan { message: format!("a stage cannot be read: {what}"), location: None }.into()
}

/// Placeholders of fragments by their numbers, functions that only plans have, and those that users
/// wrote.
#[derive(Debug)]
struct FragmentCodec {
    /// Whether functions may be read that users wrote.
    user_code: bool,
}

impl FragmentCodec {
    /// The bytes of a function that a user wrote, which may not be wanted here.
    fn allowed<'a>(&self, name: &str, bytes: &'a [u8]) -> Result<&'a [u8]> {
        if self.user_code {
            return Ok(bytes);
        }
        let what = format!("function {name} of a plan");
        Err(ErrorKind::Forbidden { what, needs: Permission::UserCode }.into())
    }
}

impl LogicalExtensionCodec for FragmentCodec {
    fn try_decode(&self, _: &[u8], _: &[LogicalPlan], _: &TaskContext) -> PlanResult<Extension> {
        Err(DataFusionError::NotImplemented("an extension in a fragment".into()))
    }

    fn try_encode(&self, _: &Extension, _: &mut Vec<u8>) -> PlanResult<()> {
        Err(DataFusionError::NotImplemented("an extension in a fragment".into()))
    }

    fn try_decode_table_provider(
        &self,
        buf: &[u8],
        _: &TableReference,
        schema: SchemaRef,
        _: &TaskContext,
    ) -> PlanResult<Arc<dyn TableProvider>> {
        let number = read_number(&mut &*buf)? as usize;
        Ok(Arc::new(NumberedTable { number, schema }))
    }

    fn try_encode_table_provider(
        &self,
        _: &TableReference,
        node: Arc<dyn TableProvider>,
        buf: &mut Vec<u8>,
    ) -> PlanResult<()> {
        let any: &dyn std::any::Any = node.as_ref();
        match any.downcast_ref::<NumberedTable>() {
            Some(table) => Ok(number(table.number, buf)?),
            None => Err(DataFusionError::Internal("a fragment reads a table".into())),
        }
    }

    fn try_encode_udf(&self, node: &ScalarUDF, buf: &mut Vec<u8>) -> PlanResult<()> {
        if let Some(function) = UserFunction::of(node) {
            buf.extend(function.written().to_bytes()?);
        } else if defaults::scalar(node.name()).is_some_and(|of| of.as_ref() == node) {
            buf.extend(OF_DATAFUSION);
        }
        Ok(())
    }

    fn try_encode_udaf(&self, node: &AggregateUDF, buf: &mut Vec<u8>) -> PlanResult<()> {
        if let Some(function) = UserAggregate::of(node) {
            buf.extend(function.written().to_bytes()?);
        } else if defaults::aggregate(node.name()).is_some_and(|of| of.as_ref() == node) {
            buf.extend(OF_DATAFUSION);
        }
        Ok(())
    }

    fn try_encode_udwf(&self, node: &WindowUDF, buf: &mut Vec<u8>) -> PlanResult<()> {
        if defaults::window(node.name()).is_some_and(|of| of.as_ref() == node) {
            buf.extend(OF_DATAFUSION);
        }
        Ok(())
    }

    fn try_decode_udwf(&self, name: &str, buf: &[u8]) -> PlanResult<Arc<WindowUDF>> {
        let own = defaults::window(name).filter(|_| buf == OF_DATAFUSION);
        own.ok_or_else(|| unknown(name))
    }

    fn try_decode_udaf(&self, name: &str, buf: &[u8]) -> PlanResult<Arc<AggregateUDF>> {
        if buf.is_empty() {
            return Err(unknown(name));
        }
        if buf == OF_DATAFUSION {
            return defaults::aggregate(name).ok_or_else(|| unknown(name));
        }
        let function = AggregateFunction::of_bytes(self.allowed(name, buf)?)?;
        Ok(Arc::new(function.planned(aggregated_on_host)?.into()))
    }

    fn try_decode_udf(&self, name: &str, buf: &[u8]) -> PlanResult<Arc<ScalarUDF>> {
        if buf == OF_DATAFUSION {
            return defaults::scalar(name).ok_or_else(|| unknown(name));
        }
        if !buf.is_empty() {
            let function = ScalarFunction::of_bytes(self.allowed(name, buf)?)?;
            return Ok(Arc::new(function.planned(compiled_on_host)?.into()));
        }
        let ours = named_function(name).or_else(|| one_row_function(name));
        ours.ok_or_else(|| unknown(name))
    }
}

fn unknown(name: &str) -> DataFusionError {
    DataFusionError::Plan(format!("function {name} is not known in this process"))
}

/// A placeholder, as datafusion-proto takes one: it has no rows.
#[derive(Debug)]
struct NumberedTable {
    number: usize,
    schema: SchemaRef,
}

#[async_trait]
impl TableProvider for NumberedTable {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    async fn scan(
        &self,
        _: &dyn Session,
        _: Option<&Vec<usize>>,
        _: &[Expr],
        _: Option<usize>,
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        Err(DataFusionError::Internal("a placeholder has no rows".into()))
    }
}
