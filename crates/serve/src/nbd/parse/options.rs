//! Option haggling: one option and its data in, replies out.

use super::cursor::Cursor;
use super::output::Output;
use super::wire::{self, MAX_NAME, MAX_PAYLOAD, answer, info, option};
use super::{CONTROL_SUFFIX, CloseReason, Export, Target};

/// What was negotiated so far.
#[derive(Debug, Default)]
pub(super) struct Negotiated {
    pub no_zeroes: bool,
    pub structured: bool,
    /// The export name for which `base:allocation` was chosen.
    pub allocation_for: Option<Vec<u8>>,
}

/// Where an option leads.
pub(super) enum Next {
    /// To the next option.
    Option,
    /// To transmission; says whether `BLOCK_STATUS` may be used.
    Transmission { allocation: bool, target: Target },
    /// To the end.
    Close(CloseReason),
}

/// Replies to one option.
struct Answers<'a> {
    out: &'a mut Output,
    option: u32,
}

impl Answers<'_> {
    fn send(&mut self, kind: u32, parts: &[&[u8]]) {
        let len: usize = parts.iter().map(|part| part.len()).sum();
        self.out.put(&wire::OPTION_REPLY.to_be_bytes());
        self.out.put(&self.option.to_be_bytes());
        self.out.put(&kind.to_be_bytes());
        // Everything sent here is a name of at most 4 KiB or smaller.
        self.out.put(&u32::try_from(len).unwrap_or(0).to_be_bytes());
        for part in parts {
            self.out.put(part);
        }
    }

    fn ack(&mut self) -> Next {
        self.send(answer::ACK, &[]);
        Next::Option
    }

    fn refuse(&mut self, kind: u32, why: &str) -> Next {
        self.send(kind, &[why.as_bytes()]);
        Next::Option
    }
}

impl Export {
    /// What is known by this name; the empty name means the default export.
    fn target(&self, name: &[u8]) -> Option<Target> {
        let is_device = |name: &[u8]| name.is_empty() || name == self.name.as_bytes();
        if is_device(name) {
            return Some(Target::Device);
        }
        let device = name.strip_suffix(CONTROL_SUFFIX.as_bytes())?;
        (self.control > 0 && is_device(device)).then_some(Target::Control)
    }
}

/// Answers one option.
pub(super) fn handle(
    number: u32,
    data: &[u8],
    export: &Export,
    state: &mut Negotiated,
    out: &mut Output,
) -> Next {
    let mut answers = Answers { out, option: number };
    match number {
        option::EXPORT_NAME => export_name(data, export, state, answers.out),
        option::ABORT => {
            answers.ack();
            Next::Close(CloseReason::Aborted)
        }
        option::LIST => list(data, export, &mut answers),
        option::INFO | option::GO => info_or_go(data, export, state, &mut answers),
        option::STRUCTURED_REPLY if data.is_empty() => {
            state.structured = true;
            answers.ack()
        }
        option::STRUCTURED_REPLY => answers.refuse(answer::ERR_INVALID, "expected no data"),
        option::LIST_META_CONTEXT | option::SET_META_CONTEXT => {
            meta_context(data, export, state, &mut answers)
        }
        _ => answers.refuse(answer::ERR_UNSUP, "option is not supported"),
    }
}

/// Answers GO or `EXPORT_NAME` when the server takes no more connections.
pub(super) fn turn_away(number: u32, why: &str, out: &mut Output) -> Next {
    if number == option::EXPORT_NAME {
        // This old option has no way to say no.
        return Next::Close(CloseReason::NotAdmitted);
    }
    Answers { out, option: number }.refuse(answer::ERR_POLICY, why)
}

fn export_name(data: &[u8], export: &Export, state: &Negotiated, out: &mut Output) -> Next {
    let Some(target) = export.target(data) else {
        // This old option has no way to say no.
        return Next::Close(CloseReason::UnknownExport);
    };
    out.put(&export.size_of(target).to_be_bytes());
    out.put(&export.transmission_flags(target, state.structured).to_be_bytes());
    if !state.no_zeroes {
        out.extend(124).fill(0);
    }
    Next::Transmission { allocation: allocation(state, data), target }
}

fn list(data: &[u8], export: &Export, answers: &mut Answers<'_>) -> Next {
    if !data.is_empty() {
        return answers.refuse(answer::ERR_INVALID, "expected no data");
    }
    let suffixes = ["", CONTROL_SUFFIX];
    for suffix in &suffixes[..if export.control > 0 { 2 } else { 1 }] {
        let len = u32::try_from(export.name.len() + suffix.len()).unwrap_or(0);
        let name = [&len.to_be_bytes(), export.name.as_bytes(), suffix.as_bytes()];
        answers.send(answer::SERVER, &name);
    }
    answers.ack()
}

/// The name and the kinds of information asked for, or `None` if malformed.
fn info_request(data: &[u8]) -> Option<(&[u8], bool)> {
    let mut cursor = Cursor::new(data);
    let name = cursor.string()?;
    let mut wants_name = false;
    for _ in 0..cursor.u16()? {
        wants_name |= cursor.u16()? == info::NAME;
    }
    cursor.is_empty().then_some((name, wants_name))
}

fn info_or_go(data: &[u8], export: &Export, state: &Negotiated, answers: &mut Answers<'_>) -> Next {
    let Some((name, wants_name)) = info_request(data) else {
        return answers.refuse(answer::ERR_INVALID, "malformed request for information");
    };
    let target = match known(name, export) {
        Ok(target) => target,
        Err((kind, why)) => return answers.refuse(kind, why),
    };
    let flags = export.transmission_flags(target, state.structured);
    let size = export.size_of(target);
    answers.send(
        answer::INFO,
        &[&info::EXPORT.to_be_bytes(), &size.to_be_bytes(), &flags.to_be_bytes()],
    );
    let (suffix, blocks) = match target {
        Target::Device => ("", [wire::MIN_BLOCK, wire::PREFERRED_BLOCK, MAX_PAYLOAD]),
        // A command is one block, neither more nor less.
        Target::Control => (CONTROL_SUFFIX, [wire::PREFERRED_BLOCK; 3]),
    };
    if wants_name {
        let name = [&info::NAME.to_be_bytes(), export.name.as_bytes(), suffix.as_bytes()];
        answers.send(answer::INFO, &name);
    }
    let [min, preferred, max] = blocks.map(u32::to_be_bytes);
    answers.send(answer::INFO, &[&info::BLOCK_SIZE.to_be_bytes(), &min, &preferred, &max]);
    answers.ack();
    if answers.option == option::GO {
        Next::Transmission { allocation: allocation(state, name), target }
    } else {
        Next::Option
    }
}

fn known(name: &[u8], export: &Export) -> Result<Target, (u32, &'static str)> {
    if name.len() > MAX_NAME {
        return Err((answer::ERR_TOO_BIG, "export name is longer than 4096 bytes"));
    }
    export.target(name).ok_or((answer::ERR_UNKNOWN, "no export has this name"))
}

/// Contexts belong to the export name they were asked for.
fn allocation(state: &Negotiated, name: &[u8]) -> bool {
    state.structured && state.allocation_for.as_deref() == Some(name)
}

/// The export name, the number of queries and whether one of them selects `base:allocation`.
fn context_request(data: &[u8], listing: bool) -> Option<(&[u8], bool)> {
    let mut cursor = Cursor::new(data);
    let name = cursor.string()?;
    let queries = cursor.u32()?;
    // A listing without a query means everything, a selection without a query nothing.
    let mut selected = listing && queries == 0;
    for _ in 0..queries {
        let query = cursor.string()?;
        selected |= query == wire::ALLOCATION || (listing && query == b"base:");
    }
    cursor.is_empty().then_some((name, selected))
}

fn meta_context(
    data: &[u8],
    export: &Export,
    state: &mut Negotiated,
    answers: &mut Answers<'_>,
) -> Next {
    let listing = answers.option == option::LIST_META_CONTEXT;
    if !listing {
        // A new selection replaces the old one, even when it fails.
        state.allocation_for = None;
    }
    if !state.structured {
        return answers.refuse(answer::ERR_INVALID, "ask for structured replies first");
    }
    let Some((name, selected)) = context_request(data, listing) else {
        return answers.refuse(answer::ERR_INVALID, "malformed list of contexts");
    };
    if let Err((kind, why)) = known(name, export) {
        return answers.refuse(kind, why);
    }
    if selected {
        // A listing carries no id that could be used.
        let id = if listing { 0 } else { wire::ALLOCATION_ID };
        answers.send(answer::META_CONTEXT, &[&id.to_be_bytes(), wire::ALLOCATION]);
        if !listing {
            state.allocation_for = Some(name.to_vec());
        }
    }
    answers.ack()
}
