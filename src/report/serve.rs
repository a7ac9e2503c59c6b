//! The live page on loopback: read-only, for browsers on this machine, showing the runs in one folder and nothing else.

use std::collections::HashMap;
use std::convert::Infallible;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Read as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use super::follow::Followed;
use super::html::content_policy;
use super::{Live, page};
use crate::journal::FILE;
use crate::markup::escaped;

/// What is served.
#[derive(Debug, Clone)]
pub enum ServedRuns {
    /// The run in this folder.
    One(PathBuf),
    /// The runs in the subfolders of this one, with an index.
    Many(PathBuf),
}

/// Explains why a round of a run was played. `None` if there is no such round.
pub type Explain = fn(&Path, u64) -> Result<Option<String>, String>;

/// What requests share.
struct Shared {
    place: ServedRuns,
    /// The host names under which browsers on this machine may reach the server.
    hosts: Vec<String>,
    explain: Explain,
    /// The secret that every address must begin with.
    token: Option<String>,
    followed: Mutex<HashMap<PathBuf, Arc<Followed>>>,
}

/// How often an open page gets news, if there are any.
const TICK: Duration = Duration::from_millis(300);
/// How long a request may take to arrive.
const HEADERS: Duration = Duration::from_secs(3);
/// Connections at a time. More wait until one ends.
const CONNECTIONS: usize = 256;

/// A token that cannot be guessed.
pub fn token() -> io::Result<String> {
    let mut bytes = [0; 16];
    fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(format!("{:032x}", u128::from_ne_bytes(bytes)))
}

/// Serves until the future is dropped. With a token, every path begins with it.
pub async fn serve(
    listener: TcpListener,
    place: ServedRuns,
    token: Option<String>,
    explain: Explain,
) -> io::Result<()> {
    let address = listener.local_addr()?;
    let shared = Arc::new(Shared {
        place,
        hosts: hosts(address),
        explain,
        token,
        followed: Mutex::default(),
    });
    let router = Router::new().fallback(answer).with_state(shared);
    let connections = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok(permit) = Arc::clone(&connections).acquire_owned().await else {
            return Ok(());
        };
        let Ok((stream, _)) = listener.accept().await else {
            // Out of descriptors, or the connection was reset. Other connections will end.
            tokio::time::sleep(TICK).await;
            continue;
        };
        let service = TowerToHyperService::new(router.clone());
        tokio::spawn(async move {
            let serving = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEADERS)
                .serve_connection(TokioIo::new(stream), service);
            // A browser that disconnects is not an error.
            let _ = serving.await;
            drop(permit);
        });
    }
}

/// The valid values of `Host`. Anything else comes from a foreign page whose name was pointed at this address.
fn hosts(address: SocketAddr) -> Vec<String> {
    let port = address.port();
    let names = ["127.0.0.1", "localhost", "[::1]"];
    let mut hosts: Vec<String> = names.iter().map(|name| format!("{name}:{port}")).collect();
    if port == 80 {
        hosts.extend(names.map(str::to_owned));
    }
    hosts
}

async fn answer(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let mut response = route(&shared, &parts).await;
    let headers = response.headers_mut();
    for (name, value) in [
        ("cache-control", "no-store"),
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-resource-policy", "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

async fn route(shared: &Arc<Shared>, request: &Parts) -> Response {
    let mut named = request.headers.get_all(header::HOST).iter();
    let host = named.next();
    if named.next().is_some() {
        return plain(StatusCode::BAD_REQUEST, "more than one Host header");
    }
    let is_ours = host
        .and_then(|host| host.to_str().ok())
        .is_some_and(|host| {
            shared
                .hosts
                .iter()
                .any(|ours| ours.eq_ignore_ascii_case(host))
        });
    if !is_ours {
        return plain(
            StatusCode::FORBIDDEN,
            "this address only serves browsers on the same machine",
        );
    }
    if request.method != Method::GET && request.method != Method::HEAD {
        return plain(StatusCode::METHOD_NOT_ALLOWED, "this page is read-only");
    }
    let path = request.uri.path();
    let path = match &shared.token {
        None => path,
        Some(token) => match path.strip_prefix('/').and_then(|rest| without(rest, token)) {
            Some(rest) if rest.starts_with('/') => rest,
            _ => {
                return plain(
                    StatusCode::FORBIDDEN,
                    "this address lacks its token: use the whole address that `captime serve` printed",
                );
            }
        },
    };
    let (folder, what, live) = match (&shared.place, path.strip_prefix("/run/")) {
        (ServedRuns::One(folder), None) => (folder.clone(), &path[1..], live(None)),
        (ServedRuns::Many(root), None) if path == "/" => {
            let (shared, root) = (Arc::clone(shared), root.clone());
            return blocking(move || index(&shared, &root)).await;
        }
        (ServedRuns::Many(root), Some(rest)) => {
            let (name, what) = rest.split_once('/').unwrap_or((rest, "missing"));
            let wanted = decoded(name);
            match runs(root).into_iter().find(|(name, _)| *name == wanted) {
                Some((_, folder)) => (folder, what, live(Some("../../"))),
                None => return plain(StatusCode::NOT_FOUND, "no such run"),
            }
        }
        _ => return plain(StatusCode::NOT_FOUND, "no such page"),
    };
    let followed = shared.followed(&folder);
    match what {
        "" => {
            blocking(move || match followed.summary() {
                Ok(summary) => with_type("text/html; charset=utf-8", page(&summary, Some(&live))),
                Err(problem) => plain(StatusCode::SERVICE_UNAVAILABLE, &problem),
            })
            .await
        }
        "data.json" => {
            blocking(move || match followed.summary() {
                Ok(summary) => with_type(
                    "application/json",
                    serde_json::to_string(&*summary).unwrap_or_default(),
                ),
                Err(problem) => plain(StatusCode::SERVICE_UNAVAILABLE, &problem),
            })
            .await
        }
        "events" => events(followed),
        "explain" => {
            let round = request.uri.query().and_then(|query| {
                let round = query.strip_prefix("round=")?;
                round.parse::<u64>().ok()
            });
            let Some(round) = round else {
                return plain(
                    StatusCode::BAD_REQUEST,
                    "name a round, such as explain?round=12",
                );
            };
            let explain = shared.explain;
            blocking(move || match explain(followed.folder(), round) {
                Ok(Some(text)) => with_type("text/plain; charset=utf-8", text),
                Ok(None) => plain(StatusCode::NOT_FOUND, "no such round"),
                Err(problem) => plain(StatusCode::SERVICE_UNAVAILABLE, &problem),
            })
            .await
        }
        _ => plain(StatusCode::NOT_FOUND, "no such page"),
    }
}

/// What follows the token. Takes the same time for every wrong token.
fn without<'a>(path: &'a str, token: &str) -> Option<&'a str> {
    let given = path.as_bytes().get(..token.len())?;
    let differences = given.iter().zip(token.as_bytes());
    let off = differences.fold(0, |off, (a, b)| off | (a ^ b));
    (off == 0).then(|| &path[token.len()..])
}

fn live(index: Option<&'static str>) -> Live {
    Live {
        events: "events",
        data: "data.json",
        explain: "explain",
        index,
    }
}

impl Shared {
    fn followed(&self, folder: &Path) -> Arc<Followed> {
        let mut followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || Arc::new(Followed::new(folder));
        Arc::clone(followed.entry(folder.to_owned()).or_insert_with(new))
    }
}

/// Sends what is new, at most a few times a second, and nothing if there is nothing new.
fn events(followed: Arc<Followed>) -> Response {
    let news = stream::unfold(None, move |sent: Option<super::follow::News>| {
        let followed = Arc::clone(&followed);
        async move {
            loop {
                let asked = Arc::clone(&followed);
                let news = tokio::task::spawn_blocking(move || asked.news()).await;
                if let Ok(news) = news
                    && sent.as_ref() != Some(&news)
                {
                    let text = serde_json::to_string(&news).unwrap_or_default();
                    let event = Event::default().event("news").data(text);
                    return Some((Ok::<_, Infallible>(event), Some(news)));
                }
                tokio::time::sleep(TICK).await;
            }
        }
    });
    Sse::new(news)
        .keep_alive(KeepAlive::default())
        .into_response()
}

/// Reading and summarising take a while, so they do not run on the threads that answer requests.
async fn blocking(work: impl FnOnce() -> Response + Send + 'static) -> Response {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|_| {
        plain(
            StatusCode::INTERNAL_SERVER_ERROR,
            "captime failed to answer this",
        )
    })
}

fn plain(status: StatusCode, text: &str) -> Response {
    let mut response = with_type("text/plain; charset=utf-8", format!("{text}\n"));
    *response.status_mut() = status;
    response
}

fn with_type(kind: &'static str, content: String) -> Response {
    let mut response = Response::new(Body::from(content));
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// The runs in a folder by name. Links are skipped, because they may lead out of it.
pub fn runs(root: &Path) -> Vec<(String, PathBuf)> {
    let entries = fs::read_dir(root).into_iter().flatten().flatten();
    let mut runs: Vec<(String, PathBuf)> = entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .filter(|entry| {
            let journal = fs::symlink_metadata(entry.path().join(FILE));
            journal.is_ok_and(|journal| journal.is_file())
        })
        .filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path())))
        .collect();
    runs.sort();
    runs
}

fn index(shared: &Shared, root: &Path) -> Response {
    let mut rows = String::new();
    for (name, folder) in runs(root) {
        let followed = shared.followed(&folder);
        let news = followed.news();
        let words = news.problem.unwrap_or(news.words);
        let (progress, policy, started, best) = match followed.summary() {
            Ok(summary) => (
                match summary.status.progress.0 {
                    share if share.is_nan() => String::new(),
                    share => format!("{:.0} %", 100.0 * share.min(1.0)),
                },
                summary.policy.clone(),
                summary.facts.started.clone(),
                summary
                    .answer
                    .as_ref()
                    .map_or("no answer yet".into(), |answer| {
                        let pair = &answer.pair;
                        format!(
                            "{} up to {}, gain {:.4}",
                            pair.label, pair.limit_text, pair.gain.0
                        )
                    }),
            ),
            Err(_) => Default::default(),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(
            rows,
            "<tr><td class=\"tight\"><a href=\"run/{}/\">{}</a></td><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"wrap\">{}</td><td>{}</td><td class=\"tight\">{}</td></tr>",
            encoded(&name),
            escaped(&name),
            escaped(&words),
            escaped(&progress),
            news.learned,
            escaped(&best),
            escaped(&policy),
            escaped(&started.replacen('T', " ", 1).replacen('Z', " UTC", 1)),
        );
    }
    if rows.is_empty() {
        rows = "<tr><td colspan=\"7\">No runs here yet.</td></tr>".into();
    }
    let page = include_str!("templates/index.html")
        .replace("{{policy}}", &content_policy("none", "'none'"))
        .replace("{{style}}", include_str!("templates/page.css"))
        .replace("{{rows}}", &rows);
    with_type("text/html; charset=utf-8", page)
}

/// A name as one segment of a URL.
fn encoded(name: &str) -> String {
    let mut text = String::new();
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

fn decoded(segment: &str) -> String {
    let mut bytes = vec![];
    let mut rest = segment.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let code = after
            .get(..2)
            .and_then(|code| std::str::from_utf8(code).ok())
            .and_then(|code| u8::from_str_radix(code, 16).ok());
        if let (b'%', Some(code)) = (byte, code) {
            bytes.push(code);
            rest = &after[2..];
        } else {
            bytes.push(byte);
            rest = after;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_name_survives_an_address() {
        for name in ["plain", "a b/../c", "<x>%41", "ünïcode", "."] {
            assert_eq!(decoded(&encoded(name)), name);
        }
        assert_eq!(encoded(".."), "%2E%2E");
        assert_eq!(decoded("%zz%4"), "%zz%4");
    }

    #[test]
    fn tokens_differ_and_only_the_right_one_is_taken_off() {
        let own = token().unwrap();
        assert!(own.len() == 32 && own != token().unwrap());
        assert_eq!(without(&format!("{own}/run/x/"), &own), Some("/run/x/"));
        assert_eq!(without("short", &own), None);
        assert_eq!(without(&format!("{}/", token().unwrap()), &own), None);
        assert_eq!(without(&"ä".repeat(32), &own), None);
    }
}
