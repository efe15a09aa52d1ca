//! Where rows of a kernel can fail, so that an error names the operation, its values and columns.
//!
//! Each test of a kernel that can fail is a *site*, numbered from 1. The first row that fails
//! writes the number and the operands' values behind the kernel's control words
//! (`kernels/arith.cuh`):
//!
//! ```text
//!   kernel   if (v3 == 0) WF_FAIL(DIVIDE_BY_ZERO, 1, v2, v3);
//!   host     site 1   `100 / t.z`, operands: Int64, Int64
//!   report   1 │ 100 │ 0        ─▶        Divide by zero error: 100 / 0 in 100 / t.z
//! ```
//!
//! What the host knows of a site is no part of the kernel's text, so that queries that differ in
//! literals and names share kernels. Values are written behind the test, where no row that does not
//! fail comes by.

mod describe;
mod read;

use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::Expr;

pub(crate) use self::describe::sql as short_sql;
use self::describe::{DescribedOperation, described};
use super::failure::Failure;
use crate::column::Repr;
use crate::error::{Error, ErrorKind, Fault, Operation};

/// Bytes of a report: the number, then so many operands (the constants of `kernels/arith.cuh`).
pub(crate) const REPORT_BYTES: usize = 8 + MOST_OPERANDS * OPERAND_BYTES;
const OPERAND_BYTES: usize = 80;
/// Most operands of which a report tells the values.
pub(crate) const MOST_OPERANDS: usize = 3;

/// A value that a failing row reports.
#[derive(Debug, Clone)]
pub(crate) struct Operand {
    /// The address of the expression that it is the value of.
    of: usize,
    kept: ReportedValue,
    /// The C++ expression of the value.
    pub(crate) code: String,
}

/// How a value lies in a report.
#[derive(Debug, Clone)]
struct ReportedValue {
    dtype: DataType,
    repr: Repr,
}

impl Operand {
    /// The value of `expr`, if one is known, that the C++ expression `code` yields. `None` of
    /// lists, structs and null, which reports cannot hold.
    pub(super) fn new(
        expr: Option<&Expr>,
        dtype: &DataType,
        repr: Repr,
        code: &str,
    ) -> Option<Operand> {
        if matches!(repr, Repr::List | Repr::Struct) || dtype.is_null() {
            return None;
        }
        let of = expr.map_or(0, |expr| std::ptr::from_ref(expr).addr());
        let kept = ReportedValue { dtype: dtype.clone(), repr };
        Some(Operand { of, kept, code: code.to_string() })
    }
}

/// A place in a kernel where rows may fail.
#[derive(Debug)]
struct Site {
    failure: Failure,
    /// The values that the kernel reports, and the addresses of their expressions.
    operands: Vec<(usize, ReportedValue)>,
    /// The type that the first operand of a cast does not fit.
    target: Option<DataType>,
    /// The operation, once it is known.
    described: Option<DescribedOperation>,
}

/// The sites of a kernel.
#[derive(Debug, Default)]
pub(crate) struct Sites(Vec<Site>);

impl Sites {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn add(
        &mut self,
        failure: Failure,
        operands: &[Operand],
        target: Option<&DataType>,
    ) {
        let operands = operands.iter().map(|operand| (operand.of, operand.kept.clone())).collect();
        self.0.push(Site { failure, operands, target: target.cloned(), described: None });
    }

    /// Describes the sites from `first` on that are not described yet as sites of `expr`.
    pub(super) fn describe(&mut self, first: usize, expr: &Expr) {
        for site in &mut self.0[first..] {
            if site.described.is_none() {
                site.described = Some(described(expr, site));
            }
        }
    }

    /// Describes these sites by a name only: `sum(t.d)`.
    pub(super) fn name(&mut self, first: usize, name: &str) {
        for site in &mut self.0[first..] {
            site.described.get_or_insert_with(|| DescribedOperation::named(name));
        }
    }

    pub(super) fn append(&mut self, others: Sites) {
        self.0.extend(others.0);
    }

    /// The error that a kernel's final status word and the report of the first row that failed
    /// stand for. `None` if no row failed.
    pub(super) fn error(&self, status: u32, report: &[u8]) -> Option<Error> {
        let failure = Failure::of(status)?;
        let number = read::word(report, 0) as usize;
        let site = number.checked_sub(1).and_then(|at| self.0.get(at));
        let operation = |site: &Site| site.operation(report.get(8..).unwrap_or_default());
        let Some(fault) = failure.fault() else {
            let what = site.filter(|site| site.failure == failure).and_then(operation);
            return Some(failure.beyond(what));
        };
        // The report is of the first failure of one row. The status word has the failures of all
        // rows.
        let reported = site.and_then(|site| Some((site.fault()?, site)));
        Some(match reported {
            Some((fault, site)) => arithmetic(fault, operation(site)),
            None => arithmetic(fault, None),
        })
    }
}

fn arithmetic(fault: Fault, operation: Option<Operation>) -> Error {
    ErrorKind::Arithmetic { fault, operation: operation.map(Box::new), account: None }.into()
}

impl Site {
    /// A failed cast without a target type is a step of a function, not a cast in the query.
    fn fault(&self) -> Option<Fault> {
        Some(match self.failure.fault()? {
            Fault::Cast if self.target.is_none() => Fault::Overflow,
            fault => fault,
        })
    }

    /// The operation with the values that a row reported.
    fn operation(&self, report: &[u8]) -> Option<Operation> {
        let values = self.operands.iter().enumerate().map(|(at, (_, kept))| {
            let bytes = report.get(at * OPERAND_BYTES..(at + 1) * OPERAND_BYTES)?;
            read::value(bytes, &kept.dtype, kept.repr)
        });
        self.described.as_ref().map(|described| described.with(&values.collect::<Vec<_>>()))
    }
}
