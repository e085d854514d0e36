--[[ Ends a call of a batch and hands its lease to the next one: never more calls are in flight than the plan allows, and
     nobody takes the lease in between. Then undoes what calls took that will not be made. A second time does nothing.
     Input:  KEYS minute log, in-flight leases, month count, and the application's where it has a bound
             ARGV[1] clock  ARGV[2] ended call (empty: none)  ARGV[3] what comes back for it: 'nothing', 'month' or 'all'
             ARGV[4] next call (empty: none)  ARGV[5] lease (ms)  ARGV[6…] calls that will not be made
     Output: 1 when the ended call had a lease ]]
--- @include "../../redis/lua/clock.lua"
local MINUTE, IN_FLIGHT, MONTH, CONNECTION = unpack(KEYS)
local ended, comesBack, nextCall, leaseMs = ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5])

local function giveBack(count)
  if count and tonumber(redis.call('GET', count) or 0) > 0 then redis.call('DECR', count) end
end
local function undo(callId)
  if redis.call('ZREM', MINUTE, callId) == 0 then return end
  giveBack(MONTH)
  giveBack(CONNECTION)
end

local hadLease = ended ~= '' and redis.call('ZREM', IN_FLIGHT, ended) or 0
if hadLease == 1 then
  if comesBack == 'all' then undo(ended) end
  if comesBack == 'month' then giveBack(MONTH) end
  if nextCall ~= '' then redis.call('ZADD', IN_FLIGHT, math.floor(now) + leaseMs, nextCall) end
end
for index = 6, #ARGV do undo(ARGV[index]) end
return hadLease
