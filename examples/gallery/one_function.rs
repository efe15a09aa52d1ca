//! One function of a row on all devices: a closure on the CPU, its body in CUDA C++ on the
//! simulator and on a GPU. All yield the same numbers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use warpframe::ScalarFunction;
use warpframe::arrow::array::{ArrayRef, AsArray};
use warpframe::arrow::datatypes::{Int32Type, Int64Type};
use warpframe::prelude::*;

use super::{Answer, Gallery, Lesson, Outcome, same, timed_in};

pub(crate) const LESSON: Lesson = Lesson {
    name: "one-function",
    about: "one function on the CPU, the simulator and a GPU",
    rows: 20_000,
    needs_device: false,
    run,
};

const BODY: &str = "
    int steps = 0;
    while (n > 1) {
        n = n % 2 == 0 ? n / 2 : 3 * n + 1;
        steps++;
    }
    return steps;";

fn collatz(mut n: i64) -> i32 {
    let mut steps = 0;
    while n > 1 {
        n = if n % 2 == 0 { n / 2 } else { 3 * n + 1 };
        steps += 1;
    }
    steps
}

fn run(gallery: &Gallery, rows: usize) -> Outcome<Answer> {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let function =
        || ScalarFunction::new("collatz", [("n", DataType::Int64)], DataType::Int32, BODY);
    let on_host = function().on_host(move |arguments| {
        let n = arguments[0].as_primitive::<Int64Type>();
        counted.fetch_add(n.len(), Ordering::Relaxed);
        Ok(Arc::new(n.unary::<_, Int32Type>(collatz)) as ArrayRef)
    });

    let session = |device| Session::builder().device(device).build();
    let cpu = session(DeviceChoice::Cpu)?;
    cpu.register_function(on_host)?;
    let sim = session(DeviceChoice::Sim)?;
    sim.register_function(function())?;
    let mut sessions = vec![("cpu, a closure in Rust", &cpu), ("sim", &sim)];
    if gallery.on_cuda() {
        gallery.session.register_function(function())?;
        sessions.push(("cuda", &gallery.session));
    }

    let query = format!("SELECT range, collatz(range) AS steps FROM range(1, {rows} + 1)");
    let mut answer = Answer::default();
    let mut expected = None;
    for (name, session) in sessions {
        let (frame, time) = timed_in(session, || Ok(session.sql(&query)?.collect()?))?;
        same(
            &format!("{name}: the rows are on its device"),
            frame.is_on_device(),
            session.device().is_some(),
        )?;
        let frame = frame.sort(["range"])?;
        let steps = frame.column("steps")?.to_vec::<i32>()?;
        let first = expected.get_or_insert_with(|| steps.clone());
        if let Some(row) = (0..rows).find(|row| steps.get(*row) != first.get(*row)) {
            same(&format!("{name}: steps of {}", row + 1), steps.get(row), first.get(row))?;
        }
        answer = answer.way(name, rows, time);
    }
    if calls.load(Ordering::Relaxed) < rows {
        return Err("the closure was not called for all rows".into());
    }
    let most = expected.unwrap_or_default().into_iter().max().unwrap_or(0);
    answer.text =
        format!("numbers up to {rows} come to 1 in {most} steps or fewer, on each device");
    Ok(answer)
}
