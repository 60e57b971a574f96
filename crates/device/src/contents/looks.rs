//! What bytes look like: formats that can be told by their first bytes.

/// Bytes from the beginning that tell all of them apart.
pub(super) const HEAD_BYTES: usize = 17 * 4096;

/// Bytes of which text has to consist to be taken for some.
const TEXT_BYTES: usize = 4096;

/// Places where formats say what they are: name, offset, bytes there. The first one that fits counts.
const SIGNATURES: [(&str, usize, &[u8]); 38] = [
    ("an ext2, ext3 or ext4 file system", 1080, &[0x53, 0xEF]),
    ("an XFS file system", 0, b"XFSB"),
    ("a btrfs file system", 65_600, b"_BHRfS_M"),
    ("an F2FS file system", 1024, &[0x10, 0x20, 0xF5, 0xF2]),
    ("an ISO 9660 file system", 32_769, b"CD001"),
    ("a squashfs file system", 0, b"hsqs"),
    ("an NTFS file system", 3, b"NTFS    "),
    ("an exFAT file system", 3, b"EXFAT   "),
    ("swap space", 4086, b"SWAPSPACE2"),
    ("a LUKS container", 0, b"LUKS\xBA\xBE"),
    ("an LVM volume", 536, b"LVM2 001"),
    ("a member of a Linux RAID", 4096, &[0xFC, 0x4E, 0x2B, 0xA9]),
    ("a member of a Linux RAID", 0, &[0xFC, 0x4E, 0x2B, 0xA9]),
    ("a GUID partition table", 512, b"EFI PART"),
    ("a partition table or a FAT file system", 510, &[0x55, 0xAA]),
    ("an emulated SSD", 0, b"ONEFOLD\0"),
    ("a volume of policy dmz", 0, b"DBZD"),
    ("the cache of a volume of policy dmz", 0, b"ONEFSUMS"),
    ("a trace in Onefold's format", 0, b"OFTRACE"),
    ("a log of writes", 0, b"rhswfsj\0"),
    ("an SQLite database", 0, b"SQLite format 3\0"),
    ("a tar archive", 257, b"ustar"),
    ("gzip data", 0, &[0x1F, 0x8B]),
    ("zstd data", 0, &[0x28, 0xB5, 0x2F, 0xFD]),
    ("xz data", 0, b"\xFD7zXZ\0"),
    ("bzip2 data", 0, b"BZh"),
    ("a zip archive", 0, b"PK\x03\x04"),
    ("a 7-Zip archive", 0, b"7z\xBC\xAF\x27\x1C"),
    ("a PDF document", 0, b"%PDF-"),
    ("a PNG image", 0, b"\x89PNG\r\n\x1A\n"),
    ("a JPEG image", 0, &[0xFF, 0xD8, 0xFF]),
    ("a program", 0, b"\x7FELF"),
    ("a qcow2 image", 0, b"QFI\xFB"),
    ("a VMDK image", 0, b"KDMV"),
    ("a VHDX image", 0, b"vhdxfile"),
    ("Parquet data", 0, b"PAR1"),
    ("a Git pack", 0, b"PACK"),
    ("a video", 4, b"ftyp"),
];

/// What the first bytes of a file or device look like, if that is known.
#[must_use]
pub fn looks_like(head: &[u8]) -> Option<&'static str> {
    let fits = |(_, offset, magic): &&(&str, usize, &[u8])| {
        head.get(*offset..*offset + magic.len()) == Some(*magic)
    };
    SIGNATURES.iter().find(fits).map(|(what, ..)| *what).or_else(|| text(head))
}

/// The kind of text, if it is some.
fn text(head: &[u8]) -> Option<&'static str> {
    let head = &head[..head.len().min(TEXT_BYTES)];
    // A file may end within its last block, and a character at the end of what is looked at.
    let end = head.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let is_cut = end == TEXT_BYTES;
    let text = match std::str::from_utf8(&head[..end]) {
        Ok(text) => text,
        Err(error) if is_cut && error.error_len().is_none() => {
            std::str::from_utf8(&head[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return None,
    };
    let is_control = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t' | '\x0C' | '\x1B');
    if text.is_empty() || text.contains(is_control) {
        return None;
    }
    let begin = text.trim_start();
    Some(match begin.get(..5).map(str::to_ascii_lowercase).as_deref() {
        _ if begin.starts_with(['{', '[']) => "JSON text",
        Some("<!doc" | "<html") => "an HTML page",
        _ => "text",
    })
}

#[cfg(test)]
mod tests {
    use super::looks_like;

    #[test]
    fn formats_are_told_apart() {
        let with = |at: usize, bytes: &[u8]| {
            let mut head = vec![0; 68 << 10];
            head[at..at + bytes.len()].copy_from_slice(bytes);
            looks_like(&head)
        };
        assert_eq!(with(0, b"SQLite format 3\0"), Some("an SQLite database"));
        assert_eq!(with(257, b"ustar\x0000"), Some("a tar archive"));
        assert_eq!(with(0, &[0x1F, 0x8B, 8]), Some("gzip data"));
        assert_eq!(with(0, b"%PDF-1.7"), Some("a PDF document"));
        assert_eq!(with(1080, &[0x53, 0xEF]), Some("an ext2, ext3 or ext4 file system"));
        assert_eq!(with(0, b"hello, world\n"), Some("text"));
        assert_eq!(with(0, b"{\"schema\": 1}"), Some("JSON text"));
        assert_eq!(with(0, b"<!DOCTYPE html>"), Some("an HTML page"));
        assert_eq!(with(0, &[1, 2, 3]), None);
        assert_eq!(with(5000, b"text that does not begin the file"), None);
        assert_eq!(looks_like(b""), None);
        assert_eq!(looks_like(&[0; 4096]), None);
    }

    #[test]
    fn text_may_be_cut_within_a_character() {
        let mut head = vec![b'x'; 4095];
        head.extend("\u{e9}".as_bytes());
        assert_eq!(looks_like(&head), Some("text"));
        assert_eq!(looks_like("caf\u{e9}".as_bytes()), Some("text"));
        assert_eq!(looks_like(&"caf\u{e9}".as_bytes()[..4]), None);
    }
}
