--[[ Undoes a permit under which nothing was sent.
     Input:  ARGV[1] clock  ARGV[2] permit
     Output: 1 ]]
--- @include "../../redis/lua/clock.lua"
--- @include "./include/keys.lua"
--- @include "./include/notify.lua"
local permit = ARGV[2]
redis.call('ZREM', LOG, permit)
if redis.call('ZREM', LEASES, permit) == 1 then
  local leftUntil = tonumber(redis.call('HGET', STATE, 'leftUntil') or 0)
  if leftUntil > now then redis.call('HINCRBY', STATE, 'left', 1) end
end
notifyFirst(1)
return 1
