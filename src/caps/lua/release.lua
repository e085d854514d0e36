--[[ Ends permits while no call of the worker waits for one.
     Input:  ARGV[1] unused clock  ARGV[2] mean service time (ms)  ARGV[3…] permits
     Output: 1 where calls of other workers wait for a permit, else 0 ]]
--- @include "./include/keys.lua"
--- @include "./include/release-permits.lua"
--- @include "./include/notify.lua"
local meanMs, permits = tonumber(ARGV[2]), {}
for index = 3, #ARGV do permits[#permits + 1] = ARGV[index] end
releasePermits(permits, meanMs)
return math.min(1, notifyFirst(#permits))
