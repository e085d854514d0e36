--[[ Ends calls: gives back their in-flight leases and, for calls that failed on our side or the upstream's, the month's
     units. A call without a lease was ended before: nothing is given back for it.
     Input:  KEYS in-flight leases, month count  ARGV of each call: id, 1 when its unit comes back
     Output: how many had a lease ]]
local IN_FLIGHT, MONTH = unpack(KEYS)
local CHUNK = 1000
local ended, refunds, plain = 0, 0, {}
for index = 1, #ARGV, 2 do
  local callId, refund = ARGV[index], tonumber(ARGV[index + 1])
  if refund == 0 then
    plain[#plain + 1] = callId
  elseif redis.call('ZREM', IN_FLIGHT, callId) == 1 then
    ended = ended + 1
    refunds = refunds + refund
  end
end
-- Nothing comes back for these, so that it does not matter which of them had a lease.
for first = 1, #plain, CHUNK do
  ended = ended + redis.call('ZREM', IN_FLIGHT, unpack(plain, first, math.min(first + CHUNK - 1, #plain)))
end
if refunds > 0 then
  local used = tonumber(redis.call('GET', MONTH) or 0)
  if used > 0 then redis.call('DECRBY', MONTH, math.min(refunds, used)) end
end
return ended
