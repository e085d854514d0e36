import { stat } from 'node:fs/promises'
import path from 'node:path'

/**
 * What a program must reach that runs as another account: its data, and the folder that it and its
 * libraries are in.
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
 * Covers closed directories with empty directories that can be passed, and puts back what is to be
 * reached in them: for this process alone, since it has its own mounts. Then it becomes the
 * account, without any right of root's, and the program.
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
 * A way to run programs as an account that cannot pass the directories above them (`/root` is
 * closed to all but root), without opening these to anybody and without a right of root's: in a
 * mount namespace. Needs root's right to mount, which containers seldom have, and unshare, mount
 * and setpriv of util-linux.
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
 * The topmost directory above a path that the account cannot pass; undefined if it can pass all.
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
