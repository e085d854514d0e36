import assert from 'node:assert/strict'
import { randomBytes, randomInt, randomUUID } from 'node:crypto'
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { freePort } from '../../src/local/embedded/free-port.ts'
import { type Outcome, runCommand } from '../../src/local/embedded/run-command.ts'
import { IMAGES, ROOT, skipUnlessInsisted } from '../support/containers.ts'
import { until } from '../support/gateway.ts'
import { UNLIMITED } from '../support/stage.ts'

/** Every file that the image is built from, and every file that runs it. */
const FILES = ['Dockerfile', '.dockerignore', 'docker-compose.yml', 'deploy', 'package.json', 'package-lock.json']
const FOLDERS = ['src', 'workers', 'migrations']

const SECRETS = ['POSTGRES_SUPERUSER_PASSWORD', 'POSTGRES_PASSWORD', 'REDIS_PASSWORD', 'JWT_SECRET', 'KEY_PEPPER']

/** Building the image and starting its processes, milliseconds. */
const COMMAND_MS_MAX = 600_000

const CALLS_PER_SECOND = 20

const { POSTGRES, REDIS, NODE, CADDY } = IMAGES

const obstacle = await skipUnlessInsisted([POSTGRES, REDIS, NODE, CADDY], { needsCompose: true })

describe('the compose file', { skip: obstacle, timeout: 1_800_000 }, () => {
  const project = `agw-test-${randomUUID()}`
  let folder: string
  let url: string
  let key: string
  let environment: NodeJS.ProcessEnv

  const run = (command: string, ...commandArgs: string[]): Promise<Outcome> =>
    runCommand(command, commandArgs, { cwd: folder, env: environment, timeoutMs: COMMAND_MS_MAX })

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'agw-compose-'))
    for (const name of [...FILES, ...FOLDERS]) await cp(join(ROOT, name), join(folder, name), { recursive: true })
    const { env } = process
    environment = {
      ...env,
      COMPOSE_PROJECT_NAME: project,
      POSTGRES_IMAGE: POSTGRES,
      REDIS_IMAGE: REDIS,
      CADDY_IMAGE: CADDY,
      NODE_IMAGE: NODE,
      IMAGE: `agw-test:${project}`,
    }
    const [publish, publishHttps, publishOps] = [await freePort(), await freePort(), await freePort()]
    url = `http://127.0.0.1:${publish}`
    const lines = [...SECRETS, 'ENCRYPTION_KEY', 'OPERATOR_TOKEN'].map(
      (name) => `${name}=${randomBytes(32).toString('base64url')}`,
    )
    lines.push(`PUBLISH=${publish}`, `PUBLISH_HTTPS=${publishHttps}`, `PUBLISH_OPS=${publishOps}`)
    // The service itself may run on this machine too.
    lines.push(`SUBNET=10.202.${randomInt(256)}.0/24`)
    await writeFile(join(folder, '.env'), lines.join('\n'), { mode: 0o600 })
    await writeFile(join(folder, '.env.settings'), `PLAN_LIMITS=${UNLIMITED}`)
  })
  after(async () => {
    await run('docker', 'compose', 'down', '--volumes', '--timeout', '5')
    await run('docker', 'image', 'rm', '--force', environment.IMAGE ?? '')
    await rm(folder, { recursive: true, force: true })
  })

  const post = async (path: string, body: object, token?: string): Promise<Record<string, string>> => {
    const headers = { 'content-type': 'application/json', ...(token ? { authorization: `Bearer ${token}` } : {}) }
    const answer = await fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) })
    assert.equal(answer.status, 201, path)
    return (await answer.json()) as Record<string, string>
  }

  const call = async (): Promise<string> => {
    const headers = { 'x-api-key': key }
    try {
      const answer = await fetch(`${url}/v1/call/weather/current?latitude=1&longitude=1`, { headers })
      await answer.text()
      return String(answer.status)
    } catch (error) {
      return error instanceof Error ? String(error.cause ?? error) : String(error)
    }
  }

  /**
   * Makes calls at a steady rate while something else happens.
   * @returns the number of calls by outcome
   */
  async function callDuring(work: Promise<unknown>): Promise<Record<string, number>> {
    const calls: Promise<string>[] = []
    const timer = setInterval(() => calls.push(call()), 1_000 / CALLS_PER_SECOND)
    try {
      await work
    } finally {
      clearInterval(timer)
    }
    const counts: Record<string, number> = {}
    for (const outcome of await Promise.all(calls)) counts[outcome] = (counts[outcome] ?? 0) + 1
    return counts
  }

  const containersOf = async (service: string): Promise<string[]> => {
    const { output } = await run('docker', 'compose', 'ps', '--quiet', service)
    return output.split('\n').filter(Boolean).sort()
  }

  it('the compose file names the secret that is missing, and starts nothing', async () => {
    const { code, output } = await run('docker', 'compose', '--env-file', '/dev/null', 'up', '--detach')
    assert.notEqual(code, 0)
    assert.match(output, /required variable [A-Z_]+ is missing a value: set it in \.env/)
  })

  it('the compose file brings up two API nodes and two workers behind the proxy, and a call is answered', async () => {
    const scale = ['--scale', 'web=2', '--scale', 'worker=2']
    const { code, output } = await run('docker', 'compose', 'up', '--build', '--detach', '--wait', ...scale)
    // Compose waits for `release`, which has ended well, and reports that end as a failure.
    assert.ok(code === 0 || /release.* exited \(0\)/.test(output), output)
    const isReady = async () =>
      (await fetch(`${url}/readyz`)
        .then((answer) => answer.status)
        .catch(() => 0)) === 200
    await until(isReady, 60_000)
    const { token = '' } = await post('/v1/auth/signup', { email: 'a@example.com', password: 'correct horse battery' })
    const made = await post('/v1/keys', { environment: 'test' }, token)
    key = made.key ?? assert.fail('no key')
    assert.equal(await call(), '200')
  })

  it('the compose file still serves the old version if a migration of the new version fails', async () => {
    const failing = join(folder, 'migrations', '20991231T000000Z-fails.ts')
    await writeFile(failing, 'export const up = () => Promise.reject(new Error("made to fail"))')
    const nodes = await containersOf('web')
    const upgrade = run('sh', 'deploy/upgrade.sh')
    const counts = await callDuring(upgrade)
    await rm(failing)
    assert.equal((await upgrade).code, 1)
    assert.match((await upgrade).output, /migration 20991231T000000Z-fails failed/)
    assert.deepEqual(Object.keys(counts), ['200'])
    assert.deepEqual(await containersOf('web'), nodes)
  })

  it('the compose file is upgraded without a failed call, and with as many processes as before', async () => {
    await writeFile(join(folder, 'src', 'server.ts'), '// changed\n', { flag: 'a' })
    const nodes = await containersOf('web')
    const upgrade = run('sh', 'deploy/upgrade.sh')
    const counts = await callDuring(upgrade)
    assert.equal((await upgrade).code, 0, (await upgrade).output)
    assert.deepEqual(Object.keys(counts), ['200'], JSON.stringify(counts))
    const replaced = await containersOf('web')
    assert.equal(replaced.length, 2)
    assert.ok(replaced.every((id) => !nodes.includes(id)))
    assert.equal((await containersOf('worker')).length, 2)
  })
})
