//! What the control socket of a served SSD answers.

use std::io;
use std::path::PathBuf;

use onefold_device::mailbox::Mailbox;
use onefold_device::observed::DeviceStats;
use onefold_device::{BlockDevice, MailboxBlock, SsdDevice};
use serde_json::{Value, json};

use super::{lifetime, render};
use crate::cmd::control::{self, Command};

/// All commands.
pub(super) const COMMANDS: &[Command<SsdDevice>] =
    &[("stats", stats), ("flush", flush), ("mailbox", mailbox)];

fn stats(device: &SsdDevice, _: &Value) -> Result<Value, String> {
    let described = lifetime::described(device).zip(device.snapshot());
    let (mut value, snapshot) = described.ok_or_else(|| "the device is closed".to_owned())?;
    value["live"] = render::live(&snapshot);
    Ok(value)
}

fn flush(device: &SsdDevice, _: &Value) -> Result<Value, String> {
    device.flush().map(|_| Value::Null).map_err(|status| format!("the flush failed, as {status}"))
}

fn mailbox(device: &SsdDevice, request: &Value) -> Result<Value, String> {
    match hex::read(request["block"].as_str().unwrap_or_default()) {
        Some(block) => Ok(hex::write(&device.exchange(&block)).into()),
        None => Err("block is not 4096 bytes as hexadecimal digits".to_owned()),
    }
}

/// The mailbox of the device behind a control socket.
pub(super) struct ControlMailbox(pub(super) PathBuf);

impl Mailbox for ControlMailbox {
    fn exchange(&mut self, block: &MailboxBlock) -> io::Result<MailboxBlock> {
        let request = json!({"id": 1, "cmd": "mailbox", "block": hex::write(block)});
        let line = control::exchange(&self.0, &request)?;
        let reply: Value = serde_json::from_str(&line).map_err(io::Error::other)?;
        let no_block = || io::Error::other(format!("the server said {line}"));
        reply["result"].as_str().and_then(hex::read).ok_or_else(no_block)
    }
}

/// Blocks of the mailbox as hexadecimal digits.
mod hex {
    use std::fmt::Write;

    use onefold_device::MailboxBlock;

    pub(super) fn write(block: &MailboxBlock) -> String {
        block.iter().fold(String::with_capacity(2 * block.len()), |mut text, byte| {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
    }

    pub(super) fn read(text: &str) -> Option<MailboxBlock> {
        let digit = |digit: &u8| char::from(*digit).to_digit(16).and_then(|n| u8::try_from(n).ok());
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        let bytes: Option<Vec<u8>> =
            pairs.iter().map(|[high, low]| Some(digit(high)? << 4 | digit(low)?)).collect();
        bytes.filter(|_| rest.is_empty())?.try_into().ok()
    }

    #[cfg(test)]
    mod tests {
        use super::{read, write};

        #[test]
        fn blocks_there_and_back() {
            let block = std::array::from_fn(|at| u8::try_from(at % 251).unwrap());
            assert_eq!(read(&write(&block)), Some(block));
            for bad in ["", "00", &"0".repeat(8191), &"0".repeat(8194), &"g".repeat(8192)] {
                assert_eq!(read(bad), None);
            }
        }
    }
}
