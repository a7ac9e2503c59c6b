//! A real sshd on loopback, with keys of its own.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use super::{
    CAPTIME, has_programs, marked, marker, nothing_is_left, nothing_is_lost, outcomes, signal,
    sleeping,
};
use crate::test_run::{TestRun, expect, program};

/// A daemon for one test, and an `ssh` that finds it.
struct Ssh {
    folder: tempfile::TempDir,
    daemon: Child,
}

impl Ssh {
    /// Starts it; none where it is not installed. Agents that it starts carry this mark.
    fn start(marker: &str) -> Option<Self> {
        if !has_programs(&["sshd", "ssh", "ssh-keygen"]) {
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        for key in ["host", "user"] {
            let made = Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-f", &path(key)])
                .status();
            assert!(made.unwrap().success());
        }
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        fs::create_dir_all("/run/sshd").unwrap();
        fs::write(
            path("sshd_config"),
            format!(
                "Port {port}\nListenAddress 127.0.0.1\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\nStrictModes no\n\
                 UsePAM no\nPasswordAuthentication no\nPermitRootLogin yes\nSetEnv {marker} PATH={}:/usr/bin:/bin\n",
                path("host"),
                path("user.pub"),
                Path::new(CAPTIME).parent().unwrap().display(),
            ),
        )
        .unwrap();
        fs::write(
            path("ssh_config"),
            format!(
                "Host alpha beta delta\n  HostName 127.0.0.1\n  Port {port}\n  IdentityFile {}\n  IdentitiesOnly yes\n  \
                 StrictHostKeyChecking no\n  UserKnownHostsFile /dev/null\nHost gone\n  HostName 127.0.0.1\n  Port 1\n",
                path("user"),
            ),
        )
        .unwrap();
        fs::create_dir(folder.path().join("bin")).unwrap();
        program(
            &folder.path().join("bin/ssh"),
            &format!(
                "#!/bin/sh\nexec /usr/bin/ssh -F {} \"$@\"\n",
                path("ssh_config")
            ),
        );
        let daemon = Command::new("/usr/sbin/sshd")
            .args(["-D", "-e", "-f", &path("sshd_config")])
            .stderr(fs::File::create(path("log")).unwrap())
            .spawn()
            .unwrap();
        let since = Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(
                since.elapsed() < Duration::from_secs(20),
                "sshd does not listen"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(Self { folder, daemon })
    }

    fn run(&self, test_run: &TestRun) -> Command {
        let path = format!(
            "{}/bin:{}",
            self.folder.path().display(),
            std::env::var("PATH").unwrap()
        );
        let mut command = test_run.command(&["run", "s.yaml"]);
        command
            .env("PATH", path)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }
}

impl Drop for Ssh {
    fn drop(&mut self) {
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}

fn hosts(more: &str) -> String {
    format!(
        "{{ssh: [{{host: alpha, captime: {CAPTIME}}}, {{host: beta, captime: {CAPTIME}, slots: 1}}{more}], lost_after: 3s}}"
    )
}

#[test]
fn ssh_hosts_share_the_pulls_and_one_that_is_gone_does_not_stop_them() {
    let marker = marker("ssh");
    let Some(ssh) = Ssh::start(&marker) else {
        return;
    };
    let others = ", gone, {host: delta, captime: /no/such/captime}";
    let test_run = TestRun::new(&sleeping(&hosts(others), 40, "0.1"));
    let (_, said) = expect(&ssh.run(&test_run).output().unwrap(), 0);
    assert!(said.contains("node gone cannot be used: "), "{said}");
    assert!(said.contains("Connection refused"), "{said}");
    let without = said.lines().find(|line| line.contains("node delta"));
    assert!(
        without.is_some_and(|line| line.contains("captime was not found there (")
            && line.ends_with("give its path in the scenario")),
        "{said}"
    );
    assert!(said.contains("node beta: 1 slot"), "{said}");
    nothing_is_lost(&test_run, 40);
    nothing_is_left(&marker);
}

/// The connection freezes: what it carries arrives late, or never. Pulls given to others count once.
#[test]
fn a_frozen_connection_is_given_up_and_its_late_results_are_dropped() {
    let marker = marker("frozen");
    let Some(ssh) = Ssh::start(&marker) else {
        return;
    };
    let test_run = TestRun::new(&sleeping(&hosts(""), 60, "0.2"));
    let (name, value) = marker.split_once('=').unwrap();
    let child = ssh.run(&test_run).env(name, value).spawn().unwrap();
    test_run.wait_for_outcomes("night", 8);
    let clients: Vec<i32> = (marked(&marker).into_iter())
        .filter(|(_, command)| command.starts_with("/usr/bin/ssh"))
        .map(|(process, _)| process)
        .collect();
    assert_eq!(clients.len(), 2);
    signal(clients[0], Signal::SIGSTOP);
    // Long enough for results to be late, and for the node to be given up.
    std::thread::sleep(Duration::from_secs(5));
    signal(clients[0], Signal::SIGCONT);
    let (_, said) = expect(&child.wait_with_output().unwrap(), 0);
    assert!(said.contains("was lost"), "{said}");
    nothing_is_lost(&test_run, 60);
    nothing_is_left(&marker);
}

/// A file lists the hosts, and captime is found in the `PATH` there.
#[test]
fn hosts_may_be_listed_in_a_file() {
    let marker = marker("listed");
    let Some(ssh) = Ssh::start(&marker) else {
        return;
    };
    let test_run = TestRun::new(&sleeping("{ssh: hosts.txt}", 40, "0.1"));
    test_run.write("hosts.txt", "# two\nalpha\nbeta\n");
    let (_, said) = expect(&ssh.run(&test_run).output().unwrap(), 0);
    nothing_is_lost(&test_run, 40);
    for host in ["alpha", "beta"] {
        let mut outcomes = outcomes(&test_run).into_iter();
        assert!(outcomes.any(|outcome| outcome["node"] == host), "{said}");
    }
    nothing_is_left(&marker);
}
