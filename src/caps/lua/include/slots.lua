--- @include "./rules.lua"
--- @include "./state.lua"
-- Permits that are exactly a window old have left it.
local function windowStart(rule) return '(' .. score(now - rule.window) end
local function usedOf(rule) return redis.call('ZCOUNT', LOG, windowStart(rule), '+inf') end

-- Requests that may be under way at once.
local function concurrencyNow() return state.ramp and math.min(state.ramp, concurrency) or concurrency end

-- Requests that may start at this instant.
local function freeNow()
  if state.closed > now then return 0 end
  local free = concurrencyNow() - redis.call('ZCARD', LEASES)
  for _, rule in ipairs(rules) do
    if now < coldStartEnd(rule) then return 0 end
    free = math.min(free, rule.max - usedOf(rule))
  end
  if state.leftUntil > now then free = math.min(free, state.left) end
  return math.max(0, free)
end

-- When the rates let a request with so many others before it start.
local function slotAt(ahead)
  local slot = math.max(now, state.closed)
  if state.leftUntil > now and ahead >= state.left then slot = math.max(slot, state.leftUntil) end
  for _, rule in ipairs(rules) do
    local rank = ahead % rule.max
    local at = math.max(now, coldStartEnd(rule))
    local rankInLog = usedOf(rule) + rank - rule.max
    if rankInLog >= 0 then
      local entry = redis.call('ZRANGEBYSCORE', LOG, windowStart(rule), '+inf', 'WITHSCORES', 'LIMIT', rankInLog, 1)
      if entry[2] then at = math.max(at, tonumber(entry[2]) + rule.window) end
    end
    slot = math.max(slot, at + math.floor(ahead / rule.max) * rule.window)
  end
  return slot
end

-- How long connections keep a call with so many before it waiting.
local function congestionMs(leased, ahead)
  local busy = leased + ahead + 1 - concurrencyNow()
  return busy > 0 and state.serviceMs * busy / concurrencyNow() or 0
end
