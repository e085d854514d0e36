#!lua flags=allow-oom
--[[ Writes that a process lives, even if Redis is full, so that no operator takes the process for
     dead.
     Input:  KEYS[1] beats by process  ARGV[1] id of the process, ARGV[2] its beat
     Output: 1 ]]
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return 1
