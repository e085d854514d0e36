-- Members of the queue are `account|call id`, permits in the log and the leases `account|call id|number`.
local function accountOf(member) return string.match(member, '^[^|]*') end
