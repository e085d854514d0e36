--[[ Holds the cap to what the upstream says of its own limiter.
     Input:  ARGV[1] clock, the rules, then closed for (ms; 0: not closed), requests left (empty:
             not said), until they are renewed (ms), permit of the request whose response said so
     Output: 1 ]]
--- @include "../../redis/lua/clock.lua"
--- @include "./include/keys.lua"
--- @include "./include/rules.lua"
--- @include "./include/state.lua"
--- @include "./include/dequeue.lua"
--- @include "./include/notify.lua"
--- @include "./include/schedule.lua"
--- @include "./include/evict.lua"
--- @include "./include/key-life.lua"
local closedForMs, remaining = tonumber(ARGV[afterRules]), tonumber(ARGV[afterRules + 1])
local resetMs, observedBy = tonumber(ARGV[afterRules + 2]), ARGV[afterRules + 3]
local leftPermit, permits = unpack(redis.call('HMGET', STATE, 'leftPermit', 'permits'))
local granted = tonumber(permits or 0)
if closedForMs > 0 then
  state.closed = math.max(state.closed, now + closedForMs)
  redis.call('HSET', STATE, 'closed', score(state.closed))
  -- When it opens again one request finds out whether it does, and the others follow its response.
  redis.call('HSET', STATE, 'ramp', 1, 'rampPermit', granted)
end
if remaining then
  -- The upstream has counted this request, and perhaps not the others under way: the lower figure
  -- is the safe one.
  local others = redis.call('ZCARD', LEASES) - (redis.call('ZSCORE', LEASES, observedBy) and 1 or 0)
  local left = math.max(0, remaining - others)
  -- A slow response to a request that was granted before the last report knows no better than that
  -- report.
  local number = tonumber(string.match(observedBy, '%d+$'))
  if state.leftUntil > now and number and number <= tonumber(leftPermit or 0) then left = math.min(left, state.left) end
  state.left, state.leftUntil = left, now + resetMs
  redis.call('HSET', STATE, 'left', left, 'leftUntil', score(state.leftUntil), 'leftPermit', granted)
end
if not permits then keepAlive(true, {STATE}) end
if (closedForMs > 0 or remaining) and redis.call('ZCARD', QUEUE) > 0 then evictTooLate() end
return 1
