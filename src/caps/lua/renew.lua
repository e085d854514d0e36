--[[ Extends the leases of permits whose requests are still under way.
     Input:  ARGV[1] clock  ARGV[2] lease (ms)  ARGV[3…] permits
     Output: how many leases still existed ]]
--- @include "../../redis/lua/clock.lua"
--- @include "./include/keys.lua"
local endsAt, renewed = score(now + tonumber(ARGV[2])), 0
for index = 3, #ARGV do
  redis.call('ZADD', LEASES, 'XX', endsAt, ARGV[index])
  if redis.call('ZSCORE', LEASES, ARGV[index]) then renewed = renewed + 1 end
end
return renewed
