local queue = require "queue"

describe("a queue", function()
	it("gives back what came first", function()
		local q = queue.new(2)
		q:push "a"
		q:push "b"
		assert.are.equal("a", q:pop())
		assert.are.equal("b", q:pop())
		assert.is_nil(q:pop())
	end)

	it("takes no more than it has room for", function()
		local q = queue.new(2)
		assert.is_true(q:push "a")
		assert.is_true(q:push "b")
		assert.is_false(q:push "c")
		assert.are.equal(2, q.count)
	end)
end)
