//! Keys normalised to bits: for groups and joins (equality) and for sorting (order).
//!
//! Equality keys of several columns become one `u64`. Where the columns' ranges allow, it is the
//! mixed-radix number of the columns' codes, and so exact and invertible:
//!
//! ```text
//!   returnflag ∈ dictionary of 3, linestatus ∈ dictionary of 2, status ∈ -1..=1 or null
//!   key = (returnflag·2 + linestatus)·4 + (null ? 3 : status + 1)          domain 24
//! ```
//!
//! Otherwise the key is a hash of all columns. Lists and structs are hashed element by element.
//! Equal hashes are not equal keys, so the columns themselves are compared as well: joins by a
//! residual condition, groups by a second pass (`group_key_check.rs`). NaN is one value and −0.0 is
//! 0.0.
//!
//! The key of a packed layout is a place in memory. The bounds of a value do not hold for a row
//! that failed, so its code is cut to the range of its field.

use datafusion::arrow::datatypes::DataType;

use super::device_function::{HASH_I128, HASH_VIEW, VIEWS_EQUAL};
use super::element::element_of;
use super::emit::Emitter;
use super::params::Params;
use super::value::{Value, widen};
use crate::column::Repr;

/// How the columns of an equality key become one `u64`.
#[derive(Debug, Clone)]
pub(crate) struct KeyLayout {
    pub(crate) fields: Vec<KeyField>,
    /// Number of different keys, where all columns are packed and it fits; else the key is a hash.
    pub(crate) domain: Option<u128>,
    /// Keys the hash of the columns, and those of tables that find the keys (`kernels/hash.cuh`);
    /// of the device.
    pub(crate) secret: u64,
}

/// One column of an equality key.
#[derive(Debug, Clone)]
pub(crate) struct KeyField {
    /// What a plain value turns into: code 0 stands for this value.
    pub(crate) least: i128,
    /// Number of codes, the null's (the last) included.
    pub(crate) radix: u128,
    /// Whether a code for null exists.
    pub(crate) nullable: bool,
    /// How values become codes.
    pub(crate) code: KeyCode,
    pub(crate) dtype: DataType,
    pub(crate) repr: Repr,
}

/// How a value becomes a code.
#[derive(Debug, Clone)]
pub(crate) enum KeyCode {
    /// Integer minus `least`.
    Integer,
    /// Order-preserving bits of a float.
    Float,
    /// The dictionary's code.
    Dictionary(std::sync::Arc<crate::column::Dictionary>),
    /// No code: only hashed (strings, lists, structs, integers of many bits).
    Hashed,
}

/// Whether null keys match each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NullKeys {
    /// GROUP BY, IS NOT DISTINCT FROM: null has a code of its own.
    Equal,
    /// Joins: a null key matches nothing; the caller skips such rows.
    Skipped,
}

const WHOLE: u128 = 1 << 64;

impl KeyLayout {
    /// Lays out keys that look like these values. `dictionaries` tells whether codes may be used
    /// (not where keys are compared with those of another column).
    pub(crate) fn of(values: &[Value], nulls: NullKeys, dictionaries: bool, secret: u64) -> Self {
        let fields: Vec<_> =
            values.iter().map(|value| KeyField::of(value, nulls, dictionaries)).collect();
        let packed = fields.iter().try_fold(1u128, |domain, field| match field.code {
            KeyCode::Hashed => None,
            _ => domain.checked_mul(field.radix).filter(|d| *d <= WHOLE),
        });
        KeyLayout { fields, domain: packed, secret }
    }

    /// Whether equal `u64`s mean equal keys.
    pub(crate) fn is_exact(&self) -> bool {
        self.domain.is_some()
    }

    /// For each column what it is less in the key, modulo 2⁶⁴, and its number of values, 0 standing
    /// for 2⁶⁴, where all columns are integers that cannot be null.
    pub(crate) fn digits(&self) -> Option<Vec<(u64, u64)>> {
        let digit = |field: &KeyField| {
            let plain = matches!(field.code, KeyCode::Integer)
                && field.repr != Repr::Bool
                && !field.nullable;
            plain.then_some((field.least as u64, field.radix as u64))
        };
        self.fields.iter().map(digit).collect::<Option<_>>().filter(|_| self.is_exact())
    }

    /// The number of keys where they are few enough to index an array.
    pub(crate) fn dense_domain(&self, at_most: u64) -> Option<u64> {
        self.domain.filter(|d| *d <= u128::from(at_most)).map(|d| d as u64)
    }

    /// Emits the key of `values`. Also returns a C++ condition under which the key is not that of
    /// any laid-out value (out of the layout's range), if that can be.
    pub(crate) fn emit(
        &self,
        values: &[Value],
        params: &mut Params,
        out: &mut Emitter,
    ) -> (String, Option<String>) {
        let mut key: Option<String> = None;
        let mut outside = vec![];
        if !self.is_exact() {
            let mut hash = params.word("u64", self.secret);
            for value in values {
                hash = emit_hash(value, &hash, out);
            }
            return (hash, None);
        }
        for (field, value) in self.fields.iter().zip(values) {
            let code = field.emit_code(value, params, out, &mut outside);
            key = Some(match key {
                None => code,
                Some(high) => {
                    let radix = params.word("u64", field.radix as u64);
                    out.let_("u64", format_args!("{high} * {radix} + {code}"))
                }
            });
        }
        let outside = (!outside.is_empty()).then(|| format!("({})", outside.join(" || ")));
        (key.unwrap_or_else(|| "0ull".into()), outside)
    }

    /// Emits the values that a packed key stands for.
    pub(crate) fn emit_decode(
        &self,
        key: &str,
        field: usize,
        params: &mut Params,
        out: &mut Emitter,
    ) -> Value {
        let mut code = key.to_string();
        let behind: u128 = self.fields[field + 1..].iter().map(|f| f.radix).product();
        if behind >= WHOLE {
            // Those behind take all 64 bits, so this one has a single code.
            code = "0ull".into();
        } else if behind > 1 {
            let divisor = params.word("u64", behind as u64);
            out.divides(1);
            code = out.let_("u64", format_args!("{code} / {divisor}"));
        }
        let this = &self.fields[field];
        if field > 0 && this.radix < WHOLE {
            let radix = params.word("u64", this.radix as u64);
            out.divides(1);
            code = out.let_("u64", format_args!("{code} % {radix}"));
        }
        this.emit_value(&code, params, out)
    }
}

impl KeyField {
    fn of(value: &Value, nulls: NullKeys, dictionaries: bool) -> Self {
        let nullable = nulls == NullKeys::Equal && value.valid.is_some();
        let extra = u128::from(nullable);
        let (code, least, radix) = match (&value.dictionary, value.repr) {
            (Some(input), _) if dictionaries => {
                let entries = input.dictionary.values.len().max(1) as u128;
                (KeyCode::Dictionary(input.dictionary.clone()), 0, entries + extra)
            }
            (_, Repr::View | Repr::List | Repr::Struct) => (KeyCode::Hashed, 0, 0),
            (_, Repr::F64) => (KeyCode::Float, 0, WHOLE + extra),
            (_, Repr::F32) => (KeyCode::Float, 0, (1 << 32) + extra),
            (_, Repr::Bool) => (KeyCode::Integer, 0, 2 + extra),
            (_, _) => {
                let (low, high) = value.bounds();
                match high.checked_sub(low) {
                    Some(span) if (span as u128) < WHOLE => {
                        (KeyCode::Integer, low, span as u128 + 1 + extra)
                    }
                    _ => (KeyCode::Hashed, 0, 0),
                }
            }
        };
        KeyField { least, radix, nullable, code, dtype: value.dtype.clone(), repr: value.repr }
    }

    /// Codes of valid values.
    fn values(&self) -> u128 {
        self.radix - u128::from(self.nullable)
    }

    fn emit_code(
        &self,
        value: &Value,
        params: &mut Params,
        out: &mut Emitter,
        outside: &mut Vec<String>,
    ) -> String {
        // What lies under a null may be out of range and says nothing.
        let valid = value.valid.as_ref().map_or(String::new(), |valid| format!("{valid} && "));
        let plain = match &self.code {
            KeyCode::Integer if value.repr == Repr::Bool => {
                format!("(u64)({} ? 1 : 0)", value.code)
            }
            KeyCode::Integer => {
                let least = params.word("u64", self.least as u64);
                let code = out.let_("u64", format_args!("(u64)({}) - {least}", value.code));
                let (low, high) = value.bounds();
                let greatest = self.greatest();
                if low < self.least || high > greatest {
                    outside.extend(
                        self.emit_outside(value, &code, params)
                            .map(|test| format!("({valid}{test})")),
                    );
                    code
                } else if out.may_fail() && self.values() < WHOLE {
                    // Codes are places in memory, also of a row that failed.
                    let last = params.word("u64", self.values().saturating_sub(1) as u64);
                    out.let_("u64", format_args!("minimum<u64>({code}, {last})"))
                } else {
                    code
                }
            }
            KeyCode::Float if value.repr == Repr::F32 => format!("(u64)order_f32({})", value.code),
            KeyCode::Float => format!("order_f64({})", value.code),
            KeyCode::Dictionary(_) => {
                let input =
                    value.dictionary.as_ref().expect("a key laid out by codes is read by codes");
                format!("(u64)({})", input.code)
            }
            KeyCode::Hashed => unreachable!("a hashed field is never packed"),
        };
        match (&value.valid, self.nullable) {
            (Some(valid), true) => {
                let null = params.word("u64", (self.radix - 1) as u64);
                out.let_("u64", format_args!("{valid} ? {plain} : {null}"))
            }
            _ => out.let_("u64", plain),
        }
    }

    fn greatest(&self) -> i128 {
        self.least + (self.values().max(1) - 1) as i128
    }

    /// C++ condition that a valid integer, some of whose values lie outside of the field's, does.
    /// Its code is a difference modulo 2⁶⁴, and tells only where no value outside is congruent to
    /// one inside:
    ///
    /// ```text
    ///   field −5..=10, values −100..=100    code > 15
    ///   field −5..=10, values 0..=2⁶⁴ − 1   value > 10: the code of 2⁶⁴ − 5 is 0
    /// ```
    fn emit_outside(&self, value: &Value, code: &str, params: &mut Params) -> Option<String> {
        const MODULUS: i128 = 1 << 64;
        let (least, greatest) = (self.least, self.greatest());
        let (low, high) = value.bounds();
        let last = greatest - least;
        let (below, above) = (low.saturating_sub(least), high.saturating_sub(least));
        if value.repr != Repr::I128 && below > last - MODULUS && above < MODULUS {
            let last = params.word("u64", last as u64);
            return Some(format!("{code} > {last}"));
        }
        // In the value's own type, where what it cannot hold needs no comparison.
        let mut bound = |bound: i128| match value.repr {
            Repr::I128 => self.emit_wide(bound, params),
            repr => {
                let ctype = repr.device_type();
                format!("({ctype}){}", params.word("u64", bound as u64))
            }
        };
        if low > greatest || high < least {
            return Some("true".into());
        }
        let below = (low < least).then(|| format!("{} < {}", value.code, bound(least)));
        let above = (high > greatest).then(|| format!("{} > {}", value.code, bound(greatest)));
        let tests: Vec<_> = below.into_iter().chain(above).collect();
        Some(format!("({})", tests.join(" || ")))
    }

    fn emit_wide(&self, value: i128, params: &mut Params) -> String {
        let high = params.word("u64", (value >> 64) as u64);
        let low = params.word("u64", value as u64);
        format!("((i128)(((u128){high} << 64) | {low}))")
    }

    fn emit_value(&self, code: &str, params: &mut Params, out: &mut Emitter) -> Value {
        let valid = self.nullable.then(|| {
            let null = params.word("u64", (self.radix - 1) as u64);
            out.let_("bool", format_args!("{code} != {null}"))
        });
        let mut value = Value::new(self.dtype.clone(), self.repr, String::new(), valid);
        let ctype = self.repr.device_type();
        match &self.code {
            KeyCode::Integer => {
                let least = params.word("u64", self.least as u64);
                value.code = match self.repr {
                    Repr::I128 => {
                        let least = self.emit_wide(self.least, params);
                        out.let_(ctype, format_args!("{least} + (i128)(u128){code}"))
                    }
                    _ => out.let_(ctype, format_args!("({ctype})({code} + {least})")),
                };
                value.range = Some((self.least, self.least + (self.values().max(1) - 1) as i128));
            }
            KeyCode::Float => {
                let narrow = if self.repr == Repr::F32 { "(u32)" } else { "" };
                value.code = out.let_(ctype, format_args!("unorder_{ctype}({narrow}{code})"));
            }
            KeyCode::Dictionary(dictionary) => {
                let name = out.let_("u32", format_args!("(u32)({code})"));
                value = dictionary_value(self.dtype.clone(), dictionary, name, value.valid, params);
            }
            KeyCode::Hashed => unreachable!("a hashed field has no code to decode"),
        }
        value
    }
}

/// The value of a dictionary-encoded column whose code has this name.
pub(crate) fn dictionary_value(
    dtype: DataType,
    dictionary: &std::sync::Arc<crate::column::Dictionary>,
    code: String,
    valid: Option<String>,
    params: &mut Params,
) -> Value {
    let views = params.pointer("const view", &dictionary.views, 0);
    for characters in dictionary.characters.iter() {
        params.keep(characters);
    }
    // Garbage codes lie under nulls.
    let lookup = match &valid {
        Some(valid) => format!("{views}[{valid} ? {code} : 0u]"),
        None => format!("{views}[{code}]"),
    };
    let mut value = Value::new(dtype, Repr::View, lookup, valid);
    value.dictionary = Some(super::value::DictionaryInput { code, dictionary: dictionary.clone() });
    value
}

/// Emits a hash of a value and what was hashed before.
pub(super) fn emit_hash(value: &Value, hash: &str, out: &mut Emitter) -> String {
    let mixed = match value.repr {
        Repr::View => format!("{}({hash}, {})", out.calls(HASH_VIEW), value.code),
        // Narrow and wide representations of one value must agree.
        Repr::F64 => format!("hash_combine({hash}, order_f64({}))", value.code),
        Repr::F32 => format!("hash_combine({hash}, order_f32({}))", value.code),
        // A null struct is as many words as a null field: what tells them apart must not depend on
        // what follows.
        Repr::Struct => {
            let there = out.let_("u64", format_args!("hash_combine({hash}, 1)"));
            value.fields.iter().fold(there, |hash, field| emit_hash(field, &hash, out))
        }
        Repr::List => {
            let (list, mixed, place) = (out.let_("view", value.stored()), out.fresh(), out.fresh());
            out.variable("u64", &mixed, format_args!("hash_combine({hash}, {list}.length)"));
            out.count_up(&place, 0, format_args!("{list}.length"));
            if let Some(element) = element_of(value, &list, &place, out) {
                let next = emit_hash(&element, &mixed, out);
                out.line(format_args!("{mixed} = {next};"));
            }
            out.close("}");
            mixed
        }
        _ => format!("{}({hash}, (i128)({}))", out.calls(HASH_I128), value.code),
    };
    match &value.valid {
        Some(valid) => {
            out.let_("u64", format_args!("{valid} ? {mixed} : hash_combine({hash}, 0x6e756c6cull)"))
        }
        None => out.let_("u64", mixed),
    }
}

/// Emits the number of the part, of `parts`, that rows of these keys belong to: a hash, scaled.
pub(crate) fn emit_part(
    keys: &[Value],
    secret: u64,
    parts: u32,
    params: &mut Params,
    out: &mut Emitter,
) -> Value {
    let [secret, parts] = [secret, parts.into()].map(|word: u64| params.word("u64", word));
    let hash = keys.iter().fold(secret, |hash, key| emit_hash(key, &hash, out));
    Value::number(out.let_("u32", format_args!("(u32)((({hash}) >> 32) * {parts} >> 32)")))
}

/// C++ `bool`: two values of one type are equal as keys (nulls equal, NaN equal, −0.0 = 0.0).
pub(crate) fn emit_same(left: &Value, right: &Value, out: &mut Emitter) -> String {
    let equal = emit_equal(left, right, out);
    if left.valid.is_none() && right.valid.is_none() {
        return out.let_("bool", equal);
    }
    let (a, b) = (left.validity(), right.validity());
    out.let_("bool", format_args!("({a}) == ({b}) && (!({a}) || {equal})"))
}

/// C++ `bool`: two values of one type that are not null are equal as keys (NaN equal, −0.0 = 0.0).
/// Nulls within lists and structs are equal.
pub(super) fn emit_equal(left: &Value, right: &Value, out: &mut Emitter) -> String {
    match left.repr {
        Repr::View => format!("{}({}, {})", out.calls(VIEWS_EQUAL), left.code, right.code),
        Repr::F64 => format!("(order_f64({}) == order_f64({}))", left.code, right.code),
        Repr::F32 => format!("(order_f32({}) == order_f32({}))", left.code, right.code),
        Repr::Struct => {
            let fields = left
                .fields
                .iter()
                .zip(&right.fields)
                .map(|(left, right)| emit_same(left, right, out));
            format!("({})", fields.collect::<Vec<_>>().join(" && "))
        }
        Repr::List => {
            let (one, two) = (out.let_("view", left.stored()), out.let_("view", right.stored()));
            let (equal, place) = (out.fresh(), out.fresh());
            out.variable("bool", &equal, format_args!("{one}.length == {two}.length"));
            out.repeat(format_args!(
                "for (u32 {place} = 0; {equal} && {place} < {one}.length; {place}++)"
            ));
            let elements =
                [(left, &one), (right, &two)].map(|(of, list)| element_of(of, list, &place, out));
            if let [Some(a), Some(b)] = elements {
                let same = emit_same(&a, &b, out);
                out.line(format_args!("{equal} = {same};"));
            }
            out.close("}");
            equal
        }
        _ => format!("({} == {})", widen(left, Repr::I128), widen(right, Repr::I128)),
    }
}
