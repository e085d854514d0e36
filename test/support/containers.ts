import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { resolve } from 'node:path'
import { lastLines, runCommand } from '../../src/local/embedded/run-command.ts'

export const ROOT = resolve(import.meta.dirname, '../..')

const { TEST_POSTGRES_IMAGE, TEST_REDIS_IMAGE, TEST_VALKEY_IMAGE, TEST_NODE_IMAGE, TEST_CADDY_IMAGE } = process.env

/** Images that are on this machine already, because the tests fetch no image. */
export const IMAGES = {
  POSTGRES: TEST_POSTGRES_IMAGE ?? 'postgres:18',
  REDIS: TEST_REDIS_IMAGE ?? 'redis:7',
  VALKEY: TEST_VALKEY_IMAGE ?? 'valkey/valkey:8',
  NODE: TEST_NODE_IMAGE ?? 'node:24-slim',
  CADDY: TEST_CADDY_IMAGE ?? 'caddy:2',
}

/**
 * `npm run test:containers`: without an engine or an image the tests fail instead of being skipped.
 */
const isInsisted = process.env.TEST_CONTAINERS === 'insist'

/** Longest wait for a command that only reads, milliseconds. */
const ANSWER_MS_MAX = 10_000

/**
 * Longest time that an image may take to be built, and a container to start or end, milliseconds.
 */
const COMMAND_MS_MAX = 600_000

/**
 * Why tests of containers cannot run here; false if they can.
 *
 * @throws AssertionError if they must run and cannot
 */
export async function skipUnlessInsisted(
  images: string[],
  { needsCompose = false }: { needsCompose?: boolean } = {},
): Promise<string | false> {
  const obstacle = await findObstacle(images, needsCompose)
  if (obstacle === undefined) return false
  assert.ok(!isInsisted, obstacle)
  return obstacle
}

async function findObstacle(images: string[], needsCompose: boolean): Promise<string | undefined> {
  if (!(await succeeds('version', '--format', '{{.Server.Version}}'))) return 'no Docker engine answers'
  if (needsCompose && !(await succeeds('compose', 'version'))) return 'Docker Compose is missing'
  for (const name of images) {
    if (!(await succeeds('image', 'inspect', name))) return `the image ${name} is not on this machine`
  }
  return undefined
}

async function succeeds(...commandArgs: string[]): Promise<boolean> {
  return (await runCommand('docker', commandArgs, { timeoutMs: ANSWER_MS_MAX })).code === 0
}

/**
 * Runs `docker`.
 *
 * @returns what it printed
 * @throws AssertionError if it fails
 */
export async function docker(...commandArgs: string[]): Promise<string> {
  const { code, output } = await runCommand('docker', commandArgs, { timeoutMs: COMMAND_MS_MAX })
  assert.equal(code, 0, `docker ${commandArgs.join(' ')}: ${lastLines(output)}`)
  return output
}

/** A started container. */
export interface Container {
  /** Host and port by which this machine reaches a port of the container. */
  addressOf: (port: number) => Promise<string>
  /** Everything that the container has printed, at most the last 20,000 characters. */
  log: () => Promise<string>
  /** The part of the output of `docker inspect` that a template of Go chooses. */
  inspect: (template: string) => Promise<string>
  /**
   * Runs a command in the container, and fails if the command fails.
   * @returns what the command printed
   */
  exec: (...command: string[]) => Promise<string>
  /** Ends the container in order, kills it if it takes over a minute, and removes it. */
  stop: () => Promise<void>
}

/**
 * Starts a container. The caller waits until it serves.
 *
 * @param options options of `docker run`
 * @param command what the container runs. Default: the command of the image
 */
export async function startContainer(image: string, options: string[], command: string[] = []): Promise<Container> {
  const name = `agw-test-${randomUUID()}`
  await docker('run', '--detach', '--pull=never', `--name=${name}`, ...options, image, ...command)
  return {
    addressOf: async (port) => (await docker('port', name, `${port}/tcp`)).trim(),
    log: () => docker('logs', name),
    inspect: async (template) => (await docker('inspect', '--format', template, name)).trim(),
    exec: (...command) => docker('exec', name, ...command),
    stop: async () => {
      await docker('stop', '-t', '60', name)
      await docker('rm', '--volumes', name)
    },
  }
}
