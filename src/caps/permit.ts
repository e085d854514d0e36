import type { Caps } from '../catalog/upstream.ts'
import type { RedisConnection } from '../redis/connection.ts'
import { capKeys } from '../redis/keys.ts'
import { Script } from '../redis/script.ts'
import { type CapScope, capArguments, PARKED_MS, PRELUDE, QUARANTINE_MS, TELL_TURN } from './cap-keys.ts'

/** How long after a loss the counts in Postgres are complete: workers write them down every second. Milliseconds. */
const RESTORE_AFTER_MS = 3_000

/** A call that is ready to send a request and asks to. */
export interface Parked {
  /** Its member in the line: `account|call id`. */
  member: string
  /** Its fair tag. */
  tag: number
}

export interface Granting {
  /** Members that may send a request now, each once, with its permit. */
  granted: Map<string, PermitId>
  /** When the rates let the first of the others go, milliseconds; 0 when it waits for another request's end. */
  waitMs: number
  /** How long the upstream has closed itself for, milliseconds; 0 when it has not. */
  closedMs: number
}

/** What ended: leases are given back, and how long a request takes is learned. ARGV[1]: mean ms, ARGV[2]: how many, ids. */
const END = `
local ended = tonumber(ARGV[2])
if ended > 0 then
  redis.call('ZREM', KEYS[7], unpack(ARGV, 3, 2 + ended))
  local known = tonumber(redis.call('HGET', KEYS[8], 'serviceMs') or 0)
  local took = tonumber(ARGV[1])
  local share = math.min(0.5, 0.1 * ended)
  redis.call('HSET', KEYS[8], 'serviceMs', string.format('%.1f', known == 0 and took or known * (1 - share) + took * share))
end
`

/**
 * Grants permits to the calls that have the least fair tags among all that are parked, in all workers; the asking
 * worker's among them are told, other workers' hear that they may ask. ARGV: what ended, lease ms, number of calls,
 * member and tag of each, then the cap.
 */
const TAKE = new Script(`${PRELUDE}${END}${TELL_TURN}
local first = 3 + ended
local leaseMs, count = tonumber(ARGV[first]), tonumber(ARGV[first + 1])
readRules(first + 2 + 2 * count)
if not readState() then return {'unknown', 0, 0} end
if state.since > 0 and not state.restored and widest > ${QUARANTINE_MS} then
  if now > state.since + ${RESTORE_AFTER_MS} then return {'unrestored', 0, 0} end
  return {'ok', ${RESTORE_AFTER_MS}, 0}
end
redis.call('ZREMRANGEBYSCORE', LOG, '-inf', score(now - widest))
redis.call('ZREMRANGEBYSCORE', LEASES, '-inf', score(now))
local free = freeNow()
local reply = {'ok', 0, math.max(0, math.ceil(state.closed - now))}

local function grant(members, latest)
  leaveLine(members)
  local id = redis.call('HINCRBY', STATE, 'permits', #members) - #members
  local logged, leased = {}, {}
  for index, member in ipairs(members) do
    local permit = member .. '|' .. (id + index)
    logged[#logged + 1] = score(now)
    logged[#logged + 1] = permit
    leased[#leased + 1] = score(now + leaseMs)
    leased[#leased + 1] = permit
    reply[#reply + 1] = member
    reply[#reply + 1] = permit
  end
  local isFirst = redis.call('ZCARD', LOG) == 0
  redis.call('ZADD', LOG, unpack(logged))
  redis.call('ZADD', LEASES, unpack(leased))
  if state.leftUntil > now then redis.call('HINCRBY', STATE, 'left', -#members) end
  if latest > tonumber(redis.call('HGET', FAIR, 'now') or 0) then redis.call('HSET', FAIR, 'now', tostring(latest)) end
  renew(isFirst, {LOG, STATE, LEASES})
end

local mine, members, latest = {}, {}, 0
for index = 1, count do
  local member, tag = ARGV[first + 2 * index], tonumber(ARGV[first + 1 + 2 * index])
  mine[member] = tag
  members[index] = member
  latest = math.max(latest, tag)
end
if count == 0 then return reply end

-- Nobody waits and there is room for all: no line need be kept.
if not isScarce and free >= count and redis.call('ZCARD', PARKED) == 0 then
  grant(members, latest)
  return reply
end

dropExpiredParked()
local byTag, byEnd = {}, {}
local ends = score(now + ${PARKED_MS})
for index, member in ipairs(members) do
  byTag[2 * index - 1], byTag[2 * index] = mine[member], member
  byEnd[2 * index - 1], byEnd[2 * index] = ends, member
end
redis.call('ZADD', PARKED, unpack(byTag))
redis.call('ZADD', PARKED_ENDS, unpack(byEnd))
renew(true, {PARKED, PARKED_ENDS})

-- An account's share changes with its grants alone, and with those told of their turn: theirs is as good as granted.
local spentUntil, told = {}, {}
local function blockedUntil(account)
  spentUntil[account] = spentUntil[account] or shareSpentUntil(account, told[account] or 0)
  return spentUntil[account]
end

local granted, ahead, best = {}, 0, nil
latest = 0
for _, member in ipairs(redis.call('ZRANGE', PARKED, 0, 199)) do
  local account = accountOf(member)
  local blocked = blockedUntil(account)
  if blocked > now then
    if mine[member] then best = math.min(best or blocked, blocked) end
  elseif ahead >= free then
    if mine[member] then
      -- Grants of a scarce cap are in the log already, the others not yet.
      best = math.min(best or math.huge, slotAt(ahead - (isScarce and #granted or 0)))
      break
    end
    ahead = ahead + 1
  else
    if mine[member] then
      granted[#granted + 1] = member
      latest = math.max(latest, mine[member])
      -- Shares are counted from the log: each grant must be in it before the next is judged.
      if isScarce then
        grant({member}, latest)
        spentUntil[account] = nil
      end
    else
      tellTurn(member)
      told[account] = (told[account] or 0) + 1
      spentUntil[account] = nil
    end
    ahead = ahead + 1
  end
end
if #granted > 0 then
  redis.call('ZREM', PARKED, unpack(granted))
  redis.call('ZREM', PARKED_ENDS, unpack(granted))
  if not isScarce then grant(granted, latest) end
end
reply[2] = best and math.ceil(best - now) or 0
return reply
`)

/** Ends leases when nobody asks for a permit at the time. ARGV as END. */
const RELEASE = new Script(`${END}${TELL_TURN} tellFirst(ended) return 1`)

/** Takes back a permit that was never used. ARGV: permit. */
const GIVE_BACK = new Script(`${TELL_TURN}
redis.call('ZREM', KEYS[6], ARGV[1])
if redis.call('ZREM', KEYS[7], ARGV[1]) == 1 then
  local time = redis.call('TIME')
  local leftUntil = tonumber(redis.call('HGET', KEYS[8], 'leftUntil') or 0)
  if leftUntil > time[1] * 1000 + time[2] / 1000 then redis.call('HINCRBY', KEYS[8], 'left', 1) end
end
tellFirst(1)
return 1
`)

/** Says since when nothing is known of a cap's past (0: there is no past). ARGV: milliseconds since the epoch. */
const BEGIN = new Script(`return redis.call('HSETNX', KEYS[8], 'since', ARGV[1])`)

/** Puts back what was sent before Redis lost its memory. ARGV: time and count, in turn. */
const RESTORE = new Script(`
if redis.call('HGET', KEYS[8], 'restored') == '1' then return 0 end
for index = 1, #ARGV, 2 do
  for number = 1, tonumber(ARGV[index + 1]) do
    redis.call('ZADD', KEYS[6], ARGV[index], 'restored|' .. ARGV[index] .. '|' .. number)
  end
end
redis.call('HSET', KEYS[8], 'restored', '1')
return 1
`)

export type PermitId = string

/** Ends permits, and asks for new ones for all parked calls of this worker, at once. */
export async function takePermits(
  redis: RedisConnection,
  slug: string,
  scope: CapScope,
  caps: Caps,
  calls: Parked[],
  ended: EndedPermits,
  leaseMs: number,
): Promise<Granting | 'unknown' | 'unrestored'> {
  const parked = calls.flatMap(({ member, tag }) => [member, tag])
  const values = [...endArguments(ended), leaseMs, calls.length, ...parked, ...capArguments(caps)]
  const reply = (await TAKE.run(redis, capKeys.all(slug, scope), values)) as [string, number, number, ...string[]]
  const [verdict, waitMs, closedMs, ...pairs] = reply
  if (verdict === 'unknown' || verdict === 'unrestored') return verdict
  const granted = new Map<string, PermitId>()
  for (let index = 0; index < pairs.length; index += 2) granted.set(pairs[index] ?? '', pairs[index + 1] ?? '')
  return { granted, waitMs, closedMs }
}

/** Permits that ended since the last asking, and how long their requests took in the mean. */
export interface EndedPermits {
  ids: PermitId[]
  meanMs: number
}

function endArguments({ ids, meanMs }: EndedPermits): (string | number)[] {
  return [meanMs.toFixed(1), ids.length, ...ids]
}

/** Ends permits while nobody asks for one. */
export async function releasePermits(
  redis: RedisConnection,
  slug: string,
  scope: CapScope,
  ended: EndedPermits,
): Promise<void> {
  await RELEASE.run(redis, capKeys.all(slug, scope), endArguments(ended))
}

/** Lengthens leases that still are. ARGV: lease ms, permits. */
const RENEW = new Script(`
local time = redis.call('TIME')
local ends = string.format('%.3f', time[1] * 1000 + time[2] / 1000 + tonumber(ARGV[1]))
for index = 2, #ARGV do redis.call('ZADD', KEYS[7], 'XX', ends, ARGV[index]) end
return 1
`)

/** Says that the requests of these permits are still on their way. */
export async function renewPermits(
  redis: RedisConnection,
  slug: string,
  scope: CapScope,
  permits: PermitId[],
  leaseMs: number,
): Promise<void> {
  await RENEW.run(redis, capKeys.all(slug, scope), [leaseMs, ...permits])
}

/** Takes back a permit under which nothing was sent. */
export async function giveBackPermit(
  redis: RedisConnection,
  slug: string,
  scope: CapScope,
  permit: PermitId,
): Promise<void> {
  await GIVE_BACK.run(redis, capKeys.all(slug, scope), [permit])
}

/** Begins a cap's memory; its windows count as full until they have passed since `since` (0: nothing was before). */
export async function beginCap(redis: RedisConnection, slug: string, scope: CapScope, since: number): Promise<void> {
  await BEGIN.run(redis, capKeys.all(slug, scope), [since])
}

/** Puts a cap's past back as counts at times (milliseconds since the epoch). A second time does nothing. */
export async function restoreCap(
  redis: RedisConnection,
  slug: string,
  scope: CapScope,
  past: { at: number; granted: number }[],
): Promise<void> {
  await RESTORE.run(
    redis,
    capKeys.all(slug, scope),
    past.flatMap(({ at, granted }) => [at, granted]),
  )
}
