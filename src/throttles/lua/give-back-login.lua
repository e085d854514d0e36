--[[ Takes an attempt to log in off the count of failures: it failed for another reason than its
     password.
     Input:  KEYS failures
     Output: failures left; at none the key is gone: also if a good log-in had deleted it, or it
             would have no end ]]
local FAILURES = KEYS[1]
local left = redis.call('HINCRBY', FAILURES, 'count', -1)
if left > 0 then return left end
redis.call('DEL', FAILURES)
return 0
