use super::*;

#[test]
fn a_name_is_of_one_row() {
    let mut names: Vec<&str> =
        rows().flat_map(|row| row.also.iter().chain([&row.name])).copied().collect();
    names.sort_unstable();
    let twice: Vec<&[&str]> = names.windows(2).filter(|pair| pair[0] == pair[1]).collect();
    assert!(twice.is_empty(), "{twice:?}");
}

#[test]
fn what_datafusion_computes_it_has() {
    let state =
        datafusion::execution::session_state::SessionStateBuilder::new_with_default_features()
            .build();
    let known = |row: &&Function| {
        state.scalar_functions().contains_key(row.name)
            || state.higher_order_functions().contains_key(row.name)
    };
    let without: Vec<&str> = rows()
        .filter(|row| matches!(row.body, HostBody::DataFusion) && !known(row))
        .map(|row| row.name)
        .collect();
    // Rules make these calls with functions of their own.
    let of_rules = [
        "drawn_once",
        "one_row_value",
        "arrow_sorted",
        "arrow_compared",
        "arrow_back",
        "arrow_digits",
        "arrow_rounded",
        "arrow_point",
        "justified",
        "interval_part",
        "in_unit",
    ];
    assert_eq!(without, of_rules);
}

/// `docs/sql.md` has the lines of all families. `WARPFRAME_WRITE_DOCS=1` writes them there.
#[test]
fn the_page_has_these_lines() {
    const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/sql.md");
    const HEAD: &str = "| function | device | example | otherwise |\n|---|---|---|---|\n";
    let page = std::fs::read_to_string(PATH).unwrap();
    let begin = page.find("## Functions\n").unwrap();
    let begin = begin + page[begin..].find(HEAD).unwrap() + HEAD.len();
    let end = begin + page[begin..].find("\n\n").unwrap() + 1;
    let cell = |text: &str| text.replace('|', "\\|");
    let line = |line: &Line| {
        let device = if line.on_device { "yes" } else { "no" };
        let example = match line.example {
            "" => String::new(),
            example => format!(" {}", cell(example)),
        };
        let otherwise = if line.otherwise.is_empty() {
            String::new()
        } else {
            format!(" {}", cell(line.otherwise))
        };
        format!("| {} | {device} |{example} |{otherwise} |\n", cell(line.functions))
    };
    let lines: String = PAGES.into_iter().flatten().map(line).collect();
    if std::env::var_os("WARPFRAME_WRITE_DOCS").is_some() {
        std::fs::write(PATH, [&page[..begin], &lines, &page[end..]].concat()).unwrap();
    } else {
        assert_eq!(&page[begin..end], lines, "WARPFRAME_WRITE_DOCS=1 writes it");
    }
}
