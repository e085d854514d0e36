--- @include "./rules.lua"
--- @include "./state.lua"
--- @include "../../../redis/lua/set-back.lua"
-- If the clock was set back, the cap's log, the demand of its shares and the times until which it
-- is held follow it, and so do leases and waiters of workers that died, which nobody renews.
-- Returns whether it was.
local function capFollowsSetBack()
  local latest = score(now + ROUND_TRIP_MS_MAX)
  local by = math.max(followSetBack(LOG, latest) or 0, hasShares and followSetBack(DEMAND, latest) or 0)
  if by == 0 then return false end
  followSetBack(LEASES, score(now + LEASE_MS))
  followSetBack(WAITER_EXPIRIES, score(now + WAITER_TTL_MS))
  for _, field in ipairs({'closed', 'leftUntil', 'askersChangedAt'}) do
    if state[field] > now then
      state[field] = math.max(now, state[field] - by)
      redis.call('HSET', STATE, field, score(state[field]))
    end
  end
  return true
end
