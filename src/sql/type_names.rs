//! Types by the names that SQL has for them, and names of columns as SQL writes them.

use datafusion::arrow::datatypes::{DataType, FieldRef, TimeUnit};
use datafusion::sql::sqlparser::keywords::{
    Keyword, RESERVED_FOR_COLUMN_ALIAS, RESERVED_FOR_IDENTIFIER, RESERVED_FOR_TABLE_ALIAS,
};

/// The name that SQL has for a type, as DuckDB writes it. Statements take all of these names but
/// those of maps and of the null type.
///
/// ```
/// use warpframe::arrow::datatypes::DataType;
/// use warpframe::sql::type_name;
/// assert_eq!(type_name(&DataType::Utf8View), "VARCHAR");
/// assert_eq!(type_name(&DataType::Decimal128(10, 2)), "DECIMAL(10,2)");
/// ```
pub fn type_name(dtype: &DataType) -> String {
    let name = match dtype {
        DataType::Null => "\"NULL\"",
        DataType::Boolean => "BOOLEAN",
        DataType::Int8 => "TINYINT",
        DataType::Int16 => "SMALLINT",
        DataType::Int32 => "INTEGER",
        DataType::Int64 => "BIGINT",
        DataType::UInt8 => "UTINYINT",
        DataType::UInt16 => "USMALLINT",
        DataType::UInt32 => "UINTEGER",
        DataType::UInt64 => "UBIGINT",
        DataType::Float32 => "FLOAT",
        DataType::Float64 => "DOUBLE",
        DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8 => "VARCHAR",
        DataType::Date32 | DataType::Date64 => "DATE",
        DataType::Time32(_) | DataType::Time64(_) => "TIME",
        DataType::Timestamp(_, Some(_)) => "TIMESTAMP WITH TIME ZONE",
        DataType::Timestamp(TimeUnit::Second, None) => "TIMESTAMP_S",
        DataType::Timestamp(TimeUnit::Millisecond, None) => "TIMESTAMP_MS",
        DataType::Timestamp(TimeUnit::Microsecond, None) => "TIMESTAMP",
        DataType::Timestamp(TimeUnit::Nanosecond, None) => "TIMESTAMP_NS",
        DataType::Interval(_) | DataType::Duration(_) => "INTERVAL",
        dtype if dtype.is_binary() => "BLOB",
        DataType::Dictionary(_, values) => return type_name(values),
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => return format!("DECIMAL({precision},{scale})"),
        DataType::List(element) | DataType::LargeList(element) => {
            return format!("{}[]", type_name(element.data_type()));
        }
        DataType::FixedSizeList(element, size) => {
            return format!("{}[{size}]", type_name(element.data_type()));
        }
        DataType::Struct(fields) => {
            let field = |field: &FieldRef| {
                format!("{} {}", quoted_name(field.name()), type_name(field.data_type()))
            };
            let fields: Vec<String> = fields.iter().map(field).collect();
            return format!("STRUCT({})", fields.join(", "));
        }
        DataType::Map(entries, _) => {
            if let DataType::Struct(fields) = entries.data_type()
                && let [key, value] = &fields[..]
            {
                return format!(
                    "MAP({}, {})",
                    type_name(key.data_type()),
                    type_name(value.data_type())
                );
            }
            "MAP"
        }
        other => return other.to_string(),
    };
    name.into()
}

/// A name as SQL writes it: in quotes where it needs them.
///
/// ```
/// use warpframe::sql::quoted_name;
/// assert_eq!((quoted_name("km"), quoted_name("Km")), ("km".into(), "\"Km\"".into()));
/// ```
pub fn quoted_name(name: &str) -> String {
    let mut letters = name.chars();
    let is_plain = letters.next().is_some_and(|first| first.is_ascii_lowercase() || first == '_')
        && letters.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    let is_word = |word: &Keyword| format!("{word:?}").eq_ignore_ascii_case(name);
    let is_plain = is_plain
        && ![RESERVED_FOR_IDENTIFIER, RESERVED_FOR_COLUMN_ALIAS, RESERVED_FOR_TABLE_ALIAS]
            .into_iter()
            .flatten()
            .any(is_word);
    if is_plain { name.into() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}
