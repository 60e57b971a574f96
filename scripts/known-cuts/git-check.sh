# Exit code 1: an announced commit is gone; 2: damaged.
n=$(grep -c '^commit' "$ONEFOLD_STDOUT")
[ "$n" = 0 ] && exit 0
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*'
cd r || { echo "damaged: no repository"; exit 2; }
said=$(git fsck --no-dangling 2>&1) || { echo "damaged: $(echo "$said" | head -n 1)"; exit 2; }
found=$(git rev-list --count HEAD)
[ "$found" -ge "$n" ] || { echo "$n commits announced, $found there"; exit 1; }
