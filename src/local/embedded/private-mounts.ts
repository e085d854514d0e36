import { stat } from 'node:fs/promises'
import path from 'node:path'

/**
 * What a program that runs as another account must reach: its data, and the folder with the program
 * and its libraries.
 */
export interface Reached {
  data: string
  programs: string
}

export interface Account {
  uid: number
  gid: number
}

/**
 * A shell script. In its own mount namespace, it covers closed directories with empty, passable
 * directories and mounts back what must be reached in them. Then it changes to the account, without
 * any right of root, and runs the program.
 */
const SCRIPT = `
set -eu
uid=$1 gid=$2 data=$3 programs=$4 first=$5 second=$6
shift 6
# Open, they can still be reached when they are covered.
exec 3<"$data" 4<"$programs"
for closed in "$first" "$second"; do
  [ -z "$closed" ] || mount -t tmpfs -o mode=0711,size=1m tmpfs "$closed"
done
umask 066
for fd in 3 4; do
  [ "$fd" = 3 ] && reached=$data || reached=$programs
  [ -d "$reached" ] && continue
  mkdir -p "$reached"
  mount --no-canonicalize --bind "/proc/self/fd/$fd" "$reached"
done
exec 3<&- 4<&-
umask 022
exec setpriv --reuid "$uid" --regid "$gid" --clear-groups --bounding-set=-all --inh-caps=-all --ambient-caps=-all --no-new-privs -- "$@"
`

/**
 * A way to run programs as an account that may not pass the directories above them (`/root` is
 * closed to all but root). A mount namespace makes this possible without opening the directories to
 * others, and without a right of root. It needs root's right to mount, which containers seldom
 * have, and unshare, mount and setpriv of util-linux.
 */
export async function withPrivateMounts({ uid, gid }: Account, { data, programs }: Reached) {
  const [first, second] = await Promise.all([data, programs].map((reached) => closedAbove(reached, { uid, gid })))
  const places = [data, programs, first ?? '', second === first ? '' : (second ?? '')]
  const values = ['sh', String(uid), String(gid), ...places]
  return (command: string, commandArgs: string[]) => ({
    command: 'unshare',
    commandArgs: ['--mount', '--propagation', 'private', 'sh', '-c', SCRIPT, ...values, command, ...commandArgs],
  })
}

/**
 * The topmost directory above a path that the account may not pass; undefined if it may pass all.
 */
async function closedAbove(reached: string, { uid, gid }: Account): Promise<string | undefined> {
  const parts = path.dirname(reached).split(path.sep)
  for (let length = 2; length <= parts.length; length += 1) {
    const directory = parts.slice(0, length).join(path.sep)
    const status = await stat(directory)
    const right = status.uid === uid ? 0o100 : status.gid === gid ? 0o010 : 0o001
    if ((status.mode & right) === 0) return directory
  }
  return undefined
}
