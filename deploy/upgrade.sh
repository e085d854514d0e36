#!/bin/sh
# Upgrades the service of docker-compose.yml without an outage: builds, migrates, then starts a new worker or API node
# beside the old ones before one of those ends. A build, a migration or a new container that fails ends it there and
# leaves the old version serving.
#
# Run `docker compose up --build` once instead where the containers were started before docker-compose.yml had SUBNET: it makes
# their network anew and starts the proxy again, which this script leaves as they are. API nodes trust that network alone, and would
# take the old proxy for the one client that they have.
set -eu
cd "$(dirname "$0")/.."

docker compose build
docker compose run --rm release

# replace <service>: one container after the other, so that the machine needs room for one more than usual.
replace() {
  old=$(docker compose ps --quiet "$1")
  count=$(echo "$old" | grep -c . || true)
  for container in $old; do
    before=$(docker compose ps --all --quiet "$1")
    docker compose up --detach --wait --no-deps --no-recreate --scale "$1=$((count + 1))" "$1" || give_up "$1" "$before"
    # It finishes what it has; callers are on the others by then.
    docker stop --time 40 "$container"
    docker rm "$container"
  done
}

# give_up <service> <containers from before>: removes the new container, whose last log lines say why it failed.
give_up() {
  for container in $(docker compose ps --all --quiet "$1"); do
    case "$2" in *"$container"*) continue ;; esac
    docker logs --tail 20 "$container"
    docker rm --force "$container"
  done
  echo "upgrade: the new $1 does not become healthy; what was not replaced yet goes on serving" >&2
  exit 1
}

replace worker
replace web
docker compose up --detach --wait --no-deps probe
docker compose up --detach --wait --no-deps ops
