# In a state of the log of log.sh: every file is there that a mark names.
sed -n 's/^file-//p' "$ONEFOLD_MARKS" | while read -r n; do
  seq "$n" $((n + 3000)) | cmp - "f$n" || exit 1
done
