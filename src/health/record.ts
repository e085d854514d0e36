import type { RedisConnection } from '../redis/connection.ts'
import { Script } from '../redis/script.ts'
import {
  FAILURES_TO_OPEN,
  GOOD_TO_RECOVER,
  TRIAL_LEASE_MS,
  TRIAL_MS_FIRST,
  TRIAL_MS_MAX,
  TRIALS_TO_CLOSE,
} from './breaker.ts'
import { HEALTH_CHANNEL, healthChangesKey, healthKey } from './health-keys.ts'
import { HALF_LIFE_MS, LATENCY_BOUNDS_MS, LATENCY_WEIGHT_LEAST, PRIOR_ATTEMPTS, SLOW_MS } from './score.ts'

/** What an attempt says of its upstream. `none`: it says nothing, it only gives back the trial it held. */
export interface AttemptRecord {
  result: 'ok' | 'fail' | 'none'
  /** Code of the failure, for the cause of a change. */
  code?: string
  /** Connect to last byte, milliseconds. */
  latencyMs: number
  source: 'call' | 'probe'
  /** Token of the trial that the attempt was, when the breaker was open. */
  trial?: string | undefined
}

const NOW = `
local now = tonumber(ARGV[1])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local key = KEYS[1]
local h = {}
local flat = redis.call('HGETALL', key)
for i = 1, #flat, 2 do h[flat[i]] = flat[i + 1] end
local function num(name) return tonumber(h[name]) or 0 end
`

/**
 * One attempt in one step: decay, count, score, state, breaker, change record. The same arithmetic as `score.ts`; a
 * property test holds the two together. KEYS health hash, changes stream. ARGV now (empty: Redis' clock), result,
 * latency ms (of several good attempts: all of them, with commas between), code, source, trial token.
 */
const RECORD = new Script(`${NOW}
local result, latencies, code, source, token = ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local factor = 2 ^ (-math.max(0, now - num('at')) / ${HALF_LIFE_MS})
local ok, fail, run = num('ok') * factor, num('fail') * factor, num('run')
local bounds = {${LATENCY_BOUNDS_MS.join(',')}}
local weights, total, index = {}, 0, 1
for text in string.gmatch(h.hist or '', '[^,]+') do
  weights[index] = tonumber(text) * factor
  index = index + 1
end
if result == 'ok' then
  for text in string.gmatch(latencies, '[^,]+') do
    local latency = tonumber(text)
    ok = ok + 1
    run = math.max(run, 0) + 1
    local bucket = #bounds + 1
    for i = 1, #bounds do if latency <= bounds[i] then bucket = i break end end
    weights[bucket] = (weights[bucket] or 0) + 1
  end
elseif result == 'fail' then
  fail = fail + 1
  run = math.min(run, 0) - 1
end
local hist = {}
for i = 1, #bounds + 1 do
  weights[i] = weights[i] or 0
  total = total + weights[i]
  hist[i] = weights[i] < 1e-6 and '0' or string.format('%.9g', weights[i])
end

local p95 = nil
if total >= ${LATENCY_WEIGHT_LEAST} then
  p95 = ${SLOW_MS}
  local below, rank = 0, total * 0.95
  for i = 1, #bounds do
    if below + weights[i] >= rank then
      local lower = bounds[i - 1] or 0
      p95 = lower + (bounds[i] - lower) * (rank - below) / weights[i]
      break
    end
    below = below + weights[i]
  end
end
local share = fail / (ok + fail + ${PRIOR_ATTEMPTS})
local quick = 1
if p95 then quick = math.min(math.max((${SLOW_MS} - p95) / (${SLOW_MS} - 1000), 0), 1) end
local score = math.floor(80 * math.max(0, 1 - 2 * share) + 20 * quick + 0.5)

local from = h.state or 'Healthy'
local to, cause = from, nil
local isTrial = token ~= '' and token == h.trialBy
local trialAt, trialBy, pause, good = num('trialAt'), h.trialBy or '', num('pause'), num('good')
local woke = false
if from == 'Down' then
  -- Attempts that were under way when the breaker opened are counted and decide nothing.
  if isTrial then
    trialBy = ''
    woke = true
    if result == 'ok' then
      good = good + 1
      trialAt = now
      if good >= ${TRIALS_TO_CLOSE} then to, cause = 'Degraded', 'trials-passed' end
    elseif result == 'fail' then
      good = 0
      pause = math.min(pause * 2, ${TRIAL_MS_MAX})
      trialAt = now + pause
    else
      trialAt = now
    end
  end
elseif result == 'fail' and run <= -${FAILURES_TO_OPEN} then to, cause = 'Down', 'failures-in-a-row'
-- A good attempt never opens the breaker: what failed before it was judged then.
elseif result == 'fail' and score < 40 then to, cause = 'Down', 'score'
elseif from == 'Healthy' and score < 80 then to, cause = 'Degraded', 'score'
elseif from == 'Degraded' and score >= 80 and run >= ${GOOD_TO_RECOVER} then to, cause = 'Healthy', 'score'
end
if to == 'Down' and from ~= 'Down' then
  pause, good, trialBy = ${TRIAL_MS_FIRST}, 0, ''
  trialAt = now + pause
end

local function text(number) return string.format('%.17g', number) end
redis.call('HSET', key, 'state', to, 'at', text(now), 'ok', text(ok), 'fail', text(fail), 'run', run,
  'hist', table.concat(hist, ','), 'trialAt', text(trialAt), 'trialBy', trialBy, 'pause', text(pause), 'good', good)
if result ~= 'none' then redis.call('HSET', key, source == 'probe' and 'probeAt' or 'callAt', text(now)) end
if result == 'fail' then redis.call('HSET', key, 'lastCode', code, 'lastFailAt', text(now)) end
if to ~= from then
  redis.call('HSET', key, 'since', text(now), 'cause', cause)
  redis.call('XADD', KEYS[2], 'MAXLEN', '~', 1000, '*', 'at', text(now), 'from', from, 'to', to, 'cause', cause,
    'code', code, 'source', source, 'score', score, 'ok', string.format('%.3f', ok), 'fail', string.format('%.3f', fail),
    'p95', p95 and string.format('%.0f', p95) or '')
end
if to ~= from or woke then redis.call('PUBLISH', '${HEALTH_CHANNEL}', ARGV[7]) end
return {to, to ~= from and 1 or 0, score}
`)

/** Takes the one trial of an open breaker. ARGV now, token, lease ms, slug, 1 to take it before its time. */
const TAKE_TRIAL = new Script(`${NOW}
if h.state ~= 'Down' then return {'closed', 0} end
local isHeld = (h.trialBy or '') ~= ''
if num('trialAt') > now and (isHeld or ARGV[5] ~= '1') then return {'wait', num('trialAt') - now} end
redis.call('HSET', key, 'trialBy', ARGV[2], 'trialAt', string.format('%.17g', now + tonumber(ARGV[3])))
redis.call('PUBLISH', '${HEALTH_CHANNEL}', ARGV[4])
return {'trial', 0}
`)

/**
 * Counts an attempt. One command; nobody needs to wait for it.
 *
 * @param now for tests: Redis' clock otherwise. Milliseconds
 * @returns the state after it, whether it changed, and the score unclamped
 */
export async function recordAttempt(
  redis: RedisConnection,
  slug: string,
  { result, latencyMs, code = '', source, trial = '' }: AttemptRecord,
  now?: number,
): Promise<Recorded> {
  return await record(redis, slug, [now ?? '', result, Math.round(latencyMs), code, source, trial, slug])
}

/** Counts good attempts of calls, one or more, that ended at about the same time: one step for all of them. */
export async function recordGoodCalls(
  redis: RedisConnection,
  slug: string,
  latenciesMs: number[],
  now?: number,
): Promise<Recorded> {
  return await record(redis, slug, [now ?? '', 'ok', latenciesMs.map(Math.round).join(','), '', 'call', '', slug])
}

/** The state after an attempt was counted, whether it changed, and the score unclamped. */
export interface Recorded {
  state: string
  changed: boolean
  score: number
}

async function record(redis: RedisConnection, slug: string, values: (string | number)[]): Promise<Recorded> {
  const reply = await RECORD.run(redis, [healthKey(slug), healthChangesKey(slug)], values)
  const [state, changed, score] = reply as [string, number, number]
  return { state, changed: changed === 1, score }
}

/** What an open breaker says: a closed one after all, a trial for this attempt, or how long until the next. */
export type TrialAnswer = { kind: 'closed' } | { kind: 'trial' } | { kind: 'wait'; waitMs: number }

/**
 * Asks for the trial of an open breaker; exactly one asker gets it. An operator's probe is `isForced`: it need not wait
 * for its time, only for a trial that is under way.
 */
export async function takeTrial(
  redis: RedisConnection,
  slug: string,
  token: string,
  options: { isForced?: boolean; now?: number } = {},
): Promise<TrialAnswer> {
  const values = [options.now ?? '', token, TRIAL_LEASE_MS, slug, options.isForced ? 1 : 0]
  const reply = await TAKE_TRIAL.run(redis, [healthKey(slug)], values)
  const [kind, waitMs] = reply as [TrialAnswer['kind'], number]
  return kind === 'wait' ? { kind, waitMs } : { kind }
}
