--[[ Keeps the body of a reply until its node takes it, within the bytes that the bodies of an
     account may take. A single body always fits.
     Input:  KEYS body, index of the account's bodies (`<bytes> <call id>` by when they end, ms)
             ARGV[1] clock  ARGV[2] body  ARGV[3] its member of the index  ARGV[4] life (ms)
     Output: 0; when it has to wait for others to be taken, ms until the first of them ends ]]
--- @include "../../redis/lua/clock.lua"
local BODY, INDEX = unpack(KEYS)
local body, member, lifeMs = ARGV[2], ARGV[3], tonumber(ARGV[4])
local nowMs = math.floor(now)
redis.call('ZREMRANGEBYSCORE', INDEX, '-inf', nowMs)
redis.call('ZREM', INDEX, member)
local waiting, bytes = redis.call('ZRANGE', INDEX, 0, -1), 0
for _, other in ipairs(waiting) do bytes = bytes + tonumber(string.match(other, '^%d+')) end
if #waiting > 0 and bytes + #body > BODIES_BYTES_MAX then
  return math.max(1, redis.call('ZRANGE', INDEX, 0, 0, 'WITHSCORES')[2] - nowMs)
end
redis.call('SET', BODY, body, 'PX', lifeMs)
redis.call('ZADD', INDEX, nowMs + lifeMs, member)
redis.call('PEXPIRE', INDEX, lifeMs)
return 0
