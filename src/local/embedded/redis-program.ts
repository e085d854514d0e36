import { runCommand } from './run-command.ts'

const VERSION_MS = 10_000
/** SET accepts NX and GET together since 7.0. Every Valkey is newer. */
const REDIS_MIN = { major: 7, minor: 0 }

/** A Redis server that can be started. `argv0` is the name under which it must be started. */
export type RedisProgram = { command: string; argv0: string }

/**
 * Finds a Redis or Valkey server on the PATH. Their check tools count too, because they are the
 * same program under another name. Debian's `redis-tools` provides them without starting a system
 * service.
 */
export async function findRedisProgram(): Promise<{ program?: RedisProgram; tooOld?: string }> {
  let tooOld: string | undefined
  for (const argv0 of ['redis-server', 'valkey-server']) {
    for (const command of [argv0, argv0.replace('server', 'check-rdb')]) {
      const { code, output } = await runCommand(command, ['--version'], { argv0, timeoutMs: VERSION_MS })
      const [, name, version = ''] = /^(Redis|Valkey|Server) .*?v=(\S+)/im.exec(output) ?? []
      if (code !== 0 || name === undefined) continue
      const [major = 0, minor = 0] = version.split('.').map(Number)
      if (major > REDIS_MIN.major || (major === REDIS_MIN.major && minor >= REDIS_MIN.minor)) {
        return { program: { command, argv0 } }
      }
      tooOld = `${command} ${version}`
    }
  }
  return tooOld === undefined ? {} : { tooOld }
}
