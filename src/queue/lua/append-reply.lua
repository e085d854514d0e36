--[[ Appends to a reply stream that may not be there, and renews its life in the same step: nobody
     else would end it.
     Input:  KEYS stream  ARGV[1] life (s)  ARGV[2] entries at most  ARGV[3…] names and values of
             the entry ]]
local STREAM = KEYS[1]
local seconds, lengthMax = ARGV[1], ARGV[2]
redis.call('XADD', STREAM, 'MAXLEN', '~', lengthMax, '*', unpack(ARGV, 3))
redis.call('EXPIRE', STREAM, seconds)
