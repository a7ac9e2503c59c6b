//! The page as one file that contains style, script, data and charting library, and refers to nothing outside.

use std::fmt::Write as _;

use serde::Serialize;

use super::Summary;
use crate::markup::escaped;

const PAGE: &str = include_str!("templates/page.html");
const STYLE: &str = include_str!("templates/page.css");
const D3: &str = include_str!("vendor/d3-7.9.0.min.js");
const PLOT: &str = include_str!("vendor/plot-0.6.17.umd.min.js");
const CHARTS: &str = include_str!("templates/charts.js");
const SCRIPTS: [&str; 6] = [
    include_str!("templates/table.js"),
    include_str!("templates/sections.js"),
    include_str!("templates/course.js"),
    include_str!("templates/arms.js"),
    include_str!("templates/live.js"),
    include_str!("templates/page.js"),
];
const STUDY: &str = include_str!("templates/study.js");
const HOLDOUT: &str = include_str!("templates/holdout.js");

/// The addresses that a live page requests, relative to itself.
#[derive(Debug, Clone, Serialize)]
pub struct Live {
    /// Server-sent events.
    pub events: &'static str,
    /// The page's data.
    pub data: &'static str,
    /// Why a round was played.
    pub explain: &'static str,
    /// The list of runs, if there are several.
    pub index: Option<&'static str>,
}

/// The page of a run. `live` if it is served.
pub fn page(summary: &Summary, live: Option<&Live>) -> String {
    let title = format!("{} · captime", summary.name);
    let data = json(summary);
    assemble(&title, &data, &json(&live), live.is_some(), &SCRIPTS)
}

/// The page of a study, from its own data.
pub fn study_page(title: &str, standings: &impl Serialize) -> String {
    assemble(title, &json(standings), "null", false, &[STUDY])
}

/// The page of a study by CPU time, from its own data.
pub fn holdout_page(title: &str, marks: &impl Serialize) -> String {
    assemble(title, &json(marks), "null", false, &[HOLDOUT])
}

/// JSON for use inside a script element: nothing in it can end the element or open a comment.
fn json(value: &impl Serialize) -> String {
    let text = serde_json::to_string(value).expect("data of plain structs with text keys");
    if text.contains('<') {
        text.replace('<', "\\u003c")
    } else {
        text
    }
}

fn assemble(title: &str, data: &str, live: &str, is_live: bool, own: &[&str]) -> String {
    // To forge the nonce, the author of the data would need its hash before writing it.
    let nonce = blake3::hash(data.as_bytes()).to_hex();
    let nonce = &nonce.as_str()[..32];
    let connect = if is_live { "'self'" } else { "'none'" };
    let policy = content_policy(nonce, connect);
    let mut scripts = String::new();
    for script in [D3, PLOT, CHARTS].iter().chain(own) {
        let _ = write!(scripts, "<script nonce=\"{nonce}\">\n{script}\n</script>\n");
    }
    let mut page = String::with_capacity(PAGE.len() + STYLE.len() + data.len() + scripts.len());
    // In one pass, so that inserted text is not scanned again.
    let mut rest = PAGE;
    while let Some((before, after)) = rest.split_once("{{") {
        let Some((name, after)) = after.split_once("}}") else {
            break;
        };
        page.push_str(before);
        match name {
            "policy" => page.push_str(&policy),
            "title" => page.push_str(&escaped(title)),
            "nonce" => page.push_str(nonce),
            "style" => page.push_str(STYLE),
            "data" => page.push_str(data),
            "live" => page.push_str(live),
            "scripts" => page.push_str(&scripts),
            _ => {}
        }
        rest = after;
    }
    page.push_str(rest);
    page
}

/// Nothing may be loaded from anywhere, and only the page's own scripts run. Plot writes style elements, which cannot
/// know a nonce.
pub(super) fn content_policy(nonce: &str, connect: &str) -> String {
    format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'unsafe-inline'; img-src data:; \
         connect-src {connect}; base-uri 'none'; form-action 'none'"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_cannot_leave_its_element() {
        let hostile = "</script><script>alert(1)</script><!--{{nonce}}";
        let page = assemble(hostile, &json(&hostile), "null", false, &[]);
        assert!(!page.contains("<script>alert"));
        assert!(!page.contains("<!--"));
        // Placeholders in the data are left alone.
        assert!(page.contains("{{nonce}}"));
        assert_eq!(page.matches("</script>").count(), 5);
    }

    #[test]
    fn nothing_of_ours_would_end_its_script_element() {
        for script in [D3, PLOT, CHARTS, STUDY, HOLDOUT].iter().chain(&SCRIPTS) {
            assert!(!script.contains("</script") && !script.contains("<!--"));
        }
    }
}
