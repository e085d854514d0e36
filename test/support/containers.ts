import assert from 'node:assert/strict'
import { resolve } from 'node:path'
import { runCommand } from '../../src/local/embedded/run-command.ts'

export const ROOT = resolve(import.meta.dirname, '../..')

const { TEST_POSTGRES_IMAGE, TEST_REDIS_IMAGE, TEST_VALKEY_IMAGE, TEST_NODE_IMAGE, TEST_CADDY_IMAGE } = process.env

/** Images that are on this machine already, because the tests do not fetch images. */
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

/** Longest wait for the engine, milliseconds. */
const ENGINE_MS_MAX = 10_000

/**
 * The library that starts containers. It is loaded only after an engine has answered, because
 * loading takes half a second of CPU. Its reaper is an image that the library would fetch, so the
 * tests remove what they start.
 */
export function loadTestcontainers(): Promise<typeof import('testcontainers')> {
  process.env.TESTCONTAINERS_RYUK_DISABLED = 'true'
  return import('testcontainers')
}

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
  const { getContainerRuntimeClient, ImageName } = await loadTestcontainers()
  const { image } = await getContainerRuntimeClient()
  for (const name of images) {
    if (!(await image.exists(ImageName.fromString(name)))) return `the image ${name} is not on this machine`
  }
  return undefined
}

async function succeeds(...commandArgs: string[]): Promise<boolean> {
  return (await runCommand('docker', commandArgs, { timeoutMs: ENGINE_MS_MAX })).code === 0
}
