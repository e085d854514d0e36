#!/bin/sh
# Upgrades the service of docker-compose.yml without an outage: builds, migrates, then starts new workers and API nodes
# beside the old ones before those end. A failing build or migration ends here and leaves the old version serving.
set -eu
cd "$(dirname "$0")/.."

docker compose build
docker compose run --rm release

# replace <service>: as many new containers as there are old ones; the old ones end when the new ones are healthy.
replace() {
  old=$(docker compose ps --quiet "$1")
  count=$(echo "$old" | grep -c . || true)
  [ "$count" -gt 0 ] || return 0
  docker compose up --detach --wait --no-deps --no-recreate --scale "$1=$((2 * count))" "$1"
  # Each finishes what it has; callers are on the others by then.
  docker stop --time 40 $old
  docker rm $old
  docker compose up --detach --wait --no-deps --no-recreate --scale "$1=$count" "$1"
}

replace worker
replace web
docker compose up --detach --wait --no-deps probe
docker compose up --detach --wait --no-deps ops
