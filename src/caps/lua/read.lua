--[[ Reads the cap as it is now, for one queued call or for one that would come now.
     Input:  ARGV[1] clock, the rules, then the member (empty: a call that would come now)
     Output: calls before it (-1: it is not queued), ms until its slot, requests under way, requests that may start
             now, then what is left of each rate ]]
--- @include "../../redis/lua/clock.lua"
--- @include "./include/keys.lua"
--- @include "./include/rules.lua"
--- @include "./include/state.lua"
--- @include "./include/slots.lua"
--- @include "./include/dequeue-expired.lua"
local member = ARGV[afterRules]
dequeueExpired()
redis.call('ZREMRANGEBYSCORE', LEASES, '-inf', score(now))
local ahead = redis.call('ZCARD', QUEUE)
if member ~= '' then ahead = redis.call('ZRANK', QUEUE, member) or -1 end
local reply = {ahead, math.ceil(slotAt(math.max(0, ahead)) - now), redis.call('ZCARD', LEASES), freeNow()}
for _, rule in ipairs(rules) do reply[#reply + 1] = math.max(0, rule.max - usedOf(rule)) end
return reply
