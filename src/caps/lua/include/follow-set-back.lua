--- @include "../../../redis/lua/set-back.lua"
-- Where the clock was set back, the cap's log and the times until which it is held follow it, and so do leases and waiters of
-- workers that died, which nobody renews. Returns whether it was.
local function capFollowsSetBack()
  local by = followSetBack(LOG, score(now + ROUND_TRIP_MS_MAX))
  if not by then return false end
  followSetBack(LEASES, score(now + LEASE_MS))
  followSetBack(WAITER_EXPIRIES, score(now + WAITER_TTL_MS))
  for _, field in ipairs({'closed', 'leftUntil'}) do
    if state[field] > now then
      state[field] = math.max(now, state[field] - by)
      redis.call('HSET', STATE, field, score(state[field]))
    end
  end
  return true
end
