--[[ Renews or ends the lead of a coalesced request, if it is still the caller's.
     Input:  KEYS leader  ARGV[1] call id  ARGV[2] ms (0: end it)
     Output: 1 when it was the caller's ]]
local LEADER, callId, leaseMs = KEYS[1], ARGV[1], ARGV[2]
if redis.call('GET', LEADER) ~= callId then return 0 end
if leaseMs == '0' then redis.call('DEL', LEADER) else redis.call('PEXPIRE', LEADER, leaseMs) end
return 1
