//! The minimum and the maximum of strings and wide decimals, which no atomic compares: the
//! accumulator is the number of the row that has the value (`kernels/best_row.cuh`).

use datafusion::logical_expr::Expr;

use super::inputs::AggregateInput;
use crate::codegen::device_function::KernelHeader;
use crate::codegen::emit::Emitter;
use crate::codegen::generator::Generator;
use crate::codegen::statements::Code;
use crate::codegen::value::widen;
use crate::column::Repr;

/// The name of the comparison of input `i`.
pub(super) fn ahead(i: usize) -> String {
    format!("ahead{i}")
}

/// The operation that keeps the better row of two, of input `i`.
pub(super) fn best_row(i: usize) -> String {
    format!("best_row({})", ahead(i))
}

/// Declares the rows that a block knows, for so many accumulators. The whole block comes here.
pub(super) fn known_rows(count: usize) -> String {
    format!(
        "WF_SHARED_ARRAY(u64, known_rows, {count});\n\
         for (u32 i = threadIdx.x; i < {count}; i += THREADS) known_rows[i] = BEST_ROW_NONE;\n\
         __syncthreads();  // no row is known yet\n"
    )
}

/// Statement by which a thread's best row of input `i` and the block's, which has this place among
/// [`known_rows`], become the better one.
pub(super) fn learn(i: usize, best: &str, place: usize) -> String {
    format!("{best} = best_row_of_block(known_rows + {place}, {best}, {});\n", ahead(i))
}

/// The C++ definition of [`ahead`] for input `i`. `None`: its argument is no column of the source.
pub(super) fn comparison(
    generator: &mut Generator<'_>,
    i: usize,
    input: &AggregateInput,
    arg: &Expr,
) -> Option<Code> {
    let (relation, column) = generator.flow().stored_column(arg)?;
    let mut out = Emitter::new("b");
    let [one, other] = ["one", "other"].map(|row| {
        let value = generator.load(relation, column, row, false, &mut out);
        match value.repr {
            Repr::View => value.code,
            _ => widen(&value, Repr::I128),
        }
    });
    let (one, other) = if input.greatest { (other, one) } else { (one, other) };
    let before = match input.value.as_ref().map(|value| value.repr) {
        Some(Repr::View) => format!("compare_views({one}, {other}) < 0"),
        _ => format!("{one} < {other}"),
    };
    let mut code = Code::default();
    code.needs(KernelHeader::BestRow);
    code.line(format_args!("const auto {} = [&](u64 one, u64 other) -> bool {{", ahead(i)));
    code.append(&out.take());
    code.line(format_args!("return {before};\n}};"));
    Some(code)
}
