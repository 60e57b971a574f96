//! The account as people and programs read it.

use onefold_sim::result::Program;
use onefold_try::account::drives::{AGE, Replay, parse, run};
use onefold_try::account::files::attribute;
use onefold_try::account::{Account, Budget, BudgetError, ByOwner, FileCost, Owners, SCHEMA};
use onefold_try::junit;

const DISK: u64 = 64 << 20;

/// Of a small program on two drives, each with a volume and without.
fn account() -> Account {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("requests.oft");
    super::drives::recording(&path, (DISK, 8 << 20), 5);
    let owners = Owners::default();
    let (mut fs, seconds) = attribute(&path, &owners).unwrap();
    assert_eq!((fs.by.unknown, fs.write_bytes), (fs.write_bytes, fs.by.unknown));
    assert!(fs.write_bytes >= 8 << 20 && fs.flush_requests > 0 && seconds > 0.0);
    // As if a look had seen files.
    let file =
        |path: &str, write_bytes| FileCost { path: path.into(), write_bytes, write_requests: 7 };
    fs.files = vec![file("rows.db", 5 << 20), file("<i>&.log", 1 << 20)];
    fs.files_count = 2;
    let data = 6 << 20;
    fs.by =
        ByOwner { data, journal: 1 << 20, metadata: 0, unknown: fs.write_bytes - data - (1 << 20) };
    fs.systems = vec!["ext4".to_owned()];
    let replay = Replay {
        requests: &path,
        disk_bytes: DISK,
        seconds,
        age: AGE,
        volume: true,
        seed: 0,
        program: Program::default(),
    };
    let drives = run(&parse(Some("tlc,qlc-16k")).unwrap(), &replay, 2, None).unwrap();
    Account {
        schema: SCHEMA.to_owned(),
        command: vec!["./store".to_owned(), "--rows=<9>".to_owned()],
        seconds,
        disk_bytes: DISK,
        age: AGE.to_string(),
        program: Some(4 << 20),
        file_system: Some(fs),
        drives,
        ..Account::default()
    }
}

fn budget(text: &str) -> Budget {
    text.parse().unwrap_or_else(|error: BudgetError| panic!("{error}"))
}

#[test]
fn an_account_is_printed_in_every_form() {
    let mut account = account();
    let good =
        ["fs<=1GiB", "waf<=100", "flushes<=10k", "life>=1s@tlc", "nand.gc<1TiB@qlc-16k+volume"];
    assert!(account.judge(&good.map(budget)), "{:?}", account.budgets);
    assert_eq!(account.budgets.len(), 6, "waf is one budget for each drive alone");
    let bad = ["fs<=1MiB", "nand<=1MiB@qlc-16k", "waf<=1%", "flush_p99<1ns@tlc", "program>=5MiB"];
    assert!(!account.judge(&bad.map(budget)));
    let broken: Vec<String> = account.budgets.iter().map(ToString::to_string).collect();
    let broken = broken.join("\n");
    for line in [
        "budget fs<=1MiB broken: 8",
        "; most is data, 6 MiB (",
        "; the file written most is `rows.db`, 5 MiB",
        "budget nand<=1MiB@qlc-16k broken: ",
        "; most of flash is ",
        "budget waf<=1%@tlc broken: ",
        "budget waf<=1%@qlc-16k broken: ",
        "budget flush_p99<1ns@tlc broken: ",
        "budget program>=5MiB broken: 4 MiB",
    ] {
        assert!(broken.contains(line), "{line}\n{broken}");
    }
    let table = account.table();
    for part in [
        "per byte",
        "\nprogram ",
        "\nfile system ",
        "\ntlc+volume ",
        "rows.db",
        "and aged: fill=0.9,overwrite=1",
    ] {
        assert!(table.contains(part), "{part}\n{table}");
    }
    let back: Account = serde_json::from_str(&account.json()).unwrap();
    assert_eq!(back, account);
    let value: serde_json::Value = serde_json::from_str(&account.json()).unwrap();
    assert_eq!(value["schema"], "onefold.account/1");
    assert_eq!(value["drives"][1]["volume"]["mode"], "log");
    let pages: u64 = value["drives"][0]["flash"]["program_pages"]
        .as_object()
        .unwrap()
        .values()
        .map(|pages| pages.as_u64().unwrap())
        .sum();
    assert_eq!(pages * 4096, value["drives"][0]["nand_bytes"].as_u64().unwrap());
    let xml = junit::document(&[account.suite()]);
    assert!(xml.contains("tests=\"6\" failures=\"6\""), "{xml}");
    assert!(
        xml.contains("name=\"nand&lt;=1MiB@qlc-16k\"") && xml.contains("most of flash is"),
        "{xml}"
    );
    let page = account.html(&[]);
    assert_eq!(page.matches("<svg xmlns").count(), 4, "a picture for each run");
    assert!(
        page.contains("What ./store --rows=&lt;9&gt; cost") && !page.contains("<i>&"),
        "escaped"
    );
    assert!(!page.contains("http://") || !page.contains("<script"), "self-contained");
}

#[test]
fn what_is_not_known_breaks_a_budget() {
    let mut account = Account::default();
    assert!(!account.judge(&["fs<=1GiB", "program<=1GiB"].map(budget)));
    assert!(account.budgets.iter().all(|verdict| verdict.found.starts_with("not known: ")));
    assert!(account.table().contains("budget fs<=1GiB broken: not known: there is no recording"));
    assert!(account.html(&[]).contains("Nothing was written."));
}

#[test]
fn bad_budgets_say_what_is_wrong() {
    for (text, error) in [
        ("fs", "no comparison"),
        ("fs=1GiB", "no comparison"),
        ("size<=1GiB", "\"size\" is no name of a budget"),
        ("nand.host<=1GiB", "\"nand.host\" is no name"),
        ("fs<=1s", "the limit is \"1s\", an unknown unit; expected a size such as 2GiB"),
        ("flushes<=-1", "not a number; expected a count"),
        ("waf<=", "not a number; expected a number such as 1.5"),
        ("life>=5", "an unknown unit; expected a time such as 5y"),
        ("fs<=1GiB@tlc", "fs is the same for all drives"),
    ] {
        let found = text.parse::<Budget>().unwrap_err().to_string();
        assert!(found.contains(error), "{text}: {found}");
    }
    let labels = ["tlc".to_owned()];
    let error = budget("waf<=2@qlc").expect_among(&labels).unwrap_err().to_string();
    assert!(error.contains("no drive \"qlc\" is simulated, expected one of tlc"), "{error}");
    assert!(budget("waf<=2").expect_among(&[]).unwrap_err().to_string().contains("--drives"));
    assert!(
        budget("waf<=2").expect_among(&labels).is_ok() && budget("fs<=2").expect_among(&[]).is_ok()
    );
}
