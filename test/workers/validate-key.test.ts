import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { type TestContext, test } from 'node:test'
import { DelayedError, type Job, Worker } from 'bullmq'
import { sql } from 'kysely'
import { keyScope, maskKey } from '../../src/accounts/provider-key.ts'
import { providerKeyRecord } from '../../src/accounts/sealed-records.ts'
import { seal } from '../../src/accounts/secret-box.ts'
import type { PausedMode } from '../../src/catalog/catalog.ts'
import { findProviderKey, saveProviderKey } from '../../src/db/provider-keys.ts'
import { savePausedMode } from '../../src/db/upstream-settings.ts'
import { insertUser } from '../../src/db/users.ts'
import { announceSettings } from '../../src/operator/upstream-settings.ts'
import { enqueueValidateKey, VALIDATE_KEY } from '../../src/queue/validate-key-job.ts'
import { UNPROVEN_BUCKET } from '../../src/queue/wait-queue-entry.ts'
import { capKeys, keys, upstreamKeys } from '../../src/redis/keys.ts'
import { validateKey } from '../../workers/jobs/validate-key.ts'
import { queueOverdueValidations } from '../../workers/overdue-validations.ts'
import { until } from '../support/gateway.ts'
import { LANE } from '../support/lane.ts'
import { startUpstreamServer } from '../support/upstream-server.ts'
import { openWorkerParts } from '../support/worker-parts.ts'

const NEWS = 'news'

/** A saved key and its validations. A worker runs each validation when the test says so. */
async function open(t: TestContext, SLUG = NEWS, caps = 'concurrency=10,1000/1') {
  const upstream = await startUpstreamServer()
  t.after(() => upstream.close())
  const { config, deps } = await openWorkerParts(t, {
    ...upstream.environment(SLUG),
    [`UPSTREAM_${SLUG.toUpperCase().replaceAll('-', '_')}_CAPS`]: caps,
  })
  const { db, redis, queues } = deps
  /**
   * Of an account of its own.
   * @returns its id
   */
  const saveKey = async (): Promise<string> => {
    const userId = randomUUID()
    await insertUser(db, { id: userId, email: `${userId}@example.com`, passwordHash: '', signupNetwork: null })
    const { secretId: secret_id, bytes: sealed } = seal(
      config.secrets.encryption,
      providerKeyRecord(userId, SLUG),
      'key',
    )
    const cap_scope = keyScope(Buffer.alloc(32), SLUG, 'key')
    const row = { id: randomUUID(), slug: SLUG, secret_id, sealed, cap_scope, masked: maskKey('key') }
    return (await saveProviderKey(db, { userId }, row)).id
  }
  const id = await saveKey()
  const worker = new Worker(LANE.name, undefined, {
    connection: redis,
    prefix: LANE.prefix,
    autorun: false,
    skipStalledCheck: true,
  })
  t.after(() => worker.close())
  await worker.waitUntilReady()
  /** The lane also carries the probes of the upstream, which no worker runs here. */
  const nextJob = async (): Promise<Job> => {
    for (;;) {
      const job = (await worker.getNextJob('token', { block: false })) ?? assert.fail('no job')
      if (job.name === VALIDATE_KEY) return job
      await job.moveToCompleted(null, 'token', false)
    }
  }
  /**
   * Runs the next validation.
   * @returns whether it runs again
   */
  const validate = async (): Promise<boolean> => {
    const job = await nextJob()
    try {
      await validateKey(deps, job, new AbortController().signal)
    } catch (error) {
      if (error instanceof DelayedError) return true
      throw error
    }
    await job.moveToCompleted(null, 'token', false)
    return false
  }
  return {
    upstream,
    db,
    redis,
    /** What the probe process does each minute. */
    repair: () => queueOverdueValidations(deps),
    saveKey,
    key: async () => (await findProviderKey(db, id)) ?? assert.fail(),
    enqueue: ({ providerKeyId = id, group }: { providerKeyId?: string; group?: string } = {}) =>
      enqueueValidateKey(queues, SLUG, { v: 1, providerKeyId, ...(group === undefined ? {} : { group }) }),
    validate,
    /** Validations that wait for their next time. */
    delayed: async () => (await queues.of(SLUG).getDelayed()).filter(({ name }) => name === VALIDATE_KEY),
    setPause: async (mode: PausedMode) => {
      await savePausedMode(db, SLUG, mode)
      await announceSettings(redis)
      await until(() => deps.catalog.get(SLUG)?.pausedMode === mode)
    },
  }
}

/** The time that a validation may take is over at once. */
const endTime = (t: TestContext) => t.mock.method(AbortSignal, 'timeout', () => AbortSignal.abort())

test('a validation whose key is deleted while it waits for a permit sends nothing, and says nothing', async (t) => {
  const { upstream, db, redis, saveKey, enqueue, validate } = await open(t, NEWS, 'concurrency=1,1000/1')
  let answerFirst: () => void = () => undefined
  upstream.play(NEWS, () => new Promise((resolve) => (answerFirst = () => resolve({ totalArticles: 0, articles: [] }))))
  await enqueue()
  const first = validate()
  await until(() => upstream.arrivalsOf(NEWS).length === 1)
  const deleted = await saveKey()
  await enqueue({ providerKeyId: deleted })
  const second = validate()
  await until(async () => (await redis.zcard(capKeys.of(NEWS, UNPROVEN_BUCKET, 'queue'))) === 1)
  await sql`delete from provider_keys where id = ${deleted}`.execute(db)
  upstream.play(NEWS, () => ({ totalArticles: 0, articles: [] }))
  answerFirst()
  assert.deepEqual(await Promise.all([first, second]), [false, false])
  assert.equal(upstream.arrivalsOf(NEWS).length, 1)
})

test('a validation that gets no permit in time says that the cap is used up', async (t) => {
  const { key, enqueue, validate } = await open(t)
  await enqueue()
  endTime(t)
  assert.equal(await validate(), true)
  const { status, failure_code, next_validation_at } = await key()
  assert.deepEqual([status, failure_code], ['unvalidated', 'UPSTREAM_CAP_EXHAUSTED'])
  assert.ok(next_validation_at)
})

test('a validation that a pause of the API holds until its time is over says that the API is paused, and runs again', async (t) => {
  const { upstream, key, enqueue, validate, setPause } = await open(t)
  await enqueue()
  // A worker had taken the job before the queue was paused.
  await setPause('hold')
  endTime(t)
  assert.equal(await validate(), true)
  assert.deepEqual(upstream.arrivalsOf(NEWS), [])
  const { status, failure_code, next_validation_at } = await key()
  assert.deepEqual([status, failure_code], ['unvalidated', 'API_PAUSED'])
  assert.ok(next_validation_at)
})

test('a validation whose job Redis has lost is queued once more, two minutes after it should have run', async (t) => {
  const { db, redis, key, enqueue, validate, delayed, repair, upstream } = await open(t)
  upstream.play(NEWS, () => ({ totalArticles: 0, articles: [] }))
  await enqueue()
  const timeout = endTime(t)
  assert.equal(await validate(), true)
  timeout.mock.restore()
  await repair()
  assert.equal((await delayed()).length, 1)
  await redis.flushall()
  await sql`update provider_keys set next_validation_at = ${new Date(Date.now() - 180_000)}`.execute(db)
  await repair()
  await repair()
  assert.equal((await key()).next_validation_at, null)
  assert.equal(await validate(), false)
  assert.equal((await key()).status, 'valid')
  assert.equal(upstream.arrivalsOf(NEWS).length, 1)
})

test('the last try of a validation keeps the time at which another validation tries the key again', async (t) => {
  const { upstream, key, enqueue, validate, delayed } = await open(t)
  upstream.play(NEWS, (_, response) => void response.writeHead(503).end())
  await enqueue()
  for (let tries = 0; tries < 3; tries += 1) {
    for (const job of await delayed()) await job.promote()
    assert.equal(await validate(), true)
  }
  const [first = assert.fail()] = await delayed()
  await enqueue()
  assert.equal(await validate(), true)
  const { next_validation_at: nextAt } = await key()
  await first.promote()
  assert.equal(await validate(), false)
  assert.deepEqual((await key()).next_validation_at, nextAt)
  for (const runsAgain of [true, true, false]) {
    for (const job of await delayed()) await job.promote()
    assert.equal(await validate(), runsAgain)
  }
  assert.equal((await key()).next_validation_at, null)
})

test('failed validations of two accounts of the same share group are failures of a single caller for the health of the API', async (t) => {
  const { upstream, redis, saveKey, enqueue, validate } = await open(t)
  upstream.play(NEWS, (_, response) => void response.writeHead(503).end())
  const group = 'network/narrower'
  for (const providerKeyId of [await saveKey(), await saveKey()]) {
    await enqueue({ providerKeyId, group })
    const before = await redis.hget(upstreamKeys.health(NEWS), 'run')
    await validate()
    await until(async () => (await redis.hget(upstreamKeys.health(NEWS), 'run')) !== before)
  }
  const { run, voters, rowPlain } = await redis.hgetall(upstreamKeys.health(NEWS))
  assert.deepEqual({ run, rowPlain }, { run: '-2', rowPlain: '0' })
  assert.match(voters ?? '', /^network@\d+(\.\d+)?$/)
})

const CRYPTO = 'crypto-prices'

test('a key is not valid if a made-up key gets the same answer, even if it was valid before', async (t) => {
  const { upstream, key, enqueue, validate, delayed } = await open(t, CRYPTO)
  const sent: unknown[] = []
  upstream.play(CRYPTO, (request, response) => {
    sent.push(request.headers['x-cg-demo-api-key'])
    response.writeHead(200, { 'content-type': 'application/json' }).end('{"gecko_says":"(V3) To the Moon!"}')
  })
  await enqueue()
  assert.equal(await validate(), false)
  assert.equal(sent.length, 2)
  assert.equal(sent[0], 'key')
  assert.notEqual(sent[1], 'key')
  const { status, failure_code, last_validated_at, next_validation_at } = await key()
  assert.deepEqual(
    [status, failure_code, last_validated_at, next_validation_at],
    ['unvalidated', 'KEY_NOT_CHECKABLE', null, null],
  )
  assert.deepEqual(await delayed(), [])
})

test('a key is valid if a made-up key is refused, and invalid if the key itself is refused', async (t) => {
  const { upstream, key, enqueue, validate } = await open(t, CRYPTO)
  let good = 'key'
  upstream.play(CRYPTO, (request, response) => {
    const isGood = request.headers['x-cg-demo-api-key'] === good
    response.writeHead(isGood ? 200 : 401, { 'content-type': 'application/json' }).end('{}')
  })
  await enqueue()
  assert.equal(await validate(), false)
  assert.deepEqual([(await key()).status, (await key()).failure_code], ['valid', null])
  good = 'another'
  await enqueue()
  assert.equal(await validate(), false)
  assert.equal((await key()).status, 'invalid')
})

test('a valid key is no longer valid when the upstream begins to accept any key', async (t) => {
  const { upstream, key, enqueue, validate } = await open(t, CRYPTO)
  let takesAny = false
  upstream.play(CRYPTO, (request, response) => {
    const isTaken = takesAny || request.headers['x-cg-demo-api-key'] === 'key'
    response.writeHead(isTaken ? 200 : 401, { 'content-type': 'application/json' }).end('{}')
  })
  await enqueue()
  await validate()
  assert.equal((await key()).status, 'valid')
  takesAny = true
  await enqueue()
  await validate()
  assert.equal((await key()).status, 'unvalidated')
})

test('a key is not valid yet if the made-up key meets a limit, and its validation runs again', async (t) => {
  const { upstream, key, enqueue, validate } = await open(t, CRYPTO)
  upstream.play(CRYPTO, (request, response) => {
    response.writeHead(request.headers['x-cg-demo-api-key'] === 'key' ? 200 : 429, { 'retry-after': '1' }).end('{}')
  })
  await enqueue()
  assert.equal(await validate(), true)
  assert.deepEqual([(await key()).status, (await key()).failure_code], ['unvalidated', 'UPSTREAM_RATE_LIMITED'])
})

test('if the cap has no room for the made-up key at the first try, the second try comes when the cap has room, and the key becomes valid', async (t) => {
  // Unproven keys may take a quarter of the shared cap: a single request.
  const { upstream, redis, key, enqueue, validate, delayed } = await open(t, CRYPTO, 'concurrency=10,4/3600')
  await redis.set(keys.rememberedSince, 0)
  const sent: unknown[] = []
  upstream.play(CRYPTO, (request, response) => {
    const given = request.headers['x-cg-demo-api-key']
    sent.push(given)
    response.writeHead(given === 'key' ? 200 : 401, { 'content-type': 'application/json' }).end('{}')
  })
  await enqueue()
  assert.equal(await validate(), true)
  const { failure_code, failed_at, next_validation_at: nextAt } = await key()
  assert.deepEqual([failure_code, sent], ['UPSTREAM_CAP_EXHAUSTED', ['key']])
  assert.ok(failed_at && nextAt && nextAt.getTime() - failed_at.getTime() > 3_500_000)
  // The window has passed.
  await redis.del(capKeys.all(CRYPTO, UNPROVEN_BUCKET))
  for (const job of await delayed()) await job.promote()
  assert.equal(await validate(), false)
  assert.equal((await key()).status, 'valid')
  assert.equal(sent.length, 2)
  assert.notEqual(sent[1], 'key')
})

test('an API whose check is known to fail with a wrong key gets a single request', async (t) => {
  const { upstream, key, enqueue, validate } = await open(t)
  upstream.play(NEWS, (_, response) => void response.writeHead(200, { 'content-type': 'application/json' }).end('{}'))
  await enqueue()
  await validate()
  assert.equal((await key()).status, 'valid')
  assert.equal(upstream.arrivalsOf(NEWS).length, 1)
})
