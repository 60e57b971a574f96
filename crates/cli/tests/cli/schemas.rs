//! Results against their published forms in `schemas/`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::common::{Folder, text};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas")
}

/// Fails unless a result in JSON has the form that its key `schema` names.
pub(crate) fn expect_valid(result: &Value) {
    let schema = |name: &str| -> Value {
        let text = fs::read_to_string(folder().join(format!("{name}.json"))).unwrap();
        serde_json::from_str(&text).unwrap()
    };
    let name = result["schema"].as_str().unwrap().replace('/', ".");
    // A result of `try` holds one of these.
    let explore = schema("onefold.crash.explore.1");
    let registry = jsonschema::Registry::new().add(explore["$id"].as_str().unwrap(), &explore);
    let registry = registry.unwrap().prepare().unwrap();
    let schema = jsonschema::options().with_registry(&registry).build(&schema(&name)).unwrap();
    let wrong: Vec<_> = schema
        .iter_errors(result)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(wrong.is_empty(), "{name}: {wrong:#?}");
}

/// Fails unless XML is what CI systems read. Not looked at without `xmllint`.
pub(crate) fn expect_junit(folder_of_test: &Folder, xml: &str) {
    let file = folder_of_test.0.join("junit.xml");
    fs::write(&file, xml).unwrap();
    let schema = folder().join("junit.xsd");
    let output =
        Command::new("xmllint").args(["--noout", "--schema", text(&schema), text(&file)]).output();
    let Ok(output) = output else {
        eprintln!("skipped 1 case: xmllint is missing");
        return;
    };
    assert!(output.status.success(), "{}\n{xml}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn another_form_is_refused() {
    let wrong = serde_json::json!({"schema": "onefold.crash.list/1", "entries": -1});
    let refused = std::panic::catch_unwind(|| expect_valid(&wrong));
    assert!(refused.is_err());
}
