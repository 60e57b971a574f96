# `sed -i` edits a file of 9,000 lines in place; each edit is announced.
seq 1 9000 > f
sync f .
for n in 1 2 3 4; do
  sed -i "1s/.*/v$n/" f && echo "edit $n"
  sleep 0.2
  echo x > "other$n" && sync "other$n"
done
