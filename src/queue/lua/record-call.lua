--[[ Remembers an asynchronous call, unless the results of its account take all the bytes that they
     may already.
     Input:  KEYS call, index of the account's results, their bytes
             ARGV[1] clock  ARGV[2] what is remembered  ARGV[3] life (s)  ARGV[4] bytes of all
                     results
     Output: 0, or ms until a result ends: nothing was done ]]
--- @include "../../redis/lua/clock.lua"
--- @include "./include/results.lua"
local CALL, INDEX, TOTAL = unpack(KEYS)
local record, seconds, bytesMax = ARGV[2], ARGV[3], tonumber(ARGV[4])
local nowMs = math.floor(now)
if bytesKept(INDEX, TOTAL, nowMs) >= bytesMax then return untilNextEnd(INDEX, nowMs) end
redis.call('SET', CALL, record, 'EX', seconds)
return 0
