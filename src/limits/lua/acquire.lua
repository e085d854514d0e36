--[[ One atomic step for the calls of one account. Each call takes a unit of the minute, of the month and of the application's
     month, and a lease, which makes it a call in flight. The calls take theirs in order, as many as fit. All calls after a
     refused call are refused by the same limit, so the script computes how many fit, and takes the units of all of them together.
     The minute log has an entry for each call of the last 60 s, a rolling window; its scores are microseconds.
     Input:  KEYS version, minute log, in-flight leases, month count, and the application's count if it has a bound
             ARGV[1] clock  ARGV[2] version (ANY_VERSION: not compared)
             ARGV[3] 'each': every call takes a lease. For the calls of a batch 'fit' (as many calls as fit) or 'all' (all calls
             or none): the first calls take leases, and the others wait until `end.lua` hands them a lease
             ARGV[4] calls a minute  ARGV[5] calls in flight  ARGV[6] calls a month (-1: no quota)  ARGV[7] lease (ms)
             ARGV[8], ARGV[9] begin and end of the month (ms)  ARGV[10] calls a month of the application (-1: no bound)
             ARGV[11…] call ids; without ids the script only reads
     Output: 'stale' (version changed), 'other-month', 'no-month-count' or 'no-application-count', and the time; else the limit
             that refuses the other calls ('ok': none; 'application-used', 'inFlight', 'minute' or 'month-used'), the time, and
             as they were before: units of the minute, calls in flight, units of the month and of the application's month; then
             ms until a unit of the minute comes back (if the minute refuses a call: until that call fits; if it refuses 'all':
             until all fit), number of calls that have their units, and number of calls that have a lease ]]
--- @include "../../redis/lua/clock.lua"
--- @include "../../redis/lua/set-back.lua"
local VERSION, MINUTE, IN_FLIGHT, MONTH, APPLICATION = unpack(KEYS)
local version, take, perMinute, inFlightMax = ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local perMonth, leaseMs, perApplication = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[10])
local monthBegin, monthEnd = tonumber(ARGV[8]), tonumber(ARGV[9])
local FIRST_ID = 11
local count = #ARGV - FIRST_ID + 1
local nowMs, nowMicros = math.floor(now), math.floor(now * 1000 + 0.5)
local MINUTE_MICROS = MINUTE_MS * 1000

-- Extends a key's life if less is left than it must last, because reading the rest costs a fraction of writing it.
local function keepAlive(key, lifeMs)
  if redis.call('PTTL', key) < lifeMs then redis.call('PEXPIRE', key, 2 * lifeMs) end
end

if version ~= ANY_VERSION and redis.call('GET', VERSION) ~= version then return {'stale', nowMs} end
-- A refund finds its month by Redis' clock, so the node must name that month: its own clock may be past midnight.
if nowMs < monthBegin or nowMs >= monthEnd then return {'other-month', nowMs} end
redis.call('ZREMRANGEBYSCORE', MINUTE, '-inf', nowMicros - MINUTE_MICROS)
redis.call('ZREMRANGEBYSCORE', IN_FLIGHT, '-inf', nowMs)
local inMinute, inFlight, inMonth, ofApplication = redis.call('ZCARD', MINUTE), redis.call('ZCARD', IN_FLIGHT), 0, 0
if perMonth >= 0 then
  local counted = redis.call('GET', MONTH)
  if not counted then return {'no-month-count', nowMs} end
  inMonth = tonumber(counted)
end
if perApplication >= 0 then
  local counted = redis.call('GET', APPLICATION)
  if not counted then return {'no-application-count', nowMs} end
  ofApplication = tonumber(counted)
end

-- How many calls each limit lets through. The first of the strictest limits refuses the other calls.
local leasesLeft = math.max(0, inFlightMax - inFlight)
local mayWait = take ~= 'each' and leasesLeft > 0
local decision, granted = 'ok', count
local function bound(limit, left)
  if math.max(0, left) < granted then decision, granted = limit, math.max(0, left) end
end
if perApplication >= 0 then bound('application-used', perApplication - ofApplication) end
bound('inFlight', mayWait and count or leasesLeft)
bound('minute', perMinute - inMinute)
if perMonth >= 0 then bound('month-used', perMonth - inMonth) end
if take == 'all' and granted < count then granted = 0 end
local leases = math.min(granted, leasesLeft)

if granted > 0 then
  local entries, ends = {}, {}
  for index = 1, granted do
    local callId = ARGV[FIRST_ID + index - 1]
    entries[2 * index - 1], entries[2 * index] = nowMicros, callId
    if index <= leases then ends[2 * index - 1], ends[2 * index] = nowMs + leaseMs, callId end
  end
  redis.call('ZADD', MINUTE, unpack(entries))
  redis.call('ZADD', IN_FLIGHT, unpack(ends))
  keepAlive(MINUTE, 2 * MINUTE_MS)
  keepAlive(IN_FLIGHT, LEASE_MS_MAX)
  if perMonth >= 0 then redis.call('INCRBY', MONTH, granted) end
  if perApplication >= 0 then redis.call('INCRBY', APPLICATION, granted) end
end

-- Leases that nobody ends do so by time: after a clock was set back, no later than new leases.
if decision == 'inFlight' then followSetBack(IN_FLIGHT, string.format('%.0f', nowMs + LEASE_MS_MAX)) end

-- A unit comes back when the oldest entry leaves the window. Over a limit that was lowered, more entries must leave first.
local wanted = take == 'all' and count or 1
local rank = decision == 'minute' and inMinute + granted + wanted - perMinute - 1 or 0
local entry = redis.call('ZRANGE', MINUTE, rank, rank, 'WITHSCORES')
local resetMs = 0
if entry[2] then resetMs = math.ceil((tonumber(entry[2]) + MINUTE_MICROS - nowMicros) / 1000) end
if resetMs > MINUTE_MS and followSetBack(MINUTE, string.format('%.0f', nowMicros)) then resetMs = MINUTE_MS end
return {decision, nowMs, inMinute, inFlight, inMonth, ofApplication, resetMs, granted, leases}
