use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::logical_expr::builder::table_scan;
use datafusion::logical_expr::{LogicalPlanBuilder, cast, lit};
use datafusion::prelude::{col, random};

use super::*;
use crate::column::Facts;
use crate::plan::estimate::Estimate;

/// A table of columns `k`, whose values are unique, and `a` to `d`, which have each so many
/// different ones.
struct SizedTable {
    name: &'static str,
    rows: f64,
    distinct: f64,
}

fn table(name: &'static str, rows: f64, distinct: f64) -> SizedTable {
    SizedTable { name, rows, distinct }
}

const COLUMNS: [&str; 5] = ["k", "a", "b", "c", "d"];

impl SizedTable {
    fn plan(&self) -> LogicalPlanBuilder {
        let fields: Vec<Field> =
            COLUMNS.map(|name| Field::new(name, DataType::Int64, false)).into();
        table_scan(Some(self.name), &Schema::new(fields), None).unwrap()
    }

    fn estimate(&self) -> Estimate {
        let fact = |unique: bool| {
            let distinct = if unique { self.rows } else { self.distinct };
            Facts { rows: self.rows, distinct, unique, range: Some((0.0, distinct - 1.0)) }
        };
        Estimate { rows: self.rows, columns: COLUMNS.map(|name| fact(name == "k")).into() }
    }
}

/// The tables joined from left to right, each on equalities `left = right` with those before it.
fn joined(tables: &[SizedTable], on: &[&[(&str, &str)]]) -> LogicalPlan {
    let mut plan = tables[0].plan();
    for (table, on) in tables[1..].iter().zip(on) {
        let (left, right): (Vec<Name>, Vec<Name>) = on
            .iter()
            .map(|(l, r)| (Name::from_qualified_name(*l), Name::from_qualified_name(*r)))
            .unzip();
        let table = table.plan().build().unwrap();
        plan = match left.is_empty() {
            true => plan.cross_join(table).unwrap(),
            false => plan.join(table, JoinType::Inner, (left, right), None).unwrap(),
        };
    }
    plan.build().unwrap()
}

fn name(plan: &LogicalPlan) -> String {
    match plan {
        LogicalPlan::TableScan(scan) => scan.table_name.table().into(),
        LogicalPlan::Filter(filter) => name(&filter.input),
        LogicalPlan::Projection(project) => name(&project.input),
        LogicalPlan::Join(join) => format!("({} {})", name(&join.left), name(&join.right)),
        other => panic!("{other}"),
    }
}

struct FoundOrders {
    exact: String,
    greedy: String,
    plan: LogicalPlan,
}

/// The orders found, with the probe's side first.
fn orders(tables: &[SizedTable], plan: &LogicalPlan) -> FoundOrders {
    let tree = Tree::of(plan).expect("a tree of inner joins");
    let estimates: Vec<Estimate> = tables.iter().map(SizedTable::estimate).collect();
    let costs = Costs::of(&tree, &estimates);
    let (exact, cost) = costs.cheapest().expect("an order");
    let (greedy, least) = costs.greedy().expect("an order");
    assert!(cost <= least && cost <= costs.total(&tree.shape), "{exact:?} is the cheapest");
    assert!((costs.total(&exact) - cost).abs() <= 1e-9 * cost);
    let made = tree.plan(&exact, plan).unwrap();
    assert_eq!(made.schema(), plan.schema(), "columns stay in their order");
    let text = |shape: &JoinTree| name(&tree.joined(shape).unwrap());
    FoundOrders { exact: text(&exact), greedy: text(&greedy), plan: made }
}

#[test]
fn a_star_is_probed_from_its_middle_smallest_share_first() {
    let tables = [
        table("large", 1e6, 10.0),
        table("fact", 1e8, 1000.0),
        table("small", 1e3, 10.0),
        table("medium", 1e5, 10.0),
    ];
    let plan = joined(
        &tables,
        &[&[("large.k", "fact.a")], &[("fact.b", "small.k")], &[("fact.c", "medium.k")]],
    );
    let plan = LogicalPlanBuilder::from(plan)
        .filter(col("medium.a").eq(lit(3i64)))
        .unwrap()
        .build()
        .unwrap();
    let found = orders(&tables, &plan);
    // A tenth of `medium` leaves a tenth of the rows to those after it.
    assert_eq!(found.exact, "(((fact medium) small) large)");
    assert_eq!(found.greedy, found.exact);
}

#[test]
fn a_chain_is_joined_from_its_filtered_end() {
    let tables = [
        table("lines", 6e7, 1e7),
        table("orders", 1.5e7, 1e6),
        table("customers", 1.5e6, 25.0),
        table("nations", 25.0, 5.0),
    ];
    let plan = joined(
        &tables,
        &[
            &[("lines.a", "orders.k")],
            &[("orders.a", "customers.k")],
            &[("customers.a", "nations.k")],
        ],
    );
    let filtered = LogicalPlanBuilder::from(plan)
        .filter(col("nations.k").eq(lit(7i64)))
        .unwrap()
        .build()
        .unwrap();
    let found = orders(&tables, &filtered);
    assert_eq!(found.exact, "(lines (orders (customers nations)))");
}

#[test]
fn a_clique_joins_small_tables_first() {
    let tables = [
        table("w", 1e7, 100.0),
        table("x", 1e6, 100.0),
        table("y", 1e3, 100.0),
        table("z", 1e2, 100.0),
    ];
    let on: [&[(&str, &str)]; 3] = [
        &[("w.k", "x.k")],
        &[("w.k", "y.k"), ("x.k", "y.k")],
        &[("w.k", "z.k"), ("x.k", "z.k"), ("y.k", "z.k")],
    ];
    let plan = joined(&tables, &on);
    let found = orders(&tables, &plan);
    // Few rows are left from the beginning.
    assert_eq!(found.exact, "(((w z) y) x)");
    let text = format!("{}", found.plan.display_indent());
    assert_eq!(text.matches(" = ").count(), 6, "every equality is there once\n{text}");
    assert!(!text.contains("Cross Join"), "{text}");
}

#[test]
fn columns_that_nobody_looks_at_end_where_they_begin() {
    let tables = [table("a", 1e6, 10.0), table("b", 1e4, 10.0), table("c", 1e8, 10.0)];
    let plan = joined(&tables, &[&[("a.a", "b.k")], &[("a.k", "c.a")]]);
    let plan =
        LogicalPlanBuilder::from(plan).project([col("c.d"), col("a.d")]).unwrap().build().unwrap();
    let found = orders(&tables, &plan);
    assert_eq!(found.exact, "(c (a b))");
    let expected = "Projection: c.d, a.d\n  Inner Join: c.a = a.k\n    Projection: c.a, c.d\n      TableScan: c\n    \
                    Projection: a.k, a.d\n      Inner Join: a.a = b.k\n        Projection: a.k, a.a, a.d\n          \
                    TableScan: a\n        Projection: b.k\n          TableScan: b";
    let text = format!("{}", found.plan.display_indent());
    assert_eq!(text, expected);
}

#[test]
fn many_tables_are_joined_greedily() {
    let names =
        ["t0", "t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8", "t9", "t10", "t11", "t12", "t13"];
    let tables: Vec<SizedTable> = names
        .iter()
        .enumerate()
        .map(|(at, name)| table(name, 10f64.powi(2 + at as i32 % 5), 50.0))
        .collect();
    let keys: Vec<[(String, String); 1]> = (1..names.len())
        .map(|at| [(format!("{}.a", names[at - 1]), format!("{}.k", names[at]))])
        .collect();
    let keys: Vec<Vec<(&str, &str)>> = keys
        .iter()
        .map(|pair| pair.iter().map(|(l, r)| (l.as_str(), r.as_str())).collect())
        .collect();
    let keys: Vec<&[(&str, &str)]> = keys.iter().map(Vec::as_slice).collect();
    let plan = joined(&tables, &keys);
    let tree = Tree::of(&plan).unwrap();
    let estimates: Vec<Estimate> = tables.iter().map(SizedTable::estimate).collect();
    let costs = Costs::of(&tree, &estimates);
    let (shape, cost) = costs.greedy().unwrap();
    assert_eq!(shape.set(), (1 << 14) - 1);
    assert!((costs.total(&shape) - cost).abs() <= 1e-9 * cost, "equalities connect every join");
    assert_eq!(tree.plan(&shape, &plan).unwrap().schema(), plan.schema());
}

#[test]
fn a_clique_of_ten_tables_is_ordered_exactly() {
    let names = ["t0", "t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8", "t9"];
    let tables: Vec<SizedTable> = names
        .iter()
        .enumerate()
        .map(|(at, name)| table(name, 10f64.powi(2 + at as i32 % 5), 50.0))
        .collect();
    let pairs = |at: usize| {
        (0..at).map(move |other| (format!("{}.k", names[other]), format!("{}.k", names[at])))
    };
    let keys: Vec<Vec<(String, String)>> = (1..names.len()).map(|at| pairs(at).collect()).collect();
    let keys: Vec<Vec<(&str, &str)>> = keys
        .iter()
        .map(|pairs| pairs.iter().map(|(l, r)| (l.as_str(), r.as_str())).collect())
        .collect();
    let keys: Vec<&[(&str, &str)]> = keys.iter().map(Vec::as_slice).collect();
    let plan = joined(&tables, &keys);
    let tree = Tree::of(&plan).unwrap();
    let estimates: Vec<Estimate> = tables.iter().map(SizedTable::estimate).collect();
    let costs = Costs::of(&tree, &estimates);
    let ((shape, cost), (_, greedy)) = (costs.cheapest().unwrap(), costs.greedy().unwrap());
    assert_eq!(shape.set(), (1 << 10) - 1);
    assert!(cost <= greedy && cost <= costs.total(&tree.shape));
}

#[test]
fn trees_that_may_fail_or_are_small_or_have_two_columns_of_a_name_stay() {
    let tables = || [table("a", 10.0, 5.0), table("b", 10.0, 5.0), table("c", 10.0, 5.0)];
    let on: [&[(&str, &str)]; 2] = [&[("a.a", "b.a")], &[("b.b", "c.b")]];
    let plan = joined(&tables(), &on);
    assert!(Tree::of(&plan).is_some());
    let filtered = |condition: Expr| {
        LogicalPlanBuilder::from(plan.clone()).filter(condition).unwrap().build().unwrap()
    };
    assert!(Tree::of(&filtered(col("a.c").gt(col("c.c")))).is_some(), "a comparison cannot fail");
    assert!(
        Tree::of(&filtered((col("a.c") + col("b.c")).gt(col("c.c")))).is_none(),
        "integers overflow"
    );
    assert!(
        Tree::of(&filtered((col("a.c") / col("b.c")).gt(col("c.c")))).is_none(),
        "division by zero"
    );
    assert!(Tree::of(&joined(&tables()[..2], &on[..1])).is_none());
    let volatile = (random() * lit(9.0)).lt(cast(col("a.c"), DataType::Float64));
    assert!(Tree::of(&filtered(volatile)).is_none(), "it is another one for each row");
}

#[test]
fn products_of_many_rows_are_made_last() {
    let tables = [
        table("a", 300.0, 300.0),
        table("b", 300.0, 300.0),
        table("c", 300.0, 300.0),
        table("d", 1.0, 1.0),
    ];
    let plan = joined(&tables, &[&[], &[], &[("c.a", "d.k")]]);
    let found = orders(&tables, &plan);
    let (first, _) = found.exact.split_once(')').unwrap();
    assert!(first.ends_with(" d"), "its one row comes first: {}", found.exact);
    assert!(found.greedy.contains("(c d)"), "{}", found.greedy);
}

#[test]
fn conditions_that_leave_few_rows_come_early_among_cross_joins() {
    let tables = [
        table("a", 300.0, 300.0),
        table("b", 300.0, 300.0),
        table("c", 300.0, 300.0),
        table("d", 1.0, 1.0),
    ];
    let plan = joined(&tables, &[&[], &[], &[]]);
    let below = |name: &str| col(format!("{name}.a")).lt(col("d.a"));
    let condition = below("a").and(below("b")).and(below("c"));
    let plan = LogicalPlanBuilder::from(plan).filter(condition).unwrap().build().unwrap();
    let found = orders(&tables, &plan);
    let (first, _) = found.exact.split_once(')').unwrap();
    assert!(first.ends_with(" d"), "its one row comes first: {}", found.exact);
    assert!(!format!("{}", found.plan.display_indent()).contains("Cross Join"));
}

#[test]
fn a_query_without_cross_joins_gets_none() {
    // A product of both small tables would be compared with the large one only once.
    let tables = [table("small", 2.0, 2.0), table("fact", 1e8, 2.0), table("tiny", 3.0, 3.0)];
    let plan = joined(&tables, &[&[("small.k", "fact.a")], &[("fact.b", "tiny.k")]]);
    let found = orders(&tables, &plan);
    for order in [found.exact, found.greedy] {
        assert!(!order.contains("(small tiny)") && !order.contains("(tiny small)"), "{order}");
    }
}
