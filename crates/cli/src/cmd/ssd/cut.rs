//! `onefold ssd serve --cut`: the power of a served drive goes and comes back.

use std::str::FromStr;
use std::time::{Duration, Instant};

use onefold_device::{DeviceError, PowerCut, SsdDevice};
use onefold_serve::Server;
use onefold_units::numbers;

use super::render;
use crate::error::{CliError, Exit};
use crate::interrupt::{Served, Told};
use crate::output::Global;

/// When the power is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// Once, when so many writes were carried out; the last of them is not answered.
    After { writes: u64 },
    /// Again and again, so long after the last time.
    Every(Duration),
    /// At each SIGUSR1.
    Signal,
}

/// Shortest time between two cuts: a client has to get some work done.
const EVERY_MIN: Duration = Duration::from_millis(100);

impl FromStr for Cut {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "found {text:?}, expected after=Nwrites such as after=1000writes, every=TIME from \
                 100ms such as every=30s, or signal"
            )
        };
        match text.split_once('=') {
            None if text == "signal" => Ok(Self::Signal),
            Some(("after", count)) => {
                let count = count.strip_suffix("writes").ok_or_else(wrong)?;
                let writes = numbers::count(count).map_err(|_| wrong())?;
                if writes > 0 { Ok(Self::After { writes }) } else { Err(wrong()) }
            }
            Some(("every", time)) => {
                let every = Duration::from_nanos(numbers::time(time).map_err(|_| wrong())?);
                if every >= EVERY_MIN { Ok(Self::Every(every)) } else { Err(wrong()) }
            }
            _ => Err(wrong()),
        }
    }
}

impl Cut {
    /// Takes the signal, if one is to cut the power: without that it ends the process.
    pub(super) fn listen(self, global: &Global) -> Result<(), CliError> {
        if self != Self::Signal {
            return Ok(());
        }
        global.interrupt.cut_power_at_signal().map_err(|error| {
            let text = format!("cannot wait for SIGUSR1: {error}");
            CliError::new(Exit::Failed, "serve::signal", text)
        })
    }

    /// Lets the power of a device be cut that begins to be served.
    pub(super) fn arm(self, global: &Global, server: &Server<SsdDevice>) {
        let interrupt = global.interrupt.clone();
        let after = if let Self::After { writes } = self { Some(writes) } else { None };
        server.observed().allow_cuts(after, move || interrupt.tell_server(Told::CutPower));
    }

    /// Cuts the power whenever it is time, until the server is to end.
    pub(super) fn serve(
        self,
        global: &Global,
        server: &Server<SsdDevice>,
        signals: &Served,
    ) -> Result<(), DeviceError> {
        let begin = Instant::now();
        let longest = if let Self::Every(every) = self { Some(every) } else { None };
        let mut cuts = 0;
        while signals.next(longest) != Some(Told::End) {
            let at = begin.elapsed();
            let cut = server.cut_power(|device| {
                let cut = device.cut_power();
                // What is not known is taken for gone.
                let took_writes = cut.as_ref().map_or(true, |cut| cut.writes > 0);
                (cut, took_writes)
            })?;
            cuts += 1;
            global.say(line(cuts, at, &cut));
        }
        Ok(())
    }
}

fn line(number: u64, at: Duration, cut: &PowerCut) -> String {
    let PowerCut { writes, bytes, gone_bytes, recovery, took } = cut;
    let lost = match recovery.lost_units {
        0 => String::new(),
        units => format!(", {units} units lost"),
    };
    format!(
        "power cut {number} after {:.3} s: {writes} writes ({}) were not flushed, {} in memory dropped; \
         recovered in {:.1} ms{lost}",
        at.as_secs_f64(),
        render::size(*bytes),
        render::size(*gone_bytes),
        took.as_secs_f64() * 1e3,
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Cut;

    #[test]
    fn moments_are_read_strictly() {
        for (text, cut) in [
            ("after=1000writes", Cut::After { writes: 1000 }),
            ("after=2kwrites", Cut::After { writes: 2000 }),
            ("every=30s", Cut::Every(Duration::from_secs(30))),
            ("every=250ms", Cut::Every(Duration::from_millis(250))),
            ("signal", Cut::Signal),
        ] {
            assert_eq!(text.parse(), Ok(cut));
        }
        for text in ["", "after=5", "after=0writes", "every=30", "every=1ms", "signal=1", "never"] {
            assert!(text.parse::<Cut>().is_err(), "{text}");
        }
    }
}
