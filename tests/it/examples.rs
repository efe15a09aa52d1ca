//! The programs in `examples/`, strictly on the device and on the CPU.

use warpframe::frame::FrameFormat;
use warpframe::prelude::*;

use crate::differential::{Pair, builder};

#[allow(dead_code, reason = "main is the program's")]
#[path = "../../examples/gallery/main.rs"]
mod gallery;
#[allow(dead_code, reason = "main is the program's")]
#[path = "../../examples/jets.rs"]
mod jets;
#[allow(dead_code, reason = "main is the program's")]
#[path = "../../examples/polars_user.rs"]
mod polars_user;
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
fn agree(
    name: &str,
    example: impl Fn(&Session) -> warpframe::Result<(DataFrame, DataFrame)>,
) -> [DataFrame; 2] {
    let pair = Pair::new();
    let before = pair.gpu().counters().launches;
    let (sql, verbs) = example(&pair.device).expect("the example runs on the device");
    assert!(sql.is_on_device() && verbs.is_on_device(), "{name}");
    assert!(pair.gpu().counters().launches > before, "{name}: no kernel ran");
    let (cpu_sql, cpu_verbs) = example(&pair.cpu).expect("the example runs on the CPU");
    assert!(sql.num_rows() > 0, "{name}");
    for (cpu, device, form) in
        [(&cpu_sql, &sql, "sql"), (&cpu_verbs, &verbs, "verbs"), (&cpu_sql, &verbs, "both")]
    {
        pair.rows_agree(cpu, device, &format!("{name} {form} ORDER BY"));
    }
    [sql, verbs]
}

#[test]
fn quickstart_agrees() {
    agree("quickstart", quickstart::big_orders);
}

#[test]
fn the_program_of_a_polars_user_agrees() {
    let pair = Pair::new();
    let run = |session| polars_user::program(session).expect("the program runs");
    let (cpu, device) = (run(&pair.cpu), run(&pair.device));
    assert_eq!(cpu.each_ref().map(|frame| frame.height()), [2, 25, 25, 80]);
    for (cpu, device) in cpu.iter().zip(&device) {
        pair.rows_agree(cpu, device, "polars_user ORDER BY");
    }
}

#[test]
fn jets_agree() {
    let [sql, verbs] = agree("jets", jets::jets);
    assert_eq!(sql.num_rows(), 9617);
    assert!(jets::agree(&sql, &verbs).expect("both download"));
    assert!(
        !jets::agree(&sql, &verbs.head(10).expect("it runs")).expect("both download"),
        "it must see differences"
    );
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
        steps
            .into_iter()
            .map(|(what, frame)| format!("{what}\n{}", format.text(&frame).unwrap()))
            .collect::<Vec<_>>()
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

/// A lesson's answer; an error of the lesson names it.
fn learn(gallery: &gallery::Gallery, lesson: &gallery::Lesson) -> Option<gallery::Answer> {
    gallery.run(lesson).unwrap_or_else(|error| panic!("lesson {}: {error}", lesson.name))
}

#[test]
fn lessons_of_the_gallery_find_the_same_on_the_device_and_the_cpu() {
    let device = gallery::Gallery::new(builder().strict(true), None).expect("the device opens");
    let cpu = Session::builder().device(DeviceChoice::Cpu);
    let cpu = gallery::Gallery::new(cpu, Some(5_000)).expect("the CPU is there");
    let small =
        gallery::Gallery::new(builder().strict(true), Some(5_000)).expect("the device opens");
    for lesson in gallery::LESSONS {
        let launches = || device.session.device().expect("a device").counters().launches;
        let before = launches();
        let answer = learn(&device, &lesson).expect("there is a device");
        // These two make sessions of their own, and look themselves where they ran.
        let elsewhere = ["one-function", "memory"].contains(&lesson.name);
        assert!(elsewhere || launches() > before, "{}: no kernel ran", lesson.name);
        assert!(!answer.text.is_empty() && !answer.ways.is_empty(), "{}: {answer:?}", lesson.name);

        let on_cpu = learn(&cpu, &lesson);
        assert_eq!(on_cpu.is_none(), lesson.needs_device, "{}", lesson.name);
        if let (Some(on_cpu), Some(answer)) = (on_cpu, learn(&small, &lesson)) {
            let shown = |of: &gallery::Answer| {
                (of.text.lines().next().map(str::to_owned), of.picture.clone())
            };
            assert_eq!(shown(&on_cpu), shown(&answer), "{}", lesson.name);
        }
    }
}

#[test]
fn lessons_of_the_gallery_work_with_few_rows_and_odd_ones() {
    for rows in [1, 33, 1_001] {
        let gallery =
            gallery::Gallery::new(builder().strict(true), Some(rows)).expect("the device opens");
        for lesson in
            gallery::LESSONS.iter().filter(|lesson| lesson.name != "memory" || rows > 1_000)
        {
            learn(&gallery, lesson).expect("there is a device");
        }
    }
}

#[test]
fn lessons_of_the_gallery_see_differences_and_arguments_that_are_wrong() {
    gallery::same("a", 1, 1).expect("they are the same");
    let error = gallery::same("the sum", 1, 2).unwrap_err().to_string();
    assert_eq!(error, "the sum: 1, and computed another way 2");
    gallery::close("a", 1.0, 1.0 + 1e-13, 1e-12).expect("they are close");
    gallery::close("a", 1.0, 1.0 + 1e-11, 1e-12).expect_err("they are not");
    gallery::close("a", f64::NAN, 1.0, 1e-12).expect_err("nor is NaN");

    let (page, script) =
        (include_str!("../../docs/gallery.md"), include_str!("../../scripts/gallery.sh"));
    for name in gallery::LESSONS.map(|lesson| lesson.name) {
        assert!(page.contains(&format!("\n| `{name}` | ")), "docs/gallery.md has no {name}");
        assert!(script.contains(&format!("\n{name} ")), "scripts/gallery.sh has no {name}");
    }
    let wanted =
        |arguments: &[&str]| gallery::wanted(arguments.iter().map(|argument| argument.to_string()));
    let all =
        wanted(&["--rows", "1_000", "--device", "sim", "pi", "sort"]).expect("they are right");
    let names: Vec<_> = all.lessons.iter().map(|lesson| lesson.name).collect();
    assert_eq!(
        (names, all.rows, all.device),
        (vec!["pi", "sort"], Some(1000), Some(DeviceChoice::Sim))
    );
    assert_eq!(wanted(&[]).expect("all").lessons.len(), gallery::LESSONS.len());
    for (arguments, why) in [
        (&["tau"][..], "no lesson is named \"tau\"; there are increment, quadratic"),
        (&["--rows"], "--rows needs a value"),
        (&["--rows", "many"], "--rows many: not a number of rows"),
        (&["--rows", "0"], "a lesson needs a row"),
        (&["--device", "abacus"], "device \"abacus\""),
    ] {
        let error = wanted(arguments)
            .err()
            .unwrap_or_else(|| panic!("{arguments:?} are wrong"))
            .to_string();
        assert!(error.contains(why), "{error}");
    }
}
