# The loads of record-file-systems.sh on the file system that is mounted at $mount. Sourced, by bash and by busybox in the guest.
# They are those of Sung 2022 and Han 2021: fio in order and at random (Sung 8 and 9, Han 6), FFSB writing, and reading and
# writing (Sung 11 and 12, Han 7), and PostMark (Han 8). FFSB and PostMark are done by fio with as many files, and by a loop over
# files; sizes are a 128th of the papers'.

# Through the page cache, as in the papers; what is read is not there yet. Their files are larger than memory, so write-back begins long
# before the end: here after each 64 writes of a thread.
run_fio() {
  local said
  said=$(fio --name=load --directory="$mount" --bs=4k --ioengine=psync --thread --group_reporting --invalidate=1 --end_fsync=1 \
    --sync_file_range=write:64 --randseed=42 "$@" 2>&1) || { echo "$said" >&2; return 1; }
}
# Eight threads, a file each.
fio_files() { run_fio --numjobs=8 --size=24m "$@"; }
# 104 files of 2 MiB, eight threads with 13 each.
ffsb() { run_fio --numjobs=8 --nrfiles=13 --filesize=2m --size=26m --file_service_type=random "$@"; }

# Sets drawn to a number below $1. bash's $RANDOM after RANDOM=42 is the same sequence; busybox has another.
draw() {
  seed=$((seed * 16807 % 2147483647))
  drawn=$(((seed >> 16 ^ seed) % 32768 % $1))
}
# A new file of 1 to 7 MiB.
new_file() {
  draw 7
  head -c $(((1 + drawn) << 20)) /dev/urandom > "$1"
}
# 20 files; transactions that read or append, make or delete one; then all go.
postmark() {
  local seed=42 drawn n file
  for n in $(seq 20); do new_file "$mount/$n" || return 1; done
  sync -f "$mount" && drop_caches
  for n in $(seq 60); do
    draw 20
    file=$mount/$((1 + drawn))
    draw 2
    if [ "$drawn" = 0 ]; then
      cat "$file" > /dev/null 2>&1
    else
      head -c 65536 /dev/urandom >> "$file" || return 1
    fi
    draw 20
    file=$mount/$((1 + drawn))
    draw 2
    if [ "$drawn" = 0 ]; then rm -f "$file"; else new_file "$file" || return 1; fi
    [ $((n % 10)) != 0 ] || sync -f "$mount"
  done
  rm -f "$mount"/[0-9]* && sync -f "$mount"
}
drop_caches() { echo 3 > /proc/sys/vm/drop_caches; }

# What is there before the recording.
prepare() {
  case $1 in
    fio-rand) fio_files --rw=write ;;
    ffsb-write | ffsb-mixed) ffsb --rw=write ;;
  esac
}
load() {
  drop_caches
  case $1 in
    fio-seq) fio_files --rw=write ;;
    fio-rand) fio_files --rw=randwrite ;;
    ffsb-write) ffsb --rw=randwrite ;;
    ffsb-mixed) ffsb --rw=randrw --rwmixread=50 ;;
    postmark) postmark ;;
  esac
}
