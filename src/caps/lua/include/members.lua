-- Members of the queue are `account|call id`, or `group:path|account|call id`: the path names the
-- networks whose accounts the account shares with, the widest first, with `/` between them; `q…`
-- may have a quarter of a window while others ask. A call id that begins with ~ is of an
-- asynchronous call. A permit is `poll.number`, after `member|` if shares may count it.
local function isAsync(member) return string.find(member, '|~', 1, true) ~= nil end
