--[[ Keeps the outcome of a call, within the bytes that its account's results may take. The first
     outcome stays.
     Input:  KEYS result, index of the account's results, their bytes, started, call
             ARGV[1] clock  ARGV[2] frame  ARGV[3] call id  ARGV[4] life (ms)  ARGV[5] bytes of all
                     results (-1: no bound)
     Output: 'kept', 'earlier' (another outcome is kept) or 'full' (nothing was done), ms until a
             result ends, and 1 if a worker has begun with the call ]]
--- @include "../../redis/lua/clock.lua"
--- @include "./include/results.lua"
local RESULT, INDEX, TOTAL, STARTED, CALL = unpack(KEYS)
local frame, callId, lifeMs, bytesMax = ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local nowMs = math.floor(now)
if redis.call('EXISTS', RESULT) == 1 then return {'earlier', 0, 0} end
local size = #frame + RECORD_BYTES
if bytesMax >= 0 and bytesKept(INDEX, TOTAL, nowMs) + size > bytesMax then
  return {'full', untilNextEnd(INDEX, nowMs), 0}
end
redis.call('SET', RESULT, frame, 'PX', lifeMs)
-- The call is forgotten with its result; a call without a result would count as late.
redis.call('PEXPIRE', CALL, lifeMs)
redis.call('ZADD', INDEX, nowMs + lifeMs, size .. ' ' .. callId)
redis.call('INCRBY', TOTAL, size)
-- Both keys end together, after the end of the last result.
redis.call('PEXPIRE', INDEX, lifeMs)
redis.call('PEXPIRE', TOTAL, lifeMs)
return {'kept', 0, redis.call('EXISTS', STARTED)}
