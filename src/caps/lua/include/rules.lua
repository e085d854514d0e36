--[[ The cap's rules: ARGV[2] concurrency, ARGV[3] number of rates, then max and window (ms) of each.
     `afterRules` is the index of the first argument after them. ]]
local concurrency, rateCount = tonumber(ARGV[2]), tonumber(ARGV[3])
local afterRules = 4 + 2 * rateCount
local rules, widest, isScarce, hasShares = {}, 0, false, false
for index = 1, rateCount do
  local max, window = tonumber(ARGV[2 + 2 * index]), tonumber(ARGV[3 + 2 * index])
  -- Half of one is none: a rate of one request a window has no shares.
  rules[index] = { max = max, window = window, isShared = max > 1 and max <= SCARCE_MAX }
  widest = math.max(widest, window)
  isScarce = isScarce or max <= SCARCE_MAX
  hasShares = hasShares or rules[index].isShared
end

-- Whose member it is: on a scarce cap accounts of one group count as one.
local function shareOf(member) return string.match(member, isScarce and '^[^|]*' or '^(.*)|') end
