use super::*;
use crate::ops::powers;
use crate::ops::testing::*;

/// Bytes of a value; `None` of one that is empty and not quoted.
type CsvValue = Option<Vec<u8>>;

/// The rows that end, the begin of one that does not, and all values that end.
#[derive(Debug, PartialEq)]
struct Parsed {
    rows: Vec<Vec<CsvValue>>,
    rest: usize,
    fields: u64,
}

/// Reads a text by the rules, a value at a time.
fn simple(text: &[u8], marks: Marks) -> Parsed {
    let is_end = |byte: u8| byte == b'\n' || byte == b'\r';
    let (mut rows, mut fields, mut at) = (vec![], 0, 0);
    loop {
        while text.get(at).is_some_and(|byte| is_end(*byte)) {
            at += 1;
        }
        let rest = at;
        match text.get(at) {
            None => return Parsed { rows, rest, fields },
            Some(byte) if marks.comment == Some(*byte) => {
                while text.get(at).is_some_and(|byte| !is_end(*byte)) {
                    at += 1;
                }
                continue;
            }
            Some(_) => {}
        }
        let mut row = vec![];
        loop {
            let Some((value, end)) = simple_value(text, at, marks) else {
                return Parsed { rows, rest, fields };
            };
            row.push(value);
            fields += 1;
            at = end;
            if text[at] != marks.delimiter {
                break;
            }
            at += 1;
        }
        rows.push(row);
    }
}

/// The value that begins at a place, and the place of the delimiter or line end behind it.
fn simple_value(text: &[u8], mut at: usize, marks: Marks) -> Option<(CsvValue, usize)> {
    let (mut value, mut quoted) = (vec![], false);
    if text.get(at).is_some() && text.get(at) == marks.quote.as_ref() {
        quoted = true;
        at += 1;
        loop {
            let byte = *text.get(at)?;
            if Some(byte) == marks.quote {
                if text.get(at + 1) != Some(&byte) {
                    at += 1;
                    break;
                }
                value.push(byte);
                at += 2;
            } else if Some(byte) == marks.escape {
                value.push(*text.get(at + 1)?);
                at += 2;
            } else {
                value.push(byte);
                at += 1;
            }
        }
    }
    loop {
        let byte = *text.get(at)?;
        if byte == marks.delimiter || byte == b'\n' || byte == b'\r' {
            return Some(((quoted || !value.is_empty()).then_some(value), at));
        }
        value.push(byte);
        at += 1;
    }
}

const MARKS: Marks = Marks { delimiter: b',', quote: Some(b'"'), escape: None, comment: None };

struct Uploaded {
    nulls: Buffer,
    powers: Buffer,
}

impl Uploaded {
    fn new(device: &Device) -> Uploaded {
        Uploaded {
            nulls: device.alloc(OPERATOR, 16).unwrap(),
            powers: device.upload(OPERATOR, powers::for_parse()).unwrap(),
        }
    }

    fn rules(&self, fields: u64, fill: bool) -> Rules<'_> {
        Rules {
            fields,
            trim: false,
            fill,
            nulls: &self.nulls,
            null_count: 0,
            quoted_nulls: false,
            powers: &self.powers,
        }
    }
}

/// A text in device memory, behind some bytes that do not count.
fn placed(device: &Device, text: &[u8], begin: usize) -> Buffer {
    let mut bytes = vec![b'"'; begin];
    bytes.extend_from_slice(text);
    bytes.extend_from_slice(&[b','; 200]);
    upload(device, &bytes)
}

/// The strings of a column, which point into a text.
fn strings(data: &Buffer, validity: &Buffer, rows: usize, text: &Buffer) -> Vec<CsvValue> {
    let mut characters = vec![0; text.len()];
    text.read(0, &mut characters).unwrap();
    let (views, valid) = (read::<u128>(data, rows), read::<u8>(validity, rows));
    let value = |(view, valid): (u128, u8)| {
        let bytes = view.to_le_bytes();
        let length = u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize;
        let address = u64::from_le_bytes(bytes[8..].try_into().unwrap());
        let content = match length {
            0..=12 => bytes[4..4 + length].to_vec(),
            _ => {
                let at = (address - text.address()) as usize;
                assert_eq!(
                    bytes[4..8],
                    characters[at..at + 4],
                    "a view begins as its characters do"
                );
                characters[at..at + length].to_vec()
            }
        };
        (valid == 1).then_some(content)
    };
    views.into_iter().zip(valid).map(value).collect()
}

fn check(device: &Device, text: &[u8], begin: usize, marks: Marks) {
    let expected = simple(text, marks);
    let buffer = placed(device, text, begin);
    let (begin, end) = (begin as u64, (begin + text.len()) as u64);
    let view = CsvText { text: buffer.slice(0), begin, end, marks, state: CsvState::ROW };
    let scanned = view.scan(device).unwrap();
    let shown = String::from_utf8_lossy(text);
    assert_eq!(scanned.rows, expected.rows.len() as u64, "rows of {shown:?}");
    assert_eq!(scanned.fields, expected.fields, "values of {shown:?}");
    if scanned.state.is_in_row() || expected.rest == text.len() {
        assert_eq!(scanned.rest - begin, expected.rest as u64, "rest of {shown:?}");
    }
    let fields = view.fields(device, &scanned).unwrap();
    let most = expected.rows.iter().map(Vec::len).max().unwrap_or(0);
    let columns: Vec<CsvColumn> = (0..most as u32)
        .map(|field| CsvColumn { field, kind: CsvKind::Text, exact: true })
        .collect();
    let constants = Uploaded::new(device);
    let converted =
        convert(device, &view, &fields, &columns, &constants.rules(most as u64, true)).unwrap();
    let outcome = converted.outcome().unwrap();
    assert_eq!(outcome.ragged, None);
    for (at, (data, validity)) in converted.columns.iter().enumerate() {
        let found = strings(data, validity, expected.rows.len(), &buffer);
        let of = |row: &Vec<CsvValue>| row.get(at).cloned().flatten();
        let expected: Vec<CsvValue> = expected.rows.iter().map(of).collect();
        assert_eq!(found, expected, "column {at} of {shown:?}");
        assert_eq!(
            outcome.nulls[at],
            expected.iter().filter(|value| value.is_none()).count() as u64
        );
    }
}

#[test]
fn odd_texts_are_read_as_a_simple_reader_does() {
    let all = Marks { escape: Some(b'\\'), comment: Some(b'#'), ..MARKS };
    for device in devices() {
        for text in [
            "",
            "\n",
            "\r\n\r\n",
            "a",
            "a\n",
            "a,b\n1,2\n",
            "a,b\r\n1,2\r\n",
            "a\rb\r",
            ",\n",
            ",,\n\n,\n",
            "\"\"\n",
            "\"\",\n",
            "\"a\nb\",\"c,d\"\n",
            "\"x\"\"y\",\"\"\"\"\n",
            "\"x\"y,z\n",
            "\"x\"y\"z,1\n",
            "5\" pipe,6\" pipe\n",
            "a,\"open\n",
            "a,\"open\"",
            "#comment\na\n",
            "\"a\\\"b\",c\\,d\n",
            "# not, \"ended",
            " # a\n",
            "a,#b\n",
        ] {
            check(&device, text.as_bytes(), 0, MARKS);
            check(&device, text.as_bytes(), 63, all);
        }
    }
}

#[test]
fn random_texts_are_read_as_a_simple_reader_does() {
    const BYTES: &[u8] = b"aaaabc ,,,,\"\"\"\n\n\r\\#x";
    for device in devices() {
        for seed in 0..60u64 {
            let mut random = random(seed, 100_000);
            let mut next = |below: u64| random.next().unwrap() % below;
            // Mostly values in quotes, mostly others, or anything.
            let (length, quoted) = (next(3000) as usize, next(3));
            let mut text = vec![];
            while text.len() < length {
                match quoted {
                    0 => {
                        text.push(b'"');
                        for _ in 0..next(90) {
                            let byte = BYTES[next(BYTES.len() as u64) as usize];
                            text.push(byte);
                            text.extend((byte == b'"').then_some(byte));
                        }
                        text.extend([b'"', if next(3) == 0 { b'\n' } else { b',' }]);
                    }
                    1 => {
                        text.extend((0..next(40)).map(|_| b'a'));
                        text.push(if next(3) == 0 { b'\n' } else { b',' });
                    }
                    _ => text.push(BYTES[next(BYTES.len() as u64) as usize]),
                }
            }
            let marks = match next(3) {
                0 => MARKS,
                1 => Marks { escape: Some(b'\\'), comment: Some(b'#'), ..MARKS },
                _ => Marks { quote: None, delimiter: b' ', ..MARKS },
            };
            check(&device, &text, next(64) as usize, marks);
        }
    }
}

/// The automaton's state goes over the borders of segments, warps and tiles.
#[test]
fn long_texts_are_read_as_a_simple_reader_does() {
    for device in [device(5)].into_iter().chain(gpu()) {
        let mut text = vec![];
        for row in 0..4000u64 {
            text.extend(
                format!("{row},\"{}\n\"\"{row}\"\"\",x\n", "q,".repeat((row % 37) as usize))
                    .bytes(),
            );
        }
        text.extend(format!("1,\"{}\",y\nz", "\n,".repeat(40_000)).bytes());
        check(&device, &text, 17, MARKS);
    }
}

/// Converts one column of one-value rows: the values' bytes, whether each is valid, the first
/// refused.
fn converted(
    device: &Device,
    text: &str,
    kind: CsvKind,
    exact: bool,
) -> (Vec<u8>, Vec<u8>, Option<u64>) {
    let buffer = placed(device, text.as_bytes(), 5);
    let view = CsvText {
        text: buffer.slice(0),
        begin: 5,
        end: 5 + text.len() as u64,
        marks: MARKS,
        state: CsvState::ROW,
    };
    let scanned = view.scan(device).unwrap();
    let fields = view.fields(device, &scanned).unwrap();
    let constants = Uploaded::new(device);
    let columns = [CsvColumn { field: 0, kind, exact }];
    let done = convert(device, &view, &fields, &columns, &constants.rules(1, false)).unwrap();
    let outcome = done.outcome().unwrap();
    assert_eq!(outcome.ragged, None);
    let rows = scanned.rows as usize;
    let (data, validity) = &done.columns[0];
    (read::<u8>(data, rows * kind.width() as usize), read::<u8>(validity, rows), outcome.refused[0])
}

#[test]
fn values_are_converted_and_nulls_are_zero() {
    for device in devices() {
        let (data, valid, refused) =
            converted(&device, "1\n\"-2\"\n\"\"\n 30 \n", CsvKind::Signed(2), true);
        assert_eq!(
            (data, valid, refused),
            (vec![1, 0, 0xfe, 0xff, 0, 0, 30, 0], vec![1, 1, 0, 1], None)
        );
        let (data, _, _) = converted(&device, "0.1\n1e300\nnan\n", CsvKind::Float(8), true);
        let bits: Vec<u8> =
            [0.1f64, 1e300, f64::NAN].iter().flat_map(|x| x.to_le_bytes()).collect();
        assert_eq!(data, bits);
        let decimal = CsvKind::Decimal { width: 8, scale: 2, bound: 10u128.pow(10) };
        let (data, _, refused) = converted(&device, "1.25\n-3\n", decimal, true);
        assert_eq!(
            (data, refused),
            ([125i64, -300].iter().flat_map(|x| x.to_le_bytes()).collect(), None)
        );
        let (data, _, _) = converted(&device, "1970-01-02\n", CsvKind::Date, true);
        assert_eq!(data, 1i32.to_le_bytes());
        let micros = CsvKind::Timestamp { per_second: 1_000_000, zoned: false };
        let (data, _, refused) =
            converted(&device, "1970-01-01 00:00:01.5\n1970-01-02\n", micros, true);
        let expected: Vec<u8> =
            [1_500_000i64, 86_400_000_000].iter().flat_map(|x| x.to_le_bytes()).collect();
        assert_eq!((data, refused), (expected, None));
    }
}

#[test]
fn texts_of_no_value_are_refused_at_their_first_row() {
    let micros = CsvKind::Timestamp { per_second: 1_000_000, zoned: false };
    let instants = CsvKind::Timestamp { per_second: 1_000_000, zoned: true };
    let decimal = CsvKind::Decimal { width: 16, scale: 0, bound: 10u128.pow(38) };
    for device in devices() {
        let refused = |text: &str, kind, exact| converted(&device, text, kind, exact).2;
        assert_eq!(refused("1\n2\nx\ny\n", CsvKind::Signed(8), true), Some(2));
        assert_eq!(refused("127\n128\n", CsvKind::Signed(1), true), Some(1));
        assert_eq!(refused("9223372036854775808\n", CsvKind::Signed(8), true), Some(0));
        assert_eq!(
            refused("99999999999999999999999999999999999999\n1.5\n", decimal, true),
            Some(1)
        );
        assert_eq!(refused("1.5\n", decimal, false), None);
        assert_eq!(refused("true\nFALSE\nyes\n", CsvKind::Bool, true), Some(2));
        assert_eq!(refused("true\nno\n1\n", CsvKind::Bool, false), None);
        assert_eq!(refused("2020-01-01\n2020-01-01 10:00:00\n", CsvKind::Date, true), Some(1));
        assert_eq!(refused("0000-00-00\n", CsvKind::Date, true), Some(0));
        assert_eq!(
            refused("2020-01-01 10:00:00.123456\n2020-01-01 10:00:00.1234567\n", micros, true),
            Some(1)
        );
        assert_eq!(refused("2020-01-01 10:00:00 ERROR\n", micros, true), Some(0));
        assert_eq!(refused("2020-01-01T10:00:00\n2020-01-01T10:00:00Z\n", micros, true), Some(1));
        assert_eq!(
            refused("2020-01-01T10:00:00+02:00\n2020-01-01T10:00:00\n", instants, true),
            Some(1)
        );
        assert_eq!(refused("ä\n", CsvKind::Text, true), None);
    }
}

#[test]
fn rows_of_another_number_of_values_are_noted() {
    for device in devices() {
        let text = "1,2\n3\n4,5,6\n";
        let buffer = placed(&device, text.as_bytes(), 0);
        let view = CsvText {
            text: buffer.slice(0),
            begin: 0,
            end: text.len() as u64,
            marks: MARKS,
            state: CsvState::ROW,
        };
        let scanned = view.scan(&device).unwrap();
        let fields = view.fields(&device, &scanned).unwrap();
        let constants = Uploaded::new(&device);
        for (fill, expected) in [(false, Some(1)), (true, Some(2))] {
            let columns = [CsvColumn { field: 1, kind: CsvKind::Signed(8), exact: true }];
            let done =
                convert(&device, &view, &fields, &columns, &constants.rules(2, fill)).unwrap();
            assert_eq!(done.outcome().unwrap().ragged, expected);
            assert_eq!(read::<u8>(&done.columns[0].1, 3), [1, 0, 1]);
        }
    }
}
