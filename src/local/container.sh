#!/bin/sh
# Entry of the image `all`: the whole service in one container, on the volume at DATA_DIR.
#
# A second container on the same volume would destroy its stores. It does not see the processes of the first one, so a lock on a file
# of the volume says that they are there. Every process of this container holds the lock until it ends; nothing is left to clean up.
set -eu
lock=$DATA_DIR/container.lock
if (umask 077 && : >>"$lock") 2>/dev/null; then
  exec 9>>"$lock"
  if ! flock --nonblock 9; then
    echo "The volume at $DATA_DIR is in use by another container. Stop that one first, or run this one on a volume of its own." >&2
    exit 1
  fi
fi
# Postgres looks up the name of its account.
if [ -z "${DATABASE_URL-}" ] && ! id -un >/dev/null 2>&1; then
  echo "The account with the uid $(id -u) has no name in this container, and Postgres does not start without a name. Leave out --user: the uid is then 1000, to which the folder at $DATA_DIR must belong." >&2
  exit 1
fi
# If nothing can be written to the volume, the service says so itself.
exec node src/local/start.ts "$@"
