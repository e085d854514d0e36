--[[ Takes a call that needs no permit any more out of the queue; harmless when it is not there. If
     that leaves no gap in its share's calls, the share's next call starts where this call would
     have. The groups around the share get back what the call took of them.
     Input:  KEYS[11] coalesced (may be absent)  ARGV[1] unused clock, the rules, then member,
             weight
     Output: 1 when it was queued ]]
--- @include "./include/keys.lua"
--- @include "./include/rules.lua"
--- @include "./include/fair.lua"
--- @include "./include/dequeue.lua"
--- @include "./include/notify.lua"
local COALESCED, member, weight = KEYS[11], ARGV[afterRules], tonumber(ARGV[afterRules + 1])
local wasWaiting = redis.call('ZREM', WAITERS, member) == 1
redis.call('ZREM', WAITER_EXPIRIES, member)
redis.call('ZREM', EVICTED, member)
-- It may have been woken up for a permit that it has not requested yet.
if wasWaiting then notifyFirst(1) end
if COALESCED and redis.call('GET', COALESCED) == member then redis.call('DEL', COALESCED) end
local tag = tonumber(redis.call('ZSCORE', QUEUE, member))
if not tag then return 0 end
dequeue({member})
local path, whole, names = pathOf(shareOf(member)), math.floor(tag), {'now'}
for _, group in ipairs(path) do names[#names + 1], names[#names + 2] = startField(group), queuedField(group) end
local fair = redis.call('HMGET', FAIR, unpack(names))
local virtual = tonumber(fair[1] or 0)
for level, group in ipairs(path) do
  local start, queued = tonumber(fair[2 * level] or 0), tonumber(fair[2 * level + 1] or 0)
  local cost = COST / weight / widthOf(path, level)
  if level < #path then
    redis.call('HSET', FAIR, startField(group), tostring(math.max(virtual, start - cost)))
  elseif start <= whole + cost then
    redis.call('HSET', FAIR, startField(group), tostring(whole))
  elseif queued <= 0 then
    redis.call('HSET', FAIR, startField(group), tostring(virtual))
  end
end
return 1
