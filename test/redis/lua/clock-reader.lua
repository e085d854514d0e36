--[[ Input: ARGV[1] the time; ARGV[2] a number. Output: the time and the number times FACTOR. ]]
--- @include "../../../src/redis/lua/clock.lua"
--- @include "../../../src/redis/lua/clock.lua"
local number = tonumber(ARGV[2])
return {score(now), number * FACTOR, #NAMES}
