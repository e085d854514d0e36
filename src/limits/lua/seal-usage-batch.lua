--[[ Gives the pending counts an id, under which Postgres counts them once.
     Input:  KEYS pending counts, batch, ids of batches  ARGV[1] id
     Output: 1; 0 if nothing is pending ]]
local PENDING, BATCH, BATCHES = unpack(KEYS)
local id = ARGV[1]
if redis.call('EXISTS', PENDING) == 0 then return 0 end
redis.call('RENAME', PENDING, BATCH)
redis.call('SADD', BATCHES, id)
return 1
