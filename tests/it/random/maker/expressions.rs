//! Expressions of a class of types, over the columns of a query's tables.

use rand::Rng;

use super::{CLASSES, Class, From, Maker};

impl Maker {
    pub(super) fn column(&mut self, from: &From, name: &str) -> String {
        format!("{}.{name}", self.pick(&from.names))
    }

    pub(super) fn expr(&mut self, class: Class, from: &From, depth: u32) -> String {
        if depth == 0 || self.chance(0.3) {
            return self.leaf(class, from);
        }
        let depth = depth - 1;
        if class != Class::Bool && self.chance(0.15) {
            let (a, b) = (self.one_type(class, from, depth), self.one_type(class, from, depth));
            return match self.chance(0.5) {
                true => format!(
                    "CASE WHEN {} THEN {a} ELSE {b} END",
                    self.expr(Class::Bool, from, depth)
                ),
                false => format!("coalesce({a}, {b})"),
            };
        }
        if class != Class::Bool && self.chance(0.1) {
            let (a, b) = (self.one_type(class, from, depth), self.one_type(class, from, depth));
            return match self.rng.random_range(0..10) {
                4 => format!(
                    "array_union([{a}, {b}], [{b}, {a}, NULL])[{}]",
                    self.rng.random_range(1..4)
                ),
                5 => format!("array_except([{a}, {b}], [{b}])[1]"),
                6 => format!("array_intersect([{a}, {b}], [{b}, {a}])[-1]"),
                7 => format!("array_replace([{a}, {b}], {b}, {a})[2]"),
                8 => format!("array_resize(array_remove([{a}, {b}, {a}], {b}), 3, {b})[1:3:2][2]"),
                0 => format!("[{a}, {b}][{}]", self.rng.random_range(-2..4)),
                // On the CPU array_max of strings fails where a batch has no rows.
                1 if class != Class::Text => format!("array_max([{a}, {b}])"),
                1 | 2 => format!("array_append([{a}], {b})[2]"),
                3 => format!("array_reverse([{a}, NULL, {b}])[2:3][2]"),
                _ => {
                    let taken = self.expr(Class::Bool, from, depth);
                    format!("(CASE WHEN {taken} THEN {{'v': {a}, 'l': [{b}]}} END)['l'][1]")
                }
            };
        }
        match class {
            Class::Int => {
                let (a, b) = (self.expr(class, from, depth), self.expr(class, from, depth));
                match self.rng.random_range(0..16) {
                    9 => format!("{}({a}, {b})", self.pick(&["greatest", "least"])),
                    10 => format!("({a} {} {b})", self.pick(&["&", "|", "^"])),
                    11 => format!("abs({a})"),
                    12 => format!("CAST({} AS int)", self.counted(from, depth)),
                    13 => {
                        let sought = self.leaf(class, from);
                        let of = self.pick(&[
                            "array_position",
                            "array_length",
                            "cardinality",
                            "array_max",
                            "array_min",
                        ]);
                        match of {
                            "array_position" => format!(
                                "CAST(array_position([{a}, {b}, {sought}], {sought}) AS int)"
                            ),
                            "array_max" | "array_min" => format!("{of}([{a}, {b}, {sought}])"),
                            _ => format!("CAST({of}(array_distinct([{a}, {b}, {sought}])) AS int)"),
                        }
                    }
                    14 => format!(
                        "named_struct('one', {a}, 'two', {b})['{}']",
                        self.pick(&["one", "two"])
                    ),
                    15 => format!("CAST(floor({}) AS int)", self.column(from, "x")),
                    6 => format!(
                        "CAST({}({}) AS int)",
                        self.pick(&["octet_length", "bit_length", "ascii"]),
                        self.expr(Class::Text, from, depth)
                    ),
                    7 => {
                        let (text, part) =
                            (self.expr(Class::Text, from, depth), self.leaf(Class::Text, from));
                        format!("CAST(strpos({text}, {part}) AS int)")
                    }
                    0 => format!("({a} + {b})"),
                    1 => format!("({a} - {b})"),
                    2 => format!("({a} * {})", self.rng.random_range(-9..10)),
                    3 => format!("({a} / nullif({b}, 0))"),
                    4 => format!("({a} % nullif({b}, 0))"),
                    5 => format!("CAST(length({}) AS int)", self.expr(Class::Text, from, depth)),
                    _ => format!(
                        "CAST(extract({} FROM {}) AS int)",
                        self.pick(&["year", "month", "day", "dow"]),
                        self.expr(Class::Date, from, depth)
                    ),
                }
            }
            Class::Float => {
                let column = self.pick(&["x", "x", "f64"]);
                let (a, b) = (self.column(from, column), self.expr(Class::Int, from, depth));
                match self.rng.random_range(0..6) {
                    0 => format!(
                        "{}({a})",
                        self.pick(&["floor", "ceil", "abs", "trunc", "round", "signum"])
                    ),
                    1 => format!("sqrt(abs({a}))"),
                    2 => format!(
                        "{}({a}, {})",
                        self.pick(&["greatest", "least"]),
                        self.column(from, "x")
                    ),
                    _ => format!("({a} {} {b})", self.pick(&["+", "-", "*"])),
                }
            }
            Class::Decimal => {
                let a = self.column(from, "m");
                let op = self.pick(&["+", "-"]);
                match self.rng.random_range(0..4) {
                    0 => format!("({a} {op} {})", self.column(from, "m")),
                    1 => format!("({a} * {})", self.pick(&["0.05", "1.1", "-2"])),
                    2 => format!("({a} {op} {})", self.column(from, "k")),
                    _ => format!("round({a}, 1)"),
                }
            }
            Class::Text => {
                let a = self.expr(class, from, depth);
                match self.rng.random_range(0..19) {
                    12 => {
                        let pattern =
                            self.pick(&["[aeiou]+", "e(.)", "^.", "é|ü", "[0-9]$", "(t|w)+e?"]);
                        let with = self.pick(&["", "-", "<\\1>"]);
                        let with = if pattern.contains('(') {
                            with
                        } else {
                            with.trim_start_matches("<\\1>")
                        };
                        format!(
                            "regexp_replace({a}, '{pattern}', '{with}'{})",
                            self.pick(&["", ", 'g'"])
                        )
                    }
                    13 => format!(
                        "translate({a}, '{}', '{}')",
                        self.pick(&["aeé", "t "]),
                        self.pick(&["x", "üyz"])
                    ),
                    14 => format!(
                        "concat_ws('{}', {a}, {}, 'z')",
                        self.pick(&["", ", "]),
                        self.leaf(class, from)
                    ),
                    15 => {
                        let class = self.pick(&[
                            Class::Int,
                            Class::Decimal,
                            Class::Bool,
                            Class::Date,
                            Class::Time,
                        ]);
                        format!("CAST({} AS varchar)", self.expr(class, from, depth))
                    }
                    16 => {
                        format!(
                            "to_char({}, '{}')",
                            self.column(from, "d"),
                            self.pick(&["%Y-%m", "%d.%m.%y", "%A %j"])
                        )
                    }
                    17 => format!(
                        "overlay({a} placing 'ö' from {} for {})",
                        self.rng.random_range(1..6),
                        self.rng.random_range(0..4)
                    ),
                    18 => format!(
                        "array_to_string([{a}, {}], '+', {})",
                        self.leaf(class, from),
                        self.pick(&["'?'", "''"])
                    ),
                    7 => format!("({a} || {})", self.leaf(class, from)),
                    8 => format!("concat({a}, '-', {})", self.leaf(class, from)),
                    9 => {
                        format!(
                            "replace({a}, '{}', '{}')",
                            self.pick(&["e", "é", "a "]),
                            self.pick(&["", "twice", "ü"])
                        )
                    }
                    10 => format!(
                        "{}({a}, {}, '{}')",
                        self.pick(&["lpad", "rpad"]),
                        self.rng.random_range(0..20),
                        self.pick(&["é-", "x"])
                    ),
                    11 => match self.chance(0.5) {
                        true => format!("reverse({a})"),
                        false => format!("repeat({a}, {})", self.rng.random_range(0..4)),
                    },
                    4 => format!("right({a}, {})", self.rng.random_range(-5..14)),
                    5 => {
                        format!(
                            "{}({a}, '{}')",
                            self.pick(&["btrim", "ltrim", "rtrim"]),
                            self.pick(&["ae", "é", "1t"])
                        )
                    }
                    6 => {
                        let field = self.pick(&[1, 2, 3, -1, -2]);
                        format!("split_part({a}, '{}', {field})", self.pick(&["e", " ", "é", "tw"]))
                    }
                    0 => format!("substr({a}, {})", self.rng.random_range(-2..5)),
                    1 => format!(
                        "substr({a}, {}, {})",
                        self.rng.random_range(1..5),
                        self.rng.random_range(0..15)
                    ),
                    2 => format!("left({a}, {})", self.rng.random_range(0..14)),
                    _ => format!("nullif({a}, {})", self.leaf(class, from)),
                }
            }
            Class::Bool => self.condition(from, depth),
            Class::Date => {
                let a = self.column(from, "d");
                match self.rng.random_range(0..8) {
                    0 => format!(
                        "{}({a}, {})",
                        self.pick(&["greatest", "least"]),
                        self.literal(class)
                    ),
                    1 => format!("CAST({} AS date)", self.column(from, "ts")),
                    2 => {
                        let (year, month) = (self.column(from, "u8"), self.column(from, "u16"));
                        format!(
                            "make_date(CAST(1900 + {year} AS int), CAST(1 + {month} % 12 AS int), 17)"
                        )
                    }
                    3..6 => format!("({a} + INTERVAL '{}' DAY)", self.rng.random_range(-40..40)),
                    _ => format!("({a} - INTERVAL '{}' MONTH)", self.rng.random_range(0..30)),
                }
            }
            Class::Time => {
                let ts = self.column(from, "ts");
                match self.rng.random_range(0..6) {
                    0 => format!(
                        "date_bin(INTERVAL '{}', {ts})",
                        self.pick(&["15 minutes", "1 day", "7 hours"])
                    ),
                    1 => format!("({ts} + INTERVAL '{} hours')", self.rng.random_range(-50..50)),
                    _ => {
                        let unit = self.pick(&["year", "month", "week", "day", "hour", "second"]);
                        format!("date_trunc('{unit}', {ts})")
                    }
                }
            }
        }
    }

    /// An expression of the class's one type: on the CPU make_array panics where decimals are of
    /// several, and coalesce fails.
    fn one_type(&mut self, class: Class, from: &From, depth: u32) -> String {
        match class {
            Class::Decimal => format!("CAST({} AS decimal(30, 4))", self.expr(class, from, depth)),
            _ => self.expr(class, from, depth),
        }
    }

    /// How many, or where, or how far, of text.
    fn counted(&mut self, from: &From, depth: u32) -> String {
        let (a, b) = (self.expr(Class::Text, from, depth), self.leaf(Class::Text, from));
        match self.rng.random_range(0..4) {
            0 => format!("levenshtein({a}, {b})"),
            1 => format!("regexp_count({a}, '{}')", self.pick(&["e", "[aeiou]", "t?w"])),
            2 => format!("find_in_set({a}, 'one,{}')", self.pick(&["twelve bytes", "é,two,", ""])),
            _ => format!("regexp_instr({a}, '{}')", self.pick(&["e", "[0-9]", "é"])),
        }
    }

    fn condition(&mut self, from: &From, depth: u32) -> String {
        let junction = self.pick(&["AND", "OR"]);
        match self.rng.random_range(0..12) {
            9 => {
                let (a, b) = (self.expr(Class::Text, from, depth), self.leaf(Class::Text, from));
                format!("{}({a}, {b})", self.pick(&["starts_with", "ends_with", "contains"]))
            }
            10 => {
                let patterns = ["^a", "e.*e", "[0-9]+$", "(one|two|é)", "^$", "t{1,2}w?"];
                let (text, pattern) = (self.expr(Class::Text, from, depth), self.pick(&patterns));
                format!("({text} {} '{pattern}')", self.pick(&["~", "!~", "~*"]))
            }
            11 => {
                let test = self.pick(&["TRUE", "FALSE", "UNKNOWN", "NOT TRUE"]);
                format!("({} IS {test})", self.expr(Class::Bool, from, depth))
            }
            7 => {
                let class = self.pick(&[Class::Int, Class::Text, Class::Date]);
                let (a, b) = (self.expr(class, from, depth), self.expr(class, from, depth));
                // In a literal, [a, b], DataFusion finds no columns of the query around a subquery.
                let comparison = self.pick(&["<", "<=", ">", ">="]);
                format!("(make_array({a}, {b}) {comparison} make_array({b}, NULL))")
            }
            0 | 1 => {
                format!(
                    "({} {junction} {})",
                    self.expr(Class::Bool, from, depth),
                    self.expr(Class::Bool, from, depth)
                )
            }
            2 => format!("(NOT {})", self.expr(Class::Bool, from, depth)),
            3 => {
                let class = self.pick(&CLASSES);
                format!("({} IS{} NULL)", self.expr(class, from, depth), self.pick(&["", " NOT"]))
            }
            4 => {
                let patterns = ["a%", "%e%", "%7", "_b%", "%", "twelve%s", "%t%E%", "1_3%"];
                format!(
                    "({}{} {} '{}')",
                    self.expr(Class::Text, from, depth),
                    self.pick(&["", " NOT"]),
                    self.pick(&["LIKE", "LIKE", "ILIKE"]),
                    self.pick(&patterns)
                )
            }
            5 => {
                let class = self.pick(&[Class::Int, Class::Text, Class::Date, Class::Decimal]);
                let list: Vec<_> = (0..3).map(|_| self.literal(class)).collect();
                format!(
                    "({}{} IN ({}))",
                    self.expr(class, from, depth),
                    self.pick(&["", " NOT"]),
                    list.join(", ")
                )
            }
            6 => {
                let class = self.pick(&[Class::Int, Class::Float, Class::Date, Class::Decimal]);
                format!(
                    "({} BETWEEN {} AND {})",
                    self.expr(class, from, depth),
                    self.literal(class),
                    self.expr(class, from, depth)
                )
            }
            _ => {
                let class = self.pick(&CLASSES);
                let op = self.pick(&[
                    "=",
                    "<>",
                    "<",
                    "<=",
                    ">",
                    ">=",
                    "IS DISTINCT FROM",
                    "IS NOT DISTINCT FROM",
                ]);
                format!(
                    "({} {op} {})",
                    self.expr(class, from, depth),
                    self.expr(class, from, depth)
                )
            }
        }
    }

    fn leaf(&mut self, class: Class, from: &From) -> String {
        if self.chance(0.25) {
            return self.literal(class);
        }
        let columns: &[&str] = match class {
            Class::Int => &["id", "k", "k2", "i8", "u8", "i16", "u16", "w"],
            Class::Float => &["x", "f64", "f32", "x"],
            Class::Decimal => &["m"],
            Class::Text => &["s", "sl", "sv", "sd"],
            Class::Bool => &["b"],
            Class::Date => &["d"],
            Class::Time => &["ts"],
        };
        let column = self.pick(columns);
        self.column(from, column)
    }

    fn literal(&mut self, class: Class) -> String {
        match class {
            Class::Int => self.rng.random_range(-5..12).to_string(),
            Class::Float => self.pick(&["0.0", "-2.5", "17.25", "1e10"]).into(),
            Class::Decimal => self.pick(&["0.00", "123.45", "-99999.99", "50000"]).into(),
            Class::Text => {
                let word = self.pick(&crate::tables::WORDS);
                format!("'{}'", word.replace('\0', "").replace('\'', "''"))
            }
            Class::Bool => self.pick(&["true", "false"]).into(),
            Class::Date => format!(
                "DATE '19{}-0{}-15'",
                self.rng.random_range(70..99),
                self.rng.random_range(1..10)
            ),
            Class::Time => {
                format!("TIMESTAMP '20{}-01-01T12:00:00'", self.rng.random_range(10..30))
            }
        }
    }
}
