//! What the host waits for and is told.

use std::collections::VecDeque;

use crate::io::{Done, IoFailed};
use crate::requests::Requests;

/// Requests of the host that wait for batches, and those that ended.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    requests: Requests,
    done: VecDeque<Done>,
}

impl Answers {
    /// Takes a request and gives its number. `fua`: it is to be durable before it is done.
    pub(crate) fn begin(&mut self, tag: u64, fua: bool) -> u32 {
        self.requests.begin(tag, fua)
    }

    /// A request waits for one more batch.
    pub(crate) fn wait(&mut self, request: u32) {
        self.requests.wait(request);
    }

    pub(crate) fn is_fua(&self, request: u32) -> bool {
        self.requests.is_fua(request)
    }

    /// One of the batches of a request is over ([`Requests::over`]).
    pub(crate) fn over(
        &mut self,
        request: u32,
        result: Result<(), IoFailed>,
    ) -> Option<(u64, Result<(), IoFailed>, bool)> {
        self.requests.over(request, result)
    }

    /// All that wait for batches are told that they failed.
    pub(crate) fn give_up(&mut self, why: IoFailed) {
        for tag in self.requests.give_up() {
            self.report(tag, Err(why));
        }
    }

    /// Tells the host that a request ended.
    pub(crate) fn report(&mut self, tag: u64, result: Result<(), IoFailed>) {
        self.done.push_back(Done { tag, result });
    }

    /// The next request that ended.
    pub(crate) fn next(&mut self) -> Option<Done> {
        self.done.pop_front()
    }
}
