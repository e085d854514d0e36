--[[ Ends calls of one account: ends the lease of each call, and gives back the units that the call
     does not cost. A second time does nothing. A call without a lease was ended before, or its
     lease is over, and gives nothing back. There are two exceptions. An asynchronous call may
     outlive its lease, so a marker says whether it was ended before. A call that costs nothing at
     all may still have waited for its lease, so its entry of the last minute says whether its units
     were given back before.
     The lease of a call of a batch goes to the next call in the same step, so never more calls are
     in flight than the plan allows.
     Input:  KEYS version, minute log, in-flight leases, then counts of months, markers, and minute
             logs of credentials, each with the credential's leases behind it
             ARGV[1] clock  ARGV[2] lease of a next call (ms), then of each call: its id, 1 if it
                     costs nothing at all (its unit of the minute comes back too), the numbers of
                     the KEYS of the account's month and of the credential's month to which its
                     units come back, of its marker, and of the minute log of its credential (0:
                     none), and the next call, which gets its lease (empty: none)
     Output: how many calls had not been ended before; and if a call has a next call, the account's
             version (empty: none) ]]
local VERSION, MINUTE, IN_FLIGHT = unpack(KEYS)
local leaseMs = tonumber(ARGV[2])
local CHUNK = 1000
local ended, plain, units, handedOn, hasNext = 0, {}, {}, {}, false

local function giveBack(counter)
  if counter then units[counter] = (units[counter] or 0) + 1 end
end

-- Seven values of each call, as the header lists them. Numbers name KEYS; 0 names none.
for index = 3, #ARGV, 7 do
  local callId, costsNothing, nextCall = ARGV[index], ARGV[index + 1] == '1', ARGV[index + 6]
  local month, ofCredential = KEYS[tonumber(ARGV[index + 2])], KEYS[tonumber(ARGV[index + 3])]
  local marker, credential = KEYS[tonumber(ARGV[index + 4])], tonumber(ARGV[index + 5])
  local itsMinute, itsLeases
  if credential > 0 then itsMinute, itsLeases = KEYS[credential], KEYS[credential + 1] end
  if not costsNothing and not month and not marker and not itsLeases and nextCall == '' then
    plain[#plain + 1] = callId
  else
    local hadLease = redis.call('ZREM', IN_FLIGHT, callId) == 1
    local hadUnit = costsNothing and redis.call('ZREM', MINUTE, callId) == 1
    if itsLeases then redis.call('ZREM', itsLeases, callId) end
    if itsLeases and costsNothing then redis.call('ZREM', itsMinute, callId) end
    local isFirstEnd = hadLease or hadUnit
    if marker then isFirstEnd = redis.call('SET', marker, '', 'NX', 'PX', ENDED_MS) ~= false end
    if isFirstEnd then
      ended = ended + 1
      giveBack(month)
      giveBack(ofCredential)
    end
    if nextCall ~= '' then
      hasNext = true
      if hadLease then handedOn[#handedOn + 1] = {nextCall, itsLeases} end
    end
  end
end
-- These calls give nothing back, so it does not matter which of them had a lease.
for first = 1, #plain, CHUNK do
  ended = ended + redis.call('ZREM', IN_FLIGHT, unpack(plain, first, math.min(first + CHUNK - 1, #plain)))
end
for counter, count in pairs(units) do
  local used = tonumber(redis.call('GET', counter) or 0)
  if used > 0 then redis.call('DECRBY', counter, math.min(count, used)) end
end
if #handedOn > 0 then
--- @include "../../redis/lua/clock.lua"
  -- A key without leases is deleted, and its expiry with it, so each new lease sets the expiry.
  local function addLease(leases, callId)
    redis.call('ZADD', leases, math.floor(now) + leaseMs, callId)
    redis.call('PEXPIRE', leases, 2 * LEASE_MS_MAX)
  end
  for _, handed in ipairs(handedOn) do
    local callId, itsLeases = handed[1], handed[2]
    addLease(IN_FLIGHT, callId)
    if itsLeases then addLease(itsLeases, callId) end
  end
end
return {ended, hasNext and redis.call('GET', VERSION) or ''}
