--[[ Holds the cap to what the upstream says of its own limiter.
     Input:  ARGV[1] clock  ARGV[2] closed for (ms; 0: not closed)  ARGV[3] requests left (empty: not said)
             ARGV[4] until they are renewed (ms)  ARGV[5] permit of the request whose response said so
     Output: 1 ]]
--- @include "../../redis/lua/clock.lua"
--- @include "./include/keys.lua"
local closedForMs, remaining, resetMs, observedBy = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5]
if closedForMs > 0 and now + closedForMs > tonumber(redis.call('HGET', STATE, 'closed') or 0) then
  redis.call('HSET', STATE, 'closed', score(now + closedForMs))
end
if remaining then
  -- The upstream has counted this request, and perhaps not the others under way: the lower figure is the safe one.
  local others = redis.call('ZCARD', LEASES) - (redis.call('ZSCORE', LEASES, observedBy) and 1 or 0)
  local left = math.max(0, remaining - others)
  -- A slow response to a request that was granted before the last report knows no better than that report.
  local known = redis.call('HMGET', STATE, 'left', 'leftUntil', 'leftPermit', 'permits')
  local number = tonumber(string.match(observedBy, '%d+$'))
  if tonumber(known[2] or 0) > now and number and number <= tonumber(known[3] or 0) then
    left = math.min(left, tonumber(known[1] or 0))
  end
  redis.call('HSET', STATE, 'left', left, 'leftUntil', score(now + resetMs), 'leftPermit', known[4] or 0)
end
return 1
