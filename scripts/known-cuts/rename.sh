# A file is replaced: a new one is written and renamed over it. `$1`: sync, with fsync of file and folder, or plain.
for n in $(seq 6); do
  seq $((n * 1000)) $((n * 1000 + 900)) > f.new
  [ "$1" != sync ] || sync f.new
  mv f.new f
  [ "$1" != sync ] || sync .
  echo "saved $n"
  sleep 0.3
  echo x > "other$n" && sync "other$n"
done
