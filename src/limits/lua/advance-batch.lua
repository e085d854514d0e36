--[[ Ends calls of a batch and hands the lease of each to the next one: never more calls are in flight than the plan allows,
     and nobody takes a lease in between. Then undoes what calls took that will not be made. A second time does nothing.
     Input:  KEYS version of the account, minute log, in-flight leases, and for live calls the month's count and the
             application's count if it has a bound
             ARGV[1] clock  ARGV[2] lease (ms)  ARGV[3] number of ended calls, then of each its id, what is refunded for it
             ('nothing', 'month' or 'all') and the next call (empty: none), then calls that will not be made
     Output: how many of the ended calls had a lease, and the account's version now (empty: none) ]]
--- @include "../../redis/lua/clock.lua"
local VERSION, MINUTE, IN_FLIGHT, MONTH, APPLICATION = unpack(KEYS)
local leaseMs, count = tonumber(ARGV[2]), tonumber(ARGV[3])
local firstDropped = 4 + 3 * count

local function refund(counter)
  if counter and tonumber(redis.call('GET', counter) or 0) > 0 then redis.call('DECR', counter) end
end
local function refundMonth()
  refund(MONTH)
  refund(APPLICATION)
end
local function undo(callId)
  if redis.call('ZREM', MINUTE, callId) == 1 then refundMonth() end
end

local hadLease, leases = 0, {}
for index = 4, firstDropped - 1, 3 do
  local ended, refunded, nextCall = ARGV[index], ARGV[index + 1], ARGV[index + 2]
  if redis.call('ZREM', IN_FLIGHT, ended) == 1 then
    hadLease = hadLease + 1
    if refunded == 'all' then undo(ended) end
    if refunded == 'month' then refundMonth() end
    if nextCall ~= '' then
      leases[#leases + 1] = math.floor(now) + leaseMs
      leases[#leases + 1] = nextCall
    end
  end
end
if #leases > 0 then
  redis.call('ZADD', IN_FLIGHT, unpack(leases))
  -- The end of its last lease deleted the key, and its life with it.
  redis.call('PEXPIRE', IN_FLIGHT, 2 * LEASE_MS_MAX)
end
for index = firstDropped, #ARGV do undo(ARGV[index]) end
return {hadLease, redis.call('GET', VERSION) or ''}
