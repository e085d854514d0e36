--[[ Renews or ends the lead of a coalesced request, if it is still the caller's.
     Input:  KEYS leader  ARGV[1] call id  ARGV[2] ms (0: end it)  ARGV[3] 1: its request has been sent to the upstream
     Output: 1 when it was the caller's ]]
local LEADER, callId, leaseMs, isSent = KEYS[1], ARGV[1], ARGV[2], ARGV[3] == '1'
local leader = redis.call('GET', LEADER)
if leader ~= callId and leader ~= callId .. SENT then return 0 end
if leaseMs == '0' then redis.call('DEL', LEADER)
else redis.call('SET', LEADER, isSent and callId .. SENT or callId, 'PX', leaseMs) end
return 1
