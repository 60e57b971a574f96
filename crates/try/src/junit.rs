//! `JUnit` XML, as CI systems show it: a suite with a case for each thing that had to hold.

use onefold_sim::report::Markup;
use onefold_units::convert::u64_from;

/// Something that had to hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Case {
    /// Its name.
    pub name: String,
    /// Seconds that it took; 0 if nobody knows.
    pub seconds: f64,
    /// Why it does not hold.
    pub failure: Option<String>,
    /// What a reader of a failure wants to see: lines.
    pub details: String,
}

/// Cases that belong together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Suite {
    /// Its name, which is the class of its cases as well.
    pub name: String,
    /// Its cases.
    pub cases: Vec<Case>,
}

impl Suite {
    fn failures(&self) -> u64 {
        u64_from(self.cases.iter().filter(|case| case.failure.is_some()).count())
    }
}

/// The suites as one XML document.
#[must_use]
pub fn document(suites: &[Suite]) -> String {
    let tests: u64 = suites.iter().map(|suite| u64_from(suite.cases.len())).sum();
    let failures: u64 = suites.iter().map(Suite::failures).sum();
    let mut xml = Markup::new();
    xml.open(
        "testsuites",
        &[("name", &"onefold"), ("tests", &tests), ("failures", &failures), ("errors", &0)],
    );
    for suite in suites {
        let tests = suite.cases.len();
        let failures = suite.failures();
        xml.open(
            "testsuite",
            &[("name", &suite.name), ("tests", &tests), ("failures", &failures), ("errors", &0)],
        );
        for case in &suite.cases {
            let seconds = format!("{:.3}", case.seconds);
            xml.open(
                "testcase",
                &[("classname", &suite.name), ("name", &case.name), ("time", &seconds)],
            );
            if let Some(failure) = &case.failure {
                xml.element("failure", &[("message", failure)], &case.details);
            }
            xml.close();
        }
        xml.close();
    }
    format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{}", xml.finish())
}

#[cfg(test)]
mod tests {
    use super::{Case, Suite, document};

    #[test]
    fn cases_are_counted_and_escaped() {
        let good = Case { name: "fs<=1GiB".to_owned(), seconds: 0.25, ..Case::default() };
        let bad = Case {
            name: "waf<=1.5@tlc".to_owned(),
            failure: Some("2.41, \"most\" is gc".to_owned()),
            details: "a & b\n".to_owned(),
            ..Case::default()
        };
        let suite = Suite { name: "budget".to_owned(), cases: vec![good, bad] };
        let expected = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
            <testsuites name=\"onefold\" tests=\"2\" failures=\"1\" errors=\"0\">\
            <testsuite name=\"budget\" tests=\"2\" failures=\"1\" errors=\"0\">\
            <testcase classname=\"budget\" name=\"fs&lt;=1GiB\" time=\"0.250\"></testcase>\n\
            <testcase classname=\"budget\" name=\"waf&lt;=1.5@tlc\" time=\"0.000\">\
            <failure message=\"2.41, &quot;most&quot; is gc\">a &amp; b\n</failure>\n</testcase>\n\
            </testsuite>\n</testsuites>\n";
        assert_eq!(document(&[suite]), expected);
    }
}
