//! Options for linking the program.

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=RUSTC_LINKER");
    let target = |part: &str| variable(&format!("CARGO_CFG_TARGET_{part}"));
    if target("OS") != "linux" || target("ENV") != "gnu" {
        return;
    }
    // `captime exec` starts as often as the commands it runs. At a fixed address the loader has nothing to relocate:
    // 90 page faults of 320 are gone, and 0.25 ms of 2.6. Libraries, stack and heap are still at random addresses.
    println!("cargo:rustc-link-arg-bins=-no-pie");
    if let Some(folder) = unwinder() {
        println!("cargo:rustc-link-arg-bins=-L{}", folder.display());
    }
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

/// A folder with a stand-in for `libgcc_s.so` that takes the unwinder from the compiler's archive instead, so that the
/// program needs nothing but the C library, and the loader has a library less to look for.
///
/// `None` if there is no such archive, or it may be for another machine. Then the shared library is needed, as usual.
fn unwinder() -> Option<PathBuf> {
    if variable("HOST") != variable("TARGET") {
        return None;
    }
    let linker = std::env::var_os("RUSTC_LINKER").unwrap_or_else(|| "cc".into());
    let asked = Command::new(linker)
        .arg("-print-file-name=libgcc_eh.a")
        .output()
        .ok()?;
    // A compiler that has none gives the bare name back.
    let archive = PathBuf::from(String::from_utf8(asked.stdout).ok()?.trim());
    if !archive.is_absolute() || !archive.is_file() {
        return None;
    }
    let folder = Path::new(&std::env::var_os("OUT_DIR")?).join("unwinder");
    std::fs::create_dir_all(&folder).ok()?;
    std::fs::write(folder.join("libgcc_s.so"), "INPUT(-lgcc_eh)\n").ok()?;
    Some(folder)
}
