import assert from 'node:assert/strict'
import { test } from 'node:test'
import { viewHealth } from '../../src/health/health-view.ts'
import { SHARED_BUCKET } from '../../src/queue/wait-queue-entry.ts'
import { capKeys, keys, upstreamKeys } from '../../src/redis/keys.ts'
import { processProbe } from '../../workers/jobs/process-probe.ts'
import type { WorkerDeps } from '../../workers/jobs/worker-deps.ts'
import { SourceAddresses } from '../../workers/source-addresses.ts'
import { isFailure } from '../../workers/upstream/outcome.ts'
import { until } from '../support/gateway.ts'
import { failureOf } from '../support/worker-parts.ts'
import { openLocalWorker as open, PAGE, SLUG } from './local-worker.ts'

/** What the cap remembers: until when it is closed, and how much is left until when. */
async function limitOf({ redis, clock }: WorkerDeps) {
  const state = await redis.hgetall(capKeys.of(SLUG, SHARED_BUCKET, 'state'))
  const forMs = (at: string | undefined) => Math.round((Number(at ?? 0) - clock.now()) / 1_000) * 1_000
  return { closedForMs: forMs(state.closed), left: state.left, leftForMs: forMs(state.leftUntil) }
}

const healthOf = async ({ redis, clock }: WorkerDeps) =>
  viewHealth(await redis.hgetall(upstreamKeys.health(SLUG)), clock.now())

async function probesOf({ queues }: WorkerDeps) {
  return (await queues.of(SLUG).getJobs(['prioritized', 'waiting', 'delayed'])).filter(({ name }) => name === 'probe')
}

/** The cap is open again, and all that the gateway knows of reports of a limit is a minute old. */
async function minuteLater({ redis, clock }: WorkerDeps): Promise<void> {
  await redis.hdel(capKeys.of(SLUG, SHARED_BUCKET, 'state'), 'closed')
  const reports = upstreamKeys.limitReports(SLUG)
  const at = clock.now() - 60_000
  for (const voter of await redis.zrange(reports, '0', '-1')) await redis.zadd(reports, at, voter)
}

async function runProbe(deps: WorkerDeps): Promise<void> {
  await until(async () => (await probesOf(deps)).length > 0)
  const [probe] = await probesOf(deps)
  if (!probe) assert.fail()
  await processProbe(deps, probe, new AbortController().signal)
}

test('a limit that an account’s undeclared parameters meet holds only for undeclared parameters of this account, until a probe succeeds', async (t) => {
  const { deps, call, paths } = await open(t, ({ url }, response) => {
    if (url?.includes('ensemble')) response.writeHead(429, { 'retry-after': '90000' }).end()
    else response.writeHead(200, { 'content-type': 'application/json' }).end(PAGE)
  })
  const codeOf = async (id: string, accountId: string, ...extra: [string, string][]) => {
    const outcome = await call(id, { accountId, extra, title: id })
    return isFailure(outcome) ? outcome.code : 'served'
  }
  assert.equal(await codeOf('a1', 'a', ['ensemble', '1']), 'UPSTREAM_RATE_LIMITED')
  assert.ok((await limitOf(deps)).closedForMs < 0)
  const held = await call('a2', { accountId: 'a', extra: [['other', '1']] })
  assert.equal(failureOf(held).code, 'UPSTREAM_RATE_LIMITED')
  const waitMs = Number(failureOf(held).retryAfterMs)
  assert.ok(waitMs > 3_590_000 && waitMs <= 3_600_000, `${waitMs}`)
  assert.equal(paths.length, 1)
  assert.equal(await codeOf('a3', 'a'), 'served')
  assert.equal(await codeOf('b1', 'b', ['other', '1']), 'served')
  assert.equal(await codeOf('b2', 'b', ['ensemble', '1']), 'UPSTREAM_RATE_LIMITED')
  assert.equal((await probesOf(deps)).length, 1)
  await runProbe(deps)
  await deps.health.read(SLUG)
  assert.equal(deps.health.hasLimitedCallers(SLUG), false, 'calls need not look for limited callers any more')
  assert.equal(await codeOf('a4', 'a', ['other', '1']), 'served')
  assert.equal(await codeOf('a5', 'a', ['ensemble', '1']), 'UPSTREAM_RATE_LIMITED')
  assert.equal((await probesOf(deps)).length, 1)
})

test('a limit that a declared value meets closes the cap for a minute, as long as it says if a probe meets it too, and not at another address of the upstream', async (t) => {
  let meetsProbe = false
  const { deps, api, call, openBreaker } = await open(t, ({ url }, response) => {
    if (meetsProbe || url?.includes('Limited')) response.writeHead(429, { 'retry-after': '90000' }).end()
    else response.writeHead(200, { 'content-type': 'application/json' }).end(PAGE)
  })
  const limited = await call('plain', { title: 'Limited' })
  assert.equal(failureOf(limited).code, 'UPSTREAM_RATE_LIMITED')
  assert.equal((await limitOf(deps)).closedForMs, 60_000)
  // Pages and console say so, with the outcome of the last attempt.
  await until(async () => (await healthOf(deps)).limitedUntil !== undefined)
  await until(async () => /^HTTP 429 in /.test((await healthOf(deps)).lastFailure?.words ?? ''))
  assert.equal((await healthOf(deps)).status, 'Healthy', 'a limit is no failure of the source')
  await until(async () => (await probesOf(deps)).length === 1)
  const [probe] = await probesOf(deps)
  assert.equal(probe?.opts.delay, 58_000)
  const openAgain = () => deps.redis.hdel(capKeys.of(SLUG, SHARED_BUCKET, 'state'), 'closed')
  await openAgain()
  await runProbe(deps)
  assert.ok((await limitOf(deps)).closedForMs <= 0)
  assert.ok(!('code' in (await call('honest'))))
  meetsProbe = true
  await runProbe(deps)
  assert.equal((await limitOf(deps)).closedForMs, 3_600_000)
  await openBreaker()
  const noted = () => deps.redis.hget(keys.sourceAddresses, SLUG)
  await until(async () => (await noted()) !== null)
  const before = await noted()
  const note = () => new SourceAddresses({ ...deps, only: [SLUG] }).note()
  await note()
  assert.equal((await healthOf(deps)).isOpen, true, 'the address is the same')
  api.baseUrl += '/'
  await note()
  assert.notEqual(await noted(), before)
  const { isOpen, status, limitedUntil } = await healthOf(deps)
  assert.deepEqual([isOpen, status, limitedUntil], [false, 'Healthy', undefined])
  assert.ok((await limitOf(deps)).closedForMs < 0)
  const [change] = await deps.redis.xrange(upstreamKeys.healthChanges(SLUG), '-', '+')
  assert.deepEqual(change?.[1].slice(2, 8), ['from', 'Down', 'to', 'Healthy', 'cause', 'other-address'])
  await openBreaker()
  api.isBaseUrlConfigured = !api.isBaseUrlConfigured
  await note()
  assert.equal((await healthOf(deps)).isOpen, false, 'a private address is reached once the operator has chosen it')
})

test('a declared value that meets a limit again and again closes the cap for a minute in an hour, then limits its caller alone, and for all again once a probe meets the limit too', async (t) => {
  let meetsProbe = false
  const { deps, call } = await open(t, ({ url }, response) => {
    if (meetsProbe || url?.includes('Limited')) response.writeHead(429, { 'retry-after': '90000' }).end()
    else response.writeHead(200, { 'content-type': 'application/json' }).end(PAGE)
  })
  let calls = 0
  const codeOf = async (accountId: string, title: string) => {
    calls += 1
    const group = accountId === 'b' ? 'h2/h3' : 'h1/h2'
    const outcome = await call(`call${calls}`, { accountId, group, title: `${title}${calls}` })
    return isFailure(outcome) ? outcome.code : 'served'
  }
  assert.equal(await codeOf('a', 'Limited'), 'UPSTREAM_RATE_LIMITED')
  assert.equal((await limitOf(deps)).closedForMs, 60_000)
  await minuteLater(deps)
  assert.equal(await codeOf('a', 'Limited'), 'UPSTREAM_RATE_LIMITED')
  assert.ok((await limitOf(deps)).closedForMs <= 0)
  assert.equal(await codeOf('a', 'Other'), 'UPSTREAM_RATE_LIMITED')
  assert.equal(await codeOf('neighbour', 'Limited'), 'UPSTREAM_RATE_LIMITED')
  assert.ok((await limitOf(deps)).closedForMs <= 0, 'its network has had its minute')
  assert.equal(await codeOf('other neighbour', 'Other'), 'served')
  assert.equal(await codeOf('b', 'Other'), 'served')
  await runProbe(deps)
  assert.equal(await codeOf('a', 'Other'), 'served')
  assert.equal(await codeOf('b', 'Limited'), 'UPSTREAM_RATE_LIMITED')
  assert.equal((await limitOf(deps)).closedForMs, 60_000, 'the first report of another caller')
  await minuteLater(deps)
  meetsProbe = true
  await runProbe(deps)
  assert.equal((await limitOf(deps)).closedForMs, 3_600_000)
  await minuteLater(deps)
  assert.equal(await codeOf('a', 'Limited'), 'UPSTREAM_RATE_LIMITED')
  assert.equal((await limitOf(deps)).closedForMs, 60_000)
})

test('if a probe meets the limit of a caller too, the caller waits for the cap again, and the limits that it meets next close the cap', async (t) => {
  let isLimited = true
  const { deps, call } = await open(t, (_request, response) => {
    if (isLimited) response.writeHead(429, { 'retry-after': '30' }).end()
    else response.writeHead(200, { 'content-type': 'application/json' }).end(PAGE)
  })
  const codeOf = async (id: string) => {
    const outcome = await call(id, { title: id })
    return isFailure(outcome) ? outcome.code : 'served'
  }
  assert.equal(await codeOf('first'), 'UPSTREAM_RATE_LIMITED')
  await minuteLater(deps)
  assert.equal(await codeOf('alone'), 'UPSTREAM_RATE_LIMITED')
  assert.ok((await limitOf(deps)).closedForMs <= 0)
  await runProbe(deps)
  assert.ok((await limitOf(deps)).closedForMs > 0)
  isLimited = false
  await minuteLater(deps)
  assert.equal(await codeOf('waits'), 'served')
  isLimited = true
  for (const id of ['second', 'third']) {
    assert.equal(await codeOf(id), 'UPSTREAM_RATE_LIMITED')
    assert.ok((await limitOf(deps)).closedForMs > 0, id)
    await minuteLater(deps)
  }
})

test('rate headers in an answer to a caller hold for a minute, and if they say that no request is left, the cap stays closed until a probe has checked', async (t) => {
  const rateHeaders = { remaining: 'x-rl', reset: 'x-ttl', resetIs: 'seconds' } as const
  let headers: Record<string, string> = { 'x-rl': '7', 'x-ttl': '3600' }
  const { deps, call } = await open(t, (_request, response) => response.writeHead(200, headers).end(PAGE), {
    rateHeaders,
  })
  await call('some')
  assert.deepEqual(await limitOf(deps), {
    closedForMs: (await limitOf(deps)).closedForMs,
    left: '7',
    leftForMs: 60_000,
  })
  assert.equal((await probesOf(deps)).length, 0)
  headers = { 'x-rl': '0', 'x-ttl': '30' }
  await call('none', { title: 'None' })
  const none = await limitOf(deps)
  assert.ok(none.closedForMs < 0 && none.left === '0' && none.leftForMs === 30_000, JSON.stringify(none))
  await deps.redis.hdel(capKeys.of(SLUG, SHARED_BUCKET, 'state'), 'left', 'leftUntil')
  headers = { 'x-rl': '0', 'x-ttl': '3600' }
  await call('long', { title: 'Long' })
  assert.equal((await limitOf(deps)).closedForMs, 60_000)
  assert.equal((await probesOf(deps)).length, 1)
})
