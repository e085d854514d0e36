--[[ Ends permits while no call of the worker waits for a permit.
     Input:  ARGV[1] unused clock  ARGV[2] mean service time of the used permits (ms)
             ARGV[3] number of used permits
             ARGV[4…] these, then permits under which nothing was sent, which do not count
     Output: 1 if calls of other workers wait for a permit, else 0 ]]
--- @include "./include/keys.lua"
--- @include "./include/release-permits.lua"
--- @include "./include/notify.lua"
local meanMs, firstUnused = tonumber(ARGV[2]), 4 + tonumber(ARGV[3])
local used, unused = {}, {}
for index = 4, firstUnused - 1 do used[#used + 1] = ARGV[index] end
for index = firstUnused, #ARGV do unused[#unused + 1] = ARGV[index] end
releasePermits(used, meanMs)
takeBackPermits(unused)
return math.min(1, notifyFirst(#used + #unused))
