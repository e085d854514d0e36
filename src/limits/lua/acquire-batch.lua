--[[ One atomic step for the calls of a batch: account version, calls in flight, minute, month. Takes a unit of minute and
     month for each call, or for the first that fit, and leases for as many as may be in flight now.
     Input:  KEYS version, minute log, in-flight leases, month count, and the application's where it has a bound
             ARGV[1] clock  ARGV[2] version  ARGV[3] empty, as single calls alone have an id there  ARGV[4] per minute  ARGV[5] in flight
             ARGV[6] per month (-1: no quota)  ARGV[7] lease (ms)  ARGV[8], ARGV[9] begin and end of the month (ms)
             ARGV[10] calls a month of the application (-1: no bound)  ARGV[11] 'all' or 'fit'  ARGV[12…] call ids
     Output: 'stale', 'other-month', 'no-month-count' or 'no-application-count', and the time; else 'ok', 'application-used',
             'inFlight', 'minute' or 'month-used', the time, units of the minute, ms until one comes back (refused: until
             the calls fit, or of 'fit' one does), calls in flight, units of the month and of the application's, calls that have their units,
             calls that have a lease, and which limit the calls without units did not fit into ('ok': all have theirs) ]]
--- @include "../../redis/lua/clock.lua"
--- @include "../../redis/lua/set-back.lua"
local VERSION, MINUTE, IN_FLIGHT, MONTH, APPLICATION = unpack(KEYS)
local version, perMinute, inFlightMax = ARGV[2], tonumber(ARGV[4]), tonumber(ARGV[5])
local perMonth, leaseMs = tonumber(ARGV[6]), tonumber(ARGV[7])
local monthBegin, monthEnd, perApplication = tonumber(ARGV[8]), tonumber(ARGV[9]), tonumber(ARGV[10])
local isAll, FIRST_ID = ARGV[11] == 'all', 12
local count = #ARGV - FIRST_ID + 1
local nowMs, nowMicros = math.floor(now), math.floor(now * 1000 + 0.5)
local MINUTE_MICROS = MINUTE_MS * 1000

if redis.call('GET', VERSION) ~= version then return {'stale', nowMs} end
if nowMs < monthBegin or nowMs >= monthEnd then return {'other-month', nowMs} end
redis.call('ZREMRANGEBYSCORE', MINUTE, '-inf', nowMicros - MINUTE_MICROS)
redis.call('ZREMRANGEBYSCORE', IN_FLIGHT, '-inf', nowMs)
local inMinute, inFlight, inMonth = redis.call('ZCARD', MINUTE), redis.call('ZCARD', IN_FLIGHT), 0
local left, ofApplication = {minute = perMinute - inMinute}, 0
if perMonth >= 0 then
  local counted = redis.call('GET', MONTH)
  if not counted then return {'no-month-count', nowMs} end
  inMonth = tonumber(counted)
  left['month-used'] = perMonth - inMonth
end
if perApplication >= 0 then
  local counted = redis.call('GET', APPLICATION)
  if not counted then return {'no-application-count', nowMs} end
  ofApplication = tonumber(counted)
  left['application-used'] = perApplication - ofApplication
end

local decision, granted = 'ok', count
for _, limit in ipairs({'minute', 'month-used', 'application-used'}) do
  if left[limit] and left[limit] < granted then
    decision, granted = limit, math.max(0, left[limit])
  end
end
local cutBy = decision
if granted > 0 and not isAll then decision = 'ok' end
if inFlight >= inFlightMax then
  decision = 'inFlight'
  -- Leases that nobody ends do so by time: after a clock was set back, no later than new ones.
  followSetBack(IN_FLIGHT, string.format('%.0f', nowMs + LEASE_MS_MAX))
end
local leases = 0
if decision == 'ok' then
  leases = math.min(granted, inFlightMax - inFlight)
  for index = 1, granted do
    local callId = ARGV[FIRST_ID + index - 1]
    redis.call('ZADD', MINUTE, nowMicros, callId)
    if index <= leases then redis.call('ZADD', IN_FLIGHT, nowMs + leaseMs, callId) end
  end
  redis.call('PEXPIRE', MINUTE, 4 * MINUTE_MS)
  redis.call('PEXPIRE', IN_FLIGHT, 2 * LEASE_MS_MAX)
  inMinute, inFlight = inMinute + granted, inFlight + leases
  if perMonth >= 0 then inMonth = redis.call('INCRBY', MONTH, granted) end
  if perApplication >= 0 then ofApplication = redis.call('INCRBY', APPLICATION, granted) end
else
  granted = 0
end

-- All of them fit when enough entries have left the window; of a batch that may be cut one fits before.
local wanted = isAll and count or 1
local index = decision == 'minute' and inMinute + wanted - perMinute - 1 or 0
local entry = redis.call('ZRANGE', MINUTE, index, index, 'WITHSCORES')
local resetMs = 0
if entry[2] then resetMs = math.ceil((tonumber(entry[2]) + MINUTE_MICROS - nowMicros) / 1000) end
if resetMs > MINUTE_MS and followSetBack(MINUTE, string.format('%.0f', nowMicros)) then resetMs = MINUTE_MS end
return {decision, nowMs, inMinute, resetMs, inFlight, inMonth, ofApplication, granted, leases, cutBy}
