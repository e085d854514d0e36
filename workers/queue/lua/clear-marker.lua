--[[ Takes the marker off a queue in which no job waits. BullMQ sets it with every job that a worker
     takes, and a worker that it wakes finds nothing.
     Input:  KEYS marker, jobs without priority, jobs with priority, delayed jobs
     Output: below 0 how many jobs wait, otherwise the score of the next delayed job, 0 for none ]]
local MARKER, WAIT, PRIORITIZED, DELAYED = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local waiting = redis.call('LLEN', WAIT) + redis.call('ZCARD', PRIORITIZED)
if waiting > 0 then return -waiting end
redis.call('ZREM', MARKER, '0')
return tonumber(redis.call('ZRANGE', DELAYED, 0, 0, 'WITHSCORES')[2] or 0)
