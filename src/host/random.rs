//! Random numbers of a seed and a number: `random(seed, n)`, `random_normal`, `random_integer` and
//! `random_poisson`. They have no state: the same arguments give the same number, in any order of
//! rows, on any device and on the CPU (`kernels/random.cuh` says by what method). Logarithms and
//! cosines of devices differ in the last places, and so do normal numbers.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Float64Array, Int64Array};
use datafusion::arrow::datatypes::{DataType, Float64Type, Int64Type};
use datafusion::common::{Result, exec_err, internal_err};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature,
    Volatility,
};

use super::calls::HostCall;

/// The greatest mean of `random_poisson`: it takes time by its mean.
pub(crate) const MOST_POISSON_MEAN: f64 = 1e6;
/// The mean that one draw takes.
const DRAWN_MEAN: f64 = 500.0;

/// `random`, in the place of DataFusion's.
pub(crate) fn random() -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::from(Random::default()))
}

/// `random_uniform(seed, n)`.
pub(crate) fn random_uniform() -> Arc<ScalarUDF> {
    UNIFORM.clone()
}

/// `random_normal(seed, n)`.
pub(crate) fn random_normal() -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::from(RandomFunction::new(RandomKind::Normal)))
}

/// `random_poisson(seed, n, mean)`.
pub(crate) fn random_poisson() -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::from(RandomFunction::new(RandomKind::Poisson)))
}

/// `random_integer(seed, n, least, greatest)`.
pub(crate) fn random_integer() -> Arc<ScalarUDF> {
    static SHARED: LazyLock<Arc<ScalarUDF>> =
        LazyLock::new(|| Arc::new(ScalarUDF::from(RandomFunction::new(RandomKind::Integer))));
    SHARED.clone()
}

static UNIFORM: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Arc::new(ScalarUDF::from(RandomFunction::new(RandomKind::Uniform))));

/// `random`. Without arguments it is DataFusion's, another number each time. `random(seed, n)`
/// becomes `random_uniform`, which may be folded.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Random {
    signature: Signature,
}

impl Default for Random {
    fn default() -> Self {
        let kinds = vec![
            TypeSignature::Nullary,
            TypeSignature::Exact(vec![DataType::Int64, DataType::Int64]),
        ];
        Random { signature: Signature::one_of(kinds, Volatility::Volatile) }
    }
}

impl ScalarUDFImpl for Random {
    fn name(&self) -> &str {
        "random"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn simplify(&self, args: Vec<Expr>, _: &SimplifyContext) -> Result<ExprSimplifyResult> {
        match args.len() {
            0 => Ok(ExprSimplifyResult::Original(args)),
            _ => Ok(ExprSimplifyResult::Simplified(UNIFORM.call(args))),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match args.args.len() {
            0 => datafusion::functions::math::random().invoke_with_args(args),
            _ => UNIFORM.invoke_with_args(args),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum RandomKind {
    /// In [0, 1).
    Uniform,
    /// Of mean 0 and deviation 1.
    Normal,
    /// Between two ends, which both may come.
    Integer,
    /// Of a mean.
    Poisson,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct RandomFunction {
    kind: RandomKind,
    signature: Signature,
}

impl RandomFunction {
    fn new(kind: RandomKind) -> RandomFunction {
        let mut types = vec![DataType::Int64; 2];
        types.extend(match kind {
            RandomKind::Uniform | RandomKind::Normal => vec![],
            RandomKind::Integer => vec![DataType::Int64; 2],
            RandomKind::Poisson => vec![DataType::Float64],
        });
        RandomFunction { kind, signature: Signature::exact(types, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for RandomFunction {
    fn name(&self) -> &str {
        match self.kind {
            RandomKind::Uniform => "random_uniform",
            RandomKind::Normal => "random_normal",
            RandomKind::Integer => "random_integer",
            RandomKind::Poisson => "random_poisson",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(match self.kind {
            RandomKind::Uniform | RandomKind::Normal => DataType::Float64,
            RandomKind::Integer | RandomKind::Poisson => DataType::Int64,
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let call = HostCall::of(&args)?;
        let [seeds, numbers, others @ ..] = call.arrays.as_slice() else {
            return internal_err!("{} of {} arguments", self.name(), call.arrays.len());
        };
        let (seeds, numbers) =
            (seeds.as_primitive::<Int64Type>(), numbers.as_primitive::<Int64Type>());
        let valid = |row: usize| call.arrays.iter().all(|array| array.is_valid(row));
        let of = |row: usize| (seeds.value(row), numbers.value(row));
        let all = (0..call.rows)
            .map(|row| valid(row).then(|| of(row)).map(|(seed, number)| (row, seed, number)));
        let found: ArrayRef = match (self.kind, others) {
            (RandomKind::Uniform, []) => Arc::new(
                all.map(|of| of.map(|(_, seed, number)| uniform(seed, number)))
                    .collect::<Float64Array>(),
            ),
            (RandomKind::Normal, []) => Arc::new(
                all.map(|of| of.map(|(_, seed, number)| normal(seed, number)))
                    .collect::<Float64Array>(),
            ),
            (RandomKind::Integer, [low, high]) => {
                let (low, high) =
                    (low.as_primitive::<Int64Type>(), high.as_primitive::<Int64Type>());
                let value = |(row, seed, number): (usize, i64, i64)| {
                    let (low, high) = (low.value(row), high.value(row));
                    match low <= high {
                        true => Ok(integer(seed, number, low, high)),
                        false => {
                            exec_err!("random_integer: no integer is between {low} and {high}")
                        }
                    }
                };
                Arc::new(all.map(|of| of.map(value).transpose()).collect::<Result<Int64Array>>()?)
            }
            (RandomKind::Poisson, [mean]) => {
                let mean = mean.as_primitive::<Float64Type>();
                let value = |(row, seed, number): (usize, i64, i64)| match mean.value(row) {
                    mean if (0.0..=MOST_POISSON_MEAN).contains(&mean) => {
                        Ok(poisson(seed, number, mean))
                    }
                    mean => exec_err!(
                        "random_poisson: the mean {mean} is not between 0 and {MOST_POISSON_MEAN}"
                    ),
                };
                Arc::new(all.map(|of| of.map(value).transpose()).collect::<Result<Int64Array>>()?)
            }
            _ => return internal_err!("{} of {} arguments", self.name(), call.arrays.len()),
        };
        call.yields(found)
    }
}

/// Philox-4x32-10, as `kernels/random.cuh` has it.
fn words(seed: i64, number: i64, draw: u32) -> [u64; 2] {
    let (seed, number) = (seed as u64, number as u64);
    let mut counter = [number as u32, (number >> 32) as u32, draw, 0];
    let mut key = [seed as u32, (seed >> 32) as u32];
    for _ in 0..10 {
        counter = philox_round(counter, key);
        key = [key[0].wrapping_add(0x9E37_79B9), key[1].wrapping_add(0xBB67_AE85)];
    }
    let word = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
    [word(counter[0], counter[1]), word(counter[2], counter[3])]
}

fn philox_round(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let a = 0xD251_1F53 * u64::from(counter[0]);
    let b = 0xCD9E_8D57 * u64::from(counter[2]);
    [
        (b >> 32) as u32 ^ counter[1] ^ key[0],
        b as u32,
        (a >> 32) as u32 ^ counter[3] ^ key[1],
        a as u32,
    ]
}

fn unit(word: u64) -> f64 {
    (word >> 11) as f64 / (1u64 << 53) as f64
}

fn uniform(seed: i64, number: i64) -> f64 {
    unit(words(seed, number, 0)[0])
}

fn normal(seed: i64, number: i64) -> f64 {
    let [low, high] = words(seed, number, 0);
    (-2.0 * (1.0 - unit(low)).ln()).sqrt() * (std::f64::consts::TAU * unit(high)).cos()
}

fn integer(seed: i64, number: i64, low: i64, high: i64) -> i64 {
    let word = words(seed, number, 0)[0];
    let count = (high as u64).wrapping_sub(low as u64).wrapping_add(1);
    match count {
        0 => word as i64,
        _ => {
            (low as u64).wrapping_add(((u128::from(word) * u128::from(count)) >> 64) as u64) as i64
        }
    }
}

fn poisson(seed: i64, number: i64, mean: f64) -> i64 {
    let (mut count, mut left, mut draw) = (0, mean, 0);
    while left > 0.0 {
        let part = left.min(DRAWN_MEAN);
        let wanted = unit(words(seed, number, draw)[0]);
        let mut share = (-part).exp();
        let (mut sum, mut events) = (share, 0);
        while sum <= wanted && events < 1000 {
            events += 1;
            share = share * part / f64::from(events);
            sum += share;
        }
        count += i64::from(events);
        left -= part;
        draw += 1;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The known answers of the authors' library for Philox-4x32-10.
    #[test]
    fn words_are_those_of_philox() {
        let answer = |counter: [u32; 4], key: [u32; 2]| {
            let (mut counter, mut key) = (counter, key);
            for _ in 0..10 {
                counter = philox_round(counter, key);
                key = [key[0].wrapping_add(0x9E37_79B9), key[1].wrapping_add(0xBB67_AE85)];
            }
            counter
        };
        assert_eq!(answer([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(
            answer([u32::MAX; 4], [u32::MAX; 2]),
            [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]
        );
        assert_eq!(words(0, 0, 0), [0xe169_c58d_6627_e8d5, 0x9b00_dbd8_bc57_ac4c]);
    }

    #[test]
    fn means_and_deviations_are_those_of_the_distributions() {
        const ROWS: i64 = 200_000;
        let check = |of: &dyn Fn(i64) -> f64, mean: f64, deviation: f64| {
            let values: Vec<f64> = (0..ROWS).map(of).collect();
            let found = values.iter().sum::<f64>() / ROWS as f64;
            let squares =
                values.iter().map(|value| (value - found).powi(2)).sum::<f64>() / ROWS as f64;
            // Five deviations of the mean of so many.
            let near = 5.0 * deviation / (ROWS as f64).sqrt();
            assert!((found - mean).abs() < near, "mean {found}, not {mean}");
            assert!(
                (squares.sqrt() / deviation - 1.0).abs() < 0.02,
                "deviation {}, not {deviation}",
                squares.sqrt()
            );
        };
        check(&|row| uniform(7, row), 0.5, (1.0f64 / 12.0).sqrt());
        check(&|row| normal(7, row), 0.0, 1.0);
        check(&|row| integer(7, row, -3, 6) as f64, 1.5, (99.0f64 / 12.0).sqrt());
        check(&|row| poisson(7, row, 3.5) as f64, 3.5, 3.5f64.sqrt());
        check(&|row| poisson(7, row, 1200.0) as f64, 1200.0, 1200f64.sqrt());
        assert_eq!(poisson(7, 1, 0.0), 0);
        assert_eq!(integer(1, 1, 5, 5), 5);
        let ends: Vec<i64> = (0..1000).map(|row| integer(1, row, i64::MIN, i64::MAX)).collect();
        assert!(ends.iter().any(|value| *value < 0) && ends.iter().any(|value| *value > 0));
    }
}
