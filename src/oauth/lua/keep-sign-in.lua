--[[ Keeps a sign-in that no user has finished. When its client or all clients have too many, the
     oldest one goes.
     Input:  KEYS sign-in, sign-ins of the client, all sign-ins  ARGV[1] clock  ARGV[2] sign-in,
             sealed  ARGV[3] life (ms)
             ARGV[4] most of the client  ARGV[5] most of all
     Output: nothing ]]
--- @include "../../redis/lua/clock.lua"
local SIGN_IN, OF_CLIENT, ALL = KEYS[1], KEYS[2], KEYS[3]
local sealed, lifeMs, clientMax, allMax = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local nowMs = math.floor(now)
local function enter(index, max)
  redis.call('ZREMRANGEBYSCORE', index, '-inf', nowMs - lifeMs)
  redis.call('ZADD', index, nowMs, SIGN_IN)
  redis.call('PEXPIRE', index, lifeMs)
  local surplus = redis.call('ZCARD', index) - max
  if surplus <= 0 then return end
  for _, oldest in ipairs(redis.call('ZRANGE', index, 0, surplus - 1)) do
    redis.call('DEL', oldest)
    -- The set of another client keeps the name until a later sign-in of that client removes it, or
    -- until the set expires. Until then the name counts against that client, although the sign-in
    -- is gone.
    redis.call('ZREM', index, oldest)
    redis.call('ZREM', ALL, oldest)
  end
end
redis.call('SET', SIGN_IN, sealed, 'PX', lifeMs)
enter(OF_CLIENT, clientMax)
enter(ALL, allMax)
