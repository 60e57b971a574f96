# Exit code 1: an older file is there; 2: it is gone, empty or torn.
n=$(grep -c '^saved' "$ONEFOLD_STDOUT")
[ "$n" = 0 ] && [ ! -e f ] && exit 0
[ -s f ] || { echo "empty or gone"; exit 2; }
[ "$(wc -l < f)" = 901 ] || { echo torn; exit 2; }
found=$(($(head -n 1 f) / 1000))
[ "$found" -ge "$n" ] || { echo "file $n announced, $found there"; exit 1; }
