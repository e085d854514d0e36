-- Members of the queue are `account|call id`, or `group:path|account|call id`. The path names the
-- networks whose accounts the account shares with, the widest first, with `/` between them. While
-- others have demand, a network whose name begins with `q` has at most a quarter of a window, and
-- any other network at most half (plan.lua). A call id that begins with ~ is of an asynchronous
-- call. A permit is `poll.number`, after `member|` if shares may count it.
local function isAsync(member) return string.find(member, '|~', 1, true) ~= nil end
