//! Tests of the front ends: the protocol without sockets, the server with our own client, and the
//! clients that users have.

mod common;

mod clients;
mod control;
mod fuse;
mod handshake;
mod limits;
mod loop_device;
mod metrics;
mod model;
mod requests;
mod server;
mod waiting;
