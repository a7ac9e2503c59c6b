//! Dependencies: permitted licences, and one source for all of them.
//!
//! Advisories need a database from the network; `deny.toml` has cargo-deny look there, where it is installed.

use std::process::Command;

use serde_json::Value;

/// Licences that require no more than a notice. The same list as in `deny.toml`.
const ALLOWED: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Whether an SPDX expression of `AND` over `OR` (the older `/` too) includes a licence from the list.
fn is_allowed(expression: &str) -> bool {
    expression.split(" AND ").all(|part| {
        let part = part.trim_matches(['(', ')', ' ']).replace('/', " OR ");
        part.split(" OR ")
            .any(|name| ALLOWED.contains(&name.trim()))
    })
}

fn packages() -> Vec<Value> {
    let version = Command::new("rustc").arg("-vV").output().unwrap();
    let version = String::from_utf8(version.stdout).unwrap();
    let host = version
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .unwrap();
    // Only what this machine needs was downloaded for the build that runs this test.
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--format-version=1",
            "--locked",
            "--offline",
            "--filter-platform",
            host,
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

#[test]
fn every_dependency_has_a_licence_that_asks_for_no_more_than_a_notice() {
    let packages = packages();
    assert!(packages.len() > 50, "{} packages", packages.len());
    for package in packages {
        let licence = package["license"].as_str().unwrap_or("none");
        assert!(
            is_allowed(licence),
            "{} is under {licence}",
            package["name"]
        );
    }
}

#[test]
fn every_dependency_comes_from_the_registry() {
    for package in packages() {
        let source = package["source"].as_str();
        let is_ours = package["name"]
            .as_str()
            .is_some_and(|name| name.starts_with("captime"));
        assert!(
            is_ours || source.is_some_and(|source| source.starts_with("registry+")),
            "{}: {source:?}",
            package["name"]
        );
    }
}

/// The crates that a library of this workspace is built from on this machine, itself included.
fn tree(package: &str, features: &[&str]) -> Vec<String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--locked", "--edges=normal,build"])
        .args(["--prefix=none", "--format={p}", "--package", package])
        .args(features)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let problem = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{package}: {problem}");
    let text = String::from_utf8(output.stdout).unwrap();
    let mut crates: Vec<String> = text
        .lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            Some(format!("{} {}", words.next()?, words.next()?))
        })
        .collect();
    crates.sort_unstable();
    crates.dedup();
    crates
}

#[test]
fn the_libraries_are_built_from_few_crates() {
    let minimal = ["--no-default-features"];
    for (package, features, most) in [
        ("captime", &minimal[..], 90),
        ("captime-forest", &[], 25),
        ("captime-limit", &[], 25),
    ] {
        let crates = tree(package, features);
        let count = crates.len();
        assert!(
            count <= most,
            "{package} has {count}, at most {most}: {crates:?}"
        );
        assert!(count > 10, "{package}: {crates:?}");
        // The async face of the limits is a feature.
        let is_async = crates.iter().any(|name| name.starts_with("tokio "));
        assert!(!is_async || package == "captime", "{package}: {crates:?}");
    }
    // The features matter: with all of them there are many more.
    assert!(tree("captime", &[]).len() > 120);
}

#[test]
fn a_licence_expression_is_read_as_it_is_meant() {
    assert!(is_allowed("(MIT OR Apache-2.0) AND Unicode-3.0"));
    assert!(is_allowed("Unlicense/MIT"));
    assert!(is_allowed("MIT OR Apache-2.0 OR LGPL-2.1-or-later"));
    assert!(!is_allowed("AGPL-3.0"));
    assert!(!is_allowed("MIT AND GPL-3.0-only"));
}
