--[[ Ends calls: gives back their in-flight leases and, for calls that failed on our side or the upstream's, the month's
     units. A call without a lease was ended before, or its lease is over: nothing is given back for it. An asynchronous
     call may outlive its lease, held by a pause: a marker of its own says whether it was ended before.
     Input:  KEYS in-flight leases, month count, then the month counts of applications and the markers
             ARGV of each call: id, 1 where its unit of the month comes back, number of the KEYS of its application's
             month (0: none), and of its marker (0: none)
     Output: how many had not been ended before ]]
local IN_FLIGHT, MONTH = unpack(KEYS)
local CHUNK = 1000
local ended, refunds, plain = 0, {}, {}
local function refund(counter)
  refunds[counter] = (refunds[counter] or 0) + 1
end
local function isFirstEnd(callId, marker)
  local hadLease = redis.call('ZREM', IN_FLIGHT, callId) == 1
  if not marker then return hadLease end
  return redis.call('SET', marker, '', 'NX', 'PX', ENDED_MS) ~= false
end
for index = 1, #ARGV, 4 do
  local callId, refundsMonth = ARGV[index], ARGV[index + 1] == '1'
  local application, marker = KEYS[tonumber(ARGV[index + 2])], KEYS[tonumber(ARGV[index + 3])]
  if not refundsMonth and not marker then
    plain[#plain + 1] = callId
  elseif isFirstEnd(callId, marker) then
    ended = ended + 1
    if refundsMonth then
      refund(MONTH)
      if application then refund(application) end
    end
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
