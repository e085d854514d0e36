--- @include "./slots.lua"
--[[ A plan: the grants of the log and those that are planned after them, with the earliest time of the next one.
     On a scarce cap no share holds more than half of a window while others have had demand lately; and of a long
     window a part stays for shares that have had none of it, unless only one share had demand in the last day. ]]
local CHUNK = 128

local function createPlan()
  local plan, planned = {}, {}

  for _, rule in ipairs(rules) do
    rule.used, rule.chunks, rule.grantedTo = usedOf(rule), {}, nil
    rule.opensAt = math.max(now, coldStartEnd(rule))
  end
  -- Grants of each share, by time.
  local function grantsOf(rule, share)
    if not rule.grantedTo then
      rule.grantedTo = {}
      local entries = redis.call('ZRANGEBYSCORE', LOG, windowStart(rule), '+inf', 'WITHSCORES')
      for index = 1, #entries, 2 do
        local other = shareOf(entries[index])
        local grants = rule.grantedTo[other] or {}
        grants[#grants + 1] = tonumber(entries[index + 1])
        rule.grantedTo[other] = grants
      end
      local since = score(now - math.min(rule.window, DEMAND_WINDOW_MS))
      rule.demand = redis.call('ZCOUNT', DEMAND, since, '+inf')
      rule.onlyShare = rule.demand == 1 and redis.call('ZRANGEBYSCORE', DEMAND, since, '+inf', 'LIMIT', 0, 1)[1]
      rule.kept = 0
      if rule.window > KEPT_WINDOW_MS_MIN and state.askersChangedAt > now - KEPT_ALONE_MS then
        rule.kept = math.floor(rule.max * KEPT_SHARE)
      end
    end
    rule.grantedTo[share] = rule.grantedTo[share] or {}
    return rule.grantedTo[share]
  end

  -- When the window has room for the next planned grant, if it may hold `max`.
  local function roomAt(rule, max)
    local index = rule.used + #planned - max
    if index < 0 then return rule.opensAt end
    if index >= rule.used then return math.max(rule.opensAt, planned[index - rule.used + 1] + rule.window) end
    local chunk = math.floor(index / CHUNK)
    local entries = rule.chunks[chunk]
    if not entries then
      entries = redis.call('ZRANGEBYSCORE', LOG, windowStart(rule), '+inf', 'WITHSCORES', 'LIMIT', chunk * CHUNK, CHUNK)
      rule.chunks[chunk] = entries
    end
    return math.max(rule.opensAt, tonumber(entries[2 * (index - chunk * CHUNK) + 2]) + rule.window)
  end

  -- When the next grant may be made, whoever gets it.
  function plan.opensAt()
    local at = math.max(now, state.closed)
    if state.leftUntil > now and #planned >= state.left then at = math.max(at, state.leftUntil) end
    for _, rule in ipairs(rules) do at = math.max(at, roomAt(rule, rule.max)) end
    return at
  end

  -- When the share lets one of its calls be granted; 0: at any time. It may come sooner, at `ifQuietAt`, if the other
  -- shares have no demand any more.
  function plan.shareOpensAt(share)
    local at, ifQuietAt = 0, 0
    if not hasShares then return at, ifQuietAt end
    for _, rule in ipairs(rules) do
      if rule.isShared then
        local grants = grantsOf(rule, share)
        local blocking = grants[#grants - math.floor(rule.max / 2) + 1]
        if blocking and rule.demand > 0 and rule.onlyShare ~= share then
          at = math.max(at, blocking + rule.window)
          ifQuietAt = math.max(ifQuietAt, math.min(blocking + rule.window, plan.othersQuietAt(rule, share)))
        end
        local latest = grants[#grants]
        if latest and rule.kept > 0 then
          local keptAt = math.min(roomAt(rule, rule.max - rule.kept), latest + rule.window)
          at, ifQuietAt = math.max(at, keptAt), math.max(ifQuietAt, keptAt)
        end
      end
    end
    return at, ifQuietAt
  end

  function plan.othersQuietAt(rule, share)
    local latest = redis.call('ZREVRANGE', DEMAND, 0, 1, 'WITHSCORES')
    local demandAt = latest[1] == share and latest[4] or latest[2]
    return tonumber(demandAt or 0) + math.min(rule.window, DEMAND_WINDOW_MS)
  end

  function plan.grant(share, at)
    planned[#planned + 1] = at
    if not hasShares then return end
    for _, rule in ipairs(rules) do
      if rule.isShared then
        local grants = grantsOf(rule, share)
        grants[#grants + 1] = at
      end
    end
  end

  return plan
end
