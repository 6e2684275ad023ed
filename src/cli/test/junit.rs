//! The report that continuous integration reads: JUnit's XML, one test case per scenario.
//!
//! Written by hand: what is needed of XML is six elements and the escaping of texts.

use super::verdict::{Class, Verdict};
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

/// The report on all scenarios; `took` is the wall time of the whole run.
pub(super) fn report(verdicts: &[Verdict], took: Duration) -> String {
    let unusable = verdicts.iter().filter(|it| it.class == Class::Unusable).count();
    let wrong = verdicts.iter().filter(|it| !it.class.is_fine()).count();
    let counts = format!(
        "tests=\"{}\" failures=\"{}\" errors=\"{unusable}\" time=\"{:.3}\"",
        verdicts.len(),
        wrong - unusable,
        took.as_secs_f64()
    );
    let cases: String = verdicts.iter().map(case).collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {counts}>\n  <testsuite name=\"forebay test\" {counts}>\n\
         {cases}  </testsuite>\n</testsuites>\n"
    )
}

fn case(verdict: &Verdict) -> String {
    let file = &verdict.scenario.file;
    let folder = file.parent().filter(|it| *it != Path::new(""));
    let mut case = format!(
        "    <testcase classname=\"{}\" name=\"{}\" file=\"{}\" time=\"{:.3}\"",
        escaped(&folder.unwrap_or(Path::new(".")).to_string_lossy()),
        escaped(&file.file_stem().unwrap_or_default().to_string_lossy()),
        escaped(&file.to_string_lossy()),
        verdict.took.as_secs_f64()
    );
    let (element, kind) = match verdict.class {
        it if it.is_fine() => return case + "/>\n",
        Class::Unusable => ("error", "unusable"),
        Class::Fails => ("failure", "assertion"),
        _ => ("failure", "snapshot"),
    };
    let _ = write!(
        case,
        ">\n      <{element} type=\"{kind}\" message=\"{}\">{}</{element}>\n    </testcase>\n",
        escaped(&verdict.head),
        escaped_text(&verdict.body)
    );
    case
}

/// A text between tags: as in an attribute, but that its lines stay lines.
fn escaped_text(text: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(escaped).collect();
    lines.join("\n")
}

/// A text in an attribute. What XML 1.0 cannot say at all becomes U+FFFD.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            '\n' => out.push_str("&#10;"),
            '\r' => out.push_str("&#13;"),
            '\t' => out.push_str("&#9;"),
            '\0'..='\x1f' | '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            _ => out.push(character),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::search::Scenario;
    use super::*;
    use std::path::PathBuf;

    fn verdict(file: &str, class: Class, head: &str, body: &str) -> Verdict {
        Verdict {
            scenario: Scenario {
                file: PathBuf::from(file),
                name: "n".to_owned(),
                about: None,
            },
            took: Duration::from_millis(12),
            class,
            head: head.to_owned(),
            body: body.to_owned(),
        }
    }

    #[test]
    fn one_case_per_scenario() {
        let verdicts = [
            verdict("a.toml", Class::AsBefore, "", ""),
            verdict(
                "p/b.toml",
                Class::Differs,
                "p/b.toml: differs",
                "-<a href=\"x\">\n+\tb & 'c'\n",
            ),
            verdict("p/c.toml", Class::Fails, "p/c.toml: fails", "  failed: 1 < 2\n"),
            verdict("p/d&e.toml", Class::Unusable, "p/d&e.toml:1:1: not\nclosed", ""),
            verdict(
                "p/f.toml",
                Class::Accepted,
                "p/f.toml: has no snapshot yet",
                "+x\n",
            ),
        ];
        insta::assert_snapshot!(report(&verdicts, Duration::from_millis(1500)), @r#"
        <?xml version="1.0" encoding="UTF-8"?>
        <testsuites tests="5" failures="2" errors="1" time="1.500">
          <testsuite name="forebay test" tests="5" failures="2" errors="1" time="1.500">
            <testcase classname="." name="a" file="a.toml" time="0.012"/>
            <testcase classname="p" name="b" file="p/b.toml" time="0.012">
              <failure type="snapshot" message="p/b.toml: differs">-&lt;a href=&quot;x&quot;&gt;
        +&#9;b &amp; &apos;c&apos;
        </failure>
            </testcase>
            <testcase classname="p" name="c" file="p/c.toml" time="0.012">
              <failure type="assertion" message="p/c.toml: fails">  failed: 1 &lt; 2
        </failure>
            </testcase>
            <testcase classname="p" name="d&amp;e" file="p/d&amp;e.toml" time="0.012">
              <error type="unusable" message="p/d&amp;e.toml:1:1: not&#10;closed"></error>
            </testcase>
            <testcase classname="p" name="f" file="p/f.toml" time="0.012"/>
          </testsuite>
        </testsuites>
        "#);
    }

    #[test]
    fn what_xml_cannot_say_is_replaced() {
        assert_eq!(
            escaped("a\u{0}\u{1b}[31m\u{ffff}b"),
            "a\u{fffd}\u{fffd}[31m\u{fffd}b"
        );
        assert_eq!(escaped_text("a\r\n\tb ]]>"), "a&#13;\n&#9;b ]]&gt;");
    }
}
