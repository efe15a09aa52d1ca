//! Texts.

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, DataType as TreeType, Expr as Tree, Value as Constant,
};

use super::super::string::LengthUnit;
use super::*;
use crate::codegen::device_function::{ENDS_WITH, STARTS_WITH, WORDS_CAPITAL};
use crate::host::bits::bin;
use crate::host::digests::{md5, sha256};
use crate::host::shorthand::{concat, formats, hex, len, length};
use crate::host::utf8;
use crate::sql::ast::{binary, call, case, cast, nested, number, text};

pub(super) const FAMILY: &[Function] = &[
    row("starts_with")
        .also(&["prefix"])
        .two(|c, value, part, _| c.text_test(STARTS_WITH, value, part))
        .total(),
    row("ends_with")
        .also(&["suffix"])
        .two(|c, value, part, _| c.text_test(ENDS_WITH, value, part))
        .total(),
    row("contains").two(|c, value, part, _| c.text_test("contains", value, part)).total(),
    row("strpos").two(|c, value, part, dtype| c.position(value, part, dtype)).total(),
    row("character_length")
        .one(|c, value, dtype| c.length(value, LengthUnit::Characters, dtype))
        .total(),
    row("octet_length")
        .also(&["strlen"])
        .one(|c, value, dtype| c.length(value, LengthUnit::Bytes, dtype))
        .total(),
    row("bit_length").one(|c, value, dtype| c.length(value, LengthUnit::Bits, dtype)).total(),
    row("substr").several(2..=3, |c, call| c.substring(call.args, call.dtype)).fails(|args, _| {
        // Not negative, with the sign of a constant.
        let counts =
            |count| constant(count).and_then(|v| to_zero(&v)).is_some_and(|sign| sign.is_ge());
        match args {
            [_, start] => !is_constant(start),
            [_, start, count] => !(is_constant(start) && counts(count)),
            _ => true,
        }
    }),
    row("left").two(|c, value, count, dtype| c.end("left_part", value, count, dtype)).total(),
    row("right").two(|c, value, count, dtype| c.end("right_part", value, count, dtype)).total(),
    row("btrim").several(1..=2, |c, call| trimmed(c, call, "true, true")).total(),
    row("ltrim").several(1..=2, |c, call| trimmed(c, call, "true, false")).total(),
    row("rtrim").several(1..=2, |c, call| trimmed(c, call, "false, true")).total(),
    row("split_part")
        .three(|c, value, between, field, dtype| c.field(value, between, field, dtype))
        .fails(|args, _| {
            let field = args.get(2).and_then(constant).and_then(|field| to_zero(&field));
            !field.is_some_and(|sign| sign.is_ne())
        }),
    row("concat")
        .typed("takes texts and other values, or lists", concat)
        .several(0..=usize::MAX, |c, call| c.concat(call.args, call.dtype))
        .total(),
    row("upper")
        .also(&["ucase"])
        .one(|c, value, dtype| c.in_case("upper_ascii", value, dtype))
        .total(),
    row("lower")
        .also(&["lcase"])
        .one(|c, value, dtype| c.in_case("lower_ascii", value, dtype))
        .total(),
    row("initcap").one(|c, value, dtype| c.in_case(WORDS_CAPITAL, value, dtype)).total(),
    row("concat_ws")
        .several(1..=usize::MAX, |c, call| {
            c.concat_with(&call.args[0], &call.args[1..], call.dtype)
        })
        .total(),
    row("translate").three(|c, text, from, to, dtype| c.translated(text, from, to, dtype)).total(),
    row("overlay").several(3..=4, |c, call| c.overlaid(call.args, call.dtype)),
    row("chr").one(|c, code, dtype| c.character(code, dtype)),
    row("to_hex").one(|c, value, dtype| c.hexadecimal(value, dtype)).total(),
    row("levenshtein").two(|c, one, two, dtype| c.distance(one, two, dtype)),
    row("find_in_set").two(|c, text, list, dtype| c.place_in_set(text, list, dtype)),
    row("substr_index")
        .three(|c, text, between, count, dtype| c.before_occurrence(text, between, count, dtype)),
    row("reverse").one(|c, value, dtype| c.reversed(value, dtype)).total(),
    row("repeat").two(|c, value, count, dtype| c.repeated(value, count, dtype)),
    row("replace").three(|c, value, from, to, dtype| c.replaced(value, from, to, dtype)).total(),
    row("lpad").several(2..=3, |c, call| c.padded(true, call.args, call.dtype)),
    row("rpad").several(2..=3, |c, call| c.padded(false, call.args, call.dtype)),
    row("ascii").one(|c, value, dtype| c.first_character(value, dtype)).total(),
    row("len").typed("takes a string or a list", len),
    row("length").typed("takes a string or a list", length),
    row("hex").typed("takes an integer, a string or bytes", hex),
    row("md5").on_host(md5).total(),
    row("sha256").on_host(sha256).total(),
    row("bin")
        .also(&["to_binary"])
        .on_host(bin)
        .one(|c, value, dtype| c.bits(value, dtype))
        .total(),
    row("encode").typed("takes a text, or a text or bytes and an encoding", utf8::encode),
    row("decode").typed("takes bytes, or a text or bytes and an encoding", utf8::decode),
    row("base64").also(&["to_base64"]).written("takes bytes or a text", |_, args| {
        let [value] = args else { return None };
        Some(call("encode", vec![value.clone(), text("base64pad")]))
    }),
    row("from_base64").written("takes a text in base64", |_, args| {
        let [value] = args else { return None };
        Some(call("decode", vec![value.clone(), text("base64pad")]))
    }),
    row("unhex").also(&["from_hex"]).written("takes a text of hexadecimal digits", |_, args| {
        let [value] = args else { return None };
        Some(call("decode", vec![value.clone(), text("hex")]))
    }),
    row("printf").typed("takes a constant pattern, and a value for each % in it", formats::printf),
    row("format").typed("takes a constant pattern, and a value for each {} in it", formats::format),
    row("text_of_float").on_host(formats::text_of_float),
    row("unicode").also(&["ord"]).written("takes a text", |_, args| first_character(args)),
    row("string_split")
        .also(&["split", "str_split"])
        .written("takes a text and what stands between its parts", |_, args| split(args)),
];

#[cfg(test)]
pub(super) const PAGE: &[Line] = &[
    yes(
        "`len` of strings and lists, `hex` and `bin` (`to_binary`) of integers, `typeof`",
        "`SELECT len(s), len([i, j]), hex(i), bin(i), typeof(x), typeof([m]) FROM t`",
        "",
    ),
    no(
        "`hex` of strings and bytes, `bin` of strings, `md5`, `sha256`",
        "`SELECT hex(s), bin(s), md5(s), sha256(s) FROM t`",
        "not yet",
    ),
    no(
        "`encode`, `decode`: bytes of a text in UTF-8 and back, or in `'hex'` and `'base64'`",
        "`SELECT decode(encode(s)), encode(s, 'hex') FROM t`",
        "not yet",
    ),
    no(
        "`base64`, `from_base64`, `unhex`",
        "`SELECT base64(encode(s)), from_base64(base64(encode(s))), decode(unhex(hex(s))) FROM t`",
        "not yet",
    ),
    yes(
        "`printf`, `format`, with a constant pattern, of integers, strings, booleans and dates: \
            `%d`, `%5d`, `%05d`, `%-5s`, `%.2s`; `{}`, `{0}`, `{:5d}`, `{:<5}`, `{:05d}`",
        "`SELECT printf('%3d: %s', i, s), format('{0}-{1}-{0}', p, d) FROM t`",
        "other forms are errors",
    ),
    no(
        "`printf`, `format` of floats and decimals: `%f`, `%8.2f`, `{}`, `{:.2f}`",
        "`SELECT printf('%.2f', x), format('{:.2f}', m) FROM t`",
        "exact digits are written on the host",
    ),
    yes(
        "`starts_with`, `^@`, `ends_with`, `contains`, `strpos`",
        "`SELECT starts_with(s, 'a'), s ^@ p, ends_with(s, p), contains(s, 'b'), strpos(s, p) \
            FROM t`",
        "",
    ),
    yes(
        "`length`, `octet_length`, `bit_length`, `ascii`",
        "`SELECT character_length(s), octet_length(s), bit_length(s), ascii(p) FROM t`",
        "",
    ),
    yes(
        "`substr`, `left`, `right`, `split_part`",
        "`SELECT substr(s, 2, 3), left(s, 2), right(s, 2), split_part(s, ' ', -1) FROM t`",
        "",
    ),
    yes(
        "`trim`, `ltrim`, `rtrim`, of blanks or of a set of characters",
        "`SELECT trim(s), rtrim(s, 'cb'), trim(BOTH p FROM s) FROM t`",
        "",
    ),
    yes(
        "`concat`, `replace`, `lpad`, `rpad`, `reverse`, `repeat`",
        "`SELECT concat(s, '-', p), replace(s, 'b', 'bb'), lpad(p, 5, '.'), reverse(s), repeat(p, \
            3) FROM t`",
        "strings of more than 2 GiB are an error",
    ),
    yes(
        "`upper`, `lower`, `initcap`",
        "`SELECT upper(p || s), initcap(s) FROM t WHERE octet_length(s) = length(s) AND \
            octet_length(p) = length(p)`",
        "a row with characters beyond ASCII, in a column of many distinct values, sends the query \
            to the CPU",
    ),
    yes(
        "`concat_ws`, `translate`, `overlay`, `chr`, `to_hex`",
        "`SELECT concat_ws('-', s, p), translate(s, 'ab', 'x'), overlay(s PLACING p FROM 2), \
            chr(65), to_hex(i) FROM t`",
        "",
    ),
    yes(
        "`levenshtein`, `find_in_set`, `substr_index`",
        "`SELECT levenshtein(s, p), find_in_set(s, 'a,b'), substr_index(s, ' ', 2) FROM t`",
        "two strings of more than 255 characters in `levenshtein` send the query to the CPU",
    ),
    yes(
        "`even`, `unicode`, `ord`, `yearweek`",
        "`SELECT even(x), unicode(s), ord(s), yearweek(d) FROM t`",
        "",
    ),
];

/// A text without blanks, or the characters of a set, at the ends that are told.
fn trimmed(c: &mut Compiler<'_>, call: &FunctionCall<'_>, ends: &str) -> Result<Value> {
    match call.args {
        [value, set] => c.trimmed(ends, value, set, call.dtype),
        args => c.part("trimmed", &args[0], ends, call.dtype),
    }
}

/// The number of the first character.
fn first_character(args: &[Tree]) -> Option<Tree> {
    let [subject] = args else { return None };
    let is_empty = binary(nested(subject.clone()), BinaryOperator::Eq, text(""));
    Some(case(is_empty, number("-1"), Some(call("ascii", vec![subject.clone()]))))
}

/// Parts of a text: between empty texts, its characters. The empty text is one part.
fn split(args: &[Tree]) -> Option<Tree> {
    let [subject, between] = args else { return None };
    let is_empty = |between: &Tree| {
        let Tree::Value(value) = between else { return false };
        value.value.clone().into_string().is_some_and(|text| text.is_empty())
    };
    if is_empty(between) {
        let characters = cast(Tree::value(Constant::Null), TreeType::Text);
        return Some(call("string_to_array", vec![subject.clone(), characters]));
    }
    let parts = call("string_to_array", vec![subject.clone(), between.clone()]);
    let is_empty = binary(nested(subject.clone()), BinaryOperator::Eq, text(""));
    Some(case(is_empty, call("make_array", vec![text("")]), Some(parts)))
}
