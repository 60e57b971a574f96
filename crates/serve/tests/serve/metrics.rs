//! The metrics endpoint.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;

use crate::common::device::TestDevice;
use crate::common::rig;
use crate::common::wire::{Client, request, write};

fn get(address: SocketAddr, head: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(head.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let status = text.split(' ').nth(1).unwrap().parse().unwrap();
    (status, text)
}

fn page(address: SocketAddr, path: &str) -> (u16, String) {
    get(address, &format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"))
}

#[test]
fn numbers_of_requests_and_device_are_told() {
    let (device, _) = TestDevice::new(1 << 20);
    let rig = rig(device, |options| options.metrics = Some("127.0.0.1:0".parse().unwrap()));
    let address = rig.server.metrics_address().unwrap();
    let stream = UnixStream::connect(&rig.socket).unwrap();
    let mut client = Client::new(stream, true, false);
    for cookie in 0..3 {
        assert_eq!(client.ask(&write(0, cookie, 512, &[1; 4096])).error, 0);
    }
    assert_eq!(client.read(0, 4096).len(), 4096);
    assert_eq!(client.ask(&request(0, 3, 9, 0, 0)).error, 0);
    let (status, text) = page(address, "/metrics");
    assert_eq!(status, 200);
    for line in [
        "onefold_requests_total{op=\"write\",frontend=\"nbd\"} 3",
        "onefold_request_bytes_total{op=\"write\",frontend=\"nbd\"} 12288",
        "onefold_request_errors_total{op=\"write\",frontend=\"nbd\"} 0",
        "onefold_request_seconds_count{op=\"read\",frontend=\"nbd\"} 1",
        "onefold_request_seconds_bucket{le=\"+Inf\",op=\"write\",frontend=\"nbd\"} 3",
        "onefold_inflight_requests{op=\"read\",frontend=\"nbd\"} 0.0",
        "onefold_unaligned_requests_total{frontend=\"nbd\",kind=\"page\"} 3",
        "onefold_connections{frontend=\"nbd\",kind=\"open\"} 1.0",
        "onefold_connection_errors_total{frontend=\"nbd\",kind=\"protocol\"} 0",
        "onefold_connection_errors_total{frontend=\"nbd\",kind=\"stalled\"} 0",
        "onefold_connection_memory_bytes{frontend=\"nbd\",kind=\"held\"} ",
        "onefold_connection_memory_bytes{frontend=\"nbd\",kind=\"peak\"} ",
        "onefold_host_written_bytes_total 12288",
        "onefold_nand_written_bytes_total{cause=\"user\"} 12288",
        "onefold_nand_written_bytes_total{cause=\"gc\"} 4096",
        "onefold_write_amplification 1.333",
        "onefold_free_superblocks 0.0",
        "onefold_gc_active 0.0",
        "onefold_erases_total 0",
        "onefold_backing_written_bytes_total{cause=\"header\"} 4096",
        "onefold_free_log_segments 7.0",
        "onefold_volume_events_total{event=\"checkpoints\"} 2",
        "onefold_remap_pages_total{result=\"copied\"} 5",
        "onefold_saved_pages_total{kind=\"copy_read\"} 7",
        "onefold_saved_pages_total{kind=\"copy_write\"} 8",
        "onefold_saved_pages_total{kind=\"zero\"} 9",
        "onefold_buffer_hits_total{op=\"read\"} 0",
        "onefold_buffer_misses_total{op=\"write\"} 0",
        "onefold_buffer_info{policy=\"pt-lru:p=1/2\"} 1",
        "onefold_buffer_evictions_total{area=\"dirty\"} 5",
        "onefold_buffer_write_backs_total{area=\"dirty\"} 7",
        "onefold_unflushed_bytes 0.0",
        "onefold_flush_seconds 0.0",
        "onefold_recovery_seconds 0.0",
        "onefold_build_info{version=",
        "# EOF",
    ] {
        assert!(text.contains(line), "{line} is missing in\n{text}");
    }
    let (status, text) = page(address, "/api/v1/stats?pretty");
    assert_eq!(status, 200);
    let json: serde_json::Value =
        serde_json::from_str(text.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    assert_eq!(json["schema"], "onefold.stats/1");
    assert_eq!(json["frontends"]["nbd"]["write"]["requests"], 3);
    assert_eq!(json["device"]["nand_written_pages"]["gc"], 1);
    assert_eq!(json["device"]["volume"]["sent_bytes"]["user"], 12_288);
    assert_eq!(json["device"]["buffer"]["areas"]["dirty"]["write_backs"], 7);
}

#[test]
fn only_plain_questions_of_local_pages_are_answered() {
    let (device, _) = TestDevice::new(1 << 20);
    let rig = rig(device, |options| options.metrics = Some("127.0.0.1:0".parse().unwrap()));
    let address = rig.server.metrics_address().unwrap();
    assert_eq!(page(address, "/healthz").0, 200);
    assert_eq!(page(address, "/nothing").0, 404);
    let post = "POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    assert_eq!(get(address, post).0, 405);
    let foreign = "GET /metrics HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n";
    let (status, text) = get(address, foreign);
    assert_eq!(status, 403);
    assert!(text.contains("Content-Security-Policy: default-src 'self'"));
    // An open connection does not keep the server.
    let _idle = TcpStream::connect(address).unwrap();
    rig.server.stop().unwrap();
}

/// A client that asked again and again and read nothing blocked the only thread: nobody else got an answer, and
/// the server did not stop.
#[test]
fn a_client_that_reads_nothing_keeps_neither_others_nor_the_end() {
    let (device, _) = TestDevice::new(1 << 20);
    let rig = rig(device, |options| options.metrics = Some("127.0.0.1:0".parse().unwrap()));
    let address = rig.server.metrics_address().unwrap();
    let mut deaf = TcpStream::connect(address).unwrap();
    deaf.set_nonblocking(true).unwrap();
    let question = format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\n\r\n").repeat(20_000);
    let _ = deaf.write(question.as_bytes());
    let mut half = TcpStream::connect(address).unwrap();
    half.write_all(b"GET /met").unwrap();
    assert_eq!(page(address, "/healthz").0, 200);
    let (status, text) = get(address, "HEAD /healthz HTTP/1.0\r\n\r\n");
    assert!(status == 200 && text.ends_with("\r\n\r\n"), "{text}");
    assert_eq!(get(address, "nonsense\r\n\r\n").0, 400);
    // More than may be served at a time: the server still ends.
    let _many: Vec<_> = (0..40).map(|_| TcpStream::connect(address).unwrap()).collect();
    rig.server.stop().unwrap();
    drop((deaf, half));
}
