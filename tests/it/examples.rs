//! The programs in `examples/`, strictly on the device and on the CPU.

use warpframe::frame::FrameFormat;
use warpframe::prelude::*;

use crate::differential::Pair;

#[allow(dead_code, reason = "main is the program's")]
#[path = "../../examples/jets.rs"]
mod jets;
#[allow(dead_code, reason = "main is the program's")]
#[path = "../../examples/quickstart.rs"]
mod quickstart;
#[allow(dead_code, reason = "main is the program's")]
#[path = "../../examples/ten_minutes.rs"]
mod ten_minutes;
#[allow(dead_code, reason = "main is the program's")]
#[path = "../../examples/tpch.rs"]
mod tpch;

/// All four answers are one: SQL and verbs, on the device and on the CPU.
fn agree(name: &str, example: impl Fn(&Session) -> warpframe::Result<(DataFrame, DataFrame)>) -> [DataFrame; 2] {
    let pair = Pair::new();
    let before = pair.gpu().counters().launches;
    let (sql, verbs) = example(&pair.device).expect("the example runs on the device");
    assert!(sql.is_on_device() && verbs.is_on_device(), "{name}");
    assert!(pair.gpu().counters().launches > before, "{name}: no kernel ran");
    let (cpu_sql, cpu_verbs) = example(&pair.cpu).expect("the example runs on the CPU");
    assert!(sql.num_rows() > 0, "{name}");
    for (cpu, device, form) in [(&cpu_sql, &sql, "sql"), (&cpu_verbs, &verbs, "verbs"), (&cpu_sql, &verbs, "both")] {
        pair.rows_agree(cpu, device, &format!("{name} {form} ORDER BY"));
    }
    [sql, verbs]
}

#[test]
fn quickstart_agrees() {
    agree("quickstart", quickstart::big_orders);
}

#[test]
fn jets_agree() {
    let [sql, verbs] = agree("jets", jets::jets);
    assert_eq!(sql.num_rows(), 9617);
    assert!(jets::agree(&sql, &verbs).expect("both download"));
    assert!(!jets::agree(&sql, &verbs.head(10).expect("it runs")).expect("both download"), "it must see differences");
}

#[test]
fn tpch_queries_agree() {
    for (name, verbs) in tpch::QUERIES {
        let [sql, verbs] = agree(name, |session| tpch::both(session, name, verbs));
        assert!(tpch::same(&sql, &verbs).expect("both download"), "{name}");
    }
}

#[test]
fn the_tour_shows_the_same_on_the_device_and_the_cpu() {
    let pair = Pair::new();
    let format = FrameFormat::new().max_width(None);
    let [device, cpu] = [&pair.device, &pair.cpu].map(|session| {
        let steps = ten_minutes::tour(session).expect("the tour runs");
        steps.into_iter().map(|(what, frame)| format!("{what}\n{}", format.text(&frame).unwrap())).collect::<Vec<_>>()
    });
    assert_eq!(device, cpu);
    assert!(device.iter().any(|step| step.contains("Running sums")), "{device:?}");
    let long = device.iter().find(|step| step.starts_with("Long trips")).expect("a step");
    let expected = "\
Long trips
shape: (3, 4)
┌──────┬─────┬──────┬────────┐
│ city ┆ day ┆   km ┆ riders │
│ str  ┆ i32 ┆  f64 ┆    i32 │
╞══════╪═════╪══════╪════════╡
│ Oslo ┆   1 ┆ 12.5 ┆      1 │
│ Lima ┆   2 ┆ 8.25 ┆      2 │
│ Rome ┆   3 ┆ 20.0 ┆      3 │
└──────┴─────┴──────┴────────┘";
    assert_eq!(long, expected);
}
