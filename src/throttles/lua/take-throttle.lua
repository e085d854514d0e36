--[[ Takes a unit of a throttle.
     Without a longest wait: never more than `max` units in any window. With a longest wait: after
     `max` units, each further unit waits a second, two, four and so on, and all units are
     forgotten a window after the last.
     Input:  KEYS log  ARGV[1] clock  ARGV[2] max  ARGV[3] unit (empty: none is taken)  ARGV[4]
             window (ms)  ARGV[5] longest wait (ms; 0: none)
     Output: 0 if the unit is or could be taken, else ms until it can be ]]
--- @include "../../redis/lua/clock.lua"
--- @include "../../redis/lua/set-back.lua"
local LOG, max, unit, windowMs = KEYS[1], tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4])
local waitMsMax = tonumber(ARGV[5])
local nowMs = math.floor(now)
if waitMsMax == 0 then redis.call('ZREMRANGEBYSCORE', LOG, '-inf', nowMs - windowMs) end
local surplus = redis.call('ZCARD', LOG) - max
if surplus >= 0 then
  followSetBack(LOG, string.format('%.0f', nowMs))
  local from, waitMs = 0, windowMs
  if waitMsMax > 0 then from, waitMs = -1, math.min(1000 * 2 ^ surplus, waitMsMax) end
  local endsAt = redis.call('ZRANGE', LOG, from, from, 'WITHSCORES')[2] + waitMs
  if endsAt > nowMs then return endsAt - nowMs end
end
if unit == '' then return 0 end
redis.call('ZADD', LOG, nowMs, unit)
-- Bounds the log of a client that never stops. The wait has reached its maximum long before.
if waitMsMax > 0 then redis.call('ZREMRANGEBYRANK', LOG, 0, -max - 32) end
redis.call('PEXPIRE', LOG, windowMs)
return 0
