--[[ Extends or releases a lock, if one of these tokens still holds it: it may have ended meanwhile, and be another's.
     Input:  KEYS lock  ARGV[1] ms (0: release it)  ARGV[2…] tokens; the lock keeps the first
     Output: 1 when one of them held it ]]
local LOCK, lifeMs, token = KEYS[1], ARGV[1], ARGV[2]
local holder, isHeld = redis.call('GET', LOCK), false
for index = 2, #ARGV do isHeld = isHeld or holder == ARGV[index] end
if not isHeld then return 0 end
if lifeMs == '0' then redis.call('DEL', LOCK) else redis.call('SET', LOCK, token, 'PX', lifeMs) end
return 1
