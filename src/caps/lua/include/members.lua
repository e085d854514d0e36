-- Members of the queue are `account|call id`, or `group:name|account|call id` where the account shares with others of its
-- group; a call id that begins with ~ is of an asynchronous call. A permit is `poll.number`, after `member|` where shares may
-- be counted by it.
local function isAsync(member) return string.find(member, '|~', 1, true) ~= nil end
