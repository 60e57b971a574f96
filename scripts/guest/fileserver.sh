# Runs in the guest: a file server on F2FS, on /dev/vda, a served SSD of the host. `prepare` makes the file system and its
# files. `load` does what filebench's fileserver does: write a whole new file, append 16 KiB to one, read one, delete one. A new
# file has 1 to 255 KiB, and gets one append on average before it goes: `prepare` makes files of that size.

# One process, as an emulated processor takes 0.1 s to start another: files are read and deleted a hundred at a time.
fileserver() {
  awk -v what="$1" -v files=5000 -v changes=16000 '
    function drawn(below) { return int(rand() * below) }
    function write(file, bytes) { printf "%s", substr(data, 1, bytes) >> file; close(file) }
    BEGIN {
      for (data = "data"; length(data) < 288 * 1024; ) data = data data
      for (n = 0; n < files; n++) name[n] = "/mnt/" n
      if (what == "prepare") {
        srand(1)
        for (n = 0; n < files; n++) write(name[n], (1 + drawn(287)) * 1024)
        exit
      }
      srand(2)
      for (n = 1; n <= changes; n++) {
        slot = drawn(files)
        deleted = deleted " " name[slot]
        name[slot] = "/mnt/" (files + n)
        write(name[slot], (1 + drawn(255)) * 1024)
        write(name[drawn(files)], 16 * 1024)
        read = read " " name[drawn(files)]
        if (n % 100 == 0) {
          if (system("cat" read " > /dev/null && rm" deleted) != 0) exit 1
          read = deleted = ""
        }
      }
    }'
}

modprobe -a crc32_generic f2fs || exit 1
[ "$1" = load ] || /bin/mkfs.f2fs -q -f /dev/vda || exit 1
mount -t f2fs -o nodiscard /dev/vda /mnt && fileserver "$1" && df -k /mnt && umount /mnt
