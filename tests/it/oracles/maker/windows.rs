//! Window functions, over orders that leave no ties where these would matter.

use super::{Class, Column, Maker, Scope};

impl Maker<'_> {
    /// The columns of a query, and window functions over them.
    pub fn windows(&mut self) -> Scope {
        let scope = self.scopes.last().expect("a query's scope").clone();
        let mut columns = scope.columns.clone();
        let own: Vec<_> = (0..1 + self.below(3)).map(|_| self.window(&scope.order)).collect();
        // Named as often as columns are.
        columns.extend(own.iter().cycle().take(4).cloned());
        Scope { columns, order: scope.order, computed: true }
    }

    pub fn window(&mut self, order: &[String]) -> Column {
        self.locally(|maker| maker.local_window(order))
    }

    pub fn local_window(&mut self, order: &[String]) -> Column {
        let class = self.class_to_compare();
        let partition = match self.below(3) {
            0 => String::new(),
            _ => {
                let of = self.class_to_compare();
                format!("PARTITION BY {} ", self.expr(of, 1))
            }
        };
        let total = order.iter().map(|key| format!("{key} NULLS FIRST")).collect::<Vec<_>>();
        let key = self.expr(class, 0);
        let way = self.pick(&["NULLS FIRST", "DESC NULLS LAST", "NULLS LAST"]);
        let total = format!("ORDER BY {key} {way}, {}", total.join(", "));
        let peers = format!("ORDER BY {key} {way}");
        let of = self.expr(class, 1);
        let int = self.expr(Class::Int, 1);
        let row = |text: String, class| Column { text, class };
        match self.below(12) {
            0 => row(format!("row_number() OVER ({partition}{total})"), Class::Int),
            1 => {
                let call = self.pick(&["rank()", "dense_rank()"]);
                row(format!("{call} OVER ({partition}{peers})"), Class::Int)
            }
            2 | 3 => {
                let call = self.pick(&["lag", "lead"]);
                let more = match self.below(3) {
                    0 => String::new(),
                    1 => ", 2".into(),
                    _ => format!(", 1, {}", self.literal(class)),
                };
                row(format!("{call}({of}{more}) OVER ({partition}{total})"), class)
            }
            4 => {
                let call = self.pick(&["first_value", "last_value"]);
                let frame = self.frame();
                row(format!("{call}({of}) OVER ({partition}{total}{frame})"), class)
            }
            5 => {
                let frame = self.frame();
                row(format!("nth_value({of}, 2) OVER ({partition}{total}{frame})"), class)
            }
            6 => row(format!("ntile(2) OVER ({partition}{total})"), Class::Int),
            7 => {
                let unit = self.pick(&["RANGE", "GROUPS"]);
                let call = self.pick(&["sum", "count", "max"]);
                let (low, high) = (self.pick(&[0, 1, 4]), self.pick(&[0, 1]));
                let key = self.expr(Class::Int, 0);
                row(
                    format!(
                        "{call}({int}) OVER ({partition}ORDER BY {key} NULLS FIRST {unit} BETWEEN {low} PRECEDING AND {high} FOLLOWING)"
                    ),
                    Class::Int,
                )
            }
            8 => {
                let filter = self.condition(1);
                row(
                    format!("count(*) FILTER (WHERE {filter}) OVER ({partition}{peers})"),
                    Class::Int,
                )
            }
            9 => {
                let call = self.pick(&["min", "max"]);
                row(format!("{call}({of}) OVER ({partition}{peers})"), class)
            }
            _ => {
                let call = self.pick(&["sum", "count", "min", "max"]);
                let over = match self.below(3) {
                    0 => String::new(),
                    1 => peers,
                    _ => format!("{total}{}", self.frame()),
                };
                row(format!("{call}({int}) OVER ({partition}{over})"), Class::Int)
            }
        }
    }

    pub fn frame(&mut self) -> &'static str {
        self.pick(&[
            "",
            " ROWS BETWEEN 1 PRECEDING AND CURRENT ROW",
            " ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
            " ROWS BETWEEN 1 FOLLOWING AND 2 FOLLOWING",
            " ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
        ])
    }
}
