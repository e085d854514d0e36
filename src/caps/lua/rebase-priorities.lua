--[[ Counts job priorities from where virtual time is now.
     Input:  none
     Output: the base, and 1 when it moved just now ]]
--- @include "./include/keys.lua"
local fields = redis.call('HMGET', FAIR, 'now', 'base')
local virtual, base = tonumber(fields[1] or 0), tonumber(fields[2] or 0)
if virtual - base < TAG_SPAN_MAX / 2 then return {tostring(base), 0} end
redis.call('HSET', FAIR, 'base', tostring(virtual))
return {tostring(virtual), 1}
