import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'
import { Redis } from 'ioredis'
import type { EmbeddedOptions, EmbeddedServer } from '../../src/local/embedded/embedded-server.ts'
import { startPostgres } from '../../src/local/embedded/postgres.ts'
import { startRedis } from '../../src/local/embedded/redis.ts'
import { createLog } from '../../src/log.ts'
import { closeRedis, openRedis, type RedisConnection } from '../../src/redis/connection.ts'
import { takeRedis } from './redis-pool.ts'
import { poolOf } from './test-pools.ts'

/** A Postgres database of a test file, and a Redis that no other file uses until `stop`. */
export interface Services {
  databaseUrl: string
  redisUrl: string
  /** A folder of the test file, removed at the end. */
  folder: string
  stop: () => Promise<void>
}

/**
 * Services whose Redis no other file uses, before or later, so the test may do anything to this
 * Redis.
 */
export interface OwnServices extends Services {
  /**
   * Kills the Redis and starts it again at the same address, with its data on disk or, if
   * `isWiped`, empty.
   */
  restartRedis: (options: { isWiped: boolean }) => Promise<void>
  /** Sends a signal to the Redis. */
  signalRedis: (signal: NodeJS.Signals) => Promise<void>
}

export interface ServicesOptions {
  parent?: string | undefined
  isEmpty?: boolean
}

/**
 * Starts what a test file needs: a Redis, and a database of its own on the run's Postgres. `npm
 * test` starts one Postgres and a few Redis servers for all files. A file that runs alone starts
 * its own.
 *
 * @param options.parent the folder in which the file's folder is made; default: the system's folder
 *   for temporary files
 * @param options.isEmpty whether the database has no schema yet. Default: it has the newest schema,
 *   in `npm test` as a copy of the run's template, because a copy costs less than twenty migrations
 */
export async function startServices(options: ServicesOptions = {}): Promise<Services> {
  const folder = await makeFolder(options)
  const [redis, database] = await Promise.all([borrowRedis(), startDatabase(folder, options)])
  return {
    databaseUrl: database.url,
    redisUrl: redis.url,
    folder,
    stop: async () => {
      await Promise.all([database.drop(), redis.stop()])
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** Starts services with a Redis that the test can signal and start again. */
export async function startOwnServices(options: ServicesOptions = {}): Promise<OwnServices> {
  const folder = await makeFolder(options)
  const ofRedis = { dataDir: folder, print: () => undefined }
  const [firstRedis, database] = await Promise.all([startTestRedis(ofRedis), startDatabase(folder, options)])
  let redis = firstRedis
  return {
    databaseUrl: database.url,
    redisUrl: redis.url,
    folder,
    restartRedis: async ({ isWiped }) => {
      await redis.signal('SIGKILL')
      await redis.stop()
      if (isWiped) await rm(join(folder, 'redis', 'data'), { recursive: true })
      const { url } = redis
      redis = await startTestRedis(ofRedis)
      assert.equal(redis.url, url)
    },
    signalRedis: (signal) => redis.signal(signal),
    stop: async () => {
      await Promise.all([database.drop(), redis.stop()])
      await rm(folder, { recursive: true, force: true })
    },
  }
}

const makeFolder = ({ parent = tmpdir() }: ServicesOptions): Promise<string> => mkdtemp(join(parent, 'agw-test-'))

/** A database for a test file. */
async function startDatabase(
  folder: string,
  { isEmpty = false }: ServicesOptions,
): Promise<{ url: string; drop: () => Promise<void> }> {
  const shared = process.env.TEST_DATABASE_URL
  const postgres = shared ? undefined : await startPostgres({ dataDir: folder, print: () => undefined })
  const template = isEmpty ? undefined : process.env.TEST_DATABASE_TEMPLATE
  const database = await createDatabase(shared ?? postgres?.superuserUrl ?? '', template)
  if (!isEmpty && template === undefined) {
    const { migrate } = await import('../../src/db/migrate.ts')
    await migrate(database.url)
  }
  return {
    url: database.url,
    drop: async () => {
      await database.drop()
      await postgres?.stop()
    },
  }
}

/**
 * Starts the embedded Redis. In `npm test` it never waits for the disk, and neither does the
 * Postgres of the run, because a slow disk would delay its commands for seconds. It writes its file
 * nevertheless, and the file survives a killed Redis.
 */
export async function startTestRedis(options: EmbeddedOptions): Promise<EmbeddedServer> {
  const server = await startRedis(options)
  if (process.env.TEST_DATABASE_URL === undefined) return server
  const redis = new Redis(server.url)
  await redis.config('SET', 'appendfsync', 'no')
  redis.disconnect()
  return server
}

/** A Redis that no other test file uses until `stop`, for tests that need no Postgres. */
export async function borrowRedis(): Promise<{ url: string; stop: () => Promise<void> }> {
  const ofRun = await takeRedis()
  if (ofRun) return { url: ofRun.url, stop: async () => ofRun.giveBack() }
  const folder = await mkdtemp(join(tmpdir(), 'agw-test-'))
  const redis = await startTestRedis({ dataDir: folder, print: () => undefined })
  return {
    url: redis.url,
    stop: async () => {
      await redis.stop()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** A Redis that no other test file uses until `stop`, and a connection to it. */
export interface ConnectedRedis {
  redis: RedisConnection
  url: string
  stop: () => Promise<void>
}

export async function connectRedis(): Promise<ConnectedRedis> {
  const server = await borrowRedis()
  const redis = openRedis([server.url], 'blocking', createLog({ level: 'silent', pretty: false }, 'test'))
  return {
    redis,
    url: server.url,
    stop: async () => {
      await closeRedis(redis)
      await server.stop()
    },
  }
}

/**
 * Connects to a Redis, which the file gives back after its tests. For the top level of the file.
 */
export async function redisOfThisFile(): Promise<ConnectedRedis> {
  const own = await connectRedis()
  after(own.stop)
  return own
}

async function createDatabase(
  serverUrl: string,
  template?: string,
): Promise<{ url: string; drop: () => Promise<void> }> {
  const name = `test_${randomBytes(6).toString('hex')}`
  // To copy files costs half as much as to write pages to the log of Postgres. Only the log would
  // survive a crash.
  const source = template === undefined ? '' : `template ${template} strategy file_copy`
  const server = poolOf(serverUrl)
  await server.query(`create database ${name} ${source}`)
  const url = new URL(serverUrl)
  url.pathname = `/${name}`
  return {
    url: url.href,
    drop: async () => void (await server.query(`drop database if exists ${name} with (force)`)),
  }
}

export type { EmbeddedServer }
