--[[ Takes prefetched items, all or none.
     Input:  KEYS pool  ARGV[1] how many
     Output: the items ]]
local POOL, count = KEYS[1], ARGV[1]
if redis.call('LLEN', POOL) < tonumber(count) then return {} end
return redis.call('LPOP', POOL, count)
