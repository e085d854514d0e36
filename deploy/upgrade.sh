#!/bin/sh
# Upgrades the service of docker-compose.yml without an outage: builds and migrates. Then, of each service that runs workers or API nodes, it
# starts a new container beside the old ones before an old container ends. If a build, a migration or a new container fails, the upgrade stops there and
# the old version still serves, now and after the next `docker compose up`.
#
#   deploy/upgrade.sh                builds this checkout
#   deploy/upgrade.sh --to IMAGE     takes an image that is on this machine instead of a build
#
# The replaced image keeps the tag `previous`: `deploy/upgrade.sh --to agent-api-gateway:previous` rolls
# back. The older version runs on the newer schema.
set -eu
case "${1-}" in
  '') wanted= ;;
  --to) wanted=${2:?--to needs the name of an image} ;;
  *)
    echo "upgrade: unknown word $1; the only one is --to IMAGE" >&2
    exit 1
    ;;
esac
cd "$(dirname "$0")/.."

# The network keeps the addresses with which it was made, and API nodes trust only SUBNET. In another network every call would seem to come from the proxy.
# Compose cannot make a new network without stopping the containers in it.
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
The network must be made anew once, with an outage of a minute; the data stays:
  docker compose build && docker compose down && docker compose up --detach
If .env sets TRUST_PROXY, let it name the balancers in front of the proxy alone: the proxy believes every address in it.
TEXT
      exit 1
      ;;
  esac
fi

# However this script ends, the name that the compose file gives the image leads to a working version, because the next
# `docker compose up` takes it from there.
image=$(printf '%s\n' "$config" | awk '/^[^ ]/ { part = $1 } /^  [^ ]/ { item = $1 } part item == "services:release:" && /^    image: / { print $2 }')
serving=$(docker image inspect --format '{{.Id}}' "$image" 2>/dev/null || true)
restore() {
  code=$?
  if [ "$code" -ne 0 ] && [ -n "$serving" ]; then docker tag "$serving" "$image"; fi
  exit "$code"
}
trap restore EXIT
trap 'exit 1' INT TERM

if [ -n "$wanted" ]; then docker tag "$wanted" "$image"; else docker compose build; fi
docker compose run --rm release

# replace <service>: replaces its containers one after the other, so that the machine needs room for only a single container more than usual.
replace() {
  old=$(docker compose ps --quiet "$1")
  count=$(echo "$old" | grep -c . || true)
  for container in $old; do
    before=$(docker compose ps --all --quiet "$1")
    docker compose up --detach --wait --no-deps --no-recreate --scale "$1=$((count + 1))" "$1" || give_up "$1" "$before"
    # The container finishes its calls. By then new calls go to the other containers.
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

# running <program>: prints the services of the compose files that run the program, also a service of an override, such as a worker for single APIs.
running() {
  printf '%s\n' "$config" | awk -v program="$1" '/^[^ ]/ { part = $1 } /^  [^ ]/ { item = $1 } part == "services:" && /^      - / && $2 == program { sub(":", "", item); print item }'
}

for service in $(running workers/worker.ts) $(running src/server.ts); do replace "$service"; done
# Nobody waits for an answer of the probe process. The port of the console has room for one process.
for service in $(running workers/probe.ts) $(running src/ops.ts); do docker compose up --detach --wait --no-deps "$service"; done

if [ -n "$serving" ] && [ "$serving" != "$(docker image inspect --format '{{.Id}}' "$image")" ]; then
  case "${image##*/}" in *:*) name=${image%:*} ;; *) name=$image ;; esac
  docker tag "$serving" "$name:previous"
fi
