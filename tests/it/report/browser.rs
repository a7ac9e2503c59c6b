//! A real browser, driven over its debugging pipe: JSON messages between NUL bytes on its descriptors 3 and 4.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

/// Long enough for a loaded machine; reached only when something is broken.
const PATIENCE: Duration = Duration::from_mins(1);

/// A browser with one tab.
pub struct Browser {
    child: Child,
    to: ChildStdin,
    from: Receiver<Value>,
    session: String,
    next: u64,
    /// Everything that went wrong on the pages so far.
    pub complaints: Vec<String>,
    /// Every address that was asked for, beside the page's own and data in it.
    pub requests: Vec<String>,
    _profile: TempDir,
}

/// A browser, or none where there is none and none is required.
pub fn browser() -> Option<Browser> {
    let is_there = Command::new("chromium")
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok();
    if !is_there {
        assert!(
            std::env::var_os("CAPTIME_REQUIRE_PROGRAMS").is_none(),
            "chromium is not installed"
        );
        let mut stderr = std::io::stderr().lock();
        let _ = writeln!(stderr, "skipped: chromium is not installed");
        return None;
    }
    Some(Browser::start())
}

impl Browser {
    fn start() -> Self {
        let profile = tempfile::tempdir().unwrap();
        // The shell hands its pipes on under the numbers that the browser expects.
        let script = r#"exec chromium --headless --no-sandbox --disable-gpu --disable-quic --no-first-run \
            --disable-background-networking --disable-component-update --disable-sync --disable-dev-shm-usage \
            --hide-scrollbars --user-data-dir="$1" --remote-debugging-pipe about:blank 3<&0 4>&1 0</dev/null >/dev/null 2>&1"#;
        let mut child = Command::new("sh")
            .args(["-c", script, "sh"])
            .arg(profile.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let to = child.stdin.take().unwrap();
        let output = child.stdout.take().unwrap();
        let (tell, from) = channel();
        std::thread::spawn(move || {
            let mut output = BufReader::new(output);
            let mut message = vec![];
            while output
                .read_until(0, &mut message)
                .is_ok_and(|count| count > 0)
            {
                message.pop();
                if let Ok(value) = serde_json::from_slice(&message)
                    && tell.send(value).is_err()
                {
                    break;
                }
                message.clear();
            }
        });
        let mut browser = Self {
            child,
            to,
            from,
            session: String::new(),
            next: 0,
            complaints: vec![],
            requests: vec![],
            _profile: profile,
        };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"}));
        let attached = browser.call(
            "Target.attachToTarget",
            json!({"targetId": target["targetId"], "flatten": true}),
        );
        attached["sessionId"]
            .as_str()
            .unwrap()
            .clone_into(&mut browser.session);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    /// Calls a method and waits for its result.
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let id = self.next;
        let mut message = json!({"id": id, "method": method, "params": params});
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.to.write_all(&bytes).unwrap();
        loop {
            let answer = self
                .from
                .recv_timeout(PATIENCE)
                .unwrap_or_else(|_| panic!("the browser does not answer to {method}"));
            if answer["id"] == json!(id) {
                // A page that is left while it computes something has no answer to that.
                if answer["error"]["message"] == "Inspected target navigated or closed" {
                    return Value::Null;
                }
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].clone();
            }
            self.note(&answer);
        }
    }

    fn note(&mut self, event: &Value) {
        let params = &event["params"];
        match event["method"].as_str().unwrap_or_default() {
            "Runtime.exceptionThrown" => {
                self.complaints.push(params["exceptionDetails"].to_string());
            }
            "Runtime.consoleAPICalled"
                if params["type"] == "error" || params["type"] == "warning" =>
            {
                self.complaints.push(params["args"].to_string());
            }
            "Log.entryAdded"
                if params["entry"]["level"] == "error" || params["entry"]["level"] == "warning" =>
            {
                self.complaints.push(params["entry"].to_string());
            }
            "Network.requestWillBeSent" => {
                let url = params["request"]["url"].as_str().unwrap_or_default();
                if params["type"] != "Document" && !url.starts_with("data:") {
                    self.requests.push(url.to_owned());
                }
            }
            _ => {}
        }
    }

    /// Opens a file as a double click would.
    pub fn open_file(&mut self, path: &Path) {
        self.open(&format!("file://{}", path.display()));
    }

    /// Opens a page and waits until it has been built.
    pub fn open(&mut self, url: &str) {
        self.go(url);
        self.wait_for("document.documentElement?.dataset.ready === 'true'");
    }

    /// Goes to a page.
    pub fn go(&mut self, url: &str) {
        let went = self.call("Page.navigate", json!({"url": url}));
        assert!(went["errorText"].is_null(), "{url}: {went}");
    }

    /// The value of an expression on the page, once it is settled.
    pub fn evaluate(&mut self, expression: &str) -> Value {
        let answer = self.call(
            "Runtime.evaluate",
            json!({"expression": expression, "awaitPromise": true, "returnByValue": true}),
        );
        assert!(
            answer["exceptionDetails"].is_null(),
            "{expression}: {answer}"
        );
        answer["result"]["value"].clone()
    }

    /// Waits until an expression holds.
    pub fn wait_for(&mut self, expression: &str) {
        let began = Instant::now();
        while self.evaluate(&format!("Boolean({expression})")) != json!(true) {
            assert!(
                began.elapsed() < PATIENCE,
                "never came: {expression}; {:?}",
                self.complaints
            );
            std::thread::sleep(Duration::from_millis(40));
        }
    }

    /// Draws every chart, also those far down.
    pub fn draw_all(&mut self) {
        self.evaluate("redrawAll(true)");
    }

    /// The size of the window.
    pub fn resize(&mut self, width: u32, height: u32) {
        let is_phone = width < 600;
        self.call(
            "Emulation.setDeviceMetricsOverride",
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": is_phone}),
        );
    }

    /// `light` or `dark`.
    pub fn prefer(&mut self, scheme: &str) {
        self.call(
            "Emulation.setEmulatedMedia",
            json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]}),
        );
    }

    /// A picture of the whole page, for people to look at.
    pub fn screenshot(&mut self, path: &Path) {
        let picture = self.call(
            "Page.captureScreenshot",
            json!({"format": "png", "captureBeyondViewport": true}),
        );
        let text = picture["data"].as_str().unwrap();
        std::fs::write(path, base64(text)).unwrap();
    }

    /// There were no errors and no requests since the last call.
    #[track_caller]
    pub fn assert_quiet(&mut self) {
        // What is still on its way arrives before the answer.
        self.evaluate("new Promise((done) => setTimeout(done, 50))");
        assert_eq!(self.complaints, Vec::<String>::new());
        assert_eq!(self.requests, Vec::<String>::new());
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // On request, it exits with all its helper processes.
        self.session.clear();
        let bytes = b"{\"id\":999999,\"method\":\"Browser.close\"}\0";
        let _ = self.to.write_all(bytes);
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(10) {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn base64(text: &str) -> Vec<u8> {
    let value = |byte: u8| match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let letters: Vec<u8> = text.bytes().filter(|byte| *byte != b'=').collect();
    let mut bytes = vec![];
    for chunk in letters.chunks(4) {
        let mut bits = 0_u32;
        for place in 0..4 {
            bits = bits << 6 | u32::from(chunk.get(place).map_or(0, |byte| value(*byte)));
        }
        let count = chunk.len() * 6 / 8;
        bytes.extend_from_slice(&bits.to_be_bytes()[1..=count]);
    }
    bytes
}
