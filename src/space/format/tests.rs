//! What is read is what the files say, and what is written reads back the same.

use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::space::open::tests::any_space;

const OLD: &str = "\
# a comment
heur {a, b, c} [a]            # categorical
k [1, 100] [10]il
lr [1e-4, 1.0] [0.01]l
level{1.00,1.05,2}[1.05]
on {yes,no}[no] | heur in {a}
Conditionals:
lr | heur in {a, b}
lr | on in {yes}
Forbidden:
{heur=c, k=1}
";

const NEW: &str = "\
heur categorical {a, b, 'c'} [a]
size ordinal {small, medium, large} [small]
k integer [1, 100] [10] log
n int [0,5][3]
lr real [1e-4, 1.0] [0.01] log
lr | heur in {a, b} && k > 5
n | size > small || heur == c
n | k != 7
{heur=c, k=1}
{k + n > 103 && heur == b}
";

const IRACE: &str = "\
algorithm \"--\"            c     (as,mmas,\"very low\", acs, ras)   # a comment
ants      \"--ants \"       i,log (5, 100)
q0        \"--q0=\"         r     (0.0, 1.0)   | algorithm == \"acs\"
rank      \"--rank \"       i     (1, \"ants - 1\")  | algorithm %in% c(\"ras\", \"as\")
level     \"\"              o     (low, mid, high)
dlb       \"--dlb \"        c     (0, 1)  | !(level == \"low\") & ants > 10
[forbidden]
(q0 == 0.0) & (ants %% 2 == 1)
[global]
digits = 4
";

const JSON: &str = r#"{"name": "demo",
 "hyperparameters": [
  {"type":"constant","name":"c","value":3,"meta":null},
  {"type":"categorical","name":"heur","choices":["x","y"],"weights":[0.2, 0.8],"default_value":"y","meta":null},
  {"type":"uniform_int","name":"k","lower":1,"upper":100,"default_value":10,"log":true,"meta":null},
  {"type":"ordinal","name":"ord","sequence":["low","mid","high"],"default_value":"mid","meta":null},
  {"type":"uniform_float","name":"lr","lower":0.0001,"upper":1.0,"default_value":0.01,"log":true,"meta":null},
  {"type":"normal_float","name":"nf","mu":0.0,"sigma":1.0,"lower":-3.0,"upper":3.0,"default_value":0.0,"log":false,"meta":null}],
 "conditions": [
  {"type":"EQ","child":"lr","parent":"heur","value":"x"},
  {"type":"AND","child":"nf","conditions":[{"type":"IN","child":"nf","parent":"heur","values":["x","y"]},
                                           {"type":"GT","child":"nf","parent":"k","value":5}]}],
 "forbiddens": [
  {"type":"AND","clauses":[{"type":"EQUALS","name":"heur","value":"y"},{"type":"IN","name":"k","values":[1,2]}]},
  {"type":"RELATION_LT","left":"k","right":"lr"},
  {"type":"EQUALS","name":"ord","value":"high"}],
 "python_module_version":"1.2.0","format_version":0.4}"#;

fn read_well(text: &str, format: Format) -> SpaceFile {
    read(text, format).unwrap_or_else(|mistakes| panic!("{}", shown(text, &mistakes)))
}

fn shown(text: &str, mistakes: &[SpaceMistake]) -> String {
    let lines: Vec<String> = mistakes
        .iter()
        .map(|mistake| {
            let (line, column) = line_column(text, mistake.at.start);
            let hint = mistake
                .error
                .hint()
                .map_or(String::new(), |hint| format!(" ({hint})"));
            format!("{line}:{column}: {}{hint}", mistake.error)
        })
        .collect();
    lines.join("\n")
}

fn yaml(text: &str, format: Format) -> String {
    let file = read_well(text, format);
    let notes: Vec<&str> = file.notes.iter().map(|note| note.text.as_str()).collect();
    let text = write(&file.space, Format::Captime).unwrap().text;
    format!("{text}conditions: {}, notes: {notes:?}", file.conditions)
}

#[test]
fn old_pcs_files_are_read() {
    insta::assert_snapshot!(yaml(OLD, Format::Pcs));
}

#[test]
fn new_pcs_files_are_read() {
    insta::assert_snapshot!(yaml(NEW, Format::Pcs));
}

#[test]
fn irace_files_are_read() {
    insta::assert_snapshot!(yaml(IRACE, Format::Irace));
}

#[test]
fn configspace_files_are_read() {
    insta::assert_snapshot!(yaml(JSON, Format::ConfigSpaceJson));
    let tree: serde_json::Value = serde_json::from_str(JSON).unwrap();
    let text = serde_yaml::to_string(&tree).unwrap();
    let tagged = text.replacen("values:", "values: !!python/tuple", 1);
    assert_ne!(tagged, text);
    let from_yaml = read_well(&tagged, Format::ConfigSpaceYaml);
    assert_eq!(
        from_yaml.space,
        read_well(JSON, Format::ConfigSpaceJson).space
    );
}

#[test]
fn formats_are_told_apart_by_name_and_by_text() {
    let detect = |name: &str, text: &str| Format::detect(Path::new(name), text);
    assert_eq!(detect("a.pcs", NEW), Format::Pcs);
    assert_eq!(detect("params.txt", OLD), Format::Pcs);
    assert_eq!(detect("params.txt", IRACE), Format::Irace);
    assert_eq!(detect("params.pcs", IRACE), Format::Irace);
    assert_eq!(detect("space", JSON), Format::ConfigSpaceJson);
    assert_eq!(
        detect("space.yaml", "hyperparameters: []"),
        Format::ConfigSpaceYaml
    );
    assert_eq!(detect("space.yaml", "arms:\n  space: {}"), Format::Captime);
}

#[test]
fn files_written_back_read_as_the_same_space() {
    for (text, from, to) in [
        (OLD, Format::Pcs, Format::PcsOld),
        (OLD, Format::Pcs, Format::Pcs),
        (NEW, Format::Pcs, Format::Pcs),
        (OLD, Format::Pcs, Format::ConfigSpaceJson),
        (IRACE, Format::Irace, Format::Irace),
        (IRACE, Format::Irace, Format::Captime),
        (NEW, Format::Pcs, Format::Captime),
        (JSON, Format::ConfigSpaceJson, Format::ConfigSpaceJson),
        (JSON, Format::ConfigSpaceJson, Format::ConfigSpaceYaml),
        (JSON, Format::ConfigSpaceJson, Format::Captime),
    ] {
        let space = read_well(text, from).space;
        let written = write(&space, to).unwrap().text;
        assert_eq!(read_well(&written, to).space, space, "{to:?}:\n{written}");
    }
}

#[test]
fn what_a_format_cannot_hold_is_refused() {
    let refused = |text: &str, from, to| {
        write(&read_well(text, from).space, to)
            .unwrap_err()
            .to_string()
    };
    let all = [
        refused(NEW, Format::Pcs, Format::PcsOld),
        refused(IRACE, Format::Irace, Format::Pcs),
        refused(NEW, Format::Pcs, Format::ConfigSpaceJson),
        refused(
            "arms: {space: {a b: {real: [0, 1]}}}",
            Format::Captime,
            Format::Irace,
        ),
    ];
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn mistakes_have_line_and_column() {
    let mistakes = |text: &str, format| shown(text, &read(text, format).unwrap_err());
    let pcs = "heur {a, b} [c]\nk [10, 1] [5]i\nlr [0, 1] [0.5]l\nx catgorical {a} [a]\nn integer [1, 2.5] [1]\nq [1, 2] [1]z\nlr | heurr in {a}\nk | heur in {d}\n{heur=a, kk=2}\ny {a, a} [a]\nz {a, b\n";
    let irace = "a \"-a\" i (1, 10\nb -b r (0, 1)\nc \"\" x (0, 1)\nd \"\" r (0, 1) | e == 3\nf \"\" i (1, \"g\")\ng \"\" i (1, \"f\")\nh \"\" r (1, 0)\n[forbiden]\n";
    let json = "{\"hyperparameters\": [\n {\"type\": \"uniform_flot\", \"name\": \"a\"},\n {\"type\": \"uniform_float\", \"name\": \"b\", \"lower\": 1},\n {\"type\": \"categorical\", \"name\": \"c\", \"choices\": [1, [2]]}],\n \"conditions\": [{\"type\": \"EQ\", \"child\": \"d\", \"parent\": \"a\", \"value\": 1}]}";
    let yaml = "arms:\n  space:\n    a: {rael: [0, 1]}\n    b: {integer: [0.5, 1]}\n    c: {choice: [x, y], scale: log}\n    d: {real: [0, 1], default: 2}\n    e: {choice: [x, y], when: f == 3}\n    g: {real: [0, 1], when: \"d > 0.5 and e = x\"}\n  forbid:\n    - d < 0.2 and c == z\n    - 3\n";
    insta::assert_snapshot!(format!(
        "PCS\n{}\n\nirace\n{}\n\nConfigSpace\n{}\n\ncaptime\n{}\n\nempty\n{}\n\nnot JSON\n{}",
        mistakes(pcs, Format::Pcs),
        mistakes(irace, Format::Irace),
        mistakes(json, Format::ConfigSpaceJson),
        mistakes(yaml, Format::Captime),
        mistakes("# nothing\n", Format::Pcs),
        mistakes("{\"a\": [", Format::ConfigSpaceJson),
    ));
}

#[test]
fn mistakes_of_the_space_as_a_whole_have_a_place_too() {
    let mistakes = |text: &str, format| shown(text, &read(text, format).unwrap_err());
    let cycle = "a {x, y} [x]\nb {x, y} [x]\na | b in {x}\nb | a in {x}\n";
    let contradiction =
        "arms:\n  space:\n    a: {real: [0, 1]}\n  forbid:\n    - a > 2\n    - a >= 0\n";
    let cycle = mistakes(cycle, Format::Pcs);
    assert!(
        cycle.contains("these conditions depend on each other"),
        "{cycle}"
    );
    let contradiction = mistakes(contradiction, Format::Captime);
    assert!(contradiction.starts_with("6:7: "), "{contradiction}");
    assert!(contradiction.contains("forbids most"), "{contradiction}");
}

/// Files that tools have published: their parameters, lines with conditions and forbidden clauses, counted without captime.
const COUNTED: [(&str, (usize, usize, usize)); 13] = [
    ("acotsp-irace.txt", (11, 5, 1)),
    ("beamaco-irace.txt", (3, 0, 0)),
    ("clasp-irace.txt", (75, 0, 0)),
    ("clasp.pcs", (75, 60, 2)),
    ("digits-svm.pcs", (11, 6, 0)),
    ("nsga2-irace.txt", (5, 0, 1)),
    ("pbo-ccsat.pcs", (23, 14, 1)),
    ("random-forest.pcs", (17, 7, 0)),
    ("saps.pcs", (4, 0, 0)),
    ("sisrs.pcs", (12, 0, 0)),
    ("small-new.pcs", (23, 14, 1)),
    ("small.json", (17, 0, 0)),
    ("xgboost.pcs", (11, 0, 0)),
];

/// Reads the files in the folder that `CAPTIME_SPACE_FILES` names, and writes and reads each of them again.
#[test]
fn files_of_real_tools_load_where_there_are_any() {
    let Some(folder) = std::env::var_os("CAPTIME_SPACE_FILES") else {
        return;
    };
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    for path in paths
        .iter()
        .filter(|path| path.extension().is_some_and(|ending| ending != "md"))
    {
        let text = std::fs::read_to_string(path).unwrap();
        let format = Format::detect(path, &text);
        let file = read_well(&text, format);
        let space = &file.space;
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let found = (
            space.parameters().len(),
            file.conditions,
            space.forbid().len(),
        );
        println!("{name}: {format:?}, parameters, conditions and clauses {found:?}");
        if let Some((.., counted)) = COUNTED.iter().find(|(known, _)| *known == name) {
            assert_eq!(&found, counted, "{name}");
        }
        let written = write(space, format).unwrap().text;
        assert_eq!(&read_well(&written, format).space, space, "{written}");
        let own = write(space, Format::Captime).unwrap().text;
        assert_eq!(&read_well(&own, Format::Captime).space, space, "{own}");
        let mut rng = <rand_pcg::Pcg64Mcg as rand::SeedableRng>::seed_from_u64(1);
        let begin = std::time::Instant::now();
        for _ in 0..1000 {
            let point = space.draw(&mut rng).unwrap();
            let next = space.neighbour(&point, 1, crate::space::open::NewlyActive::Drawn, &mut rng);
            assert!(space.contains(&point) && next.is_none_or(|next| space.contains(&next)));
        }
        println!(
            "  1,000 drawn, changed and checked in {:?}",
            begin.elapsed()
        );
    }
}

proptest! {
    #[test]
    fn every_space_survives_captimes_own_form(space in any_space()) {
        let text = write(&space, Format::Captime).unwrap().text;
        let back = read(&text, Format::Captime).map_err(|mistakes| shown(&text, &mistakes));
        prop_assert_eq!(back.map(|file| file.space), Ok(space), "{}", text);
    }

    #[test]
    fn every_space_that_another_format_takes_survives_it(space in any_space()) {
        for format in [Format::Pcs, Format::PcsOld, Format::ConfigSpaceJson, Format::ConfigSpaceYaml, Format::Irace] {
            let Ok(written) = write(&space, format) else { continue };
            let text = written.text;
            let back = read(&text, format).map_err(|mistakes| shown(&text, &mistakes));
            prop_assert!(back.is_ok(), "{:?}: {:?}\n{}", format, back, text);
            let back = back.unwrap().space;
            // Some formats have only words as values, and irace has no defaults, but configurations look the same.
            prop_assert_eq!(back.parameters().len(), space.parameters().len());
            if format != Format::Irace {
                let (ours, theirs) = (space.configuration(space.default_point()), back.configuration(back.default_point()));
                prop_assert_eq!(ours.to_string(), theirs.to_string(), "{:?}\n{}", format, text);
            }
            let mut rng = <rand_pcg::Pcg64Mcg as rand::SeedableRng>::seed_from_u64(1);
            if let Ok(point) = space.draw(&mut rng) {
                let drawn = space.configuration(&point);
                let again = back.point(drawn.iter());
                prop_assert!(again.is_ok(), "{:?}: {}: {:?}\n{}", format, drawn, again, text);
                prop_assert_eq!(back.configuration(&again.unwrap()).to_string(), drawn.to_string());
            }
        }
    }

    #[test]
    fn no_file_makes_a_reader_panic(text in "[a-c{}\\[\\]|,=<>&!#\"'() \ninrloé0-9.:-]{0,80}") {
        for format in [Format::Pcs, Format::Irace, Format::ConfigSpaceJson, Format::Captime] {
            if let Err(mistakes) = read(&text, format) {
                prop_assert!(!mistakes.is_empty());
                for mistake in mistakes {
                    prop_assert!(mistake.at.end <= text.len() + 1, "{:?}", mistake);
                    line_column(&text, mistake.at.start);
                }
            }
        }
        Format::detect(Path::new("x"), &text);
    }
}

/// The condition of every parameter that has one, as captime writes it.
fn conditions(space: &OpenSpace) -> Vec<String> {
    let all = space.parameters().iter();
    all.filter_map(|known| known.when.as_ref())
        .map(|when| space.rule_text(when))
        .collect()
}

#[test]
fn irace_files_mean_what_r_says() {
    let text = "\
a \"\" i (1, 100)
on \"\" c (TRUE, FALSE)
b \"\" i (1, 100) | 3 * a %% 2 == 3
c \"\" c (x, 'y z') | !a == 5
d \"\" c (1) | on == TRUE & \"x\" == c
e \"\" r (0, 1) | a %% 7 * 2 > 3 || on %in% c(FALSE)
f \"\" i (\"a\", \"a + 10\") | -a %% 4 < 2
";
    let space = read_well(text, Format::Irace).space;
    let expected = [
        "3 * (a % 2) == 3",
        "not a == 5",
        "on == 'TRUE' and c == x",
        "a % 7 * 2 > 3 or on == 'FALSE'",
        "-a % 4 < 2",
    ];
    let found: Vec<String> = conditions(&space)
        .iter()
        .map(|text| {
            text.replace("on == TRUE", "on == 'TRUE'")
                .replace("on == FALSE", "on == 'FALSE'")
        })
        .collect();
    assert_eq!(found, expected);
    let forbid: Vec<String> = space
        .forbid()
        .iter()
        .map(|rule| space.rule_text(rule))
        .collect();
    assert_eq!(forbid, ["f < a", "f > a + 10"]);
    // What R would read in another order is bracketed.
    let odd = "space:\n  a: {integer: [1, 9]}\n  b: {integer: [1, 9], when: 3 * a % 2 == 1}\n";
    let space = read_well(odd, Format::Captime).space;
    let written = write(&space, Format::Irace).unwrap().text;
    assert!(written.contains("(3 * a) %% 2 == 1"), "{written}");
    let again = read_well(&written, Format::Irace).space;
    assert_eq!(conditions(&again), ["3 * a % 2 == 1"]);
}

#[test]
fn odd_spellings_of_pcs_are_read() {
    let old = "\
heur{a,b,c}[a]#comment
\tlr   [ 1e-4 , 1.0E0 ] [ 1E-2 ]l   # log
k [1,100][10]li
neg [-5,5][-1]i
\"quoted\" {\"x\",'y'}[x]
@1:no-x {yes,no}[no]|heur in{a,b}
Conditionals:
lr|heur in{a,b}
lr |  k in {5}
Forbidden:
{ heur = b , neg = -5 }
";
    let space = read_well(old, Format::PcsOld).space;
    assert_eq!(space.parameters().len(), 6);
    assert_eq!(
        conditions(&space),
        ["heur in [a, b] and k in [5]", "heur in [a, b]"]
    );
    let new = "\
heur categorical {a, b, c} [a]
size ordinal {small, medium, large} [medium]
k int [1, 100] [10]log
f float [0,1] [0.5] # | heur == a
f | k > 20 || size == large && k < 5
f | heur != b
{k > 50, heur = a}
{heur==b,size=large}
{min(k, 3) + f > 100 && heur == b, size != small}
{k < 2 || k > 99 && heur = c}
";
    let space = read_well(new, Format::Pcs).space;
    let expected = ["(k > 20 or size == large and k < 5) and heur != b"];
    assert_eq!(conditions(&space), expected);
    let forbid: Vec<String> = space
        .forbid()
        .iter()
        .map(|rule| space.rule_text(rule))
        .collect();
    assert_eq!(
        forbid,
        [
            "k > 50 and heur == a",
            "heur == b and size == large",
            "min(k, 3) + f > 100 and heur == b and size != small",
            "k < 2 or k > 99 and heur == c",
        ]
    );
}

/// Whether a configuration is allowed, and which parameters it has then.
fn allowed(space: &OpenSpace, values: &[(&str, Value)]) -> Option<String> {
    let values = values.iter().map(|(name, value)| (*name, value));
    let point = space.point(values).ok()?;
    let names: Vec<String> = space
        .configuration(&point)
        .iter()
        .map(|(name, _)| name.to_owned())
        .collect();
    Some(names.join(" "))
}

#[test]
fn clauses_of_smac_may_calculate() {
    let text = "\
x real [-2, 2] [1.5]
y real [-2, 2] [1.5]
sp-a.b integer [1, 100] [10] log
sp-a integer [1, 100] [10]
act categorical {swimming, running} [running]
{x^2 + y^2 < 1}
{sqrt(sp-a) + log10(sp-a.b) >= +exp(2) - -2^2 * 0.25}
{sp-a.b-sp-a > 80 && act == 'swimming'}
{pow(x, 2) > 3.9}
";
    let space = read_well(text, Format::Pcs).space;
    let text: Vec<String> = space
        .forbid()
        .iter()
        .map(|rule| space.rule_text(rule))
        .collect();
    assert_eq!(
        text,
        [
            "x ^ 2 + y ^ 2 < 1",
            "sqrt(`sp-a`) + log10(`sp-a.b`) >= exp(2) - -2 ^ 2 * 0.25",
            "`sp-a.b` - `sp-a` > 80 and act == swimming",
            "x ^ 2 > 3.9",
        ]
    );
    let number = |value: f64| Value::Number(value);
    assert!(allowed(&space, &[("x", number(0.8)), ("y", number(0.5))]).is_none());
    assert!(allowed(&space, &[("x", number(-0.8)), ("y", number(0.7))]).is_some());
    // 9.9 + 2 is more than e^2 + 1, and 6.3 + 2 is not.
    let large = Value::Integer(100);
    assert!(
        allowed(
            &space,
            &[("sp-a", large.clone()), ("sp-a.b", large.clone())]
        )
        .is_none()
    );
    assert!(allowed(&space, &[("sp-a", Value::Integer(36)), ("sp-a.b", large)]).is_some());
    let written = write(&space, Format::Pcs).unwrap().text;
    assert_eq!(read_well(&written, Format::Pcs).space, space, "{written}");
}

#[test]
fn missing_values_mean_in_irace_files_what_r_says() {
    let text = "\
top  \"--top \"  c (\"a\", b)
low  \"--low \"  i (1, 50) | top == \"a\"
not  \"\"  c (\"\", \"--not\") | !(low %in% 1:3)
none \"\"  c (x, y) | is.na(low) | low %in% c(7L, 40:50)
high \"--high \" i (1, \"low + 1\")
";
    let space = read_well(text, Format::Irace).space;
    let with = |top: &str, low: i64| {
        let low = Value::Integer(low);
        let values = [
            ("top", Value::Text(top.into())),
            ("low", low),
            ("high", Value::Integer(1)),
        ];
        allowed(&space, &values).unwrap()
    };
    // `%in%` is false for a missing value, so its opposite is true. A bound that is missing leaves nothing to choose.
    assert_eq!(with("b", 1), "top not none");
    assert_eq!(with("a", 1), "top low high");
    assert_eq!(with("a", 7), "top low not none high");
    assert_eq!(with("a", 45), "top low not none high");
    assert_eq!(with("a", 9), "top low not high");
    for format in [Format::Irace, Format::Captime] {
        let written = write(&space, format).unwrap().text;
        assert_eq!(read_well(&written, format).space, space, "{written}");
    }
    assert!(write(&space, Format::Pcs).is_err() && write(&space, Format::ConfigSpaceJson).is_err());
}

#[test]
fn older_configspace_files_are_read() {
    // Version 0.6 writes `default`, `lambda`, `unparametrized`, and normal distributions without bounds.
    let text = r#"{"hyperparameters": [
  {"name": "a", "type": "uniform_int", "log": false, "lower": 1, "upper": 9, "default": 5, "q": null},
  {"name": "b", "type": "uniform_int", "log": false, "lower": 1, "upper": 9, "default": 5},
  {"name": "c", "type": "unparametrized", "value": "on"},
  {"name": "d", "type": "normal_float", "log": true, "mu": 0.0, "sigma": 1.0, "default": 1.0},
  {"name": "e", "type": "categorical", "choices": [null, "gr\u00f6\u00dfe", "\ud83d\ude00"], "default": null, "weights": null}],
 "conditions": [{"type": "NEQ", "child": "d", "parent": "e", "value": null}],
 "forbiddens": [{"left": "a", "right": "b", "type": "RELATION", "lambda": "LESS"},
                {"left": "a", "right": "b", "type": "RELATION", "lambda": "GREATER"}],
 "python_module_version": "0.6.1", "json_format_version": 0.4}"#;
    let tabs = text.replace("\n ", "\n\t");
    for text in [text, &tabs] {
        let space = read_well(text, Format::ConfigSpaceJson).space;
        let written = write(&space, Format::Captime).unwrap().text;
        insta::assert_snapshot!("older_configspace_files", written);
    }
    let beta = r#"{"hyperparameters": [{"name": "a", "type": "beta_float", "log": false, "alpha": 2, "beta": 2, "default": 0.5}]}"#;
    let mistakes = read(beta, Format::ConfigSpaceJson).unwrap_err();
    assert!(shown(beta, &mistakes).contains("lacks `lower`"));
}

#[test]
fn more_mistakes_have_line_and_column() {
    let mistakes = |text: &str, format| shown(text, &read(text, format).unwrap_err());
    let pcs =
        "a {x, y,} [x]\nb {} []\nc<d [1, 9] [3]i\ne {x} [x]\ne | c<d > 3\n{c<d == 20 && f == 1}\n";
    let irace = "\u{feff}a \"\" i (1.5, 9)\nb \"\" i (1, 9) | a %in% 3:1\nc \"\" r (0, 1) | is.na(q)\nd \"\" r (0, 1) | active(b)\n";
    insta::assert_snapshot!(format!(
        "PCS\n{}\n\nirace\n{}",
        mistakes(pcs, Format::Pcs),
        mistakes(irace, Format::Irace),
    ));
}

#[test]
fn old_encodings_are_read() {
    let latin = b"# Gr\xf6\xdfe\na [0, 1] [0.5]\nb {\xe4, \xc3\xb6} [\xe4]\n";
    let (text, note) = decode(latin).unwrap();
    assert_eq!(text, "# Größe\na [0, 1] [0.5]\nb {ä, ö} [ä]\n");
    let note = note.unwrap();
    assert_eq!(line_column(&text, note.at.start), (1, 5));
    assert!(note.text.contains("Latin-1"));
    assert_eq!(read_well(&text, Format::Pcs).space.parameters().len(), 2);
    let (text, note) = decode("a [0, 1] [0.5]\rb {ä} [ä]\r".as_bytes()).unwrap();
    assert_eq!(read_well(&text, Format::Pcs).space.parameters().len(), 2);
    assert_eq!(note, None);
    assert!(decode(b"\xff\xfea\0").unwrap_err().contains("UTF-16"));
    assert_eq!(decode(b"a\0b"), Err("it is not text"));
}

#[test]
fn reals_keep_their_digits_in_files() {
    let irace = "a \"\" r (0, 1)\nb \"\" r,log (0.004, 1)\nc \"\" i (1, 3)\nd \"\" r (\"a\", \"a * 2\")\n[global]\ndigits = 2\n";
    let space = read_well(irace, Format::Irace).space;
    let own = write(&space, Format::Captime).unwrap().text;
    assert!(
        own.contains("b: {real: [0.01, 1.0], scale: log, digits: 2,"),
        "{own}"
    );
    assert_eq!(read_well(&own, Format::Captime).space, space);
    let back = write(&space, Format::Irace).unwrap().text;
    assert_eq!(read_well(&back, Format::Irace).space, space, "{back}");
    let mut rng = <rand_pcg::Pcg64Mcg as rand::SeedableRng>::seed_from_u64(1);
    for _ in 0..100 {
        let drawn = space.configuration(&space.draw(&mut rng).unwrap());
        for (_, value) in drawn.iter() {
            assert!(value.to_string().len() <= 4, "{drawn}");
        }
    }
    let mixed = "arms: {space: {a: {real: [0, 1], digits: 1}, b: {real: [0, 1]}}}";
    let mixed = read_well(mixed, Format::Captime).space;
    for (to, words) in [
        (Format::Pcs, "PCS has no place for `digits`"),
        (
            Format::ConfigSpaceJson,
            "ConfigSpace has no place for `digits`",
        ),
        (Format::Irace, "one number of `digits` for all"),
    ] {
        let notes = write(&mixed, to).unwrap().notes.join("\n");
        assert!(notes.contains(words), "{notes}");
    }
    let mistakes = |text: &str, format| shown(text, &read(text, format).unwrap_err());
    let shown = [
        mistakes("a \"\" r (0, 1)\n[global]\ndigits = many\n", Format::Irace),
        mistakes(
            "a \"\" r (0.001, 0.004)\n[global]\ndigits = 2\n",
            Format::Irace,
        ),
        mistakes(
            "arms: {space: {a: {real: [0, 1], digits: 16}}}",
            Format::Captime,
        ),
        mistakes(
            "arms: {space: {a: {real: [0, 1], digits: x}}}",
            Format::Captime,
        ),
        mistakes(
            "arms: {space: {a: {integer: [0, 1], digits: 1}}}",
            Format::Captime,
        ),
    ]
    .join("\n");
    for words in [
        "3:1: expected a number of digits, found `many`",
        "no number from 0.001 to 0.004 has 2 digits after its point",
        "a number has 0 to 15 digits after its point, not 16",
        "expected a whole number, found `x`",
        "expected no digits, since only `real` has them, found `1`",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
}

#[test]
fn steps_of_older_configspace_files_are_kept_or_named() {
    let text = r#"{"hyperparameters": [
        {"name": "a", "type": "uniform_float", "lower": 0, "upper": 1, "q": 0.1},
        {"name": "b", "type": "uniform_float", "lower": 0, "upper": 1, "q": 0.25},
        {"name": "c", "type": "uniform_int", "lower": 0, "upper": 20, "q": 5},
        {"name": "d", "type": "uniform_int", "lower": 0, "upper": 20, "q": 1},
        {"name": "e", "type": "uniform_float", "lower": 0, "upper": 1, "q": null}]}"#;
    let file = read_well(text, Format::ConfigSpaceJson);
    let digits: Vec<_> = file
        .space
        .parameters()
        .iter()
        .map(|known| known.domain.digits())
        .collect();
    assert_eq!(digits, [Some(1), None, None, None, None]);
    let notes: Vec<&str> = file.notes.iter().map(|note| note.text.as_str()).collect();
    assert_eq!(
        notes,
        [
            "`b` takes any value, not only steps of its `q`",
            "`c` takes any value, not only steps of its `q`"
        ]
    );
}

#[test]
fn lists_without_c_and_constant_bounds_of_irace_are_read() {
    let text = "on \"\" c (yes,no)\nn \"\" i,log (1, 2^10) | on %in% (yes)\nm \"\" i (\"2*3\", 10) | (on %in% (yes, no) | n > 3)\n";
    let file = read_well(text, Format::Irace);
    assert_eq!(
        conditions(&file.space),
        ["on == yes", "on in [yes, no] or n > 3"]
    );
    assert_eq!(
        file.space.parameters()[1].domain.to_string(),
        "whole numbers from 1 to 1024"
    );
    assert_eq!(
        file.space.parameters()[2].domain.to_string(),
        "whole numbers from 6 to 10"
    );
    assert!(file.space.forbid().is_empty());
}

#[test]
fn a_condition_that_never_holds_is_written_and_read_again() {
    let text = "a ordinal {low, high} [low]\nb {x, y} [x]\nb | a > high\n";
    let space = read_well(text, Format::Pcs).space;
    let own = write(&space, Format::Captime).unwrap().text;
    assert!(own.contains("when: a > high"), "{own}");
    for to in [Format::Captime, Format::Pcs, Format::Irace] {
        let written = write(&space, to).unwrap().text;
        let back = read_well(&written, to).space;
        assert_eq!(
            back.parameters()[1].when,
            space.parameters()[1].when,
            "{written}"
        );
    }
    let negated = own.replace("when: a > high", "when: not a > high");
    let space = read_well(&negated, Format::Captime).space;
    let own = write(&space, Format::Captime).unwrap().text;
    assert_eq!(read_well(&own, Format::Captime).space, space, "{own}");
}

#[test]
fn what_depends_on_a_mistake_is_no_other_mistake() {
    let pcs = "k integer [1, 10] [5] lgo\nlr real [0, 1] [0.5]\nlr | k > 5\n{k=1}\n{k + lr > 3}\n";
    let irace = "k \"\" i (1, 10\nlr \"\" r (0, 1) | k > 5\nm \"\" r (0, 1) |\n";
    let json = r#"{"hyperparameters": [{"name": "k", "type": "uniform_int", "lower": 5, "upper": 2},
        {"name": "lr", "type": "uniform_float", "lower": 0, "upper": 1}],
        "conditions": [{"type": "GT", "child": "lr", "parent": "k", "value": 5}]}"#;
    for (text, format, count) in [
        (pcs, Format::Pcs, 1),
        (irace, Format::Irace, 2),
        (json, Format::ConfigSpaceJson, 1),
    ] {
        let mistakes = read(text, format).unwrap_err();
        assert_eq!(mistakes.len(), count, "{}", shown(text, &mistakes));
    }
}
