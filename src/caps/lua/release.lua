--[[ Ends permits while no call of the worker waits for a permit.
     Input:  ARGV[1] unused clock  ARGV[2] mean service time (ms; empty: nothing was sent under
             them, and they do not count)
             ARGV[3…] permits
     Output: 1 if calls of other workers wait for a permit, else 0 ]]
--- @include "./include/keys.lua"
--- @include "./include/release-permits.lua"
--- @include "./include/notify.lua"
local meanMs, permits = tonumber(ARGV[2]), {}
for index = 3, #ARGV do permits[#permits + 1] = ARGV[index] end
if meanMs then
  releasePermits(permits, meanMs)
else
  redis.call('ZREM', LOG, unpack(permits))
  local ended = redis.call('ZREM', LEASES, unpack(permits))
  if ended > 0 and redis.call('HEXISTS', STATE, 'left') == 1 then redis.call('HINCRBY', STATE, 'left', ended) end
end
return math.min(1, notifyFirst(#permits))
