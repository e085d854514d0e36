--[[ The cap's rules: ARGV[2] concurrency, ARGV[3] number of rates, then max and window (ms) of
     each.
     `afterRules` is the index of the first argument after them. ]]
local concurrency, rateCount = tonumber(ARGV[2]), tonumber(ARGV[3])
local afterRules = 4 + 2 * rateCount
local rules, widest, isScarce, hasShares = {}, 0, false, false
for index = 1, rateCount do
  local max, window = tonumber(ARGV[2 + 2 * index]), tonumber(ARGV[3 + 2 * index])
  -- Half of one request is no request: a rate of one request a window has no shares.
  rules[index] = { max = max, window = window, isShared = max > 1 and max <= SCARCE_MAX }
  widest = math.max(widest, window)
  isScarce = isScarce or max <= SCARCE_MAX
  hasShares = hasShares or rules[index].isShared
end

-- Whose member it is. On a scarce cap that is its share: an account, or the groups of a network
-- (see members.lua).
local function shareOf(member) return string.match(member, isScarce and '^[^|]*' or '^(.*)|') end

local NETWORK = 'group:'
local function isOfNetwork(share) return string.sub(share, 1, #NETWORK) == NETWORK end

-- The groups that hold a share, the widest first, and the share itself last: `group:a/b` is in
-- `group:a`.
local paths = {}
local function pathOf(share)
  local path = paths[share]
  if path then return path end
  path = {}
  local slash = isScarce and isOfNetwork(share) and string.find(share, '/', 1, true)
  while slash do
    path[#path + 1] = string.sub(share, 1, slash - 1)
    slash = string.find(share, '/', slash + 1, true)
  end
  path[#path + 1] = share
  paths[share] = path
  return path
end
