--[[ Renews or ends the lead of a coalesced request, if the member still has it.
     Input:  KEYS leader  ARGV[1] the leader's member  ARGV[2] ms (0: end it)  ARGV[3] 1: its request has been sent to the upstream
     Output: 1 when the member had it ]]
local LEADER, member, leaseMs, isSent = KEYS[1], ARGV[1], ARGV[2], ARGV[3] == '1'
local leader = redis.call('GET', LEADER)
if leader ~= member and leader ~= member .. SENT then return 0 end
if leaseMs == '0' then redis.call('DEL', LEADER)
else redis.call('SET', LEADER, isSent and member .. SENT or member, 'PX', leaseMs) end
return 1
