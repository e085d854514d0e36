--[[ Says since when Redis knows the cap's past; a second time does nothing.
     Input:  ARGV[1] unused clock  ARGV[2] ms since the epoch, 0: there is no past
     Output: 1 when it was not known before ]]
--- @include "./include/keys.lua"
return redis.call('HSETNX', STATE, 'initialisedAt', ARGV[2])
