--[[ The cap's rules: ARGV[2] concurrency, ARGV[3] number of rates, then max and window (ms) of each.
     `own` is the index of the first argument after them. ]]
local concurrency, rateCount = tonumber(ARGV[2]), tonumber(ARGV[3])
local own = 4 + 2 * rateCount
local rules, widest, isScarce = {}, 0, false
for index = 1, rateCount do
  local max, window = tonumber(ARGV[2 + 2 * index]), tonumber(ARGV[3 + 2 * index])
  rules[index] = { max = max, window = window }
  widest = math.max(widest, window)
  -- Half of one is none: a cap of one request a window has no shares.
  if max > 1 and max <= SCARCE_MAX then
    rules[index].isScarce = true
    isScarce = true
  end
end
