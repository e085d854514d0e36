--[[ Trusts the upstream with one request at once, and with one more for each that ends from now on. How long requests
     took before says nothing of those to come.
     Input:  ARGV[1] unused clock
     Output: 1 ]]
--- @include "./include/keys.lua"
redis.call('HSET', STATE, 'ramp', 1, 'rampPermit', tonumber(redis.call('HGET', STATE, 'permits') or 0))
redis.call('HDEL', STATE, 'serviceMs')
return 1
