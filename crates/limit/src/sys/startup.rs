//! How a program that uses this crate becomes a supervisor: before its `main`, so that `main` needs to know nothing of it.
//!
//! A supervisor is the running program, started once more with [`SUPERVISE`] as first argument and a socket as stdin. The
//! loader calls what is listed in `.init_array` before `main`. This one looks at the arguments, and if they say so it serves until
//! the socket closes and leaves. In all other cases it costs one comparison.

use std::ffi::{CStr, OsStr, OsString, c_char, c_int};
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{FileType, fstat};

/// First argument of a process that is to be a supervisor.
pub(crate) const SUPERVISE: &str = "__captime_supervisor";

type Hook = extern "C" fn(c_int, *const *const c_char, *const *const c_char);

// SAFETY: the section holds pointers to functions of this type, which is what the C library calls each of them as. It calls
// them after the standard library can be used: `before_main` needs the allocator, files and sockets, and those need no `main`.
#[used]
#[unsafe(link_section = ".init_array")]
static HOOK: Hook = before_main;

/// True; asking makes the linker keep the hook.
pub(crate) fn is_linked() -> bool {
    std::hint::black_box(&raw const HOOK).is_aligned()
}

/// The C library calls it once, before `main`, while there is a single thread. A panic cannot leave it: `extern "C"` aborts.
extern "C" fn before_main(count: c_int, arguments: *const *const c_char, _: *const *const c_char) {
    let Some(rest) = supervisor_arguments(count, arguments) else {
        return;
    };
    let is_socket = fstat(std::io::stdin())
        .is_ok_and(|about| FileType::from_raw_mode(about.st_mode) == FileType::Socket);
    if is_socket {
        super::leave(crate::server::main(&rest));
    }
}

/// What follows [`SUPERVISE`], if that is the first argument. glibc hands the arguments to such functions.
#[cfg(target_env = "gnu")]
fn supervisor_arguments(count: c_int, arguments: *const *const c_char) -> Option<Vec<OsString>> {
    if count < 2 || arguments.is_null() {
        return None;
    }
    let argument = |at: usize| {
        // SAFETY: `at` is below `count`, and each of the `count` arguments is a string that lives as long as the process.
        unsafe { CStr::from_ptr(*arguments.add(at)) }
    };
    if argument(1).to_bytes() != SUPERVISE.as_bytes() {
        return None;
    }
    let rest = (2..count as usize).map(|at| OsStr::from_bytes(argument(at).to_bytes()).into());
    Some(rest.collect())
}

/// Other C libraries do not, but the kernel knows them.
#[cfg(not(target_env = "gnu"))]
fn supervisor_arguments(_: c_int, _: *const *const c_char) -> Option<Vec<OsString>> {
    let text = std::fs::read("/proc/self/cmdline").ok()?;
    let mut arguments = text.split(|&byte| byte == 0).skip(1);
    if arguments.next()? != SUPERVISE.as_bytes() {
        return None;
    }
    let rest = arguments.map(|argument| OsStr::from_bytes(argument).into());
    Some(rest.collect())
}
