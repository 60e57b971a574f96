//! File systems are made, mounted, unmounted and checked. Needs root and loop devices.

use std::fs::File;
use std::path::Path;
use std::time::Instant;

use onefold_try::room::{FileSystem, Mounted, keep_mounts_private};

const SIZE: u64 = 512 << 20;

/// Makes a file system in a new sparse file, or says why there is none.
fn made(fs: FileSystem, folder: &Path) -> Option<std::path::PathBuf> {
    if let Err(error) = fs.expect_usable(true) {
        eprintln!("skipped {fs}: {error}");
        return None;
    }
    let image = folder.join(fs.name());
    File::create(&image).unwrap().set_len(SIZE).unwrap();
    fs.make(&image, "").unwrap();
    Some(image)
}

#[test]
fn a_file_system_is_mounted_and_checked() {
    keep_mounts_private().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("mnt");
    std::fs::create_dir(&directory).unwrap();
    for fs in [FileSystem::Ext4, FileSystem::Xfs, FileSystem::Btrfs, FileSystem::F2fs] {
        let Some(image) = made(fs, folder.path()) else { continue };
        let begun = Instant::now();
        let mounted = match Mounted::new(&image, &directory, fs, "") {
            Ok(mounted) => mounted,
            Err(error) => {
                eprintln!("skipped {fs}: {error}");
                continue;
            }
        };
        std::fs::write(directory.join("file"), "kept").unwrap();
        mounted.unmount().unwrap();
        eprintln!("{fs}: mounted and unmounted in {:?}", begun.elapsed());
        assert!(!directory.join("file").exists());
        assert_eq!(fs.check(&image).unwrap(), None);
        drop(Mounted::new(&image, &directory, fs, "ro").unwrap());
        assert!(!directory.join("file").exists(), "dropped, it is gone");
        let error = Mounted::new(&image, &directory, fs, "no_such_option").unwrap_err().to_string();
        assert!(error.contains("`mount -t"), "{error}");
    }
}

#[test]
fn a_broken_file_system_is_told_with_what_the_tool_said() {
    let folder = tempfile::tempdir().unwrap();
    let Some(image) = made(FileSystem::Ext4, folder.path()) else { return };
    // The counter of free blocks in the superblock.
    let file = File::options().write(true).open(&image).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &[7; 4], 1024 + 12).unwrap();
    let found = FileSystem::Ext4.check(&image).unwrap().unwrap();
    assert!(found.starts_with("e2fsck ended with "), "{found}");
}
