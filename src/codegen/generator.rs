//! Turns a [`Flow`] into the statements for one row. Columns are loaded and projections are
//! evaluated where they are first needed. Filters and lookups leave the row by `break`.
//!
//! The statements stand in a scope that provides `row` (u64, the source row), `k` (which of the
//! thread's rows this is), `status` and `p`, inside a `do { … } while (0)` that a lost row leaves.
//!
//! Columns of the source are loaded ahead for all rows of a thread, so that many loads are in
//! flight. Behind lookups that lose rows, and behind conditions that leave few rows by what
//! statistics say (`selectivity.rs`), a column is loaded for the rows that are left, where it is
//! first needed.
//!
//! A row fails where its value is computed for somebody. What a projection computes fails for all
//! of its rows, whichever expression above asks for it first: [`Generator::value`] lifts the
//! guards.

mod groups;
mod inputs;
mod probe;

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Column as Name, DFSchemaRef};
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::utils::split_conjunction;

use super::arena::Arena;
use super::constants::Constants;
use super::device_function::KernelHeader;
use super::emit::{Emitter, push_number};
use super::expr::compile;
use super::flow::{Flow, FlowSource, FlowStage, Probe, SideColumn};
use super::keys::dictionary_value;
use super::params::Params;
use super::prepared::PreparedKernel;
use super::selectivity::Selectivity;
use super::sites::Sites;
use super::statements::Code;
use super::value::{Value, both};
use crate::column::{Column, Encoding, EqualSteps, Facts, NO_ROW, Relation, Repr};
use crate::error::Result;
use inputs::At;
pub(crate) use probe::{join_layout, keys_inside};
use warpframe_device::{Buffer, Device};

/// What the statements of the stages do with a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pass {
    /// Filters and lookups decide, and a lost row breaks out.
    Decide,
    /// Like `Decide`. The rows that probes found are kept in arrays for the later pass.
    DecideAndCarry,
    /// For rows that a former pass kept: filters are known to hold, lookups are read from the
    /// arrays.
    Carried,
}

/// State of the generation of one kernel.
pub(crate) struct Generator<'a> {
    flow: &'a Flow,
    pub(crate) params: Params,
    levels: Vec<Level>,
    /// Columns to be loaded for all of a thread's rows at once, before the first stage.
    eager: Vec<EagerLoad>,
    eager_open: bool,
    /// The conditions so far leave few rows, see [`FEW`].
    few: bool,
    /// See [`PreparedKernel::late`].
    late: bool,
    /// The later pass is in another kernel, which does not have what the first one loaded.
    another_kernel: bool,
    carried: Vec<String>,
    constants: Constants,
    characters: Vec<Arc<Buffer>>,
    probes: usize,
    makes_text: bool,
    touched: Vec<Arc<Buffer>>,
}

struct Level {
    schema: DFSchemaRef,
    kind: LevelKind,
    known: HashMap<usize, Value>,
}

#[derive(Clone)]
enum LevelKind {
    Source,
    Project(Arc<Vec<Expr>>),
    /// Columns of both sides; `present` says whether there is a build row, where there need not be
    /// one.
    Probe {
        probe: Arc<Probe>,
        row: String,
        present: Option<String>,
        before: usize,
    },
    /// The columns below, and one more that says whether there is a match.
    Mark {
        matched: String,
        before: usize,
    },
}

/// Fields of a struct up to which all are loaded ahead.
const EAGER_FIELDS: usize = 2;

/// If filters leave at most this share of the rows, further columns are loaded for those rows only,
/// where they are first needed, and not ahead for all rows. A greater share would gain little:
/// estimates err, and nothing is saved once every sector of memory has a row that is left.
const FEW: f64 = 0.2;

struct EagerLoad {
    ctype: &'static str,
    name: String,
    address: String,
    width: usize,
}

impl<'a> Generator<'a> {
    pub(crate) fn new(flow: &'a Flow) -> Self {
        Generator {
            flow,
            params: Params::default(),
            levels: vec![],
            eager: vec![],
            eager_open: false,
            few: false,
            late: false,
            another_kernel: false,
            carried: vec![],
            constants: Constants::default(),
            characters: vec![],
            probes: 0,
            makes_text: false,
            touched: vec![],
        }
    }

    /// The flow this generates code for.
    pub(crate) fn flow(&self) -> &'a Flow {
        self.flow
    }

    /// Emits all stages. Afterwards [`Generator::column`] and [`Generator::expr`] refer to the
    /// flow's final schema.
    pub(crate) fn stages(&mut self, pass: Pass, out: &mut Emitter) -> Result<()> {
        self.levels = vec![Level {
            schema: self.flow.source_schema.clone(),
            kind: LevelKind::Source,
            known: HashMap::new(),
        }];
        self.probes = 0;
        self.eager_open = pass != Pass::Carried;
        if let (FlowSource::Groups(groups), true) = (&self.flow.source, pass != Pass::Carried) {
            self.occupied(groups, out);
        }
        let mut share = Selectivity::default();
        for (step, schema) in &self.flow.steps {
            match step {
                FlowStage::Filter(predicate) => {
                    if pass != Pass::Carried {
                        for conjunct in split_conjunction(predicate) {
                            let keep = self.expr(conjunct, out)?;
                            out.leave_if(format_args!("!({})", keep.truth()));
                            self.weigh(conjunct, &mut share);
                            if share.rows() <= FEW {
                                self.close_eager();
                                self.few = true;
                            }
                        }
                    }
                    if let Some(level) = self.levels.last_mut() {
                        level.schema = schema.clone();
                    }
                }
                FlowStage::Project(exprs) => self.levels.push(Level {
                    schema: schema.clone(),
                    kind: LevelKind::Project(Arc::new(exprs.clone())),
                    known: HashMap::new(),
                }),
                FlowStage::Probe(probe) => self.probe(probe, schema, pass, out)?,
            }
        }
        Ok(())
    }

    /// Adds a filter's condition on the source's own columns to those before it, as long as columns
    /// are loaded ahead.
    fn weigh(&self, conjunct: &Expr, share: &mut Selectivity) {
        let (FlowSource::Relation(relation), [source], true) =
            (&self.flow.source, self.levels.as_slice(), self.eager_open)
        else {
            return;
        };
        let facts = |name: &Name| {
            let at = source.schema.maybe_index_of_column(name)?;
            Some(Facts::of(&relation.columns[at].1))
        };
        share.add(conjunct, &facts);
    }

    /// The present schema.
    pub(crate) fn schema(&self) -> DFSchemaRef {
        self.levels.last().expect("stages() opened a level").schema.clone()
    }

    /// Compiles an expression over the present schema.
    pub(crate) fn expr(&mut self, expr: &Expr, out: &mut Emitter) -> Result<Value> {
        let level = self.levels.len() - 1;
        self.expr_at(level, expr, out)
    }

    /// The value of a column of the present schema, by position.
    pub(crate) fn column(&mut self, at: usize, out: &mut Emitter) -> Result<Value> {
        let level = self.levels.len() - 1;
        self.value(level, at, out)
    }

    fn expr_at(&mut self, level: usize, expr: &Expr, out: &mut Emitter) -> Result<Value> {
        let schema = self.levels[level].schema.clone();
        compile(expr, &schema, &mut At { generator: self, level }, out)
    }

    fn value(&mut self, level: usize, at: usize, out: &mut Emitter) -> Result<Value> {
        if let Some(known) = self.levels[level].known.get(&at) {
            return Ok(known.clone());
        }
        // The first use may be guarded, as in a branch; later uses find the value known for all
        // rows.
        let guards = out.lift_guards();
        let value = self.value_anew(level, at, out);
        out.restore_guards(guards);
        let value = value?;
        self.levels[level].known.insert(at, value.clone());
        Ok(value)
    }

    fn value_anew(&mut self, level: usize, at: usize, out: &mut Emitter) -> Result<Value> {
        Ok(match self.levels[level].kind.clone() {
            LevelKind::Source => match &self.flow.source {
                FlowSource::Relation(relation) => self.load(relation, at, "row", true, out),
                FlowSource::Groups(groups) => {
                    let first = out.sites();
                    let value = self.group_column(groups, at, out)?;
                    out.name_sites(first, || self.levels[level].schema.field(at).name().clone());
                    value
                }
                FlowSource::EqualSteps(steps) => self.step(*steps, out),
            },
            LevelKind::Project(exprs) => self.expr_at(level - 1, &exprs[at], out)?,
            LevelKind::Probe { probe, row, present, before } => match probe.column(at, before) {
                SideColumn::Build(column) => match probe.key_of(column).cloned() {
                    Some(key) => {
                        let mut value = self.expr_at(level - 1, &key, out)?;
                        value.valid = both(&value.valid, &present, out);
                        value
                    }
                    None => {
                        let row = probe.element(column, &row);
                        self.load_if(&probe.build, column, &row, present, false, out)
                    }
                },
                SideColumn::Probe(below) => self.value(level - 1, below, out)?,
            },
            LevelKind::Mark { matched, before } if at == before => {
                Value::new(DataType::Boolean, Repr::Bool, matched, None)
            }
            LevelKind::Mark { .. } => self.value(level - 1, at, out)?,
        })
    }

    /// Emits the integer of a row.
    fn step(&mut self, steps: EqualSteps, out: &mut Emitter) -> Value {
        let [start, step] =
            [steps.start, steps.step].map(|word| self.params.word("u64", word as u64));
        let code = out.let_("i64", format_args!("(i64)({start} + (u64)row * {step})"));
        Value { range: steps.range(), ..Value::new(DataType::Int64, Repr::I64, code, None) }
    }

    /// Emits the load of a relation's column at a row.
    pub(super) fn load(
        &mut self,
        relation: &Relation,
        at: usize,
        row: &str,
        of_source: bool,
        out: &mut Emitter,
    ) -> Value {
        self.load_if(relation, at, row, None, of_source, out)
    }

    /// Like [`Generator::load`], for a row that exists only where `present` holds. Elsewhere the
    /// value is null.
    pub(super) fn load_if(
        &mut self,
        relation: &Relation,
        at: usize,
        row: &str,
        present: Option<String>,
        of_source: bool,
        out: &mut Emitter,
    ) -> Value {
        let (index, column) = &relation.columns[at];
        let eager = of_source && self.eager_open;
        self.late |= of_source && self.few;
        let mut present = present;
        let row = match &relation.indices[*index] {
            None => row.to_string(),
            Some(index) => {
                let pointer =
                    self.params.pointer("const u32", &index.rows, index.offset as usize * 4);
                let mut number = guarded(&present, &pointer, row, NO_ROW);
                if index.gaps {
                    if !eager {
                        number = out.let_("u32", number);
                    }
                    present = Some(format!("({number} != {NO_ROW})"));
                }
                number
            }
        };
        self.load_column(column, &row, &present, eager, out)
    }

    /// Emits the load of a column's own row, where there is one.
    fn load_column(
        &mut self,
        column: &Column,
        row: &str,
        present: &Option<String>,
        eager: bool,
        out: &mut Emitter,
    ) -> Value {
        let valid = match (&column.validity, present) {
            (Some(validity), _) => {
                let pointer = self.params.pointer("const u8", validity, column.offset);
                let byte = self.fetch("u8", 1, guarded(present, &pointer, row, "u8{}"), eager, out);
                Some(out.let_("bool", [&byte, " != 0"].concat()))
            }
            (None, Some(present)) => Some(out.let_("bool", present)),
            (None, None) => None,
        };
        self.characters.extend(column.characters.iter().cloned());
        match &column.encoding {
            Encoding::Dictionary(dictionary) => {
                let pointer = self.params.pointer("const u32", &column.data, column.offset * 4);
                let code =
                    self.fetch("u32", 4, guarded(present, &pointer, row, "u32{}"), eager, out);
                self.characters.extend(dictionary.characters.iter().cloned());
                let mut value = dictionary_value(
                    column.dtype.clone(),
                    dictionary,
                    code,
                    valid,
                    &mut self.params,
                );
                value.longest = column.stats.longest;
                value
            }
            Encoding::Plain if column.repr() == Repr::Struct => {
                // Most fields of a large struct are not read. A field that is not loaded ahead
                // takes no registers until it is read.
                let eager = eager && column.children.len() <= EAGER_FIELDS;
                let field = |child| self.load_column(child, row, present, eager, out);
                Value::of_fields(
                    column.dtype.clone(),
                    column.children.iter().map(field).collect(),
                    valid,
                )
            }
            Encoding::Plain => {
                let repr =
                    Repr::of(&column.dtype).expect("a column on the device has a representation");
                let ctype = repr.device_type();
                let pointer = self.params.pointer(
                    repr.const_device_type(),
                    &column.data,
                    column.offset * repr.width(),
                );
                let address = guarded(present, &pointer, row, &[ctype, "{}"].concat());
                let name = self.fetch(ctype, repr.width(), address, eager, out);
                let mut value = Value::new(column.dtype.clone(), repr, name, valid);
                value.range = column.stats.range;
                value.magnitude = column.stats.magnitude;
                value.unit = column.stats.unit;
                value.longest = column.stats.longest;
                value
            }
        }
    }

    fn fetch(
        &mut self,
        ctype: &'static str,
        width: usize,
        address: String,
        eager: bool,
        out: &mut Emitter,
    ) -> String {
        let ahead = self.eager.iter().find(|e| e.address == address && !self.another_kernel);
        if let (false, Some(load)) = (eager, ahead) {
            return [&load.name, "[k]"].concat();
        }
        if !eager {
            return out.let_(ctype, address);
        }
        let name = match self.eager.iter().find(|e| e.address == address) {
            Some(known) => known.name.clone(),
            None => {
                let mut name = String::from("in");
                push_number(&mut name, self.eager.len());
                self.eager.push(EagerLoad { ctype, name: name.clone(), address, width });
                name
            }
        };
        [&name, "[k]"].concat()
    }

    /// String views in outputs may point into these.
    pub(crate) fn point_into(&mut self, characters: &[Arc<Buffer>]) {
        self.characters.extend(characters.iter().cloned());
    }

    /// Later loads happen where they stand, not ahead for all of a thread's rows.
    pub(crate) fn close_eager(&mut self) {
        self.eager_open = false;
    }

    /// A constant 64-bit word.
    pub(super) fn word(&mut self, bits: u64) -> String {
        self.params.word("u64", bits)
    }

    /// What is emitted from here on may stand in another kernel than the stages emitted so far.
    pub(crate) fn begin_another_kernel(&mut self) {
        self.another_kernel = true;
    }

    /// Notes that statements change a buffer that is zero. It is zeroed again before the kernel is
    /// repeated because its arena was too small.
    pub(crate) fn touch(&mut self, buffer: &Arc<Buffer>) {
        self.touched.push(buffer.clone());
    }

    /// Notes that statements take memory for characters from `arena`.
    pub(crate) fn make_text(&mut self) {
        self.makes_text = true;
    }

    /// Whether expressions so far make strings, which need an arena.
    pub(crate) fn makes_text(&self) -> bool {
        self.makes_text
    }

    /// Uploads the constants and completes the kernel of the emitters' statements. `control` is the
    /// C++ name of its control words. `status` must be in scope of the prologue.
    pub(crate) fn finish(
        mut self,
        device: &Device,
        control: &str,
        emitters: &[&Emitter],
    ) -> Result<PreparedKernel> {
        // A string or a list that is made may be too long.
        let may_fail = self.makes_text || emitters.iter().any(|out| out.may_fail());
        let mut prologue = Code::with_capacity(512);
        let arena = self.makes_text.then(|| {
            let (arena, statement) = Arena::declare(&mut self.params, control, device.secret(0));
            prologue.raw(&statement);
            prologue.needs(KernelHeader::Text);
            arena
        });
        self.characters.extend(self.constants.upload(device, &mut self.params)?);
        for carried in &self.carried {
            prologue.object("u32", carried, "[ITEMS]");
        }
        for load in &self.eager {
            prologue.object(load.ctype, &load.name, "[ITEMS]");
        }
        if !self.eager.is_empty() {
            prologue.line(
                "#pragma unroll\nfor (int k = 0; k < ITEMS; ++k) {\nconst u64 row = ROW(k);\nif (row < rows) {",
            );
            for EagerLoad { name, address, .. } in &self.eager {
                prologue.line(format_args!("{name}[k] = {address};"));
            }
            prologue.line("}\n}");
        }
        let eager_bytes = self.eager.iter().map(|e| e.width.max(4)).sum();
        self.characters.sort_by_key(|b| b.address());
        self.characters.dedup_by_key(|b| b.address());
        let rows = self.flow.source.rows();
        let mut sites = Sites::default();
        emitters.iter().for_each(|out| sites.append(out.take_sites()));
        let Generator { params, characters, touched, late, .. } = self;
        Ok(PreparedKernel {
            params,
            prologue,
            rows,
            eager_bytes,
            late,
            characters,
            may_fail,
            sites,
            arena,
            made: None,
            touched,
        })
    }
}

/// An array's element, or `otherwise` where there is no such row.
fn guarded(present: &Option<String>, array: &str, row: &str, otherwise: &str) -> String {
    match present {
        None => [array, "[", row, "]"].concat(),
        Some(present) => format!("({present} ? {array}[{row}] : {otherwise})"),
    }
}
