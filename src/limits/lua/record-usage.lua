--[[ Counts calls that have ended, once: repeated under the same id it does nothing.
     Input:  KEYS pending counts, marker of the id  ARGV field, calls, field, calls, …
     Output: 1; 0 if they were counted before ]]
local PENDING, MARKER = unpack(KEYS)
if not redis.call('SET', MARKER, 1, 'NX', 'EX', MARKER_SECONDS) then return 0 end
for index = 1, #ARGV, 2 do redis.call('HINCRBY', PENDING, ARGV[index], ARGV[index + 1]) end
return 1
