--[[ Puts items into a pool.
     Input:  KEYS pool  ARGV[1] life of the pool (s)  ARGV[2…] items
     Output: how many items the pool has ]]
local POOL = KEYS[1]
local count = redis.call('RPUSH', POOL, unpack(ARGV, 2))
redis.call('EXPIRE', POOL, ARGV[1])
return count
