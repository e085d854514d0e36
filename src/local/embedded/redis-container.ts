import { createHash } from 'node:crypto'
import { runCommand } from './run-command.ts'

const PROBE_MS = 5000
const STOP_MS = 30_000
const PULL_MS = 5 * 60_000
const IMAGES = ['redis:7-alpine', 'valkey/valkey:8-alpine']

/** A container engine that works and has an image, ready to run Redis on one directory. */
export type RedisContainer = {
  /**
   * Arguments with which `docker` runs it in the foreground. Its configuration comes from standard
   * input.
   */
  runArgs: (port: number) => string[]
  remove: () => Promise<void>
  signal: (signal: NodeJS.Signals) => Promise<void>
}

/** Looks for a container engine and fetches the image; undefined if there is none. */
export async function prepareContainer(
  data: string,
  print: (text: string) => void,
): Promise<RedisContainer | undefined> {
  const engine = await runCommand('docker', ['version', '--format', '{{.Server.Version}}'], { timeoutMs: PROBE_MS })
  if (engine.code !== 0) return undefined
  const image = await findImage(print)
  if (image === undefined) return undefined
  const name = `agent-api-gateway-redis-${createHash('sha256').update(data).digest('hex').slice(0, 12)}`
  const remove = async () => {
    await runCommand('docker', ['stop', '--time', '20', name], { timeoutMs: STOP_MS })
    await runCommand('docker', ['rm', '--force', name], { timeoutMs: STOP_MS })
  }
  await remove()
  const uid = process.getuid?.()
  // The files keep our owner, so that a redis-server on the PATH can use them later. If we are
  // root, the image chooses its own account.
  const user = uid === undefined || uid === 0 ? [] : ['--user', `${uid}:${process.getgid?.() ?? uid}`]
  const runArgs = (port: number) => [
    ...['run', '--rm', '--interactive', '--name', name, ...user, '--publish', `127.0.0.1:${port}:6379`],
    ...['--volume', `${data}:/data:Z`, image, image.startsWith('redis') ? 'redis-server' : 'valkey-server', '-'],
  ]
  const signal = async (sent: NodeJS.Signals) => {
    await runCommand('docker', ['kill', '--signal', sent, name], { timeoutMs: PROBE_MS })
  }
  return { runArgs, remove, signal }
}

async function findImage(print: (text: string) => void): Promise<string | undefined> {
  for (const image of IMAGES) {
    const { code } = await runCommand('docker', ['image', 'inspect', image], { timeoutMs: PROBE_MS })
    if (code === 0) return image
  }
  for (const image of IMAGES) {
    print(`Fetching the container image ${image} …`)
    const { code } = await runCommand('docker', ['pull', '--quiet', image], { timeoutMs: PULL_MS })
    if (code === 0) return image
  }
  return undefined
}
