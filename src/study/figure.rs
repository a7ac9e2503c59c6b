//! Curves of regret, reward and gain as SVG: mean lines with bands of one standard error, readable with colour
//! blindness.

use std::cmp::Ordering;
use std::fmt::Write;

use super::result::{Estimate, MeanCurve, Standing};
use crate::markup::escaped;
use crate::quantity::grouped;

/// Okabe and Ito's colours, distinguishable with any kind of colour blindness. Yellow is left out, because it is too
/// pale on white.
const COLOURS: [&str; 7] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000",
];

/// Lines differ in their dashes too, for print without colour: as many as there are colours.
const DASHES: [&str; 7] = [
    "none",
    "8 4",
    "2 3",
    "10 3 2 3",
    "16 5",
    "10 3 2 3 2 3",
    "5 3 5 3 1 3",
];

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 440.0;
const LEFT: f64 = 84.0;
/// Room for half of the last label below the axis.
const RIGHT: f64 = 36.0;
const TOP: f64 = 44.0;
const BOTTOM: f64 = 56.0;
const LEGEND_LINE: f64 = 20.0;
/// The number of ticks to aim for on an axis.
const TICKS: f64 = 6.0;

/// What a figure shows, summed over rounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sum {
    /// What was lost compared with the best pair.
    Regret,
    /// Rewards of pulls that ended within their limits.
    Reward,
    /// Reward less cost, or less the penalty.
    Gain,
}

impl Sum {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Regret, Self::Reward, Self::Gain];

    /// As it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Regret => "regret",
            Self::Reward => "reward",
            Self::Gain => "gain",
        }
    }

    /// Whether there is anything to draw.
    pub fn is_known(self, standings: &[Standing]) -> bool {
        standings.iter().any(|of| !self.curve(of).is_empty())
    }

    fn curve(self, of: &Standing) -> &MeanCurve {
        match self {
            Self::Regret => &of.curve,
            Self::Reward => &of.reward_curve,
            Self::Gain => &of.gain_curve,
        }
    }

    fn end(self, of: &Standing) -> Estimate {
        match self {
            Self::Regret => of.regret,
            Self::Reward => of.reward,
            Self::Gain => of.gain,
        }
    }
}

/// Draws the curves of policies on one problem and grid.
pub fn figure(standings: &[Standing], sum: Sum) -> String {
    let legend = 16.0 + LEGEND_LINE * standings.len() as f64;
    let height = HEIGHT + legend;
    let (x, y) = axes(standings, sum);
    let mut svg = String::new();
    let title = standings.first().map_or_else(String::new, |first| {
        format!(
            "{}: {} arms, {} limits, {} repetitions",
            first.played_on(),
            first.arms,
            first.limits,
            first.repetitions
        )
    });
    let title = escaped(&title);
    push(
        &mut svg,
        format_args!(
            r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" font-family="sans-serif" font-size="13" fill="#222" role="img" aria-label="{title}">
<title>{title}</title>
<rect width="{WIDTH}" height="{height}" fill="#fff"/>
<text x="{LEFT}" y="26" font-size="15" font-weight="bold">{title}</text>
"##
        ),
    );
    draw_axes(&mut svg, &x, &y, sum);
    for (place, standing) in standings.iter().enumerate() {
        draw_curve(&mut svg, sum.curve(standing), place, &x, &y);
    }
    // The legend lists the curves in the order of their ends, from the top.
    let mut ends: Vec<(usize, &Standing)> = standings.iter().enumerate().collect();
    ends.sort_by(|(_, a), (_, b)| {
        let end = |of: &Standing| sum.end(of).mean;
        end(b).partial_cmp(&end(a)).unwrap_or(Ordering::Equal)
    });
    for (row, (place, standing)) in ends.into_iter().enumerate() {
        let (colour, dash) = style(place);
        let line = HEIGHT + 8.0 + LEGEND_LINE * row as f64;
        let end = sum.end(standing).mean;
        let end = end.map_or_else(String::new, |mean| grouped(mean, 1));
        push(
            &mut svg,
            format_args!(
                r#"<path d="M{LEFT} {line}h36" stroke="{colour}" stroke-width="2.5" stroke-dasharray="{dash}"/>
<text x="{text}" y="{line}" dominant-baseline="middle">{label} ({end})</text>
"#,
                text = LEFT + 46.0,
                label = escaped(&standing.label),
            ),
        );
    }
    svg.push_str("</svg>\n");
    svg
}

/// Values of one axis, and where they are on the page.
struct Axis {
    low: f64,
    high: f64,
    step: f64,
    from: f64,
    to: f64,
}

impl Axis {
    /// From `low` to `high`, widened to round numbers.
    fn new(low: f64, high: f64, from: f64, to: f64) -> Self {
        let high = if high > low { high } else { low + 1.0 };
        let rough = (high - low) / TICKS;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0]
            .map(|times| times * power)
            .into_iter()
            .find(|step| *step >= rough)
            .unwrap_or(rough);
        Self {
            low: (low / step).floor() * step,
            high: (high / step).ceil() * step,
            step,
            from,
            to,
        }
    }

    fn at(&self, value: f64) -> f64 {
        self.from + (value - self.low) / (self.high - self.low) * (self.to - self.from)
    }

    fn ticks(&self) -> impl Iterator<Item = (f64, String)> {
        let decimals = (-self.step.log10().floor()).max(0.0) as usize;
        let count = ((self.high - self.low) / self.step).round() as u32;
        (0..=count).map(move |k| {
            let value = self.low + self.step * f64::from(k);
            (self.at(value), grouped(value, decimals))
        })
    }
}

fn axes(standings: &[Standing], sum: Sum) -> (Axis, Axis) {
    let points = || standings.iter().flat_map(|of| sum.curve(of));
    let rounds = points().map(|point| point.0 as f64).fold(1.0, f64::max);
    let low = points()
        .map(|(_, mean, se)| mean - se.unwrap_or(0.0))
        .fold(0.0, f64::min);
    let high = points()
        .map(|(_, mean, se)| mean + se.unwrap_or(0.0))
        .fold(0.0, f64::max);
    // A value slightly below zero does not need a whole tick.
    let low = if low > -0.03 * high { 0.0 } else { low };
    (
        Axis::new(0.0, rounds, LEFT, WIDTH - RIGHT),
        Axis::new(low, high, HEIGHT - BOTTOM, TOP),
    )
}

fn draw_axes(svg: &mut String, x: &Axis, y: &Axis, sum: Sum) {
    for (place, label) in y.ticks() {
        push(
            svg,
            format_args!(
                r##"<path d="M{LEFT} {place:.1}H{end}" stroke="#ddd"/>
<text x="{text}" y="{place:.1}" text-anchor="end" dominant-baseline="middle">{label}</text>
"##,
                end = WIDTH - RIGHT,
                text = LEFT - 8.0,
            ),
        );
    }
    let floor = HEIGHT - BOTTOM;
    for (place, label) in x.ticks() {
        push(
            svg,
            format_args!(
                r##"<path d="M{place:.1} {floor}v5" stroke="#222"/>
<text x="{place:.1}" y="{text}" text-anchor="middle">{label}</text>
"##,
                text = floor + 19.0,
            ),
        );
    }
    let middle = f64::midpoint(TOP, floor);
    push(
        svg,
        format_args!(
            r##"<path d="M{LEFT} {TOP}V{floor}H{end}" stroke="#222" fill="none"/>
<text x="{centre}" y="{below}" text-anchor="middle">round</text>
<text transform="translate(18 {middle}) rotate(-90)" text-anchor="middle">cumulative {name}, mean ± standard error</text>
"##,
            name = sum.name(),
            end = WIDTH - RIGHT,
            centre = f64::midpoint(LEFT, WIDTH - RIGHT),
            below = floor + 40.0,
        ),
    );
}

fn draw_curve(svg: &mut String, curve: &MeanCurve, place: usize, x: &Axis, y: &Axis) {
    let (colour, dash) = style(place);
    let path = |values: &mut dyn Iterator<Item = (u64, f64)>| {
        values.fold(String::new(), |mut path, (round, value)| {
            let lead = if path.is_empty() { "" } else { " " };
            push(
                &mut path,
                format_args!("{lead}{:.1},{:.1}", x.at(round as f64), y.at(value)),
            );
            path
        })
    };
    if curve.iter().any(|point| point.2.is_some()) {
        let upper = curve
            .iter()
            .map(|(round, mean, se)| (*round, mean + se.unwrap_or(0.0)));
        let lower = curve
            .iter()
            .map(|(round, mean, se)| (*round, mean - se.unwrap_or(0.0)));
        let band = path(&mut upper.chain(lower.rev()));
        push(
            svg,
            format_args!("<polygon points=\"{band}\" fill=\"{colour}\" fill-opacity=\"0.2\"/>\n"),
        );
    }
    let line = path(&mut curve.iter().map(|(round, mean, _)| (*round, *mean)));
    push(
        svg,
        format_args!(
            "<polyline points=\"{line}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" stroke-dasharray=\"{dash}\"/>\n"
        ),
    );
}

fn style(place: usize) -> (&'static str, &'static str) {
    // From the eighth on, colours repeat with other dashes.
    let turn = place / COLOURS.len();
    (
        COLOURS[place % COLOURS.len()],
        DASHES[(place + turn) % DASHES.len()],
    )
}

fn push(to: &mut String, text: std::fmt::Arguments<'_>) {
    to.write_fmt(text).expect("a string takes any text");
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_policy_has_its_own_line() {
        let styles: HashSet<_> = (0..49).map(style).collect();
        assert_eq!(styles.len(), 49);
        let dashes: HashSet<&str> = (0..7).map(|place| style(place).1).collect();
        assert_eq!(dashes.len(), 7);
    }

    #[test]
    fn axes_end_on_round_numbers_around_the_values() {
        let axis = Axis::new(0.0, 98_765.0, 0.0, 100.0);
        assert_eq!((axis.low, axis.high, axis.step), (0.0, 100_000.0, 20_000.0));
        let labels: Vec<String> = axis.ticks().map(|tick| tick.1).collect();
        assert_eq!(
            labels,
            ["0", "20,000", "40,000", "60,000", "80,000", "100,000"]
        );
        let below = Axis::new(-3.2, 0.4, 0.0, 100.0);
        assert!(below.low <= -3.2 && below.high >= 0.4);
        let flat = Axis::new(0.0, 0.0, 0.0, 100.0);
        assert!(flat.at(0.0).is_finite());
    }
}
