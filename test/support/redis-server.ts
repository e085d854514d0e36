import assert from 'node:assert/strict'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { Redis, type RedisOptions } from 'ioredis'
import { freePort } from '../../src/local/embedded/free-port.ts'
import { findRedisProgram } from '../../src/local/embedded/redis-program.ts'
import { type ServerProcess, spawnServer } from '../../src/local/embedded/server-process.ts'

const TRIES = 5

export interface RedisServer {
  port: number
  /** The port at which the other nodes of its Cluster reach it. */
  busPort: number
  client: Redis
  server: ServerProcess
}

/**
 * Starts a node of a Redis Cluster with settings of the test's own, and waits until it answers. If
 * this process ends without stopping the node, the node is killed.
 *
 * @param dir its folder, which the function makes
 * @param settings returns further lines of its configuration for the port of the clients
 * @param options options of the client that is connected to it
 * @throws Error with the last lines of its log if it does not start
 */
export async function startClusterNode(
  dir: string,
  settings: (port: number) => string[],
  options: Pick<RedisOptions, 'username' | 'password' | 'tls'> = {},
): Promise<RedisServer> {
  const { program } = await findRedisProgram()
  assert.ok(program, 'redis-server is on the PATH')
  await mkdir(dir)
  let busPort = 0
  const started = await startOnFreePort(async (port) => {
    busPort = await freePort()
    const lines = [
      ...['bind 127.0.0.1', `dir ${dir}`, 'save ""', 'appendonly no', 'cluster-enabled yes', `cluster-port ${busPort}`],
      ...settings(port),
    ]
    return await spawnServer({
      command: program.command,
      argv0: program.argv0,
      commandArgs: ['-'],
      input: `${lines.join('\n')}\n`,
      logFile: join(dir, 'log'),
      exitSignal: 'SIGKILL',
    })
  }, options)
  return { ...started, busPort }
}

/**
 * If another process takes the port between the check and the start of the server, the test tries
 * another port.
 */
async function startOnFreePort(
  start: (port: number) => Promise<ServerProcess>,
  options: Pick<RedisOptions, 'username' | 'password' | 'tls'>,
): Promise<Omit<RedisServer, 'busPort'>> {
  for (let time = 1; ; time += 1) {
    const port = await freePort()
    const server = await start(port)
    const client = new Redis(port, '127.0.0.1', { retryStrategy: () => 100, maxRetriesPerRequest: null, ...options })
    client.on('error', () => undefined) // it is tried before it listens, and one that ended is reported below
    const hasStarted = await Promise.race([client.ping().then(() => true), server.ended.then(() => false)])
    if (hasStarted) return { port, client, server }
    client.disconnect()
    const isPortTaken = /address already in use/i.test(server.lastLog())
    if (!isPortTaken || time === TRIES) throw new Error(`a Redis of the test did not start:\n${server.lastLog()}`)
  }
}

export interface PlainRedis {
  port: number
  client: Redis
  server: ServerProcess
  stop: () => Promise<void>
}

/**
 * Starts a single Redis that keeps nothing, with further lines of its configuration.
 *
 * @param dir its folder, which is made
 */
export async function startPlainRedis(dir: string, settings: string[] = []): Promise<PlainRedis> {
  const { program } = await findRedisProgram()
  assert.ok(program, 'redis-server is on the PATH')
  await mkdir(dir)
  const started = await startOnFreePort(
    (port) =>
      spawnServer({
        command: program.command,
        argv0: program.argv0,
        commandArgs: ['-'],
        input: ['bind 127.0.0.1', `port ${port}`, `dir ${dir}`, 'save ""', ...settings, ''].join('\n'),
        logFile: join(dir, 'log'),
        exitSignal: 'SIGKILL',
      }),
    {},
  )
  const { client, server } = started
  return {
    ...started,
    stop: async () => {
      client.disconnect()
      server.kill('SIGKILL')
      await server.ended
    },
  }
}

/**
 * Starts a Redis that keeps an append-only file and can write only a few bytes of it, as if its
 * disk was nearly full.
 *
 * @param dir its folder, which is there
 * @param kilobytes what each of its files may have at most
 */
export async function startRedisOnSmallDisk(
  dir: string,
  kilobytes: number,
): Promise<{ url: string; stop: () => Promise<void> }> {
  const { program } = await findRedisProgram()
  assert.ok(program, 'redis-server is on the PATH')
  // If the signal for a write past the limit is ignored, the write fails with EFBIG.
  const shell = `trap "" XFSZ; ulimit -f ${kilobytes}; exec -a "$0" "$@"`
  const { port, client, server } = await startOnFreePort(
    (port) =>
      spawnServer({
        command: 'bash',
        commandArgs: ['-c', shell, program.argv0, program.command, '-'],
        input: `bind 127.0.0.1\nport ${port}\ndir ${dir}\nsave ""\nappendonly yes\nmaxmemory-policy noeviction\n`,
        logFile: join(dir, 'log'),
        exitSignal: 'SIGKILL',
      }),
    {},
  )
  return {
    url: `redis://127.0.0.1:${port}`,
    stop: async () => {
      client.disconnect()
      server.kill('SIGKILL')
      await server.ended
    },
  }
}

/** Kills the server if it still runs, and closes the client. */
export async function stopClusterNode({ client, server }: RedisServer): Promise<void> {
  client.disconnect()
  server.kill('SIGKILL')
  await server.ended
}
