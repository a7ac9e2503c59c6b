//! Valid scenarios, and what they mean.

use std::path::Path;

use super::*;
use crate::round::{ArmId, Limit};

/// A folder with the files that the scenarios below name.
pub(super) fn folder() -> &'static Path {
    Path::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/fixtures/scenario_files"
    ))
}

pub(super) fn check(text: &str) -> Result<Checked, ScenarioError> {
    parse(text, Path::new("test.yaml"), folder())
}

fn fine(text: &str) -> Checked {
    check(text).unwrap_or_else(|error| panic!("{error}"))
}

const FOREST: &str = r"
name: ames-forest
target:
  forest: {data: datasets/ames_like.csv, predict: Sale_Price, train: 0.7}
arms:
  grid:                          # every combination is an arm
    trees: {from: 100, to: 700, step: 100}
    mtry: {from: 20, to: 30, step: 2}
    min_node_size: [3, 5, 7, 9]
    sample_fraction: [0.55, 0.632, 0.75, 0.8]
limits:
  of: cpu
  cpu: 60s
  calibrate: {points: 10, arms: 60}
price: {cost: x, penalty: 10 * x}
policy: rcucb
budget: {wall: 100s}
slots: auto
seed: 1
";

const COMMAND: &str = r#"
target:
  command: [sh, "-rnd-freq={rnd_freq}", "-var-decay={var_decay}", "{instance}"]
  instances: instances/*.cnf
  reward: {exit: [10, 20]}
arms: {grid: {rnd_freq: [0, 0.02], var_decay: {from: 0.75, to: 0.95, step: 0.05}}}
limits: {from: 0.1s, to: 10s, points: 8, scale: log, of: cpu, wall: 20s}
budget: {rounds: 100}
"#;

#[test]
fn the_forest_scenario_has_the_papers_672_arms() {
    let Checked { scenario, notices } = fine(FOREST);
    assert_eq!(notices, []);
    assert_eq!(scenario.name, "ames-forest");
    assert_eq!(scenario.space.len(), 672);
    assert_eq!(
        scenario
            .space
            .configuration(ArmId::from_index(671))
            .to_string(),
        "trees=700 mtry=30 min_node_size=9 sample_fraction=0.8"
    );
    let Target::Forest(forest) = &scenario.target else {
        panic!("not a forest")
    };
    assert_eq!(
        (forest.train, forest.threads, forest.isolation),
        (0.7, 1, Isolation::Thread)
    );
    assert_eq!(scenario.limits.of, Resource::Cpu);
    assert_eq!(scenario.limits.guards.cpu, Some(60.0));
    let calibrate = Calibrate {
        guard: Limit::new(60.0).unwrap(),
        points: 10,
        quantiles: (0.25, 0.75),
        arms: Some(60),
    };
    assert_eq!(scenario.limits.from, LimitSource::Calibrate(calibrate));
    assert_eq!(
        scenario.budget,
        Budget {
            wall: Some(100.0),
            ..Budget::default()
        }
    );
    assert_eq!(scenario.policy().name(), "rcucb");
    let price = scenario.price(Limit::new(4.0).unwrap());
    assert_eq!(
        (price.cost(2.0), price.penalty(Limit::new(2.0).unwrap())),
        (0.5, 5.0)
    );
}

/// The cost is 60 at the guard, but where the limits end is known only after calibration.
#[test]
fn what_the_cost_reaches_at_calibrated_limits_is_not_guessed() {
    let in_seconds = FOREST.replace("price: {", "price: {unit: 1s, ");
    assert_eq!(fine(&in_seconds).notices, []);
    // With no unit x is 1 at the largest limit, wherever that is.
    let steep = FOREST.replace("cost: x", "cost: 3 * x");
    assert_eq!(fine(&steep).notices.len(), 1);
}

#[test]
fn a_command_is_rendered_for_every_pull() {
    let Checked { scenario, notices } = fine(COMMAND);
    assert_eq!(notices, []);
    assert_eq!(scenario.name, "test");
    let Target::Command(command) = &scenario.target else {
        panic!("not a command")
    };
    assert_eq!(command.instances, ["instances/a.cnf", "instances/b.cnf"]);
    assert_eq!(command.success, [10, 20]);
    let configuration = scenario.space.configuration(ArmId::from_index(7));
    let launch = command.fill(&Filling {
        configuration: &configuration,
        instance: Some(&command.instances[1]),
        seed: 1,
        limit: 0.5,
        cpu_limit: Some(0.5),
        round: 1,
        scratch: Path::new("/tmp/x"),
    });
    assert_eq!(
        launch.shell_line(),
        "sh -rnd-freq=0.02 -var-decay=0.85 instances/b.cnf"
    );
}

#[test]
fn steps_give_the_decimals_that_were_meant() {
    let space = fine(COMMAND).scenario.space;
    let values: Vec<String> = space.parameters()[1]
        .values()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(values, ["0.75", "0.8", "0.85", "0.9", "0.95"]);
}

#[test]
fn external_targets_need_arms_and_limits_only() {
    let Checked { scenario, notices } = fine(
        "target: external\narms: {grid: {a: [1, 2], b: [true, false]}}\nlimits: {max: 5s, grid: 10}\n",
    );
    assert_eq!(notices, []);
    assert!(matches!(scenario.target, Target::External(_)));
    assert_eq!(scenario.space.len(), 4);
    let LimitSource::Grid(grid) = &scenario.limits.from else {
        panic!("no grid")
    };
    assert_eq!(grid.as_slice()[0].get(), 0.5);
    let problem = scenario.problem(grid.clone());
    assert_eq!((problem.arms, problem.price.unit()), (4, 5.0));
    let with = fine(
        "target: {external: {instances: list.txt, test: [three]}}\narms: {list: [x, y]}\nlimits: {max: 1s, grid: 2}\n",
    );
    assert_eq!(with.scenario.target.instances(), ["one", "two"]);
    assert_eq!(with.scenario.space.name(ArmId::from_index(1)), Some("y"));
}

#[test]
fn synthetic_targets_bring_their_own_arms_limits_and_prices() {
    let Checked { scenario, .. } =
        fine("target: {synthetic: {problem: indep, grid: m1}}\npolicy: [rcucb, joint-ts]\n");
    assert_eq!(scenario.space.len(), 10);
    let LimitSource::Grid(grid) = &scenario.limits.from else {
        panic!("no grid")
    };
    assert_eq!(
        grid.as_slice()
            .iter()
            .map(|limit| limit.get())
            .collect::<Vec<_>>(),
        [0.5, 0.9]
    );
    assert_eq!(scenario.price(grid.max()).penalty(grid.max()), 9.0);
    assert_eq!(scenario.policies.len(), 2);
    let own = fine(
        "target: {synthetic: {problem: large30}}\nlimits: {grid: [0.2, 0.4]}\nprice: {penalty: par2}\n",
    );
    assert_eq!(own.scenario.space.len(), 30);
    assert_eq!(own.scenario.price(Limit::new(0.4).unwrap()).unit(), 1.0);
}

#[test]
fn recorded_targets_name_their_arms_or_take_those_listed() {
    let text = "target: {recorded: {consumption: runs.csv, cutoff: 100s, test: [i2]}}\nlimits: {grid: [10s, 100s]}\n";
    let Checked { scenario, .. } = fine(text);
    assert_eq!(
        scenario
            .space
            .configuration(ArmId::from_index(1))
            .to_string(),
        "slow"
    );
    let listed = fine(&format!("{text}arms: {{file: arms.csv}}\n"));
    let second = listed.scenario.space.configuration(ArmId::from_index(1));
    assert_eq!(second.to_string(), "slow: p=2.5");
}

#[test]
fn everything_about_a_command_can_be_said() {
    let text = r#"
name: full
target:
  command: ["{solver}", "{params}", --seed, "{seed}", "--out={scratch}/o.json", "{{literal}}"]
  params: ["-{name}", "{value}"]
  instances: [x, y]
  test: [z]
  reward: {file: "{scratch}/o.json", json: /score, worst: 10, best: 2.5}
  success: [0, 3]
  env: {THREADS: 1, LIMIT: "{cpu_limit}", NOTHING:}
  directory: instances
  stdin: {text: "{instance}\n"}
  output_limit: 64KiB
  contain: off
arms:
  list:
    - {solver: ./a, level: 1}
    - {solver: ./b, level: 2, fast: true}
limits: {of: wall, wall: 10s, cpu: 20s, memory: 1GiB, max: 10s, grid: 5, grace: 0.5s}
price: {cost: none, penalty: par2, unit: 1s}
policy: {rcucb: {alpha: 2, width: printed}}
recommend: best
budget: {rounds: 1e3, wall: 1h, consumption: 2h}
slots: 2
pin: never
seed: 7
stop_on_first_failures: false
retries: 0
"#;
    let Checked { scenario, notices } = fine(text);
    assert_eq!(notices, []);
    let Target::Command(command) = &scenario.target else {
        panic!("not a command")
    };
    let launch = command.fill(&Filling {
        configuration: &scenario.space.configuration(ArmId::from_index(1)),
        instance: Some("x"),
        seed: 5,
        limit: 2.0,
        cpu_limit: scenario.cpu_limit(Limit::new(2.0).unwrap()),
        round: 1,
        scratch: Path::new("/tmp/s"),
    });
    assert_eq!(
        launch.shell_line(),
        "printf %s 'x\n' | THREADS=1 LIMIT=20 NOTHING='' ./b -level 2 -fast true --seed 5 --out=/tmp/s/o.json '{literal}'"
    );
    assert_eq!(
        launch.exec_line("--wall 2s"),
        "printf %s 'x\n' | THREADS=1 LIMIT=20 NOTHING='' captime exec --wall 2s --input - -- ./b -level 2 -fast true \
         --seed 5 --out=/tmp/s/o.json '{literal}'"
    );
    assert_eq!(
        (
            command.success.clone(),
            command.output_limit,
            command.contain
        ),
        (vec![0, 3], 65536, Some(captime_limit::Contain::Off))
    );
    let Reward::Score {
        scale: Some(scale),
        source: ScoreSource {
            form: ScoreForm::Json(pointer),
            ..
        },
    } = &command.reward
    else {
        panic!("not a score")
    };
    assert_eq!(pointer, "/score");
    assert_eq!(scale.reward(2.5), (1.0, false));
    assert_eq!(scale.reward(11.0), (0.0, true));
    assert_eq!(scale.reward(6.25), (0.5, false));
    assert!(scale.reward(f64::NAN).0.is_nan());
    assert_eq!(scenario.limits.guards.memory, Some(1 << 30));
    assert_eq!(
        scenario.budget,
        Budget {
            rounds: Some(1000),
            wall: Some(3600.0),
            consumption: Some(7200.0)
        }
    );
    assert_eq!(
        (scenario.slots, scenario.pin, scenario.seed),
        (Slots::Count(2), Pin::Never, 7)
    );
    assert_eq!(
        (scenario.stop_on_first_failures, scenario.retries),
        (false, 0)
    );
    assert_eq!(scenario.policy().parameters()["recommend"], "best");
}

/// Every scenario in `tests/fixtures/scenarios/bad`: its mistakes, as people see them.
#[test]
fn every_mistake_is_shown_with_its_line_and_the_fix() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/scenarios/bad");
    let mut names = fixtures(&folder);
    names.sort();
    assert!(names.len() >= 40, "{}", names.len());
    for name in names {
        let text = std::fs::read_to_string(folder.join(&name)).unwrap();
        let shown = match parse(&text, Path::new(&name), &folder) {
            Ok(_) => panic!("{name} is fine"),
            Err(error) => error.to_string(),
        };
        // Only one kind of mistake may lack a position: a missing section.
        let shown = shown.replace(&format!("{}/", folder.display()), "");
        let snapshot = name.trim_end_matches(".yaml");
        insta::with_settings!({description => text.chars().take(2000).collect::<String>(), omit_expression => true, snapshot_path => "snapshots/bad", prepend_module_to_snapshot => false}, {
            insta::assert_snapshot!(snapshot, shown);
        });
    }
}

/// Every scenario in `tests/fixtures/scenarios/warned`: allowed, but with a warning.
#[test]
fn what_should_be_known_is_shown_with_its_line() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/scenarios/warned");
    for name in fixtures(&folder) {
        let text = std::fs::read_to_string(folder.join(&name)).unwrap();
        let checked =
            parse(&text, Path::new(&name), &folder).unwrap_or_else(|error| panic!("{error}"));
        assert!(!checked.notices.is_empty(), "{name}");
        let shown = checked.render_notices(false).join("\n\n");
        let snapshot = name.trim_end_matches(".yaml");
        insta::with_settings!({description => text, omit_expression => true, snapshot_path => "snapshots/warned", prepend_module_to_snapshot => false}, {
            insta::assert_snapshot!(snapshot, shown);
        });
    }
}

fn fixtures(folder: &Path) -> Vec<String> {
    std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| {
            Path::new(name)
                .extension()
                .is_some_and(|ending| ending == "yaml")
        })
        .collect()
}

#[test]
fn files_that_are_no_scenario_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let error = read(&path).unwrap_err();
        assert_eq!(error.mistakes.len(), 1);
        let shown = error.to_string();
        shown.replace(&format!("{}/", folder.path().display()), "")
    };
    let large = vec![b'#'; 2 << 20];
    insta::assert_snapshot!("two_mebibytes", refused("large.yaml", &large));
    insta::assert_snapshot!("not_utf8", refused("latin1.yaml", b"name: caf\xe9\n"));
    let missing = read(&folder.path().join("nowhere.yaml"))
        .unwrap_err()
        .to_string();
    assert!(missing.contains("cannot read the scenario"), "{missing}");
    assert!(!missing.contains("mistake"), "{missing}");
    assert!(read(folder.path()).is_err());
    assert!(read(Path::new("/dev/zero")).is_err());
}

#[test]
fn a_pattern_that_matches_nearly_everything_is_warned_of() {
    let folder = tempfile::tempdir().unwrap();
    let cautions = |count: usize| {
        let names: Vec<String> = (0..count).map(|number| number.to_string()).collect();
        std::fs::write(folder.path().join("list.txt"), names.join("\n")).unwrap();
        let text = "target: {command: [cat, '{instance}', '{x}'], instances: list.txt}\narms: {list: [{x: 1}, {x: 2}]}\nlimits: {max: 1s, grid: 2}\nbudget: {rounds: 3}\n";
        let checked = parse(text, Path::new("s.yaml"), folder.path()).unwrap();
        let shown: Vec<String> = checked
            .notices
            .iter()
            .map(|notice| notice.caution.to_string())
            .collect();
        shown
    };
    assert_eq!(cautions(100_000), [""; 0]);
    assert_eq!(
        cautions(100_001),
        ["100001 instances: a run will use only a few of them"]
    );
}

#[test]
fn more_slots_than_the_cpus_can_serve_are_warned_of() {
    let cautions = |slots: usize| {
        let text = format!(
            "target: {{command: [sh, -c, 'exit {{x}}']}}\narms: {{list: [{{x: 1}}, {{x: 2}}]}}\nlimits: {{max: 1s, grid: 2}}\nbudget: {{rounds: 3}}\nslots: {slots}\n"
        );
        let checked = fine(&text);
        let shown = checked.notices.iter();
        shown
            .map(|notice| notice.caution.to_string())
            .collect::<Vec<_>>()
    };
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    assert_eq!(cautions(cpus), [""; 0]);
    let many = cautions(32 * cpus);
    let expected = format!("{} pulls at a time will share {cpus} CPU", 32 * cpus);
    assert!(
        many.len() == 1 && many[0].starts_with(&expected),
        "{many:?}"
    );
}

#[test]
fn prices_that_are_none_are_refused_on_synthetic_targets_too() {
    for (wrong, why) in [
        ("0 / 0", "is NaN"),
        ("1 / (x - x)", "is inf"),
        ("-x", "is -"),
        ("-1", "is -1"),
        ("1 - x", "falls from 1"),
        ("sqrt(x - 2)", "is NaN"),
    ] {
        for price in [
            format!("{{cost: {wrong}, penalty: 10}}"),
            format!("{{cost: x, penalty: {wrong}}}"),
        ] {
            let text = format!(
                "target: {{synthetic: {{problem: poscorr}}}}\nprice: {price}\nbudget: {{rounds: 10}}\n"
            );
            let error = check(&text).unwrap_err().to_string();
            assert!(error.contains(why), "{price}: {error}");
        }
    }
}

/// A scenario may only name regular files. Anything else is refused, without blocking or filling the memory.
#[test]
fn only_regular_files_are_read() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("instances")).unwrap();
    let pipe = folder.path().join("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert!(read(&pipe).is_err());
    for file in ["pipe", "/dev/zero", "instances"] {
        for text in [
            format!("target: external\narms: {{file: {file}}}\nlimits: {{max: 1s, grid: 2}}\n"),
            format!(
                "target: {{external: {{instances: {file}}}}}\narms: {{list: [a]}}\nlimits: {{max: 1s, grid: 2}}\n"
            ),
            format!(
                "target: {{forest: {{data: {file}, predict: y}}}}\narms: {{grid: {{trees: [1]}}}}\nlimits: {{max: 1s, grid: 2}}\n"
            ),
            format!("target: external\narms: {{space: {file}}}\nlimits: {{max: 1s, grid: 2}}\n"),
            format!(
                "target: external\narms: {{list: [a]}}\nlimits: {{max: 1s, grid: 2}}\nslots: {{ssh: {file}}}\n"
            ),
            format!(
                "target: external\narms: {{space: {file}, sample: 2}}\nlimits: {{max: 1s, grid: 2}}\n"
            ),
            format!(
                "target: {{recorded: {{consumption: {file}, cutoff: 1s}}}}\nlimits: {{max: 1s, grid: 2}}\n"
            ),
        ] {
            let error = parse(&text, Path::new("x.yaml"), folder.path()).unwrap_err();
            assert!(error.to_string().contains("cannot read"), "{error}");
        }
    }
}

#[test]
fn names_of_instances_that_are_not_utf8_are_refused() {
    use std::os::unix::ffi::OsStrExt;
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("instances")).unwrap();
    let name = std::ffi::OsStr::from_bytes(b"instances/caf\xe9.cnf");
    std::fs::write(folder.path().join(name), "").unwrap();
    let text = "target: {external: {instances: instances/*.cnf}}\narms: {list: [a]}\nlimits: {max: 1s, grid: 2}\n";
    let error = parse(text, Path::new("x.yaml"), folder.path()).unwrap_err();
    assert!(error.to_string().contains("is not UTF-8"), "{error}");
}

#[test]
fn the_default_is_arm_1() {
    let first = |arms: &str| {
        let text = format!("target: external\narms: {{{arms}}}\nlimits: {{max: 1s, grid: 2}}\n");
        let space = fine(&text).scenario.space;
        let shown = |arm| space.configuration(ArmId::from_index(arm)).to_string();
        (space.len(), shown(0), shown(1))
    };
    let plain = "grid: {a: [1, 2], b: [x, y]}";
    assert_eq!(first(plain), (4, "a=1 b=x".into(), "a=1 b=y".into()));
    let moved = "grid: {a: [1, 2], b: [x, y]}, default: {a: 2}";
    assert_eq!(first(moved), (4, "a=2 b=x".into(), "a=1 b=x".into()));
    let named = "list: [p, q, r], default: r";
    assert_eq!(first(named), (3, "r".into(), "p".into()));
    for wrong in ["default: {a: 3}", "default: {c: 1}", "default: z"] {
        let text = format!(
            "target: external\narms: {{grid: {{a: [1, 2]}}, {wrong}}}\nlimits: {{max: 1s, grid: 2}}\n"
        );
        assert!(check(&text).is_err(), "{wrong}");
    }
}

#[test]
fn a_byte_order_mark_and_other_line_ends_do_no_harm() {
    let text =
        "\u{feff}target: external\r\narms: {grid: {a: [1]}}\r\nlimits: {max: 1s, grid: 2}\r\n";
    assert_eq!(fine(text).scenario.space.len(), 1);
    let wrong = check(&text.replace("1s", "1")).unwrap_err();
    assert_eq!(wrong.mistakes[0].at.line_column(&wrong.text).0, 3);
}

proptest::proptest! {
    /// Any scenario is either read with positions or refused, and never panics.
    #[test]
    fn mangled_scenarios_never_panic(cut in 0..700_usize, with in "[ -~\n\t\u{e9}]{0,12}", which in 0..3_usize) {
        let text = [FOREST, COMMAND, "target: {external: {test: [x]}}\narms: {list: [{name: a, b: 1}]}\nlimits: {wall: 1s, calibrate: {}}\n"][which];
        let mut cut = cut % text.len();
        while !text.is_char_boundary(cut) {
            cut -= 1;
        }
        let mangled = format!("{}{with}{}", &text[..cut], &text[cut..]);
        // With the files it names, so that the code that reads them is reached too.
        if let Err(error) = parse(&mangled, Path::new("x.yaml"), folder()) {
            proptest::prop_assert!(!error.to_string().is_empty());
        }
    }
}

const OPEN: &str = r#"
target: {command: [sh, "{params}"]}
arms:
  space:
    decay: {real: [0.75, 0.999], default: 0.95}
    restarts: {integer: [1, 100000], scale: log, default: 100}
    heuristic: {choice: [vsids, vmtf, chb], default: vsids}
    alpha: {real: [0.01, 1.0], scale: log, default: 0.4, when: heuristic == chb}
    moms: {choice: [true, false], default: false, argument: --moms}
  forbid:
    - heuristic == vmtf and restarts < 10
    - decay * restarts > 50000
  start:
    - {decay: 0.8, heuristic: chb}
  sample: 300
limits: {from: 0.1s, to: 10s, points: 8, scale: log, of: cpu, wall: 20s}
budget: {rounds: 100}
"#;

#[test]
fn a_sampled_space_is_a_list_that_begins_with_the_default() {
    let scenario = fine(OPEN).scenario;
    let space = &scenario.space;
    assert_eq!(space.len(), 300);
    let text = |index| space.configuration(ArmId::from_index(index)).to_string();
    assert_eq!(
        text(0),
        "decay=0.95 restarts=100 heuristic=vsids moms=false"
    );
    assert_eq!(
        text(1),
        "decay=0.8 restarts=100 heuristic=chb alpha=0.4 moms=false"
    );
    for arm in space.arms() {
        let configuration = space.configuration(arm);
        let word = configuration.get("heuristic").map(ToString::to_string);
        assert_eq!(
            configuration.get("alpha").is_some(),
            word.as_deref() == Some("chb")
        );
    }
    assert_eq!(fine(OPEN).scenario.hash(), scenario.hash());
    let other = fine(&format!("{OPEN}seed: 2\n")).scenario;
    assert_ne!(other.space, scenario.space);
    let stored =
        Scenario::from_stored(&scenario.stored(), "x.yaml".as_ref(), ".".as_ref(), "").unwrap();
    assert_eq!(stored.space, scenario.space);
    assert_eq!(stored.hash(), scenario.hash());
}

#[test]
fn mistakes_in_a_space_point_into_the_scenario() {
    let text = OPEN
        .replace("when: heuristic == chb", "when: heuristic == chbb")
        .replace("decay * restarts", "decai * restarts")
        .replace("scale: log, default: 100", "scal: log, default: 100");
    let unsampled = OPEN.replace("  sample: 300\n", "") + "policy: [levels, rcucb]\n";
    let unforbidden = OPEN.replace("heuristic: chb}\n  sample", "heuristic: chbb}\n  sample");
    let shown = |text: &str| check(text).unwrap_err().to_string();
    insta::assert_snapshot!(format!(
        "{}\n\n{}\n\n{}",
        shown(&text),
        shown(&unsampled),
        shown(&unforbidden)
    ));
}
