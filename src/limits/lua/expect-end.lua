--[[ Notes when a call in flight is expected to end. Notes of times that are over are removed, so a
     call without a note may end at any moment.
     Input:  KEYS expected ends of an account
             ARGV[1] Redis' time (ms)  ARGV[2] when the call is expected to end (ms)
             ARGV[3] its id ]]
local ENDS = unpack(KEYS)
local now, endsAt, callId = unpack(ARGV)
redis.call('ZREMRANGEBYSCORE', ENDS, '-inf', now)
redis.call('ZADD', ENDS, endsAt, callId)
-- Only the soonest ends matter. A call whose entry is removed counts as a call that may end at any
-- moment.
redis.call('ZREMRANGEBYRANK', ENDS, NOTES_MAX, -1)
redis.call('PEXPIRE', ENDS, LEASE_MS_MAX)
