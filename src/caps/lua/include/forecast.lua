-- What a call that joins gets: its fair tag, and how long connections or workers keep it waiting.
--- @include "./rules.lua"
--- @include "./state.lua"
--- @include "./slots.lua"

-- How long a queue takes to drain, whatever slows it: connections, or workers that are short of CPU
-- (ms; 0: not known). A second in which little moved, while workers are replaced or a machine is
-- busy, says less than the seconds before it.
local drainedPerSecond
local function drainMs(ahead, busySince)
  if ahead < DRAIN_LENGTH_MIN or isScarce or now - busySince <= DRAIN_WINDOW_MS or widest < DRAIN_WINDOW_MS then return 0 end
  if not drainedPerSecond then
    local function drainedIn(ms) return redis.call('ZCOUNT', LOG, score(now - ms), '+inf') * 1000 / ms end
    drainedPerSecond = drainedIn(DRAIN_WINDOW_MS)
    if widest >= DRAIN_WINDOW_LONG_MS then drainedPerSecond = math.max(drainedPerSecond, drainedIn(DRAIN_WINDOW_LONG_MS)) end
  end
  return ahead / math.max(1, drainedPerSecond) * 1000
end

-- The fair tag of a share's next call: its whole part, and all of it as text. The fraction keeps
-- calls of equal start in the order in which they came.
local function tagAfter(virtual, start, seq)
  local whole = math.floor(math.max(virtual, start))
  return whole, string.format('%.17g', whole + seq % SEQ_SPAN / SEQ_SPAN)
end
