//! `captime serve`.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::report::browser::browser;
use super::report::simulated::Simulated;

/// A server that is ended with the test.
struct Server {
    child: Child,
    port: u16,
    /// `/TOKEN`, or nothing.
    token: String,
}

impl Server {
    fn start(folder: &Path) -> Self {
        Self::start_with(folder, &[])
    }

    fn start_with(folder: &Path, args: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_captime"))
            .arg("serve")
            .arg(folder)
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let rest = line.trim().strip_prefix("http://127.0.0.1:");
        let rest = rest.and_then(|rest| rest.strip_suffix('/'));
        let rest = rest.unwrap_or_else(|| panic!("{line}"));
        let (port, token) = match rest.split_once('/') {
            Some((port, token)) => (port, format!("/{token}")),
            None => (rest, String::new()),
        };
        Self {
            port: port.parse().unwrap(),
            token,
            child,
        }
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}{}/", self.port, self.token)
    }

    /// The status line of a request with these bytes.
    fn raw(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = vec![];
        stream.read_to_end(&mut answer).unwrap();
        let answer = String::from_utf8_lossy(&answer).into_owned();
        answer.lines().next().unwrap_or_default().to_owned()
    }

    /// Status line, headers and body of a request.
    fn ask(&self, method: &str, path: &str, host: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        write!(
            stream,
            "{method} {}{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n",
            self.token
        )
        .unwrap();
        let mut answer = vec![];
        stream.read_to_end(&mut answer).unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    }

    fn get(&self, path: &str) -> String {
        self.ask("GET", path, &format!("127.0.0.1:{}", self.port))
    }

    /// The page's data.
    fn data(&self, path: &str) -> Value {
        let answer = self.get(path);
        let body = answer.split_once("\r\n\r\n").unwrap().1;
        let start = body.find('{').unwrap();
        let end = body.rfind('}').unwrap();
        serde_json::from_str(&body[start..=end]).unwrap_or_else(|_| panic!("{answer:.300}"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[track_caller]
fn within(patience: Duration, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < patience, "it never came");
        std::thread::sleep(Duration::from_millis(50));
    }
}

const PATIENCE: Duration = Duration::from_secs(30);

#[test]
fn only_the_printed_address_is_answered() {
    let root = tempfile::tempdir().unwrap();
    let folder = Simulated::default().write(root.path());
    let server = Server::start(&folder);
    assert_eq!(server.token.len(), 33, "{}", server.token);
    assert!(server.get("/").starts_with("HTTP/1.1 200"));
    let host = format!("127.0.0.1:{}", server.port);
    for path in ["/", "/data.json", "/0123456789abcdef0123456789abcdef/"] {
        let answer = server.raw(&format!(
            "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
        ));
        assert!(answer.starts_with("HTTP/1.1 403"), "{path}: {answer}");
    }
    let twice = format!(
        "GET {}/ HTTP/1.1\r\nHost: {host}\r\nHost: {host}\r\nConnection: close\r\n\r\n",
        server.token
    );
    assert!(server.raw(&twice).starts_with("HTTP/1.1 400"));
    let open = Server::start_with(&folder, &["--no-token"]);
    assert!(open.token.is_empty());
    assert!(open.get("/").starts_with("HTTP/1.1 200"));
}

#[test]
fn a_run_that_does_not_exist_yet_is_waited_for() {
    let root = tempfile::tempdir().unwrap();
    let run = Simulated::default();
    let name = Path::new(run.name);
    for asked in [name.to_owned(), Path::new("runs").join(name)] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_captime"))
            .arg("serve")
            .arg(&asked)
            .current_dir(root.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // It has looked, and found nothing.
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("waiting for it to start") {
            line.clear();
            assert_ne!(said.read_line(&mut line).unwrap(), 0, "it has left");
        }
        let folder = Simulated::default().write(root.path());
        let mut address = String::new();
        let mut printed = BufReader::new(child.stdout.take().unwrap());
        printed.read_line(&mut address).unwrap();
        assert!(address.starts_with("http://127.0.0.1:"), "{address}");
        child.kill().unwrap();
        child.wait().unwrap();
        fs::remove_dir_all(folder).unwrap();
    }
}

#[test]
fn half_open_requests_do_not_block_it() {
    let root = tempfile::tempdir().unwrap();
    let folder = Simulated::default().write(root.path());
    let server = Server::start(&folder);
    let half_open: Vec<TcpStream> = (0..600)
        .map(|_| {
            let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
            stream.write_all(b"GET / HTTP/1.1\r\nHost:").unwrap();
            stream
        })
        .collect();
    assert!(server.get("/").starts_with("HTTP/1.1 200"));
    drop(half_open);
}

#[test]
fn only_this_machines_browsers_are_answered_and_only_with_the_run() {
    let root = tempfile::tempdir().unwrap();
    let folder = Simulated::default().write(root.path());
    fs::write(folder.join("secret.txt"), "a secret").unwrap();
    let server = Server::start(&folder);
    let page = server.get("/");
    assert!(page.starts_with("HTTP/1.1 200 OK"), "{page:.200}");
    assert!(page.contains("connect-src 'self'"));
    for name in ["localhost", "LOCALHOST", "[::1]"] {
        let answer = server.ask("GET", "/data.json", &format!("{name}:{}", server.port));
        assert!(answer.starts_with("HTTP/1.1 200"), "{name}");
    }
    // A foreign page whose name was pointed at this server.
    for host in [
        "evil.example",
        "127.0.0.1",
        "127.0.0.1:1",
        "localhost.evil.example",
        "",
    ] {
        let answer = server.ask("GET", "/", host);
        assert!(answer.starts_with("HTTP/1.1 403"), "{host}: {answer:.200}");
    }
    for path in [
        "/secret.txt",
        "/../secret.txt",
        "/%2e%2e/secret.txt",
        "/journal.jsonl",
        "/run/made-up/",
        "//etc/passwd",
    ] {
        let answer = server.get(path);
        assert!(answer.starts_with("HTTP/1.1 404"), "{path}: {answer:.200}");
        assert!(!answer.contains("a secret"));
    }
    for method in ["POST", "PUT", "DELETE"] {
        let answer = server.ask(method, "/", &format!("127.0.0.1:{}", server.port));
        assert!(answer.starts_with("HTTP/1.1 405"), "{method}");
    }
    let why = server.get("/explain?round=30");
    assert!(why.contains("round 30: "), "{why}");
    assert!(
        server
            .get("/explain?round=9999")
            .starts_with("HTTP/1.1 404")
    );
    assert!(server.get("/explain?round=x").starts_with("HTTP/1.1 400"));
}

#[test]
fn several_runs_have_an_index() {
    let root = tempfile::tempdir().unwrap();
    Simulated::default().write(root.path());
    let other = Simulated {
        name: "other",
        rounds: 20,
        ..Simulated::default()
    };
    other.write(root.path());
    let runs = root.path().join("runs");
    fs::rename(runs.join("other"), runs.join("o<b>&ther")).unwrap();
    // Neither a folder without a run nor a way out is listed.
    fs::create_dir(runs.join("empty")).unwrap();
    let outside = tempfile::tempdir().unwrap();
    let far = Simulated {
        name: "far",
        rounds: 5,
        ..Simulated::default()
    }
    .write(outside.path());
    std::os::unix::fs::symlink(&far, runs.join("far")).unwrap();
    let server = Server::start(&runs);
    let index = server.get("/");
    assert!(index.contains("href=\"run/made-up/\""), "{index}");
    let row = index
        .split("<tr>")
        .find(|row| row.contains("o&lt;b&gt;&amp;ther</a>"));
    assert!(
        row.is_some_and(|row| row.contains("<td class=\"n\">100 %</td><td class=\"n\">20</td>")),
        "{index}"
    );
    assert!(!index.contains("run/empty") && !index.contains("run/far"));
    assert_eq!(
        server.data("/run/o%3Cb%3E%26ther/data.json")["status"]["learned"],
        20
    );
    assert!(server.get("/run/far/data.json").starts_with("HTTP/1.1 404"));
    assert!(server.get("/run/..%2Fruns/").starts_with("HTTP/1.1 404"));
    // New runs appear without a restart.
    let new = Simulated {
        name: "new",
        rounds: 3,
        ..Simulated::default()
    };
    new.write(root.path());
    assert!(server.get("/").contains("run/new/"));
}

#[test]
fn the_port_is_the_one_given_and_open_to_this_machine_only() {
    let root = tempfile::tempdir().unwrap();
    let folder = Simulated::default().write(root.path());
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let server = Server::start_with(&folder, &["--port", &port.to_string()]);
    assert_eq!(server.port, port);
    assert!(server.get("/").starts_with("HTTP/1.1 200"));
    // All that listens on this port, as the kernel has it: 127.0.0.1, and nothing that others reach.
    let mut listening = vec![];
    for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
        let text = fs::read_to_string(table).unwrap_or_default();
        for line in text.lines().skip(1) {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let (address, of_port) = fields[1].rsplit_once(':').unwrap();
            if fields[3] == "0A" && u16::from_str_radix(of_port, 16) == Ok(port) {
                listening.push(address.to_owned());
            }
        }
    }
    let loopback = u32::from_ne_bytes([127, 0, 0, 1]);
    assert_eq!(listening, [format!("{loopback:08X}")]);
    // A second server gets an error that says what to do.
    let second = Command::new(env!("CARGO_BIN_EXE_captime"))
        .arg("serve")
        .arg(&folder)
        .args(["--port", &port.to_string()])
        .output()
        .unwrap();
    assert_eq!(second.status.code(), Some(2));
    let message = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(message.contains("give another `--port`"), "{message}");
}

#[test]
fn the_index_leads_to_the_live_pages() {
    let Some(mut browser) = browser() else { return };
    let root = tempfile::tempdir().unwrap();
    Simulated::default().write(root.path());
    let other = Simulated {
        name: "other",
        rounds: 20,
        is_ended: false,
        policy: "levels",
        ..Simulated::default()
    };
    other.write(root.path());
    let server = Server::start(&root.path().join("runs"));
    for width in [1200, 390] {
        browser.resize(width, 800);
        browser.go(&server.url());
        browser.wait_for("document.querySelectorAll('#runs tbody tr').length === 2");
        let sticking = browser.evaluate("document.documentElement.scrollWidth - innerWidth");
        assert!(sticking.as_f64().unwrap() <= 0.0, "{width}: {sticking}");
        let rows = browser.evaluate("document.querySelector('#runs tbody').innerText");
        let rows = rows.as_str().unwrap();
        assert!(rows.contains("600") && rows.contains("20"), "{rows}");
        assert!(
            rows.contains("finished") && rows.contains("killed"),
            "{rows}"
        );
        browser.screenshot(&super::report::pictures().join(format!("index-{width}.png")));
        browser.evaluate("[...document.querySelectorAll('#runs a')].find((link) => link.textContent === 'other').click()");
        browser.wait_for("document.documentElement?.dataset.ready === 'true'");
        browser.wait_for("document.querySelector('#numbers b')?.textContent === '20'");
    }
    assert_eq!(browser.complaints, Vec::<String>::new());
}

#[test]
fn a_journal_that_is_cut_resumed_or_removed_is_survived() {
    let root = tempfile::tempdir().unwrap();
    let run = Simulated {
        rounds: 50,
        is_ended: false,
        ..Simulated::default()
    };
    let folder = run.write(root.path());
    let server = Server::start(&folder);
    let learned = || {
        server.data("/data.json")["status"]["learned"]
            .as_u64()
            .unwrap()
    };
    assert_eq!(learned(), 50);
    let journal = folder.join("journal.jsonl");
    let whole = fs::read(&journal).unwrap();
    // Cut in the middle of a line, then whole again, in place.
    let cut = whole.len() * 2 / 3;
    fs::write(&journal, &whole[..cut]).unwrap();
    within(PATIENCE, || (1..50).contains(&learned()));
    fs::write(&journal, &whole).unwrap();
    within(PATIENCE, || learned() == 50);
    // Gone: the last that was read is still shown.
    fs::remove_file(&journal).unwrap();
    std::thread::sleep(Duration::from_millis(400));
    assert_eq!(learned(), 50);
    // Another one in its place.
    let again = Simulated {
        rounds: 7,
        ..Simulated::default()
    };
    again.write(root.path());
    within(PATIENCE, || learned() == 7);
    // Garbage is not a run, but does not end the server.
    fs::write(&journal, "garbage\n").unwrap();
    std::thread::sleep(Duration::from_millis(400));
    assert_eq!(learned(), 7);
    fs::write(&journal, &whole).unwrap();
    within(PATIENCE, || learned() == 50);
}

#[test]
fn a_live_page_receives_rounds_without_being_loaded_again() {
    let Some(mut browser) = browser() else { return };
    let root = tempfile::tempdir().unwrap();
    let run = Simulated {
        rounds: 100_000,
        ..Simulated::default()
    };
    let mut making = run.begin(root.path());
    making.play(20);
    making.flush();
    let server = Server::start(&making.folder);
    browser.resize(1200, 900);
    browser.open(&server.url());
    browser.evaluate("window.isSame = true");
    let rounds = "document.querySelector('#numbers b').textContent";
    browser.wait_for(&format!("{rounds} === '20'"));
    let mut waits: Vec<Duration> = (21..=25)
        .map(|round| {
            making.play(round);
            making.flush();
            let began = Instant::now();
            browser.wait_for(&format!("{rounds} === '{round}'"));
            began.elapsed()
        })
        .collect();
    waits.sort();
    eprintln!("a new round is on the page after {waits:?}");
    // Each within a second on an idle machine; tests share theirs.
    assert!(waits[0] < Duration::from_secs(3), "{waits:?}");
    assert!(waits[4] < Duration::from_secs(10), "{waits:?}");
    browser.wait_for("document.querySelector('#latest-rounds').dataset.rows === '25'");
    // It keeps up with thousands at once.
    for rounds in (2_000..=20_000).step_by(2_000) {
        making.play(rounds);
        making.flush();
    }
    browser.wait_for(&format!("{rounds} === '20,000'"));
    browser.wait_for("document.querySelector('#latest-rounds').dataset.rows === '200'");
    // The page explains why a round was played.
    browser.evaluate("document.querySelector('#latest-rounds a.explain').click()");
    browser.wait_for("document.querySelector('dialog pre')?.textContent.includes('outcomes')");
    assert_eq!(browser.evaluate("window.isSame"), true);
    let foreign: Vec<&String> = browser
        .requests
        .iter()
        .filter(|url| !url.starts_with(&server.url()))
        .collect();
    assert_eq!(foreign, Vec::<&String>::new());
    assert_eq!(browser.complaints, Vec::<String>::new());
}
