--[[ One atomic step for calls of one account that come together: account version, then the application's month, calls in
     flight, minute and month; the first that is used up refuses. Each call in turn takes a unit of each, or of none.
     The minute log has an entry for each call of the last 60 s, a rolling window; its scores are microseconds.
     Input:  KEYS version, minute log, in-flight leases, month count, and the application's where it has a bound
             ARGV[1] clock  ARGV[2] version (ANY_VERSION: not compared)  ARGV[3] call id (empty: read only)  ARGV[4] per minute  ARGV[5] in flight
             ARGV[6] per month (-1: no quota)  ARGV[7] lease (ms)  ARGV[8], ARGV[9] begin and end of the month (ms)
             ARGV[10] calls a month of the application (-1: no bound of its own)  ARGV[11…] ids of more calls
     Output: 'stale' (version changed), 'other-month', 'no-month-count' or 'no-application-count', and the time; else
             'ok', 'application-used', 'inFlight', 'minute' or 'month-used', the time, units of the minute, ms until one
             comes back, calls in flight, units of the month and of the application's; then of each further call: decision,
             units of the minute, calls in flight, units of the month and of the application's ]]
--- @include "../../redis/lua/clock.lua"
--- @include "../../redis/lua/set-back.lua"
local VERSION, MINUTE, IN_FLIGHT, MONTH, APPLICATION = unpack(KEYS)
local version, callId, perMinute, inFlightMax = ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local perMonth, leaseMs = tonumber(ARGV[6]), tonumber(ARGV[7])
local monthBegin, monthEnd = tonumber(ARGV[8]), tonumber(ARGV[9])
local perApplication = tonumber(ARGV[10])
local nowMs, nowMicros = math.floor(now), math.floor(now * 1000 + 0.5)
local MINUTE_MICROS = MINUTE_MS * 1000

-- A key's life is extended when less is left than it must last: reading the rest costs a fraction of writing it.
local function keepAlive(key, lifeMs)
  if redis.call('PTTL', key) < lifeMs then redis.call('PEXPIRE', key, 2 * lifeMs) end
end

if version ~= ANY_VERSION and redis.call('GET', VERSION) ~= version then return {'stale', nowMs} end
-- A refund finds its month by Redis' clock, so the node must name that month: its own clock may be past midnight.
if nowMs < monthBegin or nowMs >= monthEnd then return {'other-month', nowMs} end
redis.call('ZREMRANGEBYSCORE', MINUTE, '-inf', nowMicros - MINUTE_MICROS)
redis.call('ZREMRANGEBYSCORE', IN_FLIGHT, '-inf', nowMs)
local inMinute, inFlight, inMonth = redis.call('ZCARD', MINUTE), redis.call('ZCARD', IN_FLIGHT), 0
if perMonth >= 0 then
  local counted = redis.call('GET', MONTH)
  if not counted then return {'no-month-count', nowMs} end
  inMonth = tonumber(counted)
end

local ofApplication = 0
if perApplication >= 0 then
  local counted = redis.call('GET', APPLICATION)
  if not counted then return {'no-application-count', nowMs} end
  ofApplication = tonumber(counted)
end

local minuteEntries, leases, granted = {}, {}, 0
local function acquire(id)
  if perApplication >= 0 and ofApplication >= perApplication then return 'application-used' end
  if inFlight >= inFlightMax then return 'inFlight' end
  if inMinute >= perMinute then return 'minute' end
  if perMonth >= 0 and inMonth >= perMonth then return 'month-used' end
  local length = #leases
  minuteEntries[length + 1], minuteEntries[length + 2] = nowMicros, id
  leases[length + 1], leases[length + 2] = nowMs + leaseMs, id
  inMinute, inFlight, granted = inMinute + 1, inFlight + 1, granted + 1
  if perMonth >= 0 then inMonth = inMonth + 1 end
  ofApplication = ofApplication + 1
  return 'ok'
end

local decision = callId == '' and 'ok' or acquire(callId)
local first, more = {inMinute, inFlight, inMonth, ofApplication}, {}
local lastDecision = decision
for index = 11, #ARGV do
  lastDecision = acquire(ARGV[index])
  for _, value in ipairs({lastDecision, inMinute, inFlight, inMonth, ofApplication}) do more[#more + 1] = value end
end
if granted > 0 then
  redis.call('ZADD', MINUTE, unpack(minuteEntries))
  redis.call('ZADD', IN_FLIGHT, unpack(leases))
  keepAlive(MINUTE, 2 * MINUTE_MS)
  keepAlive(IN_FLIGHT, LEASE_MS_MAX)
  if perMonth >= 0 then redis.call('INCRBY', MONTH, granted) end
  if perApplication >= 0 then redis.call('INCRBY', APPLICATION, granted) end
end

-- Leases that nobody ends do so by time: after a clock was set back, no later than new ones.
if lastDecision == 'inFlight' then followSetBack(IN_FLIGHT, string.format('%.0f', nowMs + LEASE_MS_MAX)) end

-- A unit comes back when the oldest entry leaves the window; over a limit that was lowered, when enough have left. Once the
-- minute refuses a call it refuses all after it, so the last decision says whether it refused any.
local rank = lastDecision == 'minute' and inMinute - perMinute or 0
local oldest = redis.call('ZRANGE', MINUTE, rank, rank, 'WITHSCORES')
local resetMs = 0
if oldest[2] then resetMs = math.ceil((tonumber(oldest[2]) + MINUTE_MICROS - nowMicros) / 1000) end
if resetMs > MINUTE_MS and followSetBack(MINUTE, string.format('%.0f', nowMicros)) then resetMs = MINUTE_MS end
return {decision, nowMs, first[1], resetMs, first[2], first[3], first[4], unpack(more)}
