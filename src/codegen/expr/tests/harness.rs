//! Runs expressions as one kernel and DataFusion's account of each beside it, row by row.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::array::*;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float32Type, Float64Type};
use datafusion::common::{Column, DFSchema};
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{Expr, ExprSchemable};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::physical_expr::create_physical_expr;
use datafusion::prelude::SessionContext;

use super::columns::{ROWS, batch, device_bytes};
use crate::codegen::emit::Emitter;
use crate::codegen::expr::compile;
use crate::codegen::value::{DictionaryInput, Inputs, Value, widen};
use crate::column::{Dictionary, Repr};
use crate::error::Result;
use crate::host::host_expr;
use warpframe_device::{Argument, Buffer, Device, Grid, KernelSource};

/// Bytes of a string that the kernel copies out.
const TEXT: usize = 496;

/// Bytes for characters of strings that kernels make.
const ARENA: usize = 1 << 20;

/// What the kernel reads: addresses of columns and constants, and parameters.
pub(super) struct Context {
    device: Device,
    pub(super) batch: RecordBatch,
    pub(super) schema: DFSchema,
    session: SessionContext,
    addresses: Vec<u64>,
    keep: Vec<Buffer>,
    parameters: Vec<u64>,
    columns: HashMap<String, ColumnSource>,
    /// Loaded in the expression being compiled.
    loaded: HashMap<String, Value>,
}

#[derive(Clone)]
struct ColumnSource {
    data: usize,
    validity: Option<usize>,
    dictionary: Option<(usize, Arc<Dictionary>)>,
    dtype: DataType,
    range: Option<(i128, i128)>,
    magnitude: Option<f64>,
    longest: Option<u32>,
}

/// What the device is compared with.
fn session() -> SessionContext {
    let session = SessionContext::new();
    for function in crate::codegen::host_functions() {
        session.register_udf(function.as_ref().clone());
    }
    session
}

impl Context {
    pub(super) fn new(device: Device) -> Self {
        let batch = batch();
        let schema = DFSchema::try_from(batch.schema()).expect("a schema of distinct names");
        let mut context = Context {
            device,
            batch: batch.clone(),
            schema,
            session: session(),
            addresses: Vec::new(),
            keep: Vec::new(),
            parameters: Vec::new(),
            columns: HashMap::new(),
            loaded: HashMap::new(),
        };
        for (field, array) in batch.schema().fields().iter().zip(batch.columns()) {
            let source = context.source(field.name(), array);
            context.columns.insert(field.name().clone(), source);
        }
        context
    }

    fn upload(&mut self, bytes: &[u8]) -> usize {
        let buffer = self.device.upload("test", bytes).expect("memory");
        self.addresses.push(buffer.address());
        self.keep.push(buffer);
        self.addresses.len() - 1
    }

    /// Views of strings, whose characters are uploaded too; garbage for nulls.
    fn views(&mut self, strings: &StringViewArray) -> Vec<u8> {
        let all: Vec<u8> = strings.iter().flatten().flat_map(|s| s.bytes()).collect();
        let characters = self.upload(&all);
        let (base, mut begin) = (self.addresses[characters], 0u64);
        let mut views = Vec::new();
        for text in strings.iter() {
            let Some(text) = text else {
                views.extend([0xa5; 16]);
                continue;
            };
            views.extend(view(text, base + begin));
            begin += text.len() as u64;
        }
        views
    }

    fn source(&mut self, name: &str, array: &ArrayRef) -> ColumnSource {
        let validity = array.nulls().map(|nulls| nulls.iter().map(u8::from).collect::<Vec<u8>>());
        let validity = validity.map(|bytes| self.upload(&bytes));
        let mut source = ColumnSource {
            data: 0,
            validity,
            dictionary: None,
            dtype: array.data_type().clone(),
            range: None,
            magnitude: None,
            longest: None,
        };
        if let Some(strings) = array.as_string_view_opt() {
            source.longest = strings.iter().flatten().map(|s| s.len() as u32).max();
            if !name.starts_with('d') {
                let views = self.views(strings);
                source.data = self.upload(&views);
                return source;
            }
            let mut entries: Vec<String> = strings.iter().flatten().map(String::from).collect();
            if name == "dlong" {
                entries.extend((0..100).map(|i| format!("entry {i}")));
            }
            entries.sort();
            entries.dedup();
            let code =
                |text: &str| entries.iter().position(|e| e == text).expect("an entry") as u32;
            let codes: Vec<u8> =
                strings.iter().flat_map(|s| s.map_or(0xa5a5_a5a5, code).to_le_bytes()).collect();
            source.data = self.upload(&codes);
            let values = StringViewArray::from_iter_values(&entries);
            let views = self.views(&values);
            let views = self.upload(&views);
            let buffer = Arc::new(self.device.upload("test", &[0]).expect("memory"));
            let dictionary =
                Dictionary { values: Arc::new(values), views: buffer, characters: Arc::new([]) };
            source.dictionary = Some((views, Arc::new(dictionary)));
            return source;
        }
        if name.starts_with('r') {
            source.range = bounds(array);
            source.magnitude = cast(array, &DataType::Float64)
                .ok()
                .filter(|_| array.data_type() == &DataType::Float64)
                .map(|a| {
                    a.as_primitive::<datafusion::arrow::datatypes::Float64Type>()
                        .iter()
                        .flatten()
                        .fold(0.0, |m: f64, v| m.max(v.abs()))
                });
        }
        source.data = self.upload(&device_bytes(array));
        source
    }

    /// The expression that the optimizer would leave.
    pub(super) fn parse(&self, sql: &str) -> Expr {
        let state = self.session.state();
        let expr =
            state.create_logical_expr(sql, &self.schema).unwrap_or_else(|e| panic!("{sql}: {e}"));
        let info = SimplifyContext::builder().with_schema(Arc::new(self.schema.clone())).build();
        let simplifier = ExprSimplifier::new(info);
        let expr = simplifier.coerce(expr, &self.schema).unwrap_or_else(|e| panic!("{sql}: {e}"));
        let expr = simplifier.simplify(expr).unwrap_or_else(|e| panic!("{sql}: {e}"));
        expr.unalias_nested().data
    }

    /// DataFusion's result for each row, as the CPU engine is made to compute it: an array of one
    /// row, or an error.
    fn expected(&self, expr: &Expr) -> Vec<Option<ArrayRef>> {
        let state = self.session.state();
        let expr = host_expr(expr.clone(), &self.schema).unwrap_or_else(|e| panic!("{expr}: {e}"));
        let physical = create_physical_expr(
            &expr,
            &self.schema,
            state.execution_props(),
            &PhysicalPlanningContext::default(),
        )
        .unwrap_or_else(|e| panic!("{expr}: {e}"));
        let columns = self.batch.columns().iter().map(with_one_nan).collect();
        let batch = RecordBatch::try_new(self.batch.schema(), columns).expect("the same columns");
        (0..ROWS)
            .map(|row| physical.evaluate(&batch.slice(row, 1)).and_then(|v| v.into_array(1)).ok())
            .collect()
    }

    /// The value of an expression, and its statements with parameters by position among its own.
    pub(super) fn statements(&mut self, expr: &Expr) -> (Value, String) {
        self.loaded.clear();
        self.parameters.clear();
        let mut out = Emitter::new("v");
        let schema = self.schema.clone();
        let value =
            compile(expr, &schema, self, &mut out).unwrap_or_else(|e| panic!("{expr}: {e}"));
        let statements = format!("{}{}", out.take().text(), value.code);
        (value, statements)
    }

    /// The kernel that computes all of `exprs`.
    pub(super) fn kernel(&mut self, name: &str, exprs: &[Expr]) -> KernelSource {
        let mut body = String::new();
        let mut offset = 0;
        for (index, expr) in exprs.iter().enumerate() {
            self.loaded.clear();
            let mut out = Emitter::new("v");
            let schema = self.schema.clone();
            let value =
                compile(expr, &schema, self, &mut out).unwrap_or_else(|e| panic!("{expr}: {e}"));
            let expected = expr.get_type(&self.schema).expect("a type");
            assert_eq!(value.dtype, expected, "{expr}");
            let statements = out.take();
            let statements = statements.text();
            let repr = Repr::of(&expected).expect("a representation");
            let valid = value.validity().to_string();
            let store = match repr {
                Repr::View => {
                    format!(
                        "store_text(p.out + {offset} + row * {}, masked({}, {valid}));",
                        TEXT + 16,
                        value.code
                    )
                }
                other => {
                    format!(
                        "*({}*)(p.out + {offset} + row * 16) = {};",
                        other.device_type(),
                        widen(&value, other)
                    )
                }
            };
            // Bounds are a promise: what breaks it is reported like a failure.
            let check = match (&value.range, repr.is_integer()) {
                (Some(_), true) => {
                    let (low, high) = value.bounds();
                    let (low, high) = (
                        super::super::literal::baked_i128(low),
                        super::super::literal::baked_i128(high),
                    );
                    format!(
                        "if (({valid}) && *status == 0 && ((i128){0} < {low} || (i128){0} > {high})) *status = 1024;",
                        value.code
                    )
                }
                _ => String::new(),
            };
            body += &format!(
                "{{ // {expr}\nu32* status = p.status + {index} * {ROWS} + row;\n\
                 u8* const report = nullptr;\n\
                 const text_arena arena{{p.bytes, {ARENA}, p.used, status}};\nconst u64 secret = 7;\n{statements}{store}\n\
                 p.valid[{index} * {ROWS} + row] = {valid};\n{check}\n}}\n",
                expr = expr.to_string().replace(['\n', '\\'], " "),
            );
            offset += ROWS * if repr == Repr::View { TEXT + 16 } else { 16 };
        }
        let text = format!(
            r#"#include "arith.cuh"
#include "keys.cuh"
#include "decimal.cuh"
#include "text.cuh"
#include "time.cuh"
#include "format.cuh"
#include "parse_time.cuh"
#include "math.cuh"
#include "random.cuh"
#include "interval.cuh"
#include "words.cuh"
#include "zone.cuh"
#include "automaton.cuh"
namespace wf {{
struct Params {{ const u64* a; const u64* k; u8* out; bool8* valid; u32* status; i64 rows; u8* bytes; u64* used; }};
WF_DEVICE void store_text(u8* out, const view& text) {{
    memcpy(out, &text.length, 4);
    for (u32 i = 0; i < text.length && i < {TEXT}; i++) out[4 + i] = byte_at(text, i);
}}
WF_KERNEL({name}, Params) {{
for (i64 row = global_thread(); row < p.rows; row += global_threads()) {{
{body}}}
}}
}}
"#
        );
        KernelSource::new(name, text)
    }

    /// Computes all expressions on the device and panics with what differs from DataFusion.
    pub(super) fn check(&mut self, name: &str, exprs: &[Expr]) {
        let source = self.kernel(name, exprs);
        let device = self.device.clone();
        let kernel =
            device.kernel(&source, name).unwrap_or_else(|e| panic!("{e}\n{}", source.text));
        let words = |words: &[u64]| words.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<u8>>();
        let addresses = device.upload("test", &words(&self.addresses)).expect("memory");
        let parameters = device.upload("test", &words(&self.parameters)).expect("memory");
        let cells = exprs.len() * ROWS;
        let out = device.alloc_zeroed("test", cells * (TEXT + 16)).expect("memory");
        let valid = device.alloc_zeroed("test", cells).expect("memory");
        let status = device.alloc_zeroed("test", cells * 4).expect("memory");
        let (bytes, used) = (device.alloc("test", ARENA), device.alloc_zeroed("test", 8));
        let (bytes, used) = (bytes.expect("memory"), used.expect("memory"));
        let arguments: [Argument; 8] = [
            (&addresses).into(),
            (&parameters).into(),
            (&out).into(),
            (&valid).into(),
            (&status).into(),
            (ROWS as u64).into(),
            (&bytes).into(),
            (&used).into(),
        ];
        // SAFETY: the arguments match `Params`; `out` has TEXT + 16 bytes a row and expression,
        // `valid` one, `status` four, `bytes` what the kernel is told; addresses are of buffers
        // that `self` keeps.
        unsafe { device.launch(&kernel, Grid { blocks: 1, threads: 64, shared: 0 }, &arguments) }
            .expect("launch");
        let read = |buffer: &Buffer| {
            let mut bytes = vec![0; buffer.len()];
            buffer.read(0, &mut bytes).expect("read");
            bytes
        };
        let (out, valid, status) = (read(&out), read(&valid), read(&status));
        let (mut offset, mut wrong) = (0, Vec::new());
        for (index, expr) in exprs.iter().enumerate() {
            let dtype = expr.get_type(&self.schema).expect("a type");
            let repr = Repr::of(&dtype).expect("a representation");
            let stride = if repr == Repr::View { TEXT + 16 } else { 16 };
            for (row, expected) in self.expected(expr).into_iter().enumerate() {
                let cell = index * ROWS + row;
                let failure =
                    u32::from_le_bytes(status[cell * 4..cell * 4 + 4].try_into().expect("4 bytes"));
                let at = offset + row * stride;
                let found = match (failure, valid[cell]) {
                    (0, 0) => Evaluated::Null,
                    (0, _) => Evaluated::Value(out[at..at + stride].to_vec()),
                    (bits, _) => Evaluated::Failure(bits),
                };
                if !agrees(&found, expected.as_ref(), repr) {
                    let inputs: Vec<String> = expr
                        .column_refs()
                        .iter()
                        .map(|c| {
                            format!(
                                "{c} = {:?}",
                                self.batch.column_by_name(&c.name).map(|a| a.slice(row, 1))
                            )
                        })
                        .collect();
                    wrong.push(format!(
                        "{expr} row {row}: {found:?}, expected {expected:?}, {}",
                        inputs.join(", ")
                    ));
                    if wrong.iter().filter(|w| w.starts_with(&expr.to_string())).count() >= 2 {
                        break;
                    }
                }
            }
            offset += ROWS * stride;
        }
        assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
    }
}

#[derive(Debug)]
enum Evaluated {
    Null,
    Value(Vec<u8>),
    Failure(u32),
}

fn agrees(found: &Evaluated, expected: Option<&ArrayRef>, repr: Repr) -> bool {
    let Some(expected) = expected else {
        return matches!(found, Evaluated::Failure(bits) if *bits < 1024);
    };
    match found {
        Evaluated::Failure(_) => false,
        Evaluated::Null => expected.is_null(0),
        Evaluated::Value(_) if expected.is_null(0) => false,
        Evaluated::Value(bytes) if repr == Repr::View => {
            let text = cast(expected, &DataType::Utf8View).expect("a string");
            let text = text.as_string_view().value(0).as_bytes().to_vec();
            bytes[..4] == (text.len() as u32).to_le_bytes()
                && bytes[4..].iter().zip(&text).all(|(a, b)| a == b)
        }
        Evaluated::Value(bytes) => {
            let wanted = device_bytes(expected);
            match repr {
                Repr::F64 => {
                    let (a, b) = (
                        f64::from_le_bytes(bytes[..8].try_into().expect("8")),
                        f64::from_le_bytes(wanted[..8].try_into().expect("8")),
                    );
                    a.to_bits() == b.to_bits()
                        || a.is_nan() && b.is_nan()
                        || a != b && (a - b).abs() <= 4.0 * f64::EPSILON * b.abs()
                }
                Repr::F32 => {
                    let (a, b) = (
                        f32::from_le_bytes(bytes[..4].try_into().expect("4")),
                        f32::from_le_bytes(wanted[..4].try_into().expect("4")),
                    );
                    a.to_bits() == b.to_bits()
                        || a.is_nan() && b.is_nan()
                        || a != b && (a - b).abs() <= 4.0 * f32::EPSILON * b.abs()
                }
                _ => bytes[..wanted.len()] == wanted,
            }
        }
    }
}

/// A column as it leaves a scan of the CPU engine.
fn with_one_nan(column: &ArrayRef) -> ArrayRef {
    match column.data_type() {
        DataType::Float64 => {
            let floats = column.as_primitive::<Float64Type>();
            Arc::new(floats.unary::<_, Float64Type>(|x| if x.is_nan() { f64::NAN } else { x }))
        }
        DataType::Float32 => {
            let floats = column.as_primitive::<Float32Type>();
            Arc::new(floats.unary::<_, Float32Type>(|x| if x.is_nan() { f32::NAN } else { x }))
        }
        _ => column.clone(),
    }
}

/// Least and greatest of integer-like values.
fn bounds(array: &ArrayRef) -> Option<(i128, i128)> {
    let width = device_bytes(array).len() / ROWS;
    if matches!(array.data_type(), DataType::Float32 | DataType::Float64 | DataType::Boolean) {
        return None;
    }
    let valid = |row: usize| array.is_valid(row);
    let values: Vec<i128> = device_bytes(array)
        .chunks_exact(width)
        .enumerate()
        .filter(|(row, _)| valid(*row))
        .map(|(_, bytes)| {
            let signed = bytes.last().is_some_and(|b| b & 0x80 != 0);
            let mut all = [if signed { 0xff } else { 0 }; 16];
            all[..width].copy_from_slice(bytes);
            i128::from_le_bytes(all)
        })
        .collect();
    Some((*values.iter().min()?, *values.iter().max()?))
}

/// A view of a text whose characters lie at `address`.
fn view(text: &str, address: u64) -> [u8; 16] {
    view_of_bytes(text.as_bytes(), address)
}

fn view_of_bytes(text: &[u8], address: u64) -> [u8; 16] {
    let mut view = [0; 16];
    view[..4].copy_from_slice(&(text.len() as u32).to_le_bytes());
    if text.len() <= 12 {
        view[4..4 + text.len()].copy_from_slice(text);
    } else {
        view[4..8].copy_from_slice(&text[..4]);
        view[8..].copy_from_slice(&address.to_le_bytes());
    }
    view
}

impl Inputs for Context {
    fn list(&mut self, _list: &ArrayRef) -> String {
        unreachable!("lists are tested by whole queries")
    }

    fn column(&mut self, column: &Column, out: &mut Emitter) -> Result<Value> {
        if let Some(value) = self.loaded.get(&column.name) {
            return Ok(value.clone());
        }
        let source = self.columns.get(&column.name).cloned().expect("a column of the batch");
        let repr = Repr::of(&source.dtype).expect("a representation");
        let valid = source
            .validity
            .map(|at| out.let_("bool", format_args!("((const bool8*)p.a[{at}])[row] != 0")));
        let load = |ctype: &str| format!("((const {ctype}*)p.a[{}])[row]", source.data);
        let mut value = match &source.dictionary {
            None => {
                let code = out.let_(repr.device_type(), load(repr.device_type()));
                Value::new(source.dtype.clone(), repr, code, valid)
            }
            Some((views, dictionary)) => {
                let code = out.let_("u32", load("u32"));
                let index = match &valid {
                    Some(valid) => format!("({valid} ? {code} : 0u)"),
                    None => code.clone(),
                };
                let view = format!("((const view*)p.a[{views}])[{index}]");
                let mut value = Value::new(source.dtype.clone(), repr, view, valid);
                value.dictionary = Some(DictionaryInput { code, dictionary: dictionary.clone() });
                value
            }
        };
        value.range = source.range;
        value.magnitude = source.magnitude;
        value.longest = source.longest;
        self.loaded.insert(column.name.clone(), value.clone());
        Ok(value)
    }

    fn parameter(&mut self, bits: u64) -> String {
        self.parameters.push(bits);
        format!("p.k[{}]", self.parameters.len() - 1)
    }

    fn string(&mut self, text: &str) -> String {
        let characters = self.upload(text.as_bytes());
        let view = view(text, self.addresses[characters]);
        let at = self.upload(&view);
        format!("(*(const view*)p.a[{at}])")
    }

    fn octets(&mut self, bytes: &[u8]) -> String {
        let characters = self.upload(bytes);
        let view = view_of_bytes(bytes, self.addresses[characters]);
        let at = self.upload(&view);
        format!("(*(const view*)p.a[{at}])")
    }

    fn constant(&mut self, bytes: &[u8]) -> String {
        let at = self.upload(bytes);
        format!("((const u8*)p.a[{at}])")
    }

    fn strings(&mut self, texts: &[&str]) -> String {
        let views: Vec<u8> = (texts.iter())
            .flat_map(|text| {
                let characters = self.upload(text.as_bytes());
                view(text, self.addresses[characters])
            })
            .collect();
        let at = self.upload(&views);
        format!("((const view*)p.a[{at}])")
    }

    fn arena(&mut self) {}
}
