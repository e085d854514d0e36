--[[ Says since when Redis knows the cap's past; a second time does nothing.
     Input:  ARGV[1] unused clock  ARGV[2] ms since the epoch, 0: there is no past
     Output: 1 when it was not known before ]]
--- @include "./include/keys.lua"
local isNew = redis.call('HSETNX', STATE, 'initialisedAt', ARGV[2])
-- The first permit gives it a longer life; a bucket whose calls get none is forgotten.
if isNew == 1 then redis.call('PEXPIRE', STATE, KEY_LIFE_MS) end
return isNew
