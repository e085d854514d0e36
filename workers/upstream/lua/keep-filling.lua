--[[ Renews or ends the marker of a fill, if it is still this fill's.
     Input:  KEYS marker  ARGV[1] token of the fill  ARGV[2] ms (0: end it)
     Output: 1 when it was ]]
local MARKER, token, lifeMs = KEYS[1], ARGV[1], ARGV[2]
if redis.call('GET', MARKER) ~= token then return 0 end
if lifeMs == '0' then redis.call('DEL', MARKER) else redis.call('PEXPIRE', MARKER, lifeMs) end
return 1
