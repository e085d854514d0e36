--[[ Takes a call out of the queue that needs no permit any more; harmless when it is not there. Where that leaves no
     gap in its account's calls, the account's next one starts where this one would have.
     Input:  KEYS[10] flight (may be absent)  ARGV[1] unused clock  ARGV[2] member  ARGV[3] weight
     Output: 1 when it was queued ]]
--- @include "./include/keys.lua"
--- @include "./include/dequeue.lua"
local FLIGHT, member, weight = KEYS[10], ARGV[2], tonumber(ARGV[3])
redis.call('ZREM', WAITERS, member)
redis.call('ZREM', WAITER_EXPIRIES, member)
if FLIGHT and redis.call('GET', FLIGHT) == member then redis.call('DEL', FLIGHT) end
local tag = tonumber(redis.call('ZSCORE', QUEUE, member))
if not tag then return 0 end
dequeue({member})
local account = accountOf(member)
local fair = redis.call('HMGET', FAIR, 'now', startField(account), waitingField(account))
local virtual, start, waiting = tonumber(fair[1] or 0), tonumber(fair[2] or 0), tonumber(fair[3] or 0)
if start <= tag + COST / weight then
  redis.call('HSET', FAIR, startField(account), tostring(tag))
elseif waiting <= 0 then
  redis.call('HSET', FAIR, startField(account), tostring(virtual))
end
return 1
