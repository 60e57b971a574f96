#!/bin/sh
# Writes pages of the disk at random, each one durable before the next.
seq "$1" | awk 'BEGIN { srand(1) } { print int(rand() * 65536) }' | while read -r page; do
  head -c 4096 /dev/urandom |
    dd of="$ONEFOLD_DEVICE" bs=4096 seek="$page" conv=notrunc,fdatasync iflag=fullblock 2> /dev/null || exit 1
done
