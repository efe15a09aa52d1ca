//! Functions of `kernels/*.cuh` that statements call, as far as kernels differ by them: whoever
//! writes a call notes which header the kernel has to include, and how long the call takes to
//! compile.

use warpframe_device::COMMON_HEADERS;

/// A family of device code that not all kernels need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KernelHeader {
    String,
    Text,
    Keys,
    List,
    OrderBytes,
    Partition,
    JoinPartitioned,
    Format,
    Parse,
    Math,
    Random,
    Interval,
    Words,
    Automaton,
    Captures,
    Tagged,
    Moment,
    Zone,
    BestRow,
    Exchange,
}

/// The files of other headers, in order of inclusion.
const FILES: [(KernelHeader, &str); 21] = [
    (KernelHeader::String, "string.cuh"),
    (KernelHeader::Text, "text.cuh"),
    (KernelHeader::Keys, "keys.cuh"),
    (KernelHeader::List, "list.cuh"),
    (KernelHeader::OrderBytes, "order_bytes.cuh"),
    (KernelHeader::Partition, "partition.cuh"),
    (KernelHeader::JoinPartitioned, "join_partitioned.cuh"),
    (KernelHeader::Format, "format.cuh"),
    (KernelHeader::Parse, "parse.cuh"),
    (KernelHeader::Parse, "parse_time.cuh"),
    (KernelHeader::Math, "math.cuh"),
    (KernelHeader::Random, "random.cuh"),
    (KernelHeader::Interval, "interval.cuh"),
    (KernelHeader::Words, "words.cuh"),
    (KernelHeader::Automaton, "automaton.cuh"),
    (KernelHeader::Captures, "captures.cuh"),
    (KernelHeader::Tagged, "tagged.cuh"),
    (KernelHeader::Moment, "moment.cuh"),
    (KernelHeader::Zone, "zone.cuh"),
    (KernelHeader::BestRow, "best_row.cuh"),
    (KernelHeader::Exchange, "exchange.cuh"),
];

/// Headers that a kernel needs, a bit each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct KernelHeaders(u32);

impl KernelHeaders {
    pub(super) fn add(&mut self, header: KernelHeader) {
        self.0 |= 1 << header as u32;
    }

    /// Those of a type.
    pub(super) fn add_of_type(&mut self, ctype: &str) {
        if matches!(ctype, "view" | "const view" | "const view*" | "view*") {
            self.add(KernelHeader::String);
        }
    }

    pub(super) fn and(self, others: KernelHeaders) -> KernelHeaders {
        KernelHeaders(self.0 | others.0)
    }

    /// Their `#include` directives.
    pub(super) fn includes(self) -> String {
        let needed = FILES.iter().filter(|(header, _)| self.0 >> *header as u32 & 1 != 0);
        let files = COMMON_HEADERS.iter().chain(needed.map(|(_, file)| file));
        files.map(|file| format!("#include \"{file}\"\n")).collect()
    }
}

/// A function of a kernel file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DeviceFunction {
    pub(super) name: &'static str,
    pub(super) header: Option<KernelHeader>,
    /// Of a function that is inlined wherever it is called: of how many characters of plain
    /// arithmetic a call takes the time to compile (`effort.rs`).
    pub(super) effort: usize,
}

/// A function that every kernel has, and that costs nothing beside its characters.
impl From<&'static str> for DeviceFunction {
    fn from(name: &'static str) -> Self {
        inlined(name, 0)
    }
}

const fn inlined(name: &'static str, effort: usize) -> DeviceFunction {
    DeviceFunction { name, header: None, effort }
}

const fn of(header: KernelHeader, name: &'static str, effort: usize) -> DeviceFunction {
    DeviceFunction { name, header: Some(header), effort }
}

// Differences between kernels of one row and of four (NVRTC 13.0, sm_90,
// `scripts/compile-times.py`).
pub(super) const QUOTIENT: DeviceFunction = inlined("quotient", 1000);
pub(super) const REMAINDER: DeviceFunction = inlined("remainder", 1000);
pub(super) const QUOTIENT_OVERFLOWS: DeviceFunction = inlined("quotient_overflows", 1000);
pub(super) const REMAINDER_OVERFLOWS: DeviceFunction = inlined("remainder_overflows", 1000);
pub(super) const FLOOR_QUOTIENT: DeviceFunction = inlined("floor_quotient", 1000);
pub(super) const FLOOR_REMAINDER: DeviceFunction = inlined("floor_remainder", 1000);
pub(super) const ROUNDED_QUOTIENT: DeviceFunction = inlined("rounded_quotient", 1000);
pub(super) const MUL_OVERFLOWS: DeviceFunction = inlined("mul_overflows", 700);
pub(super) const FDIV: DeviceFunction = inlined("fdiv", 1000);
/// Of the compiler's own library.
pub(super) const POW: DeviceFunction = inlined("pow", 900);
pub(super) const YEAR_OF: DeviceFunction = inlined("year_of", 600);
pub(super) const QUARTER_OF: DeviceFunction = inlined("quarter_of", 600);
pub(super) const MONTH_OF: DeviceFunction = inlined("month_of", 600);
pub(super) const DAY_OF: DeviceFunction = inlined("day_of", 600);
pub(super) const AVERAGE_OF: DeviceFunction = inlined("average_of", 600);
pub(super) const INTERVAL_OF: DeviceFunction = of(KernelHeader::Interval, "interval_of", 600);
pub(super) const TRIMMED_OF: DeviceFunction = of(KernelHeader::String, "trimmed_of", 600);
pub(super) const VIEWS_EQUAL: DeviceFunction = of(KernelHeader::String, "views_equal", 450);
pub(super) const STARTS_WITH: DeviceFunction = of(KernelHeader::String, "starts_with", 700);
pub(super) const ENDS_WITH: DeviceFunction = of(KernelHeader::String, "ends_with", 1000);
pub(super) const SORT_F32: DeviceFunction = of(KernelHeader::Keys, "sort_f32", 700);
pub(super) const SORT_F64: DeviceFunction = of(KernelHeader::Keys, "sort_f64", 700);
pub(super) const HASH_VIEW: DeviceFunction = of(KernelHeader::Keys, "hash_view", 300);
pub(super) const HASH_I128: DeviceFunction = inlined("hash_i128", 800);
pub(super) const HASH_FIND: DeviceFunction = inlined("hash_find", 1000);
pub(super) const PAIR_FIND: DeviceFunction = inlined("pair_find", 1000);
pub(super) const VIEW_WORD: DeviceFunction = of(KernelHeader::Keys, "view_word", 0);
pub(super) const EXCHANGE_NUMBER: DeviceFunction =
    of(KernelHeader::Exchange, "exchange_number", 300);
pub(super) const EXCHANGE_COMBINED: DeviceFunction =
    of(KernelHeader::Exchange, "exchange_combined", 0);
pub(super) const EXCHANGE_TEXT: DeviceFunction = of(KernelHeader::Exchange, "exchange_text", 0);
pub(super) const EXCHANGE_BYTES: DeviceFunction = of(KernelHeader::Exchange, "exchange_bytes", 0);
pub(super) const EXCHANGE_VIEW: DeviceFunction = of(KernelHeader::Exchange, "exchange_view", 0);
pub(super) const WORDS_BEFORE: DeviceFunction = of(KernelHeader::Words, "words_before", 0);
pub(super) const WORDS_CAPITAL: DeviceFunction = of(KernelHeader::Words, "words_capital", 0);

/// Characters of plain arithmetic whose time `/` and `%` take.
pub(super) const DIVISION: usize = 350;
/// Those of a statement that leaves the row.
pub(super) const LEAVING: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    /// A function that was renamed would be missed only where a kernel calls it.
    #[test]
    fn functions_are_ones_of_their_header() {
        let functions = [
            QUOTIENT,
            REMAINDER,
            QUOTIENT_OVERFLOWS,
            REMAINDER_OVERFLOWS,
            FLOOR_QUOTIENT,
            FLOOR_REMAINDER,
            ROUNDED_QUOTIENT,
            MUL_OVERFLOWS,
            FDIV,
            YEAR_OF,
            QUARTER_OF,
            MONTH_OF,
            DAY_OF,
            AVERAGE_OF,
            INTERVAL_OF,
            TRIMMED_OF,
            VIEWS_EQUAL,
            STARTS_WITH,
            ENDS_WITH,
            SORT_F32,
            SORT_F64,
            HASH_VIEW,
            HASH_I128,
            HASH_FIND,
            PAIR_FIND,
            VIEW_WORD,
            EXCHANGE_NUMBER,
            EXCHANGE_COMBINED,
            EXCHANGE_TEXT,
            EXCHANGE_BYTES,
            EXCHANGE_VIEW,
            WORDS_BEFORE,
            WORDS_CAPITAL,
        ];
        for DeviceFunction { name, header, .. } in functions {
            let call = format!(" {name}(");
            let files = FILES.iter().filter(|(of, _)| header == Some(*of)).map(|(_, file)| *file);
            let mut defined =
                warpframe_device::HEADERS.iter().filter(|(_, text)| text.contains(&call));
            let files: Vec<&str> = files.collect();
            assert!(defined.any(|(file, _)| files.is_empty() || files.contains(file)), "{name}");
        }
    }

    #[test]
    fn files_are_included_in_order() {
        let mut headers = KernelHeaders::default();
        headers.add(KernelHeader::Parse);
        headers.add_of_type("const view*");
        let includes = headers.includes();
        let behind = "\"pipeline.cuh\"\n#include \"string.cuh\"\n#include \"parse.cuh\"\n#include \"parse_time.cuh\"\n";
        assert!(includes.ends_with(behind), "{includes}");
        for (_, file) in FILES {
            assert!(warpframe_device::HEADERS.iter().any(|(known, _)| *known == file), "{file}");
        }
    }
}
