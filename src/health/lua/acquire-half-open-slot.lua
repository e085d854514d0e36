--[[ Acquires the half-open slot of an open breaker: one attempt at a time may hold it.
     Input   KEYS[1] health hash
             ARGV[1] time; ARGV[2] token of the attempt; ARGV[3] lease, ms; ARGV[4] slug; ARGV[5] 1: skips the pause
     Output  {'closed', 0} · {'slot', 0} · {'wait', ms until the next} ]]
--- @include "../../redis/lua/clock.lua"
--- @include "./read-health.lua"
local token, leaseMs, slug, isForced = ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5] == '1'
if h.open ~= '1' then return {'closed', 0} end
local isHeld = (h.trialBy or '') ~= ''
if num('trialAt') > now and (isHeld or not isForced) then return {'wait', math.ceil(num('trialAt') - now)} end
redis.call('HSET', key, 'trialBy', token, 'trialAt', text(now + leaseMs))
redis.call('PUBLISH', HEALTH_CHANNEL, slug)
return {'slot', 0}
