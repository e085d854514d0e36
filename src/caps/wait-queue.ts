import type { Caps } from '../catalog/upstream.ts'
import type { RedisConnection } from '../redis/connection.ts'
import { capKeys } from '../redis/keys.ts'
import { Script } from '../redis/script.ts'
import { type CapScope, capArguments, PRELUDE } from './cap-keys.ts'

/** Calls that may wait for one upstream; past it no wait is worth quoting. */
export const LINE_LENGTH_MAX = 2_000

/** Longest a call may be expected to wait for want of connections or workers rather than for the cap, milliseconds. */
const CONGESTION_MS_MAX = 5_000

/** By how much a call may start later than forecast: so long, or such a share of its wait. */
const LATE_MS = 250
const LATE_SHARE = 0.02

/** Over how long it is counted how fast a line that is never empty moves, milliseconds. */
const DRAIN_MS = 1_000

/** Where fewer are in line it is not judged by that: calls that stored answers serve pass through it without a request. */
const DRAIN_LINE_LEAST = 32

/** Virtual time a call of weight 1 takes; a multiple of every weight, so that tags stay whole. */
const COST = 8

/** Largest distance of a tag from the base before tags are counted from a new base (BullMQ's priorities end at 2^21). */
const TAG_SPAN_MAX = 1_000_000

/** A call's place before its upstream's cap. */
export interface Place {
  /** Start tag of the call in virtual time (start-time fair queueing, Goyal et al. 1996); who has less goes first. */
  tag: number
  /** The same as a BullMQ job priority, 1 and up. */
  priority: number
  /** When its permit is expected, milliseconds from now. */
  etaMs: number
  /** Calls before it. */
  ahead: number
  /** Another call is already on its way to the same answer: this one needs no permit. */
  isFollower: boolean
  /** Tags have grown far from their base. */
  needsRebase: boolean
}

/** Why a call may not join, and when it would have had its turn. */
export interface Refusal {
  refused: 'cap' | 'closed' | 'overloaded'
  retryAfterMs: number
}

/**
 * Joins the line: computes the call's fair tag and place, and from them when its permit comes. If that is after its
 * deadline it does not join. ARGV: member, account, weight, deadline, then the cap. KEYS[10]: flight.
 */
const JOIN = new Script(`${PRELUDE}
-- Accounts that have nothing in line and no lead over the others are as good as new.
local function forgetThoseServed(virtual)
  local fields = redis.call('HGETALL', FAIR)
  local values = {}
  for index = 1, #fields, 2 do values[fields[index]] = tonumber(fields[index + 1]) end
  for field, value in pairs(values) do
    local account = string.match(field, '^f:(.*)')
    if account and value <= virtual and (values[waitingField(account)] or 0) <= 0 then
      redis.call('HDEL', FAIR, field, waitingField(account))
    end
  end
end
-- When a call that starts at its slot is answered, for all that comes in between: a line at its limit consists of calls
-- that are served right before their deadlines, and half of them would miss it by milliseconds.
local function answeredBy(slot)
  return slot + 2 * state.serviceMs + math.max(${LATE_MS}, ${LATE_SHARE} * (slot - now))
end
readRules(5)
if not readState() then return {'unknown'} end
local member, account, weight, deadline = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
if isScarce then
  redis.call('ZREMRANGEBYSCORE', ASKED, '-inf', score(now - ASKED_MS))
  redis.call('ZADD', ASKED, score(now), account)
  redis.call('PEXPIRE', ASKED, ASKED_MS)
end
local length = redis.call('ZCARD', LINE)
if length > 0 then length = length - dropExpiredLine() end
local virtual, base, start, busySince, waiting = 0, 0, 0, now, 0
if length == 0 and redis.call('ZCARD', PARKED) == 0 then
  redis.call('DEL', FAIR)
else
  local fields = redis.call('HMGET', FAIR, 'now', 'base', 'busySince', startField(account), waitingField(account))
  virtual, base, start = tonumber(fields[1] or 0), tonumber(fields[2] or 0), tonumber(fields[4] or 0)
  waiting = math.max(0, tonumber(fields[5] or 0))
  if length > 0 then busySince = tonumber(fields[3] or now) end
end
local tag = math.max(virtual, start)
local priority = math.max(1, math.min(2097151, math.floor(tag - base) + 1))
local rebase = tag - base > ${TAG_SPAN_MAX} and 1 or 0
local leader = KEYS[10] and redis.call('GET', KEYS[10])
if leader then
  -- It waits as long as the one whose answer it shares.
  local rank = redis.call('ZRANK', LINE, leader)
  local landing = rank and slotAt(rank) or now
  if landing > now and answeredBy(landing) > deadline then
    return {state.closed > now and 'closed' or 'cap', '0', 0, math.ceil(landing - now), rank, 0}
  end
  return {'follow', tostring(tag), priority, math.ceil(landing - now), rank or 0, rebase}
end
local ahead = length > 0 and redis.call('ZCOUNT', LINE, '-inf', tag) or 0
if isScarce and ahead > 0 then
  -- Those of accounts that have had their half stand before it, but are not before it: they are passed over.
  local blocked = {}
  for _, other in ipairs(redis.call('ZRANGE', LINE, 0, math.min(ahead, 200) - 1)) do
    local theirs = accountOf(other)
    if blocked[theirs] == nil then blocked[theirs] = theirs ~= account and shareSpentUntil(theirs, 0) > now end
    if blocked[theirs] then ahead = ahead - 1 end
  end
end
local slot = math.max(slotAt(ahead), shareSpentUntil(account, waiting))
-- With a free slot it may try, however long requests took of late: else a slow hour would never end.
if slot > now and answeredBy(slot) > deadline then
  return {state.closed > now and 'closed' or 'cap', '0', 0, math.ceil(slot - now), ahead, 0}
end
local busy = redis.call('ZCARD', LEASES) + ahead + 1 - concurrency
local congestion = busy > 0 and state.serviceMs * busy / concurrency or 0
if slot <= now and ahead >= ${DRAIN_LINE_LEAST} and not isScarce and now - busySince > ${DRAIN_MS} and widest >= ${DRAIN_MS} then
  -- How fast the line moves, whatever slows it: connections, or workers that are short of CPU.
  local drained = redis.call('ZCOUNT', LOG, score(now - ${DRAIN_MS}), '+inf')
  congestion = math.max(congestion, ahead / math.max(1, drained) * ${DRAIN_MS})
end
if length >= ${LINE_LENGTH_MAX} or (slot <= now and congestion > ${CONGESTION_MS_MAX}) then
  -- Who waits leaves the line by its deadline: it is not as long as this for longer than a caller would wait.
  return {'overloaded', '0', 0, math.ceil(math.max(1000, math.min(congestion / 2, deadline - now))), ahead, 0}
end
redis.call('ZADD', LINE, tag, member)
redis.call('ZADD', LINE_ENDS, score(deadline), member)
redis.call('HSET', FAIR, startField(account), tostring(tag + ${COST} / weight), waitingField(account), waiting + 1)
if length == 0 then redis.call('HSET', FAIR, 'busySince', tostring(now)) end
if length > 1000 and redis.call('HLEN', FAIR) > 8000 then forgetThoseServed(virtual) end
renew(length == 0, {FAIR, LINE, LINE_ENDS})
if KEYS[10] then redis.call('SET', KEYS[10], member, 'PX', math.max(1, math.ceil(deadline - now))) end
return {'ok', tostring(tag), priority, math.ceil(math.max(slot - now, congestion)), ahead, rebase}
`)

/**
 * Leaves the line without a permit. What the account's next call starts after is given back where that leaves no gap:
 * the last one in line leaves, or nothing is left in line. ARGV: member, account, weight.
 */
const LEAVE = new Script(`${PRELUDE}
redis.call('ZREM', PARKED, ARGV[1])
redis.call('ZREM', PARKED_ENDS, ARGV[1])
if KEYS[10] and redis.call('GET', KEYS[10]) == ARGV[1] then redis.call('DEL', KEYS[10]) end
local tag = tonumber(redis.call('ZSCORE', LINE, ARGV[1]))
if not tag then return 0 end
leaveLine({ARGV[1]})
local account = ARGV[2]
local fields = redis.call('HMGET', FAIR, 'now', startField(account), waitingField(account))
local virtual, start, waiting = tonumber(fields[1] or 0), tonumber(fields[2] or 0), tonumber(fields[3] or 0)
if start <= tag + ${COST} / tonumber(ARGV[3]) then redis.call('HSET', FAIR, startField(account), tostring(tag))
elseif waiting <= 0 then redis.call('HSET', FAIR, startField(account), tostring(virtual)) end
return 1
`)

/** Where a call stands, or a call that would come now. ARGV: member or '', then the cap. */
const LOOK = new Script(`${PRELUDE}
readRules(2)
if not readState() then state.since = 0 end
dropExpiredLine()
redis.call('ZREMRANGEBYSCORE', LEASES, '-inf', score(now))
local ahead = redis.call('ZCARD', LINE)
if ARGV[1] ~= '' then ahead = redis.call('ZRANK', LINE, ARGV[1]) or -1 end
local reply = {ahead, math.ceil(slotAt(math.max(0, ahead)) - now), redis.call('ZCARD', LEASES), freeNow()}
for _, rule in ipairs(rules) do
  reply[#reply + 1] = math.max(0, rule.max - redis.call('ZCOUNT', LOG, score(now - rule.window), '+inf'))
end
return reply
`)

/** Counts tags from where virtual time is now. Returns the base, and 0 when somebody else has moved it already. */
const REBASE = new Script(`
local fields = redis.call('HMGET', KEYS[1], 'now', 'base')
local virtual, base = tonumber(fields[1] or 0), tonumber(fields[2] or 0)
if virtual - base < ${TAG_SPAN_MAX / 2} then return {tostring(base), 0} end
redis.call('HSET', KEYS[1], 'base', tostring(virtual))
return {tostring(virtual), 1}
`)

/** A call as the line knows it. */
export interface Waiting {
  callId: string
  accountId: string
  /** Share of its plan: with twice the weight, twice the calls. */
  weight: number
  slug: string
  scope: CapScope
  /** Key under which identical calls share one flight; undefined where answers are not shared. */
  flightKey?: string | undefined
}

/** The call's member in the line; it begins with the account, by which shares are counted. */
export function lineMember({ accountId, callId }: Pick<Waiting, 'accountId' | 'callId'>): string {
  return `${accountId}|${callId}`
}

function keysOf({ slug, scope, flightKey }: Waiting): string[] {
  return flightKey === undefined ? capKeys.all(slug, scope) : [...capKeys.all(slug, scope), flightKey]
}

/**
 * Puts a call into its upstream's line, if its turn comes before its deadline (Redis time, milliseconds).
 *
 * @returns its place; or a refusal with the wait it would have had; or `unknown` when Redis has no memory of the cap
 */
export async function joinLine(
  redis: RedisConnection,
  call: Waiting,
  caps: Caps,
  deadline: number,
): Promise<Place | Refusal | 'unknown'> {
  const values = [lineMember(call), call.accountId, call.weight, deadline, ...capArguments(caps)]
  const reply = (await JOIN.run(redis, keysOf(call), values)) as [string, string, number, number, number, number]
  const [verdict, tag, priority, etaMs, ahead, needsRebase] = reply
  if (verdict === 'unknown') return 'unknown'
  if (verdict !== 'ok' && verdict !== 'follow') return { refused: verdict as Refusal['refused'], retryAfterMs: etaMs }
  return { tag: Number(tag), priority, etaMs, ahead, isFollower: verdict === 'follow', needsRebase: needsRebase === 1 }
}

/** Takes a call out of the line: its caller left, or it needed no permit. Harmless when it is not there. */
export async function leaveLine(redis: RedisConnection, call: Waiting): Promise<void> {
  await LEAVE.run(redis, keysOf(call), [lineMember(call), call.accountId, call.weight])
}

/** What is left of a cap, and when the next request may start. */
export interface CapState {
  /** Calls waiting, or those before the asked one; -1 when that one does not wait. */
  ahead: number
  nextSlotMs: number
  underWay: number
  /** Requests that may start now. */
  free: number
  /** What is left of each rate, in the cap's order. */
  left: number[]
}

/** Reads a cap as it stands, for one waiting call or for one that would come now. */
export async function readCap(
  redis: RedisConnection,
  slug: string,
  scope: CapScope,
  caps: Caps,
  call?: Pick<Waiting, 'accountId' | 'callId'>,
): Promise<CapState> {
  const reply = (await LOOK.run(redis, capKeys.all(slug, scope), [
    call ? lineMember(call) : '',
    ...capArguments(caps),
  ])) as number[]
  const [ahead = 0, nextSlotMs = 0, underWay = 0, free = 0, ...left] = reply
  return { ahead, nextSlotMs: Math.max(0, nextSlotMs), underWay, free, left }
}

/** Begins to count tags anew. @returns what tags are counted from now, and whether that moved just now */
export async function rebaseTags(
  redis: RedisConnection,
  slug: string,
  scope: CapScope,
): Promise<{ base: number; hasMoved: boolean }> {
  const [base, hasMoved] = (await REBASE.run(redis, capKeys.all(slug, scope), [])) as [string, number]
  return { base: Number(base), hasMoved: hasMoved === 1 }
}
