--[[ Acquires the half-open slot of an open breaker: one attempt at a time may hold it. If the
     token holds the slot already, it keeps the slot.
     Input   KEYS[1] health hash
             ARGV[1] time; ARGV[2] token of the attempt; ARGV[3] lease, ms; ARGV[4] slug; ARGV[5] 1:
                     skips the pause;
             ARGV[6] the caller, empty for a probe: a caller that failed of late, or whose half-open
                     attempt said nothing, would only hold the breaker open
     Output  {'closed', 0} · {'slot', 0} · {'wait', ms until the next question} · {'probe', 0}: a
             probe is to be made instead ]]
--- @include "../../redis/lua/clock.lua"
--- @include "./read-health.lua"
local token, leaseMs, slug, skipsPause, caller = ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5] == '1', ARGV[6]
if h.open ~= '1' then return {'closed', 0} end
local holder, waitMs = h.trialBy or '', num('trialAt') - now
if waitMs > 0 then
  -- The acknowledgement of an earlier command was lost, and the command was sent again.
  if holder == token then return {'slot', 0} end
  -- The lease only matters if the holder died.
  if holder ~= '' then return {'wait', math.ceil(math.min(waitMs, HALF_OPEN_WAIT_MS))} end
  if not skipsPause then return {'wait', math.ceil(waitMs)} end
end
local refused = caller ~= '' and (h.voters or '') .. ',' .. (h.idlers or '') or ''
for each, at in string.gmatch(refused, '([^@,]+)@([^,]+)') do
  if each == caller and now - tonumber(at) < VOTE_MS then return {'probe', 0} end
end
redis.call('HSET', key, 'trialBy', token, 'trialAt', text(now + leaseMs))
redis.call('PUBLISH', HEALTH_CHANNEL, slug)
return {'slot', 0}
