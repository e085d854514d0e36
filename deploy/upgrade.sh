#!/bin/sh
# Upgrades the service of docker-compose.yml without an outage: builds, migrates, then starts a new worker or API node
# beside the old ones before one of those ends. A build, a migration or a new container that fails ends it there and
# leaves the old version serving.
set -eu
cd "$(dirname "$0")/.."

# The network stays as it was made, and API nodes trust SUBNET alone: in another network the proxy would be the one client that they
# have. Compose cannot make the network anew without stopping what is in it.
config=$(docker compose config)
project=$(printf '%s\n' "$config" | sed -n 's/^name: *//p')
subnet=$(printf '%s\n' "$config" | tr -d '"' |
  awk '/^[^ ]/ { part = $1 } /^  [^ ]/ { item = $1 } part item == "networks:default:" && / subnet: / { print $NF }')
network=$(docker network ls --quiet --filter "label=com.docker.compose.project=$project" --filter label=com.docker.compose.network=default)
if [ -n "$network" ] && [ -n "$subnet" ]; then
  made=$(docker network inspect --format '{{range .IPAM.Config}}{{.Subnet}} {{end}}' "$network")
  case " $made" in
    *" $subnet "*) ;;
    *)
      cat >&2 <<TEXT
upgrade: nothing was changed. The containers are in the network $made, and SUBNET of the compose file is $subnet.
The network must be made anew once, with an outage of a minute; the data stays. Add the --scale that you use:
  docker compose build && docker compose down && docker compose up --detach
If .env sets TRUST_PROXY, let it name the balancers in front of the proxy alone: the proxy believes every address in it.
TEXT
      exit 1
      ;;
  esac
fi

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
