--[[ Notes that a worker begins with an asynchronous call, unless the call has an outcome.
     A cancellation stores an outcome. The later of the two sees the earlier, so that a call that
     was cancelled before it began never begins.
     Input:  KEYS result, started  ARGV[1] life (ms)
     Output: 1, or 0 if the call has an outcome: nothing was done ]]
local RESULT, STARTED = unpack(KEYS)
if redis.call('EXISTS', RESULT) == 1 then return 0 end
redis.call('SET', STARTED, 1, 'PX', ARGV[1])
return 1
