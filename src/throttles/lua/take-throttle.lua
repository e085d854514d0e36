--[[ Takes a unit of a throttle: never more than `max` in any window.
     Input:  KEYS log  ARGV[1] clock  ARGV[2] max  ARGV[3] unit (empty: none is taken)  ARGV[4]
             window (ms)
     Output: 0 if the unit is or could be taken, else ms until the oldest one leaves the window ]]
--- @include "../../redis/lua/clock.lua"
--- @include "../../redis/lua/set-back.lua"
local LOG, max, unit, windowMs = KEYS[1], tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4])
local nowMs = math.floor(now)
redis.call('ZREMRANGEBYSCORE', LOG, '-inf', nowMs - windowMs)
if redis.call('ZCARD', LOG) >= max then
  followSetBack(LOG, string.format('%.0f', nowMs))
  return math.max(1, redis.call('ZRANGE', LOG, 0, 0, 'WITHSCORES')[2] + windowMs - nowMs)
end
if unit == '' then return 0 end
redis.call('ZADD', LOG, nowMs, unit)
redis.call('PEXPIRE', LOG, windowMs)
return 0
