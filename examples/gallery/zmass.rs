//! The masses of all pairs of electrons of each event, and the Z boson among them.
//!
//! An event's electrons are a list of structs, of any length. `list_combinations` makes its pairs,
//! `list_transform` a mass of each, in one kernel. The first two electrons of an event come from a
//! particle of the Z's mass, at rest: they fly apart, each with half of its mass as its momentum.
//! The others are from elsewhere.

use std::f64::consts::PI;

use super::{Answer, Gallery, Lesson, Outcome, bar, close, same};

pub(crate) const LESSON: Lesson = Lesson {
    name: "zmass",
    about: "masses of all pairs of electrons of each event",
    rows: 5_000,
    needs_device: false,
    run,
};

const MASS: &str = "
    SELECT event, unnest(list_transform(list_combinations(electrons, 2), p ->
        sqrt(2 * p[1].pt * p[2].pt * (cosh(p[1].eta - p[2].eta) - cos(p[1].phi - p[2].phi))))) AS mass
    FROM events";

/// Bins of the picture, of 10 GeV each.
const BINS: usize = 15;
/// Events whose masses plain Rust computes, too.
const CHECKED: usize = 1_000;

fn run(gallery: &Gallery, rows: usize) -> Outcome<Answer> {
    let events = gallery.sql(&format!(
        "SELECT value AS event, list_transform(range(0, random_integer(1, value, 2, 5)), k -> {{
             'pt': CASE WHEN k < 2 THEN 45.6 + random_normal(2, value * 8 + k) ELSE 5 + 30 * random(3, value * 8 + k) END,
             'eta': CASE WHEN k < 2 THEN random(4, value) ELSE 4 * random(5, value * 8 + k) - 2 END,
             'phi': CASE WHEN k < 2 THEN random(6, value) + {PI} * k ELSE 6.28 * random(7, value * 8 + k) END
         }}) AS electrons
         FROM range(0, {rows}) AS t(value)"
    ))?;
    gallery.session.register_table("events", &events)?;
    let (masses, time) = gallery.timed(|| gallery.sql(MASS))?;
    gallery.session.register_table("masses", &masses)?;
    let histogram = format!(
        "SELECT unnest(h) AS n FROM (SELECT histogram(mass, 0, {}, {BINS}) AS h FROM masses)",
        BINS * 10
    );
    let counts = gallery.sql(&histogram)?.column("n")?.to_vec::<i64>()?;

    check(gallery)?;
    gallery.session.deregister("events")?;
    gallery.session.deregister("masses")?;

    let most = counts.iter().copied().max().unwrap_or(0).max(1);
    let fullest = counts.iter().position(|n| *n == most).unwrap_or(0) * 10;
    // Its own pair is in each event, with a deviation of 1.4 GeV.
    if counts[8] + counts[9] < rows as i64 {
        return Err(
            format!("of {rows} Zs {} are between 80 and 100 GeV", counts[8] + counts[9]).into()
        );
    }
    let bars = counts.iter().enumerate().map(|(bin, n)| {
        bar(format!("{:>3} to {:>3} GeV", bin * 10, bin * 10 + 10), *n as f64 / most as f64, n)
    });
    let pairs = masses.num_rows();
    let text = format!(
        "{pairs} pairs of {rows} events; most have a mass between {fullest} and {} GeV",
        fullest + 10
    );
    Ok(Answer::new(text).picture(bars).way("list_combinations", format!("{rows} events"), time))
}

/// The masses of some events, from rows of electrons and two loops.
fn check(gallery: &Gallery) -> Outcome<()> {
    let rows = gallery.sql(&format!(
        "SELECT event, e.pt AS pt, e.eta AS eta, e.phi AS phi
         FROM (SELECT event, unnest(electrons) AS e FROM events WHERE event < {CHECKED})"
    ))?;
    let events = rows.column("event")?.to_vec::<i64>()?;
    let [pt, eta, phi] = ["pt", "eta", "phi"]
        .map(|name| rows.column(name).and_then(|column| column.to_vec::<f64>()));
    let (pt, eta, phi) = (pt?, eta?, phi?);
    let mut expected = vec![];
    for i in 0..events.len() {
        for j in (i + 1..events.len()).take_while(|j| events[*j] == events[i]) {
            expected.push(
                (2.0 * pt[i] * pt[j] * ((eta[i] - eta[j]).cosh() - (phi[i] - phi[j]).cos())).sqrt(),
            );
        }
    }
    let some = gallery.sql(&format!("SELECT mass FROM masses WHERE event < {CHECKED}"))?;
    let mut found = some.column("mass")?.to_vec::<f64>()?;
    same("pairs", found.len(), expected.len())?;
    expected.sort_unstable_by(f64::total_cmp);
    found.sort_unstable_by(f64::total_cmp);
    found
        .iter()
        .zip(&expected)
        .try_for_each(|(found, expected)| close("a mass", *found, *expected, 1e-9))
}
