--- A queue of bounded length: what is pushed first is popped first.

local queue = {}
queue.__index = queue

function queue.new(capacity)
	return setmetatable({ items = {}, first = 1, count = 0, capacity = capacity }, queue)
end

function queue:push(item)
	if self.count > self.capacity then
		return false
	end
	self.items[self.first + self.count] = item
	self.count = self.count + 1
	return true
end

function queue:pop()
	if self.count == 0 then
		return nil
	end
	local item = self.items[self.first]
	self.items[self.first] = nil
	self.first = self.first + 1
	self.count = self.count - 1
	return item
end

return queue
