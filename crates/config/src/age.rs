//! How a drive was used before: `fill=0.9,overwrite=1`.

use std::fmt;
use std::str::FromStr;

use onefold_units::numbers::Decimal;

/// How a drive was used before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Age {
    /// Share of the capacity that holds data, from its beginning on.
    pub fill: f64,
    /// How often that data was overwritten, at random.
    pub overwrite: f64,
}

/// More would not end within a day.
const OVERWRITE_MAX: f64 = 100.0;

impl FromStr for Age {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut age = Self { fill: 1.0, overwrite: 0.0 };
        for part in text.split(',') {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let share = || {
                let number = Decimal::share(value.trim())
                    .map_err(|error| format!("found {part:?}, {error}"))?;
                Ok::<f64, String>(number.real())
            };
            match name.trim() {
                "fill" => age.fill = share()?,
                "overwrite" => age.overwrite = share()?,
                _ => {
                    return Err(format!(
                        "found {part:?}, expected fill=SHARE or overwrite=TIMES, such as fill=0.8,overwrite=1"
                    ));
                }
            }
        }
        if age.fill <= 0.0 || age.fill > 1.0 {
            return Err(format!("fill is {}, expected more than 0 and at most 1", age.fill));
        }
        if age.overwrite > OVERWRITE_MAX {
            return Err(format!(
                "overwrite is {}, expected at most {OVERWRITE_MAX}",
                age.overwrite
            ));
        }
        Ok(age)
    }
}

impl fmt::Display for Age {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "fill={},overwrite={}", self.fill, self.overwrite)
    }
}

impl Age {
    /// The keys by which a simulation begins with the same data in the same places, of a drive or a volume that is used up to the
    /// share `of` of its capacity.
    #[must_use]
    pub fn sets(&self, of: f64) -> Vec<String> {
        vec![
            "precondition.fill=1".to_owned(),
            format!("precondition.range={}", self.fill * of),
            format!("precondition.overwrite={}", self.overwrite),
            "precondition.until=count".to_owned(),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::Age;

    #[test]
    fn ages_are_read_and_written() {
        let age: Age = "fill=90%, overwrite=1.5".parse().unwrap();
        assert_eq!(age, Age { fill: 0.9, overwrite: 1.5 });
        assert_eq!(age.to_string().parse(), Ok(age));
        for (text, error) in [
            ("fill=0", "fill is 0"),
            ("fill=2", "fill is 2"),
            ("overwrite=101", "at most 100"),
            ("full=1", "expected fill=SHARE"),
            ("fill=x", "not a number"),
        ] {
            assert!(text.parse::<Age>().unwrap_err().contains(error), "{text}");
        }
    }
}
