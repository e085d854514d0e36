import assert from 'node:assert/strict'
import { resolve } from 'node:path'
import { type Outcome, runCommand } from '../../src/local/embedded/run-command.ts'

export const ROOT = resolve(import.meta.dirname, '../..')

const { TEST_POSTGRES_IMAGE, TEST_REDIS_IMAGE, TEST_NODE_IMAGE, TEST_CADDY_IMAGE } = process.env

/** Images that are on this machine already: the default run fetches none. */
export const IMAGES = {
  POSTGRES: TEST_POSTGRES_IMAGE ?? 'postgres:18',
  REDIS: TEST_REDIS_IMAGE ?? 'redis:7',
  NODE: TEST_NODE_IMAGE ?? 'node:24-slim',
  CADDY: TEST_CADDY_IMAGE ?? 'caddy:2',
}

/**
 * `npm run test:containers`: without an engine or an image the tests fail instead of being skipped.
 */
const isInsisted = process.env.TEST_CONTAINERS === 'insist'

export function docker(commandArgs: string[], timeoutMs = 60_000): Promise<Outcome> {
  return runCommand('docker', commandArgs, { timeoutMs })
}

/**
 * Why tests of containers cannot run here; false when they can.
 *
 * @throws AssertionError when they must and cannot
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
  const engine = await docker(['version', '--format', '{{.Server.Version}}'], 10_000)
  if (engine.code !== 0) return 'no Docker engine answers'
  if (needsCompose && (await docker(['compose', 'version'], 10_000)).code !== 0) return 'Docker Compose is missing'
  for (const image of images) {
    const { code } = await docker(['image', 'inspect', image], 10_000)
    if (code !== 0) return `the image ${image} is not on this machine`
  }
  return undefined
}
