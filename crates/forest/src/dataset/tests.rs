//! Ordinary CSV files, and broken ones.

mod any_bytes;

use proptest::prelude::*;

use super::{Codes, Dataset, DatasetError, ReadOptions, Task};

impl Dataset {
    /// The same table with 32-bit codes.
    pub(crate) fn widened(mut self) -> Self {
        for column in &mut self.columns {
            if let Codes::Short(codes) = &column.codes {
                column.codes = Codes::Long(codes.iter().map(|&code| u32::from(code)).collect());
            }
        }
        self
    }
}

fn parse(text: &str, predict: &str) -> Result<Dataset, DatasetError> {
    Dataset::parse(text.as_bytes(), &ReadOptions::predict(predict))
}

fn message(text: &str, options: &ReadOptions) -> String {
    let error = Dataset::parse(text.as_bytes(), options).unwrap_err();
    match error.hint() {
        Some(hint) => format!("{error} | {hint}"),
        None => error.to_string(),
    }
}

fn values(data: &Dataset, column: usize) -> Vec<f64> {
    (0..data.rows())
        .map(|row| data.columns()[column].value(row))
        .collect()
}

#[test]
fn quotes_marks_line_ends_and_gaps_are_read() {
    let text = "\u{feff}\"Lot Area\",Zone ,Price\r\n1.5,\"a, b\",10\r\nNA,WD ,20\r\n,,30\r\n-0,\"a, b\",40.5\r\n";
    let data = parse(text, "Price").unwrap();
    assert_eq!(
        (data.rows(), data.predictors(), data.task()),
        (4, 2, Task::Regression)
    );
    let [area, zone] = data.columns() else {
        panic!("two predictors");
    };
    assert_eq!((area.name(), zone.name()), ("Lot Area", "Zone"));
    assert_eq!(area.values(), [0.0, 1.5]);
    assert_eq!(area.missing(), Some(2));
    let seen = values(&data, 0);
    assert!(seen[1].is_nan() && seen[2].is_nan());
    assert_eq!((seen[0], seen[3]), (1.5, 0.0));
    // Blanks belong to a level, and missing cells have their own level, the last.
    assert_eq!(zone.levels().unwrap(), ["WD ", "a, b", "NA"]);
    assert_eq!(values(&data, 1), [1.0, 0.0, 2.0, 1.0]);
    assert_eq!(zone.missing(), None);
}

#[test]
fn the_target_may_stand_anywhere_and_columns_may_be_dropped() {
    let options = ReadOptions {
        drop: vec!["PID".into()],
        ..ReadOptions::predict("y")
    };
    let data = Dataset::parse(b"PID,y,x\n1,5,0\n2,6,1\n", &options).unwrap();
    assert_eq!(data.target().y(), [5.0, 6.0]);
    assert_eq!(data.columns()[0].name(), "x");
    assert_eq!(data.predictors(), 1);
}

#[test]
fn a_column_that_turns_to_text_late_keeps_its_spelling() {
    let data = parse("x,y\n01,1\n1.0,2\n2A,3\n", "y").unwrap();
    assert_eq!(data.columns()[0].levels().unwrap(), ["01", "1.0", "2A"]);
}

#[test]
fn an_order_of_levels_is_followed() {
    let options = ReadOptions {
        levels: [("q".into(), vec!["low".into(), "mid".into(), "high".into()])].into(),
        ..ReadOptions::predict("y")
    };
    let data = Dataset::parse(b"q,y\nhigh,1\nlow,2\nNA,3\n", &options).unwrap();
    assert_eq!(values(&data, 0), [2.0, 0.0, 3.0]);
    assert_eq!(
        message("q,y\nhigh,1\nmidd,2\n", &options),
        "line 3, column 1: level `midd` of `q` is not in the order given for it | did you mean `mid`? the order must name every level"
    );
}

#[test]
fn an_order_for_a_column_without_levels_is_refused() {
    let order = |column: &str| ReadOptions {
        levels: [(column.into(), vec!["1".into(), "2".into()])].into(),
        ..ReadOptions::predict("y")
    };
    let text = "q,n,y\na,1,u\nb,2,v\n";
    assert_eq!(
        message(text, &order("n")),
        "line 1, column 2: an order of levels is given for `n`, which is a column of numbers | \
         remove `n` from the orders: numbers are ordered by value, and the target has no order"
    );
    assert!(
        message(text, &order("y")).starts_with(
            "line 1, column 3: an order of levels is given for `y`, which is the target"
        )
    );
}

#[test]
fn options_that_contradict_each_other_are_refused() {
    let options = |drop: &[&str], order: &[&str]| {
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        ReadOptions {
            drop: owned(drop),
            levels: if order.is_empty() {
                [].into()
            } else {
                [("q".to_owned(), owned(order))].into()
            },
            ..ReadOptions::predict("y")
        }
    };
    let text = "x,q,y\n1,low,1\n2,high,2\n";
    for (options, expected) in [
        (
            options(&["x", "y"], &[]),
            "line 1, column 3: column `y` cannot be dropped: it is needed to predict | remove `y` from the columns to drop",
        ),
        (
            options(&["q"], &["low", "high"]),
            "line 1, column 2: column `q` cannot be dropped: it is needed to have its levels in order | remove `q` from the columns to drop",
        ),
        (
            options(&[], &["low", "low", "high"]),
            "line 1, column 2: the order given for `q` names level `low` twice | name every level once",
        ),
    ] {
        assert_eq!(message(text, &options), expected);
    }
}

#[test]
fn not_a_number_is_missing_in_every_spelling() {
    for cell in [
        "nan",
        "NaN",
        "-nan",
        "+NaN",
        " -NAN ",
        "\u{a0}nan",
        "NA",
        " ",
    ] {
        let data = parse(&format!("x,y\n{cell},1\n5,2\n"), "y").unwrap();
        assert_eq!(data.columns()[0].missing(), Some(1), "{cell:?}");
        for (task, other) in [
            (Task::Regression, "2.5"),
            (Task::Classification, "2"),
            (Task::Classification, "a"),
        ] {
            let options = ReadOptions {
                task: Some(task),
                ..ReadOptions::predict("y")
            };
            assert_eq!(
                message(&format!("x,y\n1,{other}\n2,{cell}\n"), &options),
                "line 3, column 2: target `y` is missing | remove the rows that have no target",
                "{task:?} {cell:?}"
            );
        }
    }
}

#[test]
fn the_task_is_seen_or_given() {
    let task = |text: &str, task| {
        let options = ReadOptions {
            task,
            ..ReadOptions::predict("y")
        };
        Dataset::parse(text.as_bytes(), &options).map(|data| data.task())
    };
    assert_eq!(task("x,y\n1,a\n2,b\n", None).unwrap(), Task::Classification);
    assert_eq!(task("x,y\n1,0.5\n2,1\n", None).unwrap(), Task::Regression);
    // Two rows with two whole numbers are not classes, unless the options say so.
    assert_eq!(task("x,y\n1,0\n2,1\n", None).unwrap(), Task::Regression);
    let asked = Some(Task::Classification);
    assert_eq!(
        task("x,y\n1,0\n2,1\n", asked).unwrap(),
        Task::Classification
    );
    let error = task("x,y\n1,7\n2,b\n", Some(Task::Regression)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "line 3, column 2: target `y` is `b`, which is not a number"
    );
}

#[test]
fn bad_files_are_refused_with_place_and_way_out() {
    let y = ReadOptions::predict("y");
    let cases = [
        (
            "",
            "there is no header: the data are empty | the first line must name the columns",
        ),
        (
            "x,y\n1,2\n3\n",
            "line 3, column 2: 1 field, but the header has 2 | give every row all fields; leave a missing one empty or write `NA`",
        ),
        (
            "x,y\n1,2\n3,4,5\n",
            "line 3, column 3: 3 fields, but the header has 2 | put a field that holds a comma in double quotes",
        ),
        (
            "x,y,x\n",
            "line 1, column 3: duplicate column `x`, first in column 1 | rename one of them, or remove the second `x` from the file",
        ),
        (
            "x,yy\n1,2\n",
            "line 1: there is no column `y` to predict | names are those of the first line of the file",
        ),
        (
            "x,y\n1,2\n",
            "line 1: too few rows below the header: 1, and a forest needs at least 2",
        ),
        (
            "\n\nx,y\n",
            "line 3: too few rows below the header: 0, and a forest needs at least 2",
        ),
        (
            "x,y\n1,2\n2,2\n",
            "line 1, column 2: target `y` is constant: there is nothing to predict | predict another column",
        ),
        (
            "x,y\n1,2\n2,NA\n",
            "line 3, column 2: target `y` is missing | remove the rows that have no target",
        ),
        (
            "x,y\n1,2\n1e999,3\n",
            "line 3, column 1: `x` is infinite (`1e999`) | write `NA` where the value is not known",
        ),
        (
            "x,y\n1,2\n2,-inf\n",
            "line 3, column 2: `y` is infinite (`-inf`) | write `NA` where the value is not known",
        ),
        (
            "y\n1\n2\n",
            "there is no column to predict from: the only one is the target | give the file a second column; fields are separated by commas",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(message(text, &y), expected);
    }
    let price = ReadOptions::predict("Sale_Prise");
    assert_eq!(
        message("x,Sale_Price\n1,2\n", &price),
        "line 1: there is no column `Sale_Prise` to predict | did you mean `Sale_Price`?"
    );
    let drop = ReadOptions {
        drop: vec!["z".into()],
        ..y
    };
    assert!(message("x,y\n1,2\n", &drop).starts_with("line 1: there is no column `z` to drop"));
    assert_eq!(
        message("z,y\n1,2\n2,3\n", &drop),
        "there is no column to predict from: the only one is the target | drop fewer columns"
    );
    let ids = (0..1200).map(|row| format!("{row},id{row}\n"));
    let ids = ids.collect::<Vec<_>>().concat();
    let error = parse(&format!("x,y\n{ids}"), "y").unwrap_err();
    assert_eq!(
        error.to_string(),
        "target `y` has 1200 classes: at most 1000"
    );
    let unreadable = Dataset::read("no/such/file.csv", &ReadOptions::predict("y")).unwrap_err();
    assert!(
        unreadable
            .to_string()
            .starts_with("cannot read `no/such/file.csv`")
    );
    let endless = Dataset::read("/dev/zero", &ReadOptions::predict("y")).unwrap_err();
    assert_eq!(
        endless.to_string(),
        "cannot read `/dev/zero`: not a regular file"
    );
}

#[test]
fn separators_quotes_and_encodings_that_are_not_ours_are_named() {
    let y = ReadOptions::predict("y");
    let cases = [
        (
            "x;y\n1;2\n",
            "line 1: the header is a single field, `x;y` | separate the fields by commas instead of semicolons",
        ),
        (
            "x\ty\n1\t2\n",
            "line 1: the header is a single field, `x\ty` | separate the fields by commas instead of tabs",
        ),
        (
            "x,y\n1,2\n\"3,4\n5,6\n",
            "line 3, column 1: a quote is opened here and never closed | close it, or write `\"\"` inside quotes for a quote that belongs to the text",
        ),
        (
            "x,y\r\n\r\n1,\"2\r\n3,4\r\n",
            "line 3, column 2: a quote is opened here and never closed | close it, or write `\"\"` inside quotes for a quote that belongs to the text",
        ),
        (
            "x,\"y\n1,2\n",
            "line 1, column 2: a quote is opened here and never closed | close it, or write `\"\"` inside quotes for a quote that belongs to the text",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(message(text, &y), expected);
    }
    for wide in [&b"\xff\xfex\0,\0y\0"[..], b"\xfe\xff\0x\0,\0y"] {
        let error = Dataset::parse(wide, &y).unwrap_err();
        assert_eq!(error.to_string(), "the text is UTF-16, not UTF-8");
        assert_eq!(error.hint().unwrap(), "save the file as UTF-8");
    }
    let error = Dataset::parse(b"\x1f\x8b\x08\x00", &y).unwrap_err();
    assert_eq!(error.to_string(), "the file is compressed with gzip");
    assert!(error.hint().unwrap().contains("gunzip"));
}

#[test]
fn lines_are_counted_through_quoted_line_breaks() {
    let error = |text: &str| parse(text, "y").unwrap_err().to_string();
    let expected = "line 6, column 2: 1 field, but the header has 2";
    assert_eq!(error("x,y\n\"a\nb\",1\nc,2\n\nd\n"), expected);
    assert_eq!(error("x,y\r\n\"a\r\nb\",1\r\nc,2\r\n\r\nd\r\n"), expected);
}

#[test]
fn tables_of_the_largest_shapes_are_read() {
    let wide = (0..2000).map(|column| format!("c{column},"));
    let wide = wide.collect::<Vec<_>>().concat();
    let row = |row: usize| "1,".repeat(1999) + &format!("{row},{row}\n");
    let text = format!("{wide}y\n{}{}", row(1), row(2));
    let data = parse(&text, "y").unwrap();
    assert_eq!((data.rows(), data.predictors()), (2, 2000));

    let lines = (0..100_000).map(|row| format!("{row}.5,{}\n", row % 1000));
    let text = lines.collect::<Vec<_>>().concat();
    let data = parse(&format!("x,y\n{text}"), "y").unwrap();
    assert_eq!(data.rows(), 100_000);
    assert!(matches!(data.columns()[0].codes(), Codes::Long(_)));
    assert_eq!(data.columns()[0].value(99_999), 99_999.5);
}

#[test]
fn tables_from_code_are_checked_too() {
    let make = |x: Vec<f64>, y: Vec<f64>, classes: &[&str]| {
        let classes = classes.iter().map(|&class| class.to_owned()).collect();
        Dataset::from_columns(vec![("x".into(), x)], "y", y, classes)
    };
    assert!(make(vec![1.0, 2.0], vec![1.0, 2.0], &[]).is_ok());
    assert!(make(vec![1.0], vec![1.0, 2.0], &[]).is_err());
    assert!(make(vec![1.0, f64::INFINITY], vec![1.0, 2.0], &[]).is_err());
    assert!(make(vec![1.0, 2.0], vec![1.0, f64::NAN], &[]).is_err());
    assert!(make(vec![1.0, 2.0], vec![1e308, -1e308], &[]).is_err());
    // The sum over three trees would overflow.
    assert!(make(vec![1.0, 2.0], vec![3e-8, 1e308], &[]).is_err());
    assert!(make(vec![1.0, 2.0], vec![3e-8, 1e150], &[]).is_ok());
    assert!(make(vec![1.0, 2.0], vec![0.0, 2.0], &["a", "b"]).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn anything_like_a_table_is_read_or_refused_but_never_panics(
        cells in proptest::collection::vec("[a-c,\"\n\r0-9.eNA-]{0,6}", 0..60),
        task in prop_oneof![Just(None), Just(Some(Task::Regression)), Just(Some(Task::Classification))],
    ) {
        let text = format!("x,y,z\n{}", cells.join(","));
        let options = ReadOptions { task, ..ReadOptions::predict("y") };
        if let Ok(data) = Dataset::parse(text.as_bytes(), &options) {
            prop_assert!(data.rows() >= 2);
            prop_assert_eq!(data.predictors(), 2);
        }
    }

    #[test]
    fn codes_are_ranks_that_lead_back_to_the_values(cells in proptest::collection::vec(-20..20_i32, 2..50)) {
        let y = (0..cells.len()).map(|row| row as f64).collect();
        let x: Vec<f64> = cells.iter().map(|&cell| f64::from(cell) / 4.0).collect();
        let data = Dataset::from_columns(vec![("x".into(), x.clone())], "y", y, Vec::new()).unwrap();
        prop_assert_eq!(values(&data, 0), x);
        let sorted = data.columns()[0].values();
        prop_assert!(sorted.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
