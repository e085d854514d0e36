--[[ Counts an attempt, or several good attempts, in one step: decay, counts, score, state, breaker,
     record of a change.
     The score is calculated as in score.ts; a property test holds the two together.
     Input   KEYS[1] health hash; KEYS[2] stream of changes
             ARGV[1]  time
             ARGV[2]  result: ok · fail · hanging (a failure in a row; how it ends is not known) ·
                      late (the end of one that was hanging: a failure, not in a row any more) ·
                      endpoint-fail (a probe of one endpoint got an answer that is a failure: it
                      counts only for the score, because other endpoints may work) ·
                      none (it only releases its half-open slot)
             ARGV[3]  latencies of good attempts, ms, with commas between
             ARGV[4]  code; ARGV[5] source: call or probe; ARGV[6] token of its half-open slot
             ARGV[7]  slug
             ARGV[8]  1: plain, without undeclared parameters; ARGV[9] the caller that has a vote:
                      see voterOf
             ARGV[10] failures in a row that open the breaker after a clean record
             ARGV[11] 1: its call was counted as failed already: one more failure in a row, none
                      more of the score
             ARGV[12] members that its answer lacks or has: see note-members.lua; empty: none that
                      matter
     Output  {state, 1 if it changed, score, 1 if a probe must decide whether the breaker opens,
             1 if it closed, the endpoint that a probe must decide about, or empty} ]]
--- @include "../../redis/lua/clock.lua"
--- @include "./read-health.lua"
local changes = KEYS[2]
local result, latencies, code, source, token, slug = ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7]
local isPlain, account, failuresToOpen, isRepeat = ARGV[8] == '1', ARGV[9], tonumber(ARGV[10]), ARGV[11] == '1'
local noted = ARGV[12]
local isFailure = (result == 'fail' or result == 'late' or result == 'endpoint-fail') and isPlain
local isInRow = result == 'fail' or result == 'hanging'

local factor = 2 ^ (-math.max(0, now - num('at')) / HALF_LIFE_MS)
local ok, fail, run = num('ok') * factor, num('fail') * factor, num('run')
-- Counts from before the present failures in a row, since the breaker last closed.
local okBefore, failBefore = num('okBefore') * factor, num('failBefore') * factor
local weights, total, index = {}, 0, 1
for weight in string.gmatch(h.hist or '', '[^,]+') do
  weights[index] = tonumber(weight) * factor
  index = index + 1
end
if result == 'ok' or result == 'endpoint-fail' then
  if run < 0 then failBefore = failBefore - run end
  run = math.max(run, 0)
  if result == 'endpoint-fail' then run = 0 end
end
if result == 'ok' then
  for latencyText in string.gmatch(latencies, '[^,]+') do
    local latency = tonumber(latencyText)
    ok, okBefore, run = ok + 1, okBefore + 1, run + 1
    local bucket = #LATENCY_BOUNDS_MS + 1
    for i = 1, #LATENCY_BOUNDS_MS do if latency <= LATENCY_BOUNDS_MS[i] then bucket = i break end end
    weights[bucket] = (weights[bucket] or 0) + 1
  end
end
if isFailure and not isRepeat then fail = fail + 1 end
if isInRow then run = math.min(run, 0) - 1 end
local hist = {}
for i = 1, #LATENCY_BOUNDS_MS + 1 do
  weights[i] = weights[i] or 0
  total = total + weights[i]
  hist[i] = weights[i] < 1e-6 and '0' or string.format('%.9g', weights[i])
end

local p95 = nil
if total >= LATENCY_WEIGHT_MIN then
  p95 = SLOW_MS
  local below, rank = 0, total * 0.95
  for i = 1, #LATENCY_BOUNDS_MS do
    if below + weights[i] >= rank then
      local lower = LATENCY_BOUNDS_MS[i - 1] or 0
      p95 = lower + (LATENCY_BOUNDS_MS[i] - lower) * (rank - below) / weights[i]
      break
    end
    below = below + weights[i]
  end
end
local share = fail / (ok + fail + PRIOR_ATTEMPTS)
local quick = 1
if p95 then quick = math.min(math.max((SLOW_MS - p95) / (SLOW_MS - FAST_MS), 0), 1) end
local score = math.floor(AVAILABILITY_POINTS * math.max(0, 1 - 2 * share) + LATENCY_POINTS * quick + 0.5)

-- A list of callers and when each was added. An old entry is left out.
local function withCaller(list, isAdded)
  local callers = {}
  for caller, at in string.gmatch(list or '', '([^@,]+)@([^,]+)') do
    if now - tonumber(at) < VOTE_MS and not (isAdded and caller == account) then callers[#callers + 1] = caller .. '@' .. at end
  end
  if isAdded then callers[#callers + 1] = account .. '@' .. text(now) end
  if #callers > VOTERS_MAX then table.remove(callers, 1) end
  return callers
end
-- Each caller has one vote, however often its calls fail. Counted are the callers with recent
-- failures, and how many of them have failed since the last good attempt.
local isOfCaller = source == 'call' and account ~= ''
local voters, votesInRow = withCaller(h.voters, (isFailure or isInRow) and isPlain and isOfCaller), 0
for _, voter in ipairs(voters) do
  if tonumber(string.match(voter, '@(.*)')) >= num('okAt') then votesInRow = votesInRow + 1 end
end
local hasProbeFailed = run < 0 and (h.rowPlain == '1' or isInRow and source == 'probe')
-- Whether the upstream itself caused the failures in a row.
local isOwnFault = hasProbeFailed or votesInRow >= math.max(2, failuresToOpen)
local needed = failuresToOpen
local shareBefore = failBefore / (okBefore + failBefore + PRIOR_ATTEMPTS)
if shareBefore > 0 then
  local byChance = math.ceil(math.log(CHANCE_TO_OPEN) / math.log(shareBefore))
  needed = math.max(needed, math.min(byChance, FAILURES_TO_OPEN_MAX))
end
local isDue = isInRow and -run >= needed and now - num('okAt') >= QUIET_MS_TO_OPEN

--- @include "./note-members.lua"
local from = h.state or 'Healthy'
local to, cause = from, nil
local isOpen = h.open == '1'
local holdsSlot = token ~= '' and token == h.trialBy
-- The callers whose half-open attempts said nothing, for example because the caller left. They
-- could otherwise hold the slot again and again.
local idlers = withCaller(h.idlers, holdsSlot and result == 'none' and isOfCaller)
-- The fields are called trialAt (while the slot is held: the end of its lease) and trialBy, because
-- earlier versions read the same hash. @until 0.4.0
local halfOpenAt, holder, pause, good = num('trialAt'), h.trialBy or '', num('pause'), num('good')
local isAnnounced, needsProbe, hasNewCause = false, 0, false
-- A good attempt never makes an upstream Down, because earlier failures were judged when they
-- happened.
local isBelowDown = isFailure and score < 40 and from ~= 'Down'
-- Few callers may have caused the failures themselves, so the state is at worst Degraded until a
-- probe fails too.
local isDoubtful = isBelowDown and source ~= 'probe' and #voters < VOTES_TO_BE_DOWN
local confirmAt = num('confirmAt')
if isOpen then
  -- Attempts that were running when the breaker opened are counted but do not decide.
  if holdsSlot and result ~= 'hanging' then
    holder = ''
    isAnnounced = true
    if result == 'ok' then
      good = good + 1
      halfOpenAt, pause = now, 0
      if good >= SUCCESSES_TO_CLOSE then
        isOpen, to, cause = false, 'Degraded', 'trials-passed'
        okBefore, failBefore = 0, 0
      end
    elseif result == 'none' then halfOpenAt = now
    else
      pause = math.min(math.max(pause * 2, HALF_OPEN_PAUSE_MS_MIN), HALF_OPEN_PAUSE_MS_MAX)
      halfOpenAt = now + pause
    end
  end
elseif isDue and isOwnFault then
  isOpen, to, cause, isAnnounced = true, 'Down', 'failures-in-a-row', true
  pause, good, holder = HALF_OPEN_PAUSE_MS_MIN, 0, ''
  halfOpenAt = now + pause
elseif isDue and now - confirmAt >= CONFIRM_EVERY_MS or isDoubtful and now - confirmAt >= CONFIRM_SCORE_EVERY_MS then
  confirmAt, needsProbe = now, 1
end
if not isOpen and to == from then
  if isBelowDown and not isDoubtful then to, cause = 'Down', 'score'
  elseif from == 'Healthy' and score < 80 then to, cause = 'Degraded', 'score'
  elseif from == 'Healthy' and lacking ~= '' then to, cause = 'Degraded', 'lacks ' .. lacking
  elseif from == 'Down' and score >= 40 and run >= GOOD_TO_RECOVER then to, cause = 'Degraded', 'score'
  elseif from == 'Degraded' and score >= 80 and run >= GOOD_TO_RECOVER and lacking == '' then
    to, cause = 'Healthy', (h.lacking or '') == '' and 'score' or 'members-back'
  elseif from == 'Degraded' and lacking ~= '' and lacking ~= h.lacking then hasNewCause, cause = true, 'lacks ' .. lacking end
end

redis.call('HSET', key, 'state', to, 'open', isOpen and 1 or 0, 'at', text(now), 'ok', text(ok), 'fail', text(fail),
  'run', run, 'hist', table.concat(hist, ','), 'okBefore', text(okBefore), 'failBefore', text(failBefore),
  'voters', table.concat(voters, ','), 'idlers', table.concat(idlers, ','), 'rowPlain', hasProbeFailed and 1 or 0, 'confirmAt', text(confirmAt),
  'trialAt', text(halfOpenAt), 'trialBy', holder, 'pause', text(pause), 'good', good)
if result == 'ok' then
  redis.call('HSET', key, 'okAt', text(now))
  -- Absent from hashes of the earlier version, which have only okAt. @until 0.4.0
  if not h.okAt then redis.call('HSET', key, 'firstOkAt', text(now)) end
end
-- Records when the upstream was last tried. Failures with undeclared parameters do not count,
-- because their callers may have caused them. So these failures do not delay the next probe.
if result == 'ok' or isFailure then redis.call('HSET', key, source == 'probe' and 'probeAt' or 'callAt', text(now)) end
if to ~= from or hasNewCause then
  redis.call('HSET', key, 'since', text(now), 'cause', cause)
  redis.call('XADD', changes, 'MAXLEN', '~', CHANGES_MAX, '*', 'at', text(now), 'from', from, 'to', to, 'cause', cause,
    'code', code, 'source', source, 'score', score, 'ok', string.format('%.3f', ok), 'fail', string.format('%.3f', fail),
    'p95', p95 and string.format('%.0f', p95) or '')
end
isAnnounced = isAnnounced or isMemberNews or hasNewCause
if to ~= from or isAnnounced then redis.call('PUBLISH', HEALTH_CHANNEL, slug) end
return {to, (to ~= from or isAnnounced) and 1 or 0, score, needsProbe, h.open == '1' and not isOpen and 1 or 0, probedEndpoint}
