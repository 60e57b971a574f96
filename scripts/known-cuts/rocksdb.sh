# RocksDB, 400 values in the order of their keys, with `sync=$1`: each tenth is announced.
db_bench --benchmarks=fillseq --db=store --num=400 --value_size=200 --sync="$1" --stats_interval=10 2>&1 > bench.log |
  sed -u -n 's/.*thread 0: ([0-9]*,\([0-9]*\)) ops.*/put \1/p'
