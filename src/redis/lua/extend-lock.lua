--[[ Extends or releases a lock if one of these tokens still holds it, because the lock may have
     expired and may have another holder by now.
     Input:  KEYS lock, then keys that are deleted in the same step, whoever holds it  ARGV[1] ms
             (0: release it)
             ARGV[2…] tokens; the lock keeps the first
     Output: 1 if one of the tokens held it ]]
local LOCK, lifeMs, token = KEYS[1], ARGV[1], ARGV[2]
if #KEYS > 1 then redis.call('DEL', unpack(KEYS, 2)) end
local holder, isHeld = redis.call('GET', LOCK), false
for index = 2, #ARGV do isHeld = isHeld or holder == ARGV[index] end
if not isHeld then return 0 end
if lifeMs == '0' then redis.call('DEL', LOCK) else redis.call('SET', LOCK, token, 'PX', lifeMs) end
return 1
