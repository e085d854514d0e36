--[[ Trusts the upstream with one request at once, and with one more for each that ends from now on. How long requests
     took before says nothing of those to come.
     Input:  ARGV[1] unused clock
     Output: 1 ]]
--- @include "./include/keys.lua"
local permits = redis.call('HGET', STATE, 'permits')
redis.call('HSET', STATE, 'ramp', 1, 'rampPermit', tonumber(permits or 0))
redis.call('HDEL', STATE, 'serviceMs')
-- The first permit gives it a longer life.
if not permits then redis.call('PEXPIRE', STATE, KEY_LIFE_MS) end
return 1
