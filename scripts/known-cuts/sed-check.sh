# Exit code 1: an older text is there; 2: the file is empty or torn.
n=$(grep -c '^edit' "$ONEFOLD_STDOUT")
[ "$n" = 0 ] && exit 0
[ -s f ] || { echo empty; exit 2; }
[ "$(wc -l < f)" = 9000 ] || { echo torn; exit 2; }
found=$(head -n 1 f | tr -d v)
[ "$found" -ge "$n" ] 2> /dev/null || { echo "edit $n announced, $found there"; exit 1; }
