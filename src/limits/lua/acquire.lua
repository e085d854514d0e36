--[[ One atomic step for the calls of one account. Each call takes a unit of the minute and of the
     month, and a lease, which makes it a call in flight; if the owner of the credential set limits,
     it takes the same of the credential. The calls take theirs in order, as many as fit. All calls
     after a refused call are refused by the same limit, so the script computes how many fit, and
     takes the units of all of them together.
     A minute log has an entry for each call of the last 60 s, a rolling window; its scores are
     microseconds.
     Input:  KEYS version; of the account minute log, in-flight leases, month count, expected ends;
             and the first three of a credential with limits
             ARGV[1] clock  ARGV[2] version (ANY_VERSION: not compared)
             ARGV[3] which calls take leases. 'each': every call. For the calls of a batch 'fit' (as
                     many calls as fit) or 'all' (all calls or none): the first calls take leases,
                     and the others wait until `end.lua` hands them a lease
             ARGV[4] lease (ms)  ARGV[5], ARGV[6] begin and end of the month (ms)
             ARGV[7] calls a minute  ARGV[8] calls in flight  ARGV[9] calls a month
             ARGV[10], ARGV[11], ARGV[12] the same of the credential; -1: no bound, and the script
                     counts nothing for it
             ARGV[13…] call ids; without ids the script only reads
     Output: 'stale' (version changed), 'other-month', 'no-month-count' or 'no-credential-count',
             and the time; else the limit that refuses the other calls ('ok': none; 'in-flight',
             'minute' or 'month', of the credential with 'credential-' before it), the time, number
             of calls that have their units, number of calls that have a lease; ms until none of the
             limits refuses the other calls (for calls in flight: until the first of them is
             expected to end; 0: at any moment); and of the account and then of the credential, as
             they were before: units of the minute, calls in flight, units of the month, and ms
             until a unit of the minute comes back (if the minute refuses a call: until that call
             fits; if it refuses 'all': until all fit) ]]
--- @include "../../redis/lua/clock.lua"
--- @include "../../redis/lua/set-back.lua"
local VERSION, EXPECTED_ENDS = KEYS[1], KEYS[5]
local version, take, leaseMs = ARGV[2], ARGV[3], tonumber(ARGV[4])
local monthBegin, monthEnd = tonumber(ARGV[5]), tonumber(ARGV[6])
local FIRST_ID = 13
local count = #ARGV - FIRST_ID + 1
local nowMs, nowMicros = math.floor(now), math.floor(now * 1000 + 0.5)
local MINUTE_MICROS = MINUTE_MS * 1000

-- Extends a key's lifetime only if too little is left, because reading the lifetime costs a
-- fraction of writing it.
local function keepAlive(key, lifeMs)
  if redis.call('PTTL', key) < lifeMs then redis.call('PEXPIRE', key, 2 * lifeMs) end
end

-- The limits of the account, or of the credential.
local function limitsOf(prefix, firstKey, firstBound)
  return {
    prefix = prefix, minute = KEYS[firstKey], leases = KEYS[firstKey + 1], month = KEYS[firstKey + 2],
    perMinute = tonumber(ARGV[firstBound]), inFlightMax = tonumber(ARGV[firstBound + 1]),
    perMonth = tonumber(ARGV[firstBound + 2]), inMinute = 0, inFlight = 0, inMonth = 0, resetMs = 0,
  }
end
local account, credential = limitsOf('', 2, 7), KEYS[6] and limitsOf('credential-', 6, 10)
-- The limits in the order in which they refuse.
local allLimits = credential and {credential, account} or {account}

if version ~= ANY_VERSION and redis.call('GET', VERSION) ~= version then return {'stale', nowMs} end
-- A refund finds its month by Redis' clock, so the node must name this month. The node's own clock
-- may already be past midnight.
if nowMs < monthBegin or nowMs >= monthEnd then return {'other-month', nowMs} end
for _, limits in ipairs(allLimits) do
  if limits.perMinute >= 0 then
    redis.call('ZREMRANGEBYSCORE', limits.minute, '-inf', nowMicros - MINUTE_MICROS)
    limits.inMinute = redis.call('ZCARD', limits.minute)
  end
  if limits.inFlightMax >= 0 then
    redis.call('ZREMRANGEBYSCORE', limits.leases, '-inf', nowMs)
    limits.inFlight = redis.call('ZCARD', limits.leases)
  end
  if limits.perMonth >= 0 then
    local counted = redis.call('GET', limits.month)
    if not counted then return {limits == account and 'no-month-count' or 'no-credential-count', nowMs} end
    limits.inMonth = tonumber(counted)
  end
end

-- How many calls each limit allows. The first of the strictest limits refuses the other calls.
local leasesLeft = math.huge
for _, limits in ipairs(allLimits) do
  if limits.inFlightMax >= 0 then leasesLeft = math.min(leasesLeft, math.max(0, limits.inFlightMax - limits.inFlight)) end
end
-- If at least one call of a batch may be in flight now, the others may wait for its lease.
local mayWait = take ~= 'each' and leasesLeft > 0
local decision, granted = 'ok', count
local function bound(limit, left)
  if math.max(0, left) < granted then decision, granted = limit, math.max(0, left) end
end
for _, limits in ipairs(allLimits) do
  if limits.inFlightMax >= 0 then bound(limits.prefix .. 'in-flight', mayWait and count or limits.inFlightMax - limits.inFlight) end
  if limits.perMinute >= 0 then bound(limits.prefix .. 'minute', limits.perMinute - limits.inMinute) end
  if limits.perMonth >= 0 then bound(limits.prefix .. 'month', limits.perMonth - limits.inMonth) end
end
if take == 'all' and granted < count then granted = 0 end
local leases = math.min(granted, leasesLeft)

if granted > 0 then
  local entries, ends = {}, {}
  for index = 1, granted do
    local callId = ARGV[FIRST_ID + index - 1]
    entries[2 * index - 1], entries[2 * index] = nowMicros, callId
    if index <= leases then ends[2 * index - 1], ends[2 * index] = nowMs + leaseMs, callId end
  end
  for _, limits in ipairs(allLimits) do
    if limits.perMinute >= 0 then
      redis.call('ZADD', limits.minute, unpack(entries))
      keepAlive(limits.minute, 2 * MINUTE_MS)
    end
    if limits.inFlightMax >= 0 then
      redis.call('ZADD', limits.leases, unpack(ends))
      keepAlive(limits.leases, LEASE_MS_MAX)
    end
    if limits.perMonth >= 0 then redis.call('INCRBY', limits.month, granted) end
  end
end

-- EXPECTED_ENDS does not contain calls that are expected to end within a second.
local function msToNextEnd(leasesOf)
  local ids = redis.call('ZRANGE', leasesOf, 0, LEASES_READ_MAX - 1)
  if #ids == 0 then return 0 end
  local soonest = math.huge
  for _, endsAt in ipairs(redis.call('ZMSCORE', EXPECTED_ENDS, unpack(ids))) do
    soonest = math.min(soonest, math.max(0, (tonumber(endsAt or nowMs)) - nowMs))
  end
  return soonest
end

-- So many calls must fit before the refused calls may come again.
local wanted = granted < count and (take == 'all' and count or 1) or 0
local waitMs, usedBefore = 0, {}
local function waitFor(ms) waitMs = math.max(waitMs, ms) end
for index = #allLimits, 1, -1 do
  local limits = allLimits[index]
  -- If nobody ends a lease, it expires. If the clock was set back meanwhile, the lease is shortened
  -- to the end of the longest lease that may begin now.
  if limits.inFlightMax >= 0 and wanted > 0 and limits.inFlight + leases >= limits.inFlightMax then
    followSetBack(limits.leases, string.format('%.0f', nowMs + LEASE_MS_MAX))
    waitFor(msToNextEnd(limits.leases))
  end
  -- A unit comes back when the oldest entry leaves the window. Over a limit that was lowered, more
  -- entries must leave first.
  if limits.perMinute >= 0 then
    local surplus = limits.inMinute + granted + wanted - limits.perMinute
    local isRefusing = wanted > 0 and surplus > 0
    -- The rank of the entry that must leave the window before the wanted calls fit.
    local rank = isRefusing and surplus - 1 or 0
    local entry = redis.call('ZRANGE', limits.minute, rank, rank, 'WITHSCORES')
    if entry[2] then limits.resetMs = math.ceil((tonumber(entry[2]) + MINUTE_MICROS - nowMicros) / 1000) end
    if limits.resetMs > MINUTE_MS and followSetBack(limits.minute, string.format('%.0f', nowMicros)) then limits.resetMs = MINUTE_MS end
    if isRefusing then waitFor(limits.resetMs) end
  end
  if limits.perMonth >= 0 and wanted > 0 and limits.inMonth + granted + wanted > limits.perMonth then waitFor(monthEnd - nowMs) end
  for _, value in ipairs({limits.inMinute, limits.inFlight, limits.inMonth, limits.resetMs}) do usedBefore[#usedBefore + 1] = value end
end
return {decision, nowMs, granted, leases, waitMs, unpack(usedBefore)}
