-- What is remembered of the cap, times in ms since the epoch. Without `initialisedAt` Redis knows
-- nothing of it: see cold-start.ts. `closed`: until when the upstream refuses us; `left`: requests
-- it has left until `leftUntil`. Not read here: `permits`, the number of the last permit;
-- `rampPermit` and `leftPermit`, the last permit when `ramp` began and when the upstream last said
-- what is left.
local fields = redis.call('HMGET', STATE, 'initialisedAt', 'closed', 'left', 'leftUntil', 'serviceMs', 'backfilled',
  'ramp', 'lastWasAsync', 'lastAsker', 'askersChangedAt', 'plannedAt')
local state = {
  initialisedAt = tonumber(fields[1]),
  closed = tonumber(fields[2] or 0),
  left = tonumber(fields[3] or 0),
  leftUntil = tonumber(fields[4] or 0),
  serviceMs = tonumber(fields[5] or 0),
  isBackfilled = fields[6] == '1',
  -- Requests at once that the upstream is trusted with after it had closed itself; nil when it may
  -- have all.
  ramp = tonumber(fields[7]),
  lastWasAsync = fields[8] == '1',
  lastAsker = fields[9],
  -- Since when all calls have come from one share, `lastAsker`.
  askersChangedAt = tonumber(fields[10] or 0),
  -- When a long queue was planned last.
  plannedAt = tonumber(fields[11] or 0),
}
-- If the clock was set back since Redis lost its memory, the loss counts as of now. Otherwise the
-- cap would be held until the clock reaches that time again.
if (state.initialisedAt or 0) > now then
  state.initialisedAt = now
  redis.call('HSET', STATE, 'initialisedAt', score(now))
end
-- Redis lost its memory at `initialisedAt` (0: never): a rate counts as used up until its window or
-- the hold has passed.
local function coldStartEnd(rule)
  if (state.initialisedAt or 0) == 0 then return 0 end
  return state.initialisedAt + math.min(rule.window, COLD_START_HOLD_MS)
end
