--[[ Undoes all that a call took which was refused after all: it costs nothing. A second time does nothing.
     Input:  KEYS minute log, in-flight leases, then the month counts from which it took a unit  ARGV[1] call id
     Output: 1 when it had taken anything ]]
local MINUTE, IN_FLIGHT = unpack(KEYS)
local callId = ARGV[1]
if redis.call('ZREM', IN_FLIGHT, callId) == 0 then return 0 end
redis.call('ZREM', MINUTE, callId)
for index = 3, #KEYS do
  if tonumber(redis.call('GET', KEYS[index]) or 0) > 0 then redis.call('DECR', KEYS[index]) end
end
return 1
