use warpframe::prelude::*;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let session = Session::builder()
        .device(if args.get(2).is_some() { DeviceChoice::Cpu } else { DeviceChoice::Sim })
        .strict(args.get(2).is_none())
        .build()
        .unwrap();
    for t in ["lineitem", "orders", "customer", "part", "supplier", "partsupp", "nation", "region"] {
        session.register_parquet(t, format!("data/tpch/{t}.parquet")).unwrap();
    }
    session.register_csv("jets", "data/jets.csv").unwrap();
    for sql in std::fs::read_to_string(&args[1]).unwrap_or(args[1].clone()).split(';').filter(|s| !s.trim().is_empty())
    {
        let t = std::time::Instant::now();
        match session.sql(sql).and_then(|f| f.collect()) {
            Ok(f) => {
                f.show().unwrap();
            }
            Err(e) => println!("ERROR {e}"),
        }
        eprintln!("{:?}", t.elapsed());
    }
    if let Some(d) = session.device() {
        println!("{:?}\n{:?}", d.counters(), d.launches());
    }
}
