#!/usr/bin/env bash
# Whole runs of the release binary, and the fastest peer on the same scenario in the same session.
#
#   benches/whole_runs.sh                  all of it (installs inference-lab into a temporary folder)
#   RUNS=5 benches/whole_runs.sh own       knee only, five runs each
#   benches/whole_runs.sh peer             the ratio only
#
# Figures are the median of RUNS (default 3) runs: wall time of the whole process, so that reading the
# scenario and writing the answer count (peak_MB is never below the 13 MB of the Python that measures).
# KNEE names another binary than target/release/knee. Ratios
# between programs hold only within one run of this script: a shared machine is never the same twice.
set -euo pipefail
cd "$(dirname "$0")/.."
RUNS=${RUNS:-3}
KNEE=${KNEE:-target/release/knee}
PEER_VERSION=1.0.0
PEER_REQUESTS=10000

[ -x "$KNEE" ] || cargo build --release

# Prints "wall_s user_s peak_MB" of a command, the medians of $RUNS runs.
measure() {
  for _ in $(seq "$RUNS"); do
    python3 - "$@" <<'PY'
import os, subprocess, sys, time
start = time.monotonic()
child = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
_, status, used = os.wait4(child.pid, 0)
wall = time.monotonic() - start
if status:
    sys.exit(f"{' '.join(sys.argv[1:])} failed")
print(f"{wall:.3f} {used.ru_utime + used.ru_stime:.3f} {used.ru_maxrss / 1024:.1f}")
PY
  done | python3 -c '
import statistics, sys
rows = [[float(x) for x in line.split()] for line in sys.stdin]
print(*(f"{statistics.median(column):.3f}" for column in zip(*rows)))'
}

# One line: name, requests, seconds, requests per second.
line() {
  local name=$1 requests=$2
  shift 2
  read -r wall cpu peak < <(measure "$@")
  python3 -c '
import sys
name, requests, wall, cpu, peak = sys.argv[1], *map(float, sys.argv[2:])
print(f"{name:34} {requests:>11,.0f} {wall:8.2f} {cpu:8.2f} {requests/wall:>13,.0f} {requests/cpu:>13,.0f} {peak:8.1f}")
' "$name" "$requests" "$wall" "$cpu" "$peak"
}

header() {
  printf '%-34s %11s %8s %8s %13s %13s %8s\n' run requests wall_s cpu_s req_per_s req_per_cpu_s peak_MB
}

knee_run() { # name, requests, scenario, options
  local name=$1 requests=$2 scenario=$3
  shift 3
  line "$name" "$requests" "$KNEE" run "benches/scenarios/$scenario.toml" \
    --set run.requests="$requests" --threads 1 --no-files --quiet "$@"
}

own() {
  knee_run "chat, 30 req/s" 1000000 chat-30
  knee_run "chat, 10 req/s" 1000000 chat-10
  knee_run "closed loop, 128 users" 1000000 closed-128
  knee_run "closed loop, 256 users" 1000000 closed-128 --set arrivals.closed.users=256
  for requests in 10000 100000 10000000; do
    knee_run "chat, 30 req/s, growth" "$requests" chat-30
  done
  for seqs in 16 64 256; do
    knee_run "closed loop, $seqs users" 200000 closed-128 --set arrivals.closed.users="$seqs"
  done
  for output in 32 512 2048; do
    knee_run "chat, 3 req/s, output $output" 100000 chat-30 \
      --set "class.chat.output_tokens=$output" --set arrivals.poisson.rate_per_s=3
  done
  for replicas in 1 10 100 1000; do
    knee_run "$replicas replicas, 20 req/s each" 2000000 fleet-1000 \
      --set deployment.replicas="$replicas" --set arrivals.poisson.rate_per_s=$((20 * replicas))
  done
  for threads in 1 2; do
    line "sweep, 1,000 points, $threads threads" 10000000 \
      "$KNEE" sweep benches/scenarios/sweep-1000.toml --threads "$threads" --no-files --quiet
  done
}

# 100 million requests: minutes, so only once.
long() {
  RUNS=1 knee_run "chat, 30 req/s, a long run" 100000000 chat-30
  RUNS=1 knee_run "1,000 replicas, a long run" 10000000 fleet-1000
}

peer() {
  local root=${PEER_ROOT:-}
  if [ -z "$root" ]; then
    root=$(mktemp -d)
    trap 'rm -rf "$root"' EXIT
    cargo install "inference-lab@$PEER_VERSION" --locked --root "$root" --quiet
  fi
  cat > "$root/model.toml" <<'TOML'
model = "llama-3.1-8b-instruct"
[scheduler]
max_num_batched_tokens = 8192
max_num_seqs = 1024
policy = "fcfs"
enable_chunked_prefill = true
block_size = 16
[hardware.h100]
tp = 1
TOML
  for rate in 30 10; do
    cat > "$root/workload.toml" <<TOML
arrival_pattern = "poisson"
arrival_rate = $rate.0
num_requests = $PEER_REQUESTS
seed = 1
input_len_dist = { type = "fixed", value = 512 }
output_len_dist = { type = "fixed", value = 128 }
TOML
    read -r wall _ _ < <(measure "$root/bin/inference-lab" --quiet --config "$root/model.toml" \
      --workload "$root/workload.toml")
    read -r own _ _ < <(measure "$KNEE" run "benches/scenarios/chat-$rate.toml" --threads 1 --no-files --quiet)
    python3 -c '
import sys
rate, peer_requests, peer, own = int(sys.argv[1]), *map(float, sys.argv[2:])
theirs, ours = peer_requests / peer, 1e6 / own
print(f"{rate} req/s: inference-lab {theirs:,.0f} requests/s, knee {ours:,.0f} requests/s: {ours / theirs:.1f} x")
' "$rate" "$PEER_REQUESTS" "$wall" "$own"
  done
}

case "${1:-all}" in
  own) header; own ;;
  long) header; long ;;
  peer) peer ;;
  all) header; own; long; peer ;;
  *) echo "usage: $0 [own | long | peer]" >&2; exit 2 ;;
esac
