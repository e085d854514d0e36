--[[ Takes an attempt to log in to one account from one client: after `free` failures each has to
     wait, twice as long every time. An attempt counts as failed from the start; a good attempt
     deletes the key.
     Input:  KEYS failures  ARGV[1] clock  ARGV[2] free  ARGV[3] longest wait (ms)  ARGV[4] memory
             of failures (ms)
     Output: 0 if the attempt may be made, else ms until it may ]]
--- @include "../../redis/lua/clock.lua"
local FAILURES, free, waitMax, keptMs = KEYS[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local nowMs = math.floor(now)
local kept = redis.call('HMGET', FAILURES, 'count', 'at')
local count, at = tonumber(kept[1] or 0), tonumber(kept[2] or 0)
if at > nowMs then
  -- The clock was set back.
  at = nowMs
  redis.call('HSET', FAILURES, 'at', at)
end
if count >= free then
  local waitMs = math.min(1000 * 2 ^ math.min(count - free, 30), waitMax)
  if nowMs - at < waitMs then return waitMs - (nowMs - at) end
end
redis.call('HSET', FAILURES, 'count', count + 1, 'at', nowMs)
redis.call('PEXPIRE', FAILURES, keptMs)
return 0
