--[[ Undoes all that a call took which was refused after all: it costs nothing. A second time does nothing.
     Input:  KEYS minute log, in-flight leases, month count, and the application's where it has a bound  ARGV[1] call id
     Output: 1 when it had taken anything ]]
local MINUTE, IN_FLIGHT, MONTH, APPLICATION = unpack(KEYS)
local callId = ARGV[1]
if redis.call('ZREM', IN_FLIGHT, callId) == 0 then return 0 end
redis.call('ZREM', MINUTE, callId)
for _, count in ipairs({MONTH, APPLICATION}) do
  if tonumber(redis.call('GET', count) or 0) > 0 then redis.call('DECR', count) end
end
return 1
