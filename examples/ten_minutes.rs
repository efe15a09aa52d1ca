//! Ten minutes: making a frame, looking at it, and the verbs that most work is made of.
//!
//! ```sh
//! cargo run --release --example ten_minutes
//! ```

use warpframe::prelude::*;
use warpframe::{Expr, Result};

fn main() -> Result<()> {
    let session = Session::new()?;
    for (what, frame) in tour(&session)? {
        println!("{what}\n{frame}\n");
    }
    Ok(())
}

/// The steps of the tour: what each does, and what comes of it.
pub fn tour(session: &Session) -> Result<Vec<(&'static str, DataFrame)>> {
    let mut steps = vec![];

    // A frame of values that are written down; None is null.
    let trips = frame!(session;
        "city" => ["Oslo", "Rome", "Oslo", "Lima", "Rome", "Lima"],
        "day" => [1, 1, 2, 2, 3, 3],
        "km" => [12.5, None, 3.0, 8.25, 20.0, 1.75],
        "riders" => [1, 4, 2, 2, 3, 1],
    )?;
    steps.push(("Six trips", trips.clone()));
    steps.push(("The last two", trips.tail(2)?));
    steps.push((
        "By kilometres, the longest first, nulls last",
        trips.sort([col("km").sort(false, false)])?,
    ));
    steps.push(("What is in the columns", trips.describe()?));

    // Columns by name, rows by a condition, new columns by expressions.
    steps.push(("Two of the columns", trips.select(["city", "km"])?));
    steps.push(("Long trips", trips.filter(col("km").gt(5))?));
    let shared = trips.with_columns([(col("km") / col("riders")).alias("km_each")])?;
    steps.push(("Kilometres for each rider", shared));

    // Missing values.
    steps.push(("Without the trip of unknown length", trips.drop_nulls(["km"])?));
    steps.push((
        "With its length as the mean of the others",
        trips.fill_null_with(["km"], Fill::Mean)?,
    ));

    // Groups. Their order is not promised, so they are sorted.
    let by_city = trips
        .group_by(["city"])
        .agg([
            col("km").sum(),
            col("riders").max().alias("most_riders"),
            count_rows().alias("trips"),
        ])?
        .sort(["city"])?;
    steps.push(("A row for each city", by_city));

    // Texts and conditions.
    let labelled = trips.select([
        col("city").str().to_uppercase(),
        when(col("riders").gt(2)).then("full").otherwise("room").alias("state"),
    ])?;
    steps.push(("Texts, and a choice", labelled));

    // Rows before and after: running sums and differences, in each city by itself.
    let running = trips.fill_null(["km"], 0.0)?.with_columns([
        col("km").cum_sum().over(["city"]).alias("km_so_far"),
        col("day").diff(1).over(["city"]).alias("days_since"),
    ])?;
    steps.push(("Running sums of each city", running));

    // Two frames side by side, and one below the other.
    let countries = frame!(session; "city" => ["Oslo", "Lima"], "country" => ["Norway", "Peru"])?;
    steps.push((
        "With countries",
        trips.join_on(&countries, JoinType::Left, ["city"])?.sort(["day", "city"])?,
    ));
    let later = frame!(session; "city" => ["Oslo"], "day" => [4], "km" => [6.5], "riders" => [2])?;
    steps.push(("One more trip", DataFrame::concat([&trips, &later], Concat::Vertical)?));

    // Long and wide.
    let wide = trips.pivot("city", ["day"], ["riders"], Expr::sum)?.sort(["day"])?;
    steps.push(("A column for each city", wide));

    // The same in SQL; and back to values of the program.
    session.register_table("trips", &trips)?;
    let sql = session
        .sql("SELECT city, avg(km) AS mean_km FROM trips GROUP BY city ORDER BY city")?
        .collect()?;
    steps.push(("SQL over the same frame", sql));
    let total: f64 = trips.select([col("km").sum()])?.item()?;
    let cities = trips.column("city")?.to_vec::<String>()?;
    assert_eq!((total, cities.len()), (45.5, 6));

    // A lazy frame is planned as a whole, and runs when its rows are wanted.
    let lazy = trips
        .lazy()?
        .filter(col("day").gt(1))?
        .group_by(["day"])
        .agg([col("km").mean()])?
        .sort(["day"])?;
    steps.push(("A plan, run at its end", lazy.collect()?));
    Ok(steps)
}
