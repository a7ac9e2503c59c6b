//! Reads the table of columns, `columns.txt`.

use super::Traits;

/// How one column is drawn; `columns.txt` says what the parts mean.
pub struct Column {
    pub name: &'static str,
    pub traits: Traits,
    pub worth: f64,
    pub within: Option<&'static str>,
    pub echo: Option<(&'static str, f64)>,
    pub shape: Shape,
}

/// What the values of a column are.
pub enum Shape {
    /// Texts and how many houses have each, from the low end to the high end.
    Levels(Vec<(String, usize)>),
    /// The same for small whole numbers.
    Counts(Vec<(String, usize)>),
    /// A measure: share of zeros, share of rounded values, quantiles of what is not zero.
    Amount {
        none: f64,
        heap: f64,
        knots: Vec<(f64, f64)>,
    },
}

const POINTS: [f64; 9] = [0.0, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0];

/// All columns, in the order they are drawn.
pub fn all() -> Vec<Column> {
    rows(include_str!("columns.txt")).map(column).collect()
}

/// The rows of a table: parts between bars, without comments.
pub fn rows(table: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    table
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split('|').map(str::trim).collect())
}

/// A number of the table.
pub fn number(text: &str) -> f64 {
    text.parse().expect("the tables hold numbers")
}

/// Six numbers of the table.
pub fn traits(text: &str) -> Traits {
    let numbers: Vec<f64> = text.split_whitespace().map(number).collect();
    numbers.try_into().expect("there are six traits")
}

fn column(parts: Vec<&'static str>) -> Column {
    let [name, pulls, worth, within, echo, shape] = parts[..] else {
        panic!("a column has six parts: {parts:?}");
    };
    Column {
        name,
        traits: traits(pulls),
        worth: number(worth),
        within: (within != "-").then_some(within),
        echo: echo
            .split_once(' ')
            .map(|(other, share)| (other, number(share))),
        shape: shape_of(shape),
    }
}

fn shape_of(text: &str) -> Shape {
    let words: Vec<&str> = text.split_whitespace().collect();
    match words[..] {
        ["level", ..] => Shape::Levels(counted(&words[1..])),
        ["count", ..] => Shape::Counts(counted(&words[1..])),
        ["amount", "none", none, "heap", heap, "at", ..] => Shape::Amount {
            none: number(none),
            heap: number(heap),
            knots: POINTS
                .into_iter()
                .zip(words[6..].iter().map(|knot| number(knot)))
                .collect(),
        },
        _ => panic!("not a shape: {text}"),
    }
}

fn counted(words: &[&str]) -> Vec<(String, usize)> {
    let pairs = words
        .iter()
        .map(|word| word.split_once(':').expect("a value and its count"));
    pairs
        .map(|(value, count)| (value.to_owned(), number(count) as usize))
        .collect()
}
