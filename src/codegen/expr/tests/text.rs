//! Strings: compared, cut, made of others, searched, read and printed.

use super::{INTEGERS, check, check_all};

const STRINGS: &[&str] = &["s", "sn", "ds", "dn", "dlong"];

#[test]
fn functions_of_words() {
    check(
        "test_words",
        &[
            ("initcap({})", &["ds", "dn", "dlong"]),
            ("initcap(CASE WHEN octet_length({}) = character_length({}) THEN {} END)", STRINGS),
            ("concat_ws({}, t, NULL, 'x', s)", STRINGS),
            ("concat_ws('-', {}, t)", STRINGS),
            ("concat_ws('', {}, t, i32)", &["s"]),
            ("translate({}, 'abcé', 'xy')", STRINGS),
            ("translate({}, 'é€a', 'eé')", STRINGS),
            ("translate({}, t, s)", STRINGS),
            ("overlay({} PLACING 'éX' FROM 2)", STRINGS),
            ("overlay({} PLACING t FROM 3 FOR 4)", STRINGS),
            ("overlay({} PLACING t FROM i64 FOR ri64)", STRINGS),
            ("overlay(s PLACING t FROM 5 FOR -2)", &[]),
            ("chr({})", &["i64", "ri64", "i32 + 8300", "ri64 + 128512"]),
            ("to_hex({})", INTEGERS),
            ("to_hex(r{})", INTEGERS),
            ("levenshtein({}, t)", STRINGS),
            ("levenshtein({}, 'special')", STRINGS),
            ("find_in_set({}, 'a,abc,,é,ks')", STRINGS),
            ("find_in_set('a', {})", STRINGS),
            ("find_in_set(t, {})", STRINGS),
            ("substr_index({}, 'a', 2)", STRINGS),
            ("substr_index({}, 'ab', -2)", STRINGS),
            ("substr_index({}, ' ', i64)", STRINGS),
            ("substr_index({}, t, 1)", STRINGS),
            ("substr_index({}, '', 1)", STRINGS),
        ],
    );
}

#[test]
fn regular_expressions_match_count_and_replace() {
    check(
        "test_regex",
        &[
            ("{} ~ 'a+b'", STRINGS),
            ("{} !~ '^a.c$'", STRINGS),
            ("{} ~* 'SPECIAL|É'", STRINGS),
            ("{} !~* '^K'", STRINGS),
            ("{} SIMILAR TO '(a|b)*c'", STRINGS),
            ("{} ~ ''", STRINGS),
            ("{} ~ '^$'", STRINGS),
            ("{} ~ '\\w+-\\w+'", STRINGS),
            ("{} ~ '(?-u:\\bspecial\\b)'", STRINGS),
            ("{} ~ NULL", STRINGS),
            ("regexp_like({}, '^[a-d]+$', 'i')", STRINGS),
            ("regexp_like({}, 'A.C', 'is')", STRINGS),
            ("regexp_count({}, 'a')", STRINGS),
            ("regexp_count({}, 'a*')", STRINGS),
            ("regexp_count({}, 'ab|abab', 2)", STRINGS),
            ("regexp_count({}, '^A', 1, 'i')", STRINGS),
            ("regexp_instr({}, '[bé]')", STRINGS),
            ("regexp_instr({}, 's?p')", STRINGS),
            ("regexp_replace({}, 'a+', 'X')", STRINGS),
            ("regexp_replace({}, 'a+', '<A>', 'g')", STRINGS),
            ("regexp_replace({}, 'a*', '-', 'g')", STRINGS),
            ("regexp_replace({}, '[ée]', '', 'g')", STRINGS),
            ("regexp_replace({}, 'special|requests', 'é', 'gi')", STRINGS),
            ("regexp_replace({}, '^.*$', 'all')", STRINGS),
            ("{} ILIKE '%É%'", STRINGS),
            ("{} NOT ILIKE '_É'", STRINGS),
            ("{} ILIKE CASE WHEN octet_length(t) = character_length(t) THEN t END", STRINGS),
        ],
    );
}

#[test]
fn strings_compare_match_and_shorten_by_characters() {
    check(
        "test_strings",
        &[
            ("{} = t", STRINGS),
            ("{} <> t", STRINGS),
            ("{} < t", STRINGS),
            ("{} >= t", STRINGS),
            ("{} IS NOT DISTINCT FROM t", STRINGS),
            ("{} = 'abcdefghijklm'", STRINGS),
            ("{} <> 'abc'", STRINGS),
            ("{} < 'abcd'", STRINGS),
            ("{} > 'abcdefghijkl'", STRINGS),
            ("{} BETWEEN 'a' AND 'abcz'", STRINGS),
            ("{} IN ('', 'é', 'abcdefghijklm', 'nowhere')", STRINGS),
            ("{} NOT IN ('abc', NULL)", STRINGS),
            ("{} LIKE 'abc%'", STRINGS),
            ("{} LIKE '%é'", STRINGS),
            ("{} LIKE '%special%'", STRINGS),
            ("{} NOT LIKE '%special%requests%'", STRINGS),
            ("{} LIKE 'ab%ab%ac'", STRINGS),
            ("{} LIKE 'a%a%b'", STRINGS),
            ("{} LIKE 'a_c'", STRINGS),
            ("{} LIKE '_'", STRINGS),
            ("{} LIKE '%b_d%'", STRINGS),
            ("{} LIKE '100\\%'", STRINGS),
            ("{} LIKE 'a\\_c'", STRINGS),
            ("{} LIKE '%'", STRINGS),
            ("{} LIKE ''", STRINGS),
            ("{} LIKE '%ghijklm%'", STRINGS),
            ("{} LIKE '%zzzzzzzzzzzzz%'", STRINGS),
            ("starts_with({}, 'abcde')", STRINGS),
            ("ends_with({}, 'quests')", STRINGS),
            ("contains({}, t)", STRINGS),
            ("starts_with({}, t)", STRINGS),
            ("strpos({}, 'e')", STRINGS),
            ("character_length({})", STRINGS),
            ("octet_length({})", STRINGS),
            ("bit_length({})", STRINGS),
            ("substr({}, 1, 2)", STRINGS),
            ("substr({}, 3)", STRINGS),
            ("substr({}, 2, 13)", STRINGS),
            ("substr({}, -1, 4)", STRINGS),
            ("substr({}, 0)", STRINGS),
            ("substr({}, 15, 30)", STRINGS),
            ("substr(s, i64, ri64)", &[]),
            ("left({}, 3)", STRINGS),
            ("left({}, -3)", STRINGS),
            ("right({}, 3)", STRINGS),
            ("right({}, -3)", STRINGS),
            ("trim({})", STRINGS),
            ("btrim({}, 'a')", STRINGS),
            ("btrim({}, 'abéd ')", STRINGS),
            ("ltrim({}, 'cba')", STRINGS),
            ("rtrim({}, 'édm lkjihg')", STRINGS),
            ("btrim({}, '')", STRINGS),
            ("btrim({}, t)", STRINGS),
            ("rtrim({}, NULL)", STRINGS),
            ("split_part({}, ' ', 1)", STRINGS),
            ("split_part({}, ' ', 2)", STRINGS),
            ("split_part({}, ' ', -1)", STRINGS),
            ("split_part({}, 's', -3)", STRINGS),
            ("split_part({}, 'ab', 2)", STRINGS),
            ("split_part({}, 'aa', -2)", STRINGS),
            ("split_part({}, '', 1)", STRINGS),
            ("split_part({}, '', 2)", STRINGS),
            ("split_part({}, t, 2)", STRINGS),
            ("split_part({}, 'a', i64)", STRINGS),
            ("ascii({})", STRINGS),
            ("ascii(substr({}, 13))", STRINGS),
            ("character_length({}) + 5", STRINGS),
            ("strpos({}, 'é') * octet_length({})", STRINGS),
            ("{} LIKE t", STRINGS),
            ("{} ILIKE 'ABC%'", STRINGS),
            ("{} NOT ILIKE '%SPECIAL%Requests%'", STRINGS),
            ("{} ILIKE 'A_C'", STRINGS),
            ("{} ILIKE '%k_s%'", STRINGS),
            ("{} ILIKE '%KS'", STRINGS),
            ("{} ILIKE '100\\%'", STRINGS),
            ("{} ILIKE ''", STRINGS),
            ("ltrim({})", STRINGS),
            ("rtrim({})", STRINGS),
            ("upper({}) = 'ABC'", &["ds", "dn", "dlong"]),
            ("{} ILIKE 'ABC%'", &["ds", "dn", "dlong"]),
            ("{} = 'a' OR {} LIKE '%special%' OR {} IS NULL", STRINGS),
            ("nullif({}, 'abc') = 'abcd'", &["ds", "dn", "dlong"]),
            ("coalesce({}, 'abc') = 'abc'", &["ds", "dlong"]),
            ("{} IN ('abc', 'abcd', 'entry 7', '100%')", &["dlong"]),
            ("ds = ds", &[]),
            ("ds < dn", &[]),
        ],
    );
}

#[test]
fn strings_are_made_of_others() {
    check(
        "test_texts",
        &[
            ("{} || t", STRINGS),
            ("t || {} || '!'", STRINGS),
            ("{} || NULL", STRINGS),
            ("concat({}, t)", STRINGS),
            ("concat({}, ' and ', t, NULL, {})", STRINGS),
            ("concat('')", &[]),
            ("concat({})", STRINGS),
            ("replace({}, 'a', 'xyz')", STRINGS),
            ("replace({}, 'ab', '')", STRINGS),
            ("replace({}, '', 'x')", STRINGS),
            ("replace({}, 'é', 'e')", STRINGS),
            ("replace({}, 'special', 'ordinary and plain')", STRINGS),
            ("replace({}, t, s)", STRINGS),
            ("reverse({})", STRINGS),
            ("repeat({}, 3)", STRINGS),
            ("repeat({}, 0)", STRINGS),
            ("repeat({}, -2)", STRINGS),
            ("repeat(left({}, 2), i8 % 9)", STRINGS),
            ("lpad({}, 5)", STRINGS),
            ("rpad({}, 15)", STRINGS),
            ("lpad({}, 20, 'éx')", STRINGS),
            ("rpad({}, 20, 'éx-')", STRINGS),
            ("lpad({}, 30, '')", STRINGS),
            ("lpad({}, 0, 'a')", STRINGS),
            ("rpad({}, -3, 'a')", STRINGS),
            ("rpad({}, ri8, t)", STRINGS),
            ("upper({})", &["ds", "dn", "dlong"]),
            ("lower({})", &["ds", "dn", "dlong"]),
            (
                "CASE WHEN octet_length({}) = character_length({}) THEN upper({}) ELSE 'é' END",
                STRINGS,
            ),
            ("lower(CASE WHEN octet_length({}) = character_length({}) THEN {} END)", STRINGS),
            ("upper({} || '!') = 'ABC!'", &["ds", "dn", "dlong"]),
            ("character_length(t || {} || s)", STRINGS),
            ("concat({}, s) LIKE '%special%requests%'", STRINGS),
        ],
    );
}

#[test]
fn texts_are_read_as_arrow_reads_them() {
    let mut sql = Vec::new();
    let mut casts = |from: &str, targets: &[&str]| {
        for to in targets {
            sql.push(format!("arrow_cast({from}, '{to}')"));
            sql.push(format!("arrow_try_cast({from}, '{to}')"));
        }
    };
    casts(
        "sint",
        &[
            "Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64", "Boolean",
            "Float64",
        ],
    );
    casts(
        "sint",
        &[
            "Decimal128(3, 0)",
            "Decimal128(15, 2)",
            "Decimal128(38, 0)",
            "Decimal128(38, 20)",
            "Date32",
        ],
    );
    casts(
        "sfloat",
        &[
            "Float64",
            "Float32",
            "Decimal128(9, 1)",
            "Decimal128(15, 2)",
            "Decimal128(38, 10)",
            "Int32",
        ],
    );
    let stamps = ["Second", "Millisecond", "Microsecond", "Nanosecond"]
        .map(|unit| format!("Timestamp({unit}, None)"));
    casts("stime", &stamps.each_ref().map(String::as_str));
    casts("stime", &["Date32", "Timestamp(Microsecond, Some(\"UTC\"))", "Boolean"]);
    casts("sdate", &["Date32", "Timestamp(Second, None)"]);
    casts("s", &["Boolean", "Int64", "Decimal128(15, 2)", "Date32", "Timestamp(Nanosecond, None)"]);
    casts("ds", &["Boolean", "Int64", "Float32"]);
    check_all("test_parse", &sql);
}

#[test]
fn values_are_printed_as_arrow_prints_them() {
    check(
        "test_format",
        &[
            ("CAST({} AS VARCHAR)", INTEGERS),
            (
                "CAST({} AS VARCHAR)",
                &["f32", "f64", "rf64", "b", "bn", "m", "w", "k", "rm", "date", "rdate", "wild"],
            ),
            ("CAST({} AS VARCHAR)", &["ts", "tms", "tus", "tns", "utc"]),
            ("TRY_CAST({} AS VARCHAR)", &["i64", "f64", "wild"]),
            ("CAST(f64 / {} AS VARCHAR)", &["3", "7e20", "1e-7", "1e300"]),
            ("CAST(f32 / f32b AS VARCHAR)", &[]),
            ("CAST(CAST(m AS DECIMAL(38, {})) AS VARCHAR)", &["2", "10", "20"]),
            ("s || {}", &["i32", "f64", "m", "b", "date", "tms"]),
            ("concat({}, '-', s)", &["i64", "f32", "ts"]),
            ("CASE WHEN b THEN CAST(i64 AS VARCHAR) ELSE 'none' END", &[]),
            ("character_length(CAST(i64 AS VARCHAR))", &[]),
            ("CAST(CAST({} AS VARCHAR) AS DOUBLE)", &["f64", "f64b"]),
            ("CAST(CAST({} AS VARCHAR) AS BIGINT)", &["i64", "i32"]),
        ],
    );
}
