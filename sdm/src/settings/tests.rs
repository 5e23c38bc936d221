//! Tests of settings and options: precedence and errors.

use std::collections::BTreeMap;

use clap::{CommandFactory, FromArgMatches};

use super::*;
use crate::cli::{Cli, Verb};

/// Loads settings from a file's text and an environment.
fn settings(text: &str, environment: &[(&str, &str)]) -> Result<Settings, String> {
    let folder =
        std::env::temp_dir().join(format!("sdm-settings-{:?}", std::thread::current().id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("config.toml");
    std::fs::write(&file, text).unwrap();
    let mut variables: BTreeMap<String, OsString> = BTreeMap::new();
    variables.insert(FILE_VARIABLE.to_owned(), file.clone().into());
    variables.insert(SITE_VARIABLE.to_owned(), OsString::new());
    for (name, value) in environment {
        variables.insert((*name).to_owned(), value.into());
    }
    let loaded = Settings::load(&Cli::command(), |name| variables.get(name).cloned());
    std::fs::remove_dir_all(&folder).unwrap();
    let said = |error: SettingsError| error.to_string().replace(&*file.to_string_lossy(), "FILE");
    let settings = loaded.map_err(said)?;
    settings.apply(Cli::command(), None).map_err(said)?;
    Ok(settings)
}

/// Parses a command line with these settings.
fn parsed(settings: &Settings, line: &str) -> Cli {
    let command = settings.apply(Cli::command(), None).unwrap();
    let matches = command.try_get_matches_from(line.split_whitespace());
    Cli::from_arg_matches(&matches.unwrap()).unwrap()
}

#[test]
fn command_line_precedes_variable_then_table_then_top_level() {
    let text = "timeout = 40\nlauncher = \"mpirun\"\n[run]\ntimeout = 50\npartial = true\nhang-timeout = 9\n\
                launcher-option = [\"--host\", \"a:4\"]\n[attach]\ngdb = \"/x/gdb\"\n";
    let run = |settings: &Settings, line: &str| match parsed(settings, line).command {
        Verb::Run(args) => args,
        other => panic!("{other:?}"),
    };
    let file = settings(text, &[]).unwrap();
    let args = run(&file, "sdm run -- ./a");
    assert_eq!(
        (args.script.timeout, &*args.launch.launcher),
        (50, "mpirun")
    );
    assert_eq!(args.launch.reach.launcher_options, ["--host", "a:4"]);
    assert!(args.tree.partial && args.gdb.is_none());
    assert_eq!(
        (args.batch.hang_timeout, args.batch.batch),
        (Some(9), false)
    );
    let args = run(
        &file,
        "sdm run --timeout 7 --launcher local --launcher-option -q -- ./a",
    );
    assert_eq!((args.script.timeout, &*args.launch.launcher), (7, "local"));
    assert_eq!(args.launch.reach.launcher_options, ["-q"]);

    let both = settings(
        text,
        &[
            ("SDM_TIMEOUT", "60"),
            ("SDM_PARTIAL", "off"),
            ("SDM_HOST", "a,b:2"),
        ],
    )
    .unwrap();
    let args = run(&both, "sdm run -- ./a");
    assert_eq!((args.script.timeout, args.tree.partial), (60, false));
    assert_eq!(args.launch.hosts.len(), 2);
    match parsed(&both, "sdm attach 7").command {
        Verb::Attach(args) => assert_eq!(args.target.gdb.unwrap(), Path::new("/x/gdb")),
        other => panic!("{other:?}"),
    }
}

#[test]
fn invalid_setting_is_named_with_file_and_line() {
    for (text, environment, expect) in [
        (
            "\ntimeout = \"x\"\n",
            &[][..],
            "FILE:2: timeout: invalid value 'x' for '--timeout <S>'",
        ),
        (
            "[run]\n\ntimeout = 0\n",
            &[],
            "FILE:3: timeout: invalid value '0' for '--timeout <S>'",
        ),
        (
            "launchr = \"a\"",
            &[],
            "FILE:1: launchr: not a setting of any command",
        ),
        (
            "command = \"bt\"",
            &[],
            "FILE:1: command: allowed on the command line only",
        ),
        (
            "[run]\nfull = true",
            &[],
            "FILE:2: full: not a setting of `sdm run`",
        ),
        (
            "[fly]\ngdb = \"x\"",
            &[],
            "FILE:2: [fly]: no sdm command of this name",
        ),
        (
            "[run]\npartial = 3",
            &[],
            "FILE:2: partial: expected true or false, not \"3\"",
        ),
        (
            "timeout = [1, 2]",
            &[],
            "FILE:1: timeout: expected a single value",
        ),
        (
            "timeout = 1979-05-27",
            &[],
            "FILE:1: timeout: expected a string, a number",
        ),
        ("a = 1\nb = [", &[], "FILE:2: "),
        (
            "",
            &[("SDM_TOPOLOGY", "ring")],
            "SDM_TOPOLOGY: topology: invalid value 'ring'",
        ),
    ] {
        let error = settings(text, environment).expect_err(text);
        assert!(error.starts_with(expect), "{error}, not {expect}");
    }
}

#[test]
fn missing_settings_file_is_an_error_only_if_requested() {
    let absent = Settings::load(&Cli::command(), |name| {
        (name == "HOME").then(|| "/no/such/home".into())
    });
    let file = absent.unwrap().files.own;
    assert_eq!(
        file.unwrap(),
        Path::new("/no/such/home/.config/sdm/config.toml")
    );
    let wanted = Settings::load(&Cli::command(), |name| {
        (name == FILE_VARIABLE).then(|| "/no/such/file".into())
    });
    assert!(
        wanted
            .unwrap_err()
            .to_string()
            .starts_with("/no/such/file: No such file")
    );
}

#[test]
fn every_value_has_its_origin() {
    let settings = settings("[run]\ngdb = \"/x/gdb\"\n", &[("SDM_TIMEOUT", "60")]).unwrap();
    let rows = settings.rows(&Cli::command(), Some("run"));
    let row = |key: &str| {
        let row = rows.iter().find(|row| row.key == key).unwrap();
        (row.value.as_str(), row.origin.clone())
    };
    assert_eq!(row("gdb"), ("/x/gdb", Origin::Table(2)));
    assert_eq!(
        row("timeout"),
        ("60", Origin::Variable("SDM_TIMEOUT".to_owned()))
    );
    assert_eq!(row("topology"), ("by-host", Origin::Definition));
    assert!(rows.iter().all(|row| row.key != "command"));
}

const PROFILES: &str = "[run]\ntimeout = 50\n[profile.big]\nprocesses = 8\ntimeout = 7\ncluster = \"here\"\nqueue = \"q\"\n\
    directory = \"/d\"\nenv = [\"A=1\", \"B=2\"]\ndebug = true\nprogram = [\"./app\", \"-x\"]\narguments = [\"--steps\", \"3\"]\n\
    [profile.small]\nprocesses = 2\n";

#[test]
fn profile_applies_only_if_requested() {
    let settings = settings(PROFILES, &[("SDM_TIMEOUT", "60")]).unwrap();
    assert_eq!(settings.profiles(), ["big", "small"]);
    let words = |line: &str| line.split_whitespace().map(OsString::from).collect();
    let read = |line: &str| {
        let args: Vec<OsString> = words(line);
        let command = settings.apply(Cli::command(), asked_for(&args)).unwrap();
        Cli::from_arg_matches(&command.try_get_matches_from(args).unwrap()).unwrap()
    };
    let Verb::Run(args) = read("sdm run --profile big").command else {
        panic!("run");
    };
    assert_eq!((args.count, args.script.timeout), (8, 7));
    let program: Vec<OsString> = words("./app -x --steps 3");
    assert_eq!(args.program, program);
    assert_eq!(args.directory.as_deref(), Some("/d".as_ref()));
    assert_eq!(args.environment.len(), 2);
    let Verb::Submit(args) = read("sdm submit -n 3 --profile=big -- ./other").command else {
        panic!("submit");
    };
    assert_eq!((args.count, args.debug), (3, true));
    assert_eq!(args.to.manager.as_deref(), Some("here"));
    assert_eq!(args.queue.as_deref(), Some("q"));
    assert_eq!(args.program, words("./other") as Vec<OsString>);
    // Arguments of the program are not options of sdm.
    let Verb::Run(args) = read("sdm run -- ./a --profile big").command else {
        panic!("run");
    };
    assert_eq!((args.count, args.script.timeout), (1, 60));
}

#[test]
fn command_profile_and_launch_profiles_share_a_table() {
    let text = format!("{PROFILES}[profile]\nrate = 20\n");
    let settings = settings(&text, &[]).unwrap();
    assert_eq!(settings.profiles(), ["big", "small"]);
    let command = settings.apply(Cli::command(), None).unwrap();
    let matches = command.try_get_matches_from(["sdm", "profile", "4711"]);
    let Verb::Profile(args) = Cli::from_arg_matches(&matches.unwrap()).unwrap().command else {
        panic!("profile");
    };
    assert_eq!(args.sampling.rate, 20);
}

#[test]
fn unknown_or_invalid_profile_is_refused() {
    let known = settings(PROFILES, &[]).unwrap();
    let error = known.apply(Cli::command(), Some("none")).unwrap_err();
    assert_eq!(error.what, "profile 'none': there are: big, small");
    for (text, part) in [
        (
            "[profile.a]\nlimit = 3\n",
            "FILE:2: limit: not allowed in a profile",
        ),
        (
            "[profile.a]\nhelp = true\n",
            "allowed on the command line only",
        ),
        // Without a further name, `[profile]` is the table of the command `profile`.
        (
            "[profile]\nprocesses = 2\n",
            "not a setting of `sdm profile`",
        ),
    ] {
        let error = settings(text, &[]).unwrap_err();
        assert!(error.contains(part), "{error}");
    }
    let wrong = settings("[profile.a]\nprocesses = 0\n", &[]).unwrap();
    let error = wrong.apply(Cli::command(), Some("a")).unwrap_err();
    assert!(error.place.ends_with("config.toml:2"), "{error}");
}

#[test]
fn user_settings_override_site_settings() {
    let folder = std::env::temp_dir().join(format!("sdm-site-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let [site, own] = ["site.toml", "own.toml"].map(|name| folder.join(name));
    let text = "gdb = \"/opt/gdb/bin/gdb\"\ntimeout = 10\n[run]\ntimeout = 20\nlauncher = \"srun\"\n\
                [profile.small]\nprogram = \"./a\"\nprocesses = 2\n";
    std::fs::write(&site, text).unwrap();
    let text = "timeout = 30\n[profile.small]\nprocesses = 4\n";
    std::fs::write(&own, text).unwrap();
    let lookup = |name: &str| match name {
        SITE_VARIABLE => Some(site.clone().into_os_string()),
        FILE_VARIABLE => Some(own.clone().into_os_string()),
        "SDM_LAUNCHER" => Some("local".into()),
        _ => None,
    };
    let settings = Settings::load(&Cli::command(), lookup).unwrap();
    let rows = settings.rows(&Cli::command(), Some("run"));
    let row = |key: &str| {
        let row = rows.iter().find(|row| row.key == key).unwrap();
        let file = settings.place(&row.origin);
        (
            row.value.clone(),
            file.rsplit('/').next().unwrap_or_default().to_owned(),
        )
    };
    let is = |value: &str, place: &str| (value.to_owned(), place.to_owned());
    assert_eq!(row("gdb"), is("/opt/gdb/bin/gdb", "site.toml:1"));
    // The user's value wins even over the site's value for one command.
    assert_eq!(row("timeout"), is("30", "own.toml:1"));
    assert_eq!(row("launcher"), is("local", "SDM_LAUNCHER"));
    let small: Vec<_> = settings
        .apply(Cli::command(), Some("small"))
        .unwrap()
        .try_get_matches_from(["sdm", "run", "--profile", "small"])
        .into_iter()
        .collect();
    let Verb::Run(run) = Cli::from_arg_matches(&small[0]).unwrap().command else {
        panic!("it runs");
    };
    assert_eq!((run.count, &*run.program), (4, &["./a".into()][..]));
    // An error in the site's settings names the site's file.
    std::fs::write(&site, "launchr = 1\n").unwrap();
    let error = Settings::load(&Cli::command(), lookup).unwrap_err();
    assert!(error.place.ends_with("site.toml:1"), "{error}");
    std::fs::remove_dir_all(&folder).unwrap();
}
