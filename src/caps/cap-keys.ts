import type { Caps } from '../catalog/upstream.ts'
import { channels } from '../redis/keys.ts'

/**
 * How much longer than the upstream's window ours is, milliseconds. A permit is used within PERMIT_AGE_MS_MAX of its
 * grant; the rest is for the network. So what is exact at the grant is exact as the upstream sees it.
 */
const WINDOW_MARGIN_MS = 500

/** How long a permit may be used after its grant, milliseconds. */
export const PERMIT_AGE_MS_MAX = 250

/** How long a parked call counts after its worker last spoke for it, milliseconds: a dead worker blocks nobody. */
export const PARKED_MS = 1_500

/**
 * How long a cap stays closed when Redis lost its memory, milliseconds, or its window where that is shorter. What was
 * sent before that is restored from Postgres.
 */
export const QUARANTINE_MS = 60_000 + WINDOW_MARGIN_MS

/** Whose cap it is: that of the address we call from, or that of a key. */
export type CapScope = string

/** The cap of calls without a key of the caller's. */
export const SHARED_SCOPE: CapScope = 'shared'

/**
 * Tells the worker of a parked call that its turn may have come: a connection that one worker frees is the next one's
 * within a round trip, not when that one happens to ask again.
 */
export const TELL_TURN = `
local function tellTurn(member)
  redis.call('PUBLISH', '${channels.wakeUp}', string.sub(KEYS[4], 1, -#'waiters' - 1) .. ' ' .. member)
end
local function tellFirst(count)
  for _, member in ipairs(redis.call('ZRANGE', KEYS[4], 0, count - 1)) do tellTurn(member) end
end
`

/** A cap as a script's last arguments: concurrency, number of rates, then each rate's max and window in milliseconds. */
export function capArguments({ concurrency, rates }: Caps): number[] {
  return [concurrency, rates.length, ...rates.flatMap(({ max, seconds }) => [max, seconds * 1_000 + WINDOW_MARGIN_MS])]
}

/**
 * What every script of a cap begins with: names of its keys, Redis' time, the cap's rules from argument `FIRST` on, and
 * the questions "how many may start now" and "when may the one with so many ahead of it".
 *
 * The log holds a grant's time per permit (`account|id`), so that any rolling window is counted exactly. `line` is who
 * was admitted and has no permit yet, by fair tag; `parked` those of them whose worker asks for one right now.
 */
export const PRELUDE = `
local FAIR, LINE, LINE_ENDS, PARKED, PARKED_ENDS, LOG, LEASES, STATE, ASKED = unpack(KEYS)
local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000
local function score(value) return string.format('%.3f', value) end

local concurrency = 0
local rules = {}
local widest = 0
local isScarce = false
local SCARCE_MAX = 100
local function readRules(first)
  concurrency = tonumber(ARGV[first])
  for index = 1, tonumber(ARGV[first + 1]) do
    local max, window = tonumber(ARGV[first + 2 * index]), tonumber(ARGV[first + 2 * index + 1])
    rules[index] = { max = max, window = window }
    widest = math.max(widest, window)
    if max > 1 and max <= SCARCE_MAX then isScarce = true end
  end
end

local function dropExpiredParked()
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', PARKED_ENDS, '-inf', score(now), 'LIMIT', 0, 1000)) do
    redis.call('ZREM', PARKED_ENDS, member)
    redis.call('ZREM', PARKED, member)
  end
end

-- Keys of an idle cap end by themselves; it is long, so their life is renewed when half of it is over.
local LIFE_MS = 86400000
local function renew(isFirst, keys)
  if not isFirst and redis.call('PTTL', keys[1]) > widest + LIFE_MS / 2 then return end
  for _, key in ipairs(keys) do redis.call('PEXPIRE', key, widest + LIFE_MS) end
end

-- False when Redis has no memory of this cap: the caller must say since when there is one.
local state = {}
local function readState()
  local fields = redis.call('HMGET', STATE, 'since', 'closed', 'left', 'leftUntil', 'serviceMs', 'restored')
  state = { since = tonumber(fields[1]), closed = tonumber(fields[2] or 0), left = tonumber(fields[3] or 0),
    leftUntil = tonumber(fields[4] or 0), serviceMs = tonumber(fields[5] or 0), restored = fields[6] == '1' }
  return state.since ~= nil
end

local function quarantineEnd(rule)
  if state.since == 0 then return 0 end
  return state.since + math.min(rule.window, ${QUARANTINE_MS})
end

-- Requests that may start at this instant.
local function freeNow()
  if state.closed > now then return 0 end
  local free = concurrency - redis.call('ZCARD', LEASES)
  for _, rule in ipairs(rules) do
    if now < quarantineEnd(rule) then return 0 end
    free = math.min(free, rule.max - redis.call('ZCOUNT', LOG, score(now - rule.window), '+inf'))
  end
  if state.leftUntil > now then free = math.min(free, state.left) end
  return math.max(0, free)
end

-- When the rates let a request start that has \`ahead\` others before it.
local function slotAt(ahead)
  local slot = math.max(now, state.closed)
  if state.leftUntil > now and ahead >= state.left then slot = math.max(slot, state.leftUntil) end
  for _, rule in ipairs(rules) do
    local rank = ahead % rule.max
    local at = math.max(now, quarantineEnd(rule))
    local used = redis.call('ZCOUNT', LOG, score(now - rule.window), '+inf')
    local place = used + rank - rule.max
    if place >= 0 then
      local entry = redis.call('ZRANGEBYSCORE', LOG, score(now - rule.window), '+inf', 'WITHSCORES', 'LIMIT', place, 1)
      if entry[2] then at = math.max(at, tonumber(entry[2]) + rule.window) end
    end
    slot = math.max(slot, at + math.floor(ahead / rule.max) * rule.window)
  end
  return slot
end

-- No account holds more than half of a scarce cap while others ask: when this one's call may start that has so many
-- of its own before it; 0: now.
local ASKED_MS = 300000
local function shareSpentUntil(account, waiting)
  if not isScarce then return 0 end
  local untilWhen = 0
  for _, rule in ipairs(rules) do
    if rule.max > 1 and rule.max <= SCARCE_MAX then
      local since = now - math.min(rule.window, ASKED_MS)
      local asking = redis.call('ZCOUNT', ASKED, score(since), '+inf')
      if tonumber(redis.call('ZSCORE', ASKED, account) or 0) >= since then asking = asking - 1 end
      if asking > 0 then
        local half, own = math.floor(rule.max / 2), {}
        local entries = redis.call('ZRANGEBYSCORE', LOG, score(now - rule.window), '+inf', 'WITHSCORES')
        for index = 1, #entries, 2 do
          if string.sub(entries[index], 1, #account + 1) == account .. '|' then own[#own + 1] = tonumber(entries[index + 1]) end
        end
        -- Each starts a window after the one that is half a cap before it.
        local place, windows = #own + waiting, 0
        while place >= #own and place >= half do
          place, windows = place - half, windows + 1
        end
        if windows > 0 then untilWhen = math.max(untilWhen, (own[place + 1] or now) + windows * rule.window) end
      end
    end
  end
  return untilWhen
end

-- Fields of FAIR: how many of an account's calls are in line, and where its next one starts, in virtual time.
local function waitingField(account) return 'w:' .. account end
local function startField(account) return 'f:' .. account end
local function accountOf(member) return string.match(member, '^[^|]*') end

-- Those of the members that are in line leave it.
local function leaveLine(members)
  local tags = redis.call('ZMSCORE', LINE, unpack(members))
  local left = {}
  for index, member in ipairs(members) do
    if tags[index] then
      local account = accountOf(member)
      left[account] = (left[account] or 0) + 1
    end
  end
  for account, count in pairs(left) do redis.call('HINCRBY', FAIR, waitingField(account), -count) end
  redis.call('ZREM', LINE, unpack(members))
  redis.call('ZREM', LINE_ENDS, unpack(members))
end
-- Those whose deadline has passed; returns how many they were.
local function dropExpiredLine()
  local expired = redis.call('ZRANGEBYSCORE', LINE_ENDS, '-inf', score(now), 'LIMIT', 0, 1000)
  if #expired > 0 then leaveLine(expired) end
  return #expired
end
`
