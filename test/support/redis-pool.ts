import { mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { waitFor } from '../../src/local/embedded/server-process.ts'

/**
 * The Redis servers of a test run. To start a Redis costs more processor time than the commands of
 * most files, so a file takes a server of the run and gives it back empty. Each free server is a
 * file in this folder, which only a single process can rename.
 */
const FOLDER = process.env.TEST_REDIS_FOLDER

/** How long connections of a test may take to close, milliseconds. */
const CLOSING_MS_MAX = 5_000

/** A server of the run that a test file has for a while. */
export interface PooledRedis {
  url: string
  /**
   * Gives the server back in the background, because a test may close its connections after its
   * services.
   */
  giveBack: () => void
}

/**
 * Makes the folder of the servers.
 * @returns the folder, for `TEST_REDIS_FOLDER`
 */
export function offerRedis(runFolder: string, urls: string[]): string {
  const folder = join(runFolder, 'redis-servers')
  mkdirSync(folder)
  for (const [index, url] of urls.entries()) writeFileSync(join(folder, `free-${index}`), url)
  return folder
}

/**
 * Takes a server of the run.
 * @returns undefined if no server is free
 */
export async function takeRedis(): Promise<PooledRedis | undefined> {
  if (FOLDER === undefined) return undefined
  for (const name of readdirSync(FOLDER).filter((file) => file.startsWith('free-'))) {
    const [free, taken] = [join(FOLDER, name), join(FOLDER, name.replace('free', 'taken'))]
    try {
      renameSync(free, taken)
    } catch {
      continue // another process was faster
    }
    const url = readFileSync(taken, 'utf8')
    const settings = await use(url, settingsOf)
    const giveBack = async (): Promise<void> => {
      if (await use(url, (redis) => empty(redis, settings))) renameSync(taken, free)
    }
    // A server that cannot be emptied is not offered again.
    return { url, giveBack: () => void giveBack().catch(() => undefined) }
  }
  return undefined
}

/**
 * Empties a server. If a test has changed its settings, or has left a connection to it, the server
 * is ended instead, so that nothing of a file reaches the next file.
 *
 * @returns whether the server can be used again
 */
async function empty(redis: Redis, settings: string): Promise<boolean> {
  const connections = async () =>
    String(await redis.client('LIST'))
      .trim()
      .split('\n').length
  const isAlone = async () => ((await connections()) === 1 ? true : undefined)
  const isUnused = await waitFor(isAlone, { timeoutMs: CLOSING_MS_MAX })
  if (!isUnused || (await settingsOf(redis)) !== settings) {
    await redis.shutdown('NOSAVE').catch(() => undefined) // it closes the connection instead of answering
    return false
  }
  await redis.pipeline().flushall('SYNC').script('FLUSH', 'SYNC').config('RESETSTAT').exec()
  return true
}

async function settingsOf(redis: Redis): Promise<string> {
  return JSON.stringify([await redis.config('GET', '*'), await redis.acl('LIST')])
}

/** Opens a connection for a moment. It does not come again if the server ends. */
async function use<T>(url: string, then: (redis: Redis) => Promise<T>): Promise<T> {
  const redis = new Redis(url, { retryStrategy: () => null, maxRetriesPerRequest: 0 })
  redis.on('error', () => undefined) // its command fails with it
  try {
    return await then(redis)
  } finally {
    redis.disconnect()
  }
}
