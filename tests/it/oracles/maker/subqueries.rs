//! Queries within expressions, most of which name columns of the queries around them.

use super::selects::counted;
use super::{Class, Maker};

impl Maker<'_> {
    /// One value: an aggregate, or the first row of an order.
    pub fn scalar(&mut self, class: Class) -> String {
        let name = self.name("o");
        let (from, scope) = self.from(2);
        self.within(scope, |maker| {
            let filter = maker.filter(0.85);
            if maker.chance(0.25) {
                let value = maker.expr(class, 1);
                let offset = maker.pick(&["", "", " OFFSET 1"]);
                let order = maker.pick(&["NULLS FIRST", "DESC NULLS LAST"]);
                return format!(
                    "(SELECT {value} AS {name} FROM {from}{filter} ORDER BY {name} {order} LIMIT 1{offset})"
                );
            }
            let scope = maker.aggregates(&[]);
            let scope_columns = maker.replaced(scope);
            let value = maker.expr(class, 1);
            let having = maker.having_one(0.35, &value);
            maker.restored(scope_columns);
            format!("(SELECT {} FROM {from}{filter}{having})", counted(&[(value, name)]))
        })
    }

    /// EXISTS, IN, or a comparison with one value.
    pub fn subquery_condition(&mut self, depth: usize) -> String {
        match self.below(8) {
            0..3 => format!("({}EXISTS ({}))", self.pick(&["", "NOT "]), self.any_rows()),
            3..6 => {
                let class = self.class_to_compare();
                let (operand, not) = (self.expr(class, depth.min(1)), self.pick(&["", " NOT"]));
                format!("({operand}{not} IN ({}))", self.members(class))
            }
            _ => {
                let class = self.class_to_compare();
                let operator = self.pick(&["=", "<", ">=", "<>", "IS DISTINCT FROM"]);
                let operand = self.expr(class, depth.min(1));
                format!("({operand} {operator} {})", self.scalar(class))
            }
        }
    }

    pub fn any_rows(&mut self) -> String {
        let (from, scope) = self.from(2);
        self.within(scope, |maker| {
            let filter = maker.filter(0.9);
            match maker.below(6) {
                0 => {
                    let scope = maker.aggregates(&[]);
                    let before = maker.replaced(scope);
                    let value = maker.expr(Class::Int, 1);
                    let having = maker.having_one(0.8, &value);
                    maker.restored(before);
                    let list = counted(&[(value, "c0".into())]);
                    format!("SELECT {list} FROM {from}{filter}{having}")
                }
                1 => {
                    let class = maker.class_to_compare();
                    let key = maker.locally(|maker| maker.expr(class, 0));
                    let scope = maker.aggregates(&[(key.clone(), class)]);
                    let before = maker.replaced(scope);
                    let (value, having) = (maker.expr(Class::Int, 0), maker.having(0.7));
                    maker.restored(before);
                    format!("SELECT {value} AS c0 FROM {from}{filter} GROUP BY {key}{having}")
                }
                _ => {
                    let value = maker.expr(Class::Int, 0);
                    format!("SELECT {value} AS c0 FROM {from}{filter}")
                }
            }
        })
    }

    pub fn members(&mut self, class: Class) -> String {
        let (from, scope) = self.from(2);
        let text = self.within(scope, |maker| {
            let filter = maker.filter(0.8);
            match maker.below(6) {
                0 => {
                    let scope = maker.aggregates(&[]);
                    let before = maker.replaced(scope);
                    let value = maker.expr(class, 1);
                    let having = maker.having_one(0.5, &value);
                    maker.restored(before);
                    let list = counted(&[(value, "c0".into())]);
                    format!("SELECT {list} FROM {from}{filter}{having}")
                }
                1 => {
                    let key = maker.locally(|maker| maker.expr(class, 0));
                    let scope = maker.aggregates(&[(key.clone(), class)]);
                    let before = maker.replaced(scope);
                    let having = maker.having(0.7);
                    maker.restored(before);
                    format!("SELECT {key} AS c0 FROM {from}{filter} GROUP BY {key}{having}")
                }
                _ => format!("SELECT {} AS c0 FROM {from}{filter}", maker.expr(class, 1)),
            }
        });
        match self.chance(0.12) {
            true => format!("{text} UNION ALL SELECT {}", self.literal(class)),
            false => text,
        }
    }
}
