--[[ Trusts the upstream with one request at once, and with one more for each that ends from now on.
     How long requests took before says nothing of the requests to come.
     Input:  ARGV[1] unused clock  ARGV[2] 1 if what the upstream said of its limiter no longer
             holds
     Output: 1 ]]
--- @include "./include/keys.lua"
--- @include "./include/notify.lua"
local permits = redis.call('HGET', STATE, 'permits')
redis.call('HSET', STATE, 'ramp', 1, 'rampPermit', tonumber(permits or 0))
redis.call('HDEL', STATE, 'serviceMs')
-- The first permit gives it a longer life.
if not permits then redis.call('PEXPIRE', STATE, KEY_LIFE_MS) end
if ARGV[2] == '1' then
  redis.call('HDEL', STATE, 'closed', 'left', 'leftUntil', 'leftPermit')
  notifyFirst(1)
end
return 1
