# Exit code 1: an announced value is gone; 2: damaged: it does not open, or values before the last one are missing.
n=$(sed -n '$s/put //p' "$ONEFOLD_STDOUT")
[ -n "$n" ] || exit 0
keys=$(ldb --db=store scan --key_hex --no_value 2>&1) || { echo "damaged: $keys"; exit 2; }
found=$(echo "$keys" | grep -c ^0x)
last=$(echo "$keys" | sed -n '$s/^0x\(.\{16\}\).*/\1/p')
[ "$found" = 0 ] || [ $((0x$last + 1)) = "$found" ] || { echo "damaged: $found values, the last is $last"; exit 2; }
[ "$found" -ge "$n" ] || { echo "$n values announced, $found there"; exit 1; }
