--[[ Puts back grants from before Redis lost its memory, and evicts the calls that joined without
     them and are too late; a second time does nothing.
     Input:  ARGV[1] clock, the rules, then time (ms) and number of grants, in turn
     Output: 1 when it was done now ]]
--- @include "../../redis/lua/clock.lua"
--- @include "./include/keys.lua"
--- @include "./include/rules.lua"
--- @include "./include/state.lua"
--- @include "./include/evict.lua"
--- @include "./include/key-life.lua"
if state.isBackfilled then return 0 end
for index = afterRules, #ARGV, 2 do
  local at, granted = ARGV[index], tonumber(ARGV[index + 1])
  for number = 1, granted do redis.call('ZADD', LOG, at, 'restored|' .. at .. '|' .. number) end
end
redis.call('HSET', STATE, 'backfilled', '1')
keepAlive(true, {LOG, STATE})
if redis.call('ZCARD', QUEUE) > 0 then evictTooLate() end
return 1
