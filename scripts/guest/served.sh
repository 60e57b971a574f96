# A device that onefold serves to the guest's kernel as /dev/nbd0. To be sourced.

# step COMMAND...: names it, and prints what it printed if it fails, which ends the script.
step() {
  echo "   $*"
  "$@" >/tmp/log 2>&1 || { cat /tmp/log; exit 1; }
}

# serve ARGUMENTS-OF-ONEFOLD...: until stop.
serve() {
  onefold "$@" --nbd unix:/tmp/nbd >/tmp/served 2>&1 &
  server=$!
  for _ in $(seq 200); do
    [ ! -S /tmp/nbd ] && kill -0 $server 2>/dev/null || break
    sleep 1
  done
  [ -S /tmp/nbd ] || { cat /tmp/served; exit 1; }
  step /bin/nbd-client -unix /tmp/nbd /dev/nbd0 -block-size 4096
}

stop() {
  step /bin/nbd-client -d /dev/nbd0
  kill -TERM $server
  wait $server || { cat /tmp/served; exit 1; }
}
