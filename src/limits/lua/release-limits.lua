--[[ Ends calls: gives back their in-flight leases and, for calls that failed on our side or the upstream's, the month's
     units. A call without a lease was ended before, or its lease is over: nothing is given back for it.
     Input:  KEYS in-flight leases, month count, then the month counts of applications
             ARGV of each call: id, number of its application's KEYS (0: its units do not come back)
     Output: how many had a lease ]]
local IN_FLIGHT, MONTH = unpack(KEYS)
local CHUNK = 1000
local ended, refunds, plain = 0, {}, {}
local function refund(counter)
  refunds[counter] = (refunds[counter] or 0) + 1
end
for index = 1, #ARGV, 2 do
  local callId, application = ARGV[index], KEYS[tonumber(ARGV[index + 1])]
  if not application then
    plain[#plain + 1] = callId
  elseif redis.call('ZREM', IN_FLIGHT, callId) == 1 then
    ended = ended + 1
    refund(MONTH)
    refund(application)
  end
end
-- Nothing comes back for these, so that it does not matter which of them had a lease.
for first = 1, #plain, CHUNK do
  ended = ended + redis.call('ZREM', IN_FLIGHT, unpack(plain, first, math.min(first + CHUNK - 1, #plain)))
end
for counter, count in pairs(refunds) do
  local used = tonumber(redis.call('GET', counter) or 0)
  if used > 0 then redis.call('DECRBY', counter, math.min(count, used)) end
end
return ended
