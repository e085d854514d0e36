--- @include "./members.lua"
-- No account holds more than half of a scarce cap while others have asked for it lately.
-- When the account's next call may start that has `waiting` of its own before it; 0: its share lets it start now.
local function shareSpentUntil(account, waiting)
  if not isScarce then return 0 end
  local untilWhen = 0
  for _, rule in ipairs(rules) do
    if rule.isScarce then
      local since = now - math.min(rule.window, DEMAND_WINDOW_MS)
      local others = redis.call('ZCOUNT', DEMAND, score(since), '+inf')
      if tonumber(redis.call('ZSCORE', DEMAND, account) or 0) >= since then others = others - 1 end
      if others > 0 then
        local half, grantedAt = math.floor(rule.max / 2), {}
        local entries = redis.call('ZRANGEBYSCORE', LOG, score(now - rule.window), '+inf', 'WITHSCORES')
        for index = 1, #entries, 2 do
          if accountOf(entries[index]) == account then grantedAt[#grantedAt + 1] = tonumber(entries[index + 1]) end
        end
        -- Each starts a window after the one that is half a cap before it.
        local place, windows = #grantedAt + waiting, 0
        while place >= #grantedAt and place >= half do
          place, windows = place - half, windows + 1
        end
        if windows > 0 then untilWhen = math.max(untilWhen, (grantedAt[place + 1] or now) + windows * rule.window) end
      end
    end
  end
  return untilWhen
end
